package faults

import (
	"cmp"
	"slices"
	"time"
)

// epoch is where the wall clock of every trial begins.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// deadline is something that is due at a virtual time.
type deadline struct {
	due   time.Duration
	class class
	what  string // events only
	seq   int    // in the order of arming
	fire  func() // with the stage's lock held

	unacked, stale bool // timers only; see armTimer
}

// class orders what is due at the same time: the world first, then timers, then
// waits. Within a class the order is that of what, then that of arming.
type class int

const (
	event class = iota
	timer
	waiting
)

// virtualClock is the time of one trial and whom it has to wait for. Its fields
// belong to the stage's lock, but for now, which anybody may read.
type virtualClock struct {
	pending []*deadline
	seq     int

	live     int // flows of the process under test
	waits    int // flows blocked in Wait
	withheld int // requests whose answer is withheld
	stale    int // of them, those whose client has given up though the service has not noticed yet
	unacked  int // timers that fired and whose ends are not yet known
}

func (c *virtualClock) arm(due time.Duration, k class, what string, fire func()) *deadline {
	c.seq++
	d := &deadline{due: due, class: k, what: what, seq: c.seq, fire: fire}
	c.pending = append(c.pending, d)
	return d
}

// disarm takes d away and says whether it was still pending.
func (c *virtualClock) disarm(d *deadline) bool {
	i := slices.Index(c.pending, d)
	if i < 0 {
		return false
	}
	c.pending = slices.Delete(c.pending, i, i+1)
	return true
}

// earliest is the next deadline of a class up to last; nil is none.
func (c *virtualClock) earliest(last class) *deadline {
	var first *deadline
	for _, d := range c.pending {
		if d.class <= last && (first == nil || before(d, first) < 0) {
			first = d
		}
	}
	return first
}

func before(a, b *deadline) int {
	return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.class, b.class), cmp.Compare(a.what, b.what), cmp.Compare(a.seq, b.seq))
}

// blocked says that no flow of the process can go on by itself.
func (c *virtualClock) blocked() bool {
	return c.live > 0 && c.unacked == 0 && c.waits+c.withheld-c.stale == c.live
}

// bury forgets everything of the process under test; what the world has planned
// stays.
func (c *virtualClock) bury() {
	c.pending = slices.DeleteFunc(c.pending, func(d *deadline) bool { return d.class != event })
	c.live, c.waits, c.withheld, c.stale, c.unacked = 0, 0, 0, 0, 0
}

// armTimer arms a timer of the process. When it fires, the flow that it frees is
// in a Wait or in a request whose answer is withheld. Of a Wait the process says
// so itself; of a request nobody does, and the service notices late that its
// client is gone. So one withheld answer counts as given up from that moment,
// until the process says that it was a Wait.
func (c *virtualClock) armTimer(due time.Duration, fire func()) *deadline {
	d := c.arm(due, timer, "", nil)
	d.fire = func() {
		c.unacked++
		d.unacked = true
		if c.withheld > c.stale {
			c.stale++
			d.stale = true
		}
		fire()
	}
	return d
}

// ended notes that everything is undone that hung on timer d, which fired. That
// ended as many waits as it says.
func (c *virtualClock) ended(d *deadline, waits int) {
	if d == nil || !d.unacked {
		return
	}
	c.unacked--
	d.unacked = false
	if d.stale && waits > 0 {
		c.stale = max(c.stale-1, 0)
	}
}
