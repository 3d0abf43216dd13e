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

	freed *held // timers only: what its firing is taken to have ended
}

// held is one request whose answer is withheld.
type held struct{ _ byte } // of a size, so that each has an address of its own

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

	live     int         // flows of the process under test
	waits    int         // flows blocked in Wait
	withheld []*held     // requests whose answer is withheld from a client that waits for it, the oldest first
	fired    []*deadline // timers that fired, while it is not known what that ended
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
	return c.live > 0 && len(c.fired) == 0 && c.waits+len(c.withheld) == c.live
}

// bury forgets everything of the process under test; what the world has planned
// stays.
func (c *virtualClock) bury() {
	c.pending = slices.DeleteFunc(c.pending, func(d *deadline) bool { return d.class != event })
	c.live, c.waits, c.withheld, c.fired = 0, 0, nil, nil
}

// armTimer arms a timer of the process. When it fires, the flow that it frees is
// in a Wait or in a request whose answer is withheld. Of a Wait the process says
// so itself; of a request nobody does, and the service notices late that its
// client is gone. So from that moment the oldest withheld answer counts as given
// up, until the process says that it was a Wait.
func (c *virtualClock) armTimer(due time.Duration, fire func()) *deadline {
	d := c.arm(due, timer, "", nil)
	d.fire = func() {
		c.fired = append(c.fired, d)
		if len(c.withheld) > 0 {
			d.freed = c.withheld[0]
			c.withheld = c.withheld[1:]
		}
		fire()
	}
	return d
}

// ended notes that everything is undone that hung on timer d, which fired. That
// ended as many waits as it says.
func (c *virtualClock) ended(d *deadline, waits int) {
	i := slices.Index(c.fired, d)
	if i < 0 {
		return
	}
	c.fired = slices.Delete(c.fired, i, i+1)
	if d.freed != nil && waits > 0 {
		c.withheld = slices.Insert(c.withheld, 0, d.freed)
	}
}

// release notes that nobody is kept waiting by h any more.
func (c *virtualClock) release(h *held) {
	c.withheld = slices.DeleteFunc(c.withheld, func(o *held) bool { return o == h })
	for _, d := range c.fired {
		if d.freed == h {
			d.freed = nil
		}
	}
}
