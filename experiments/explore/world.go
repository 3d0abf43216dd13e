package explore

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/disk"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// world is all that outlives a process: two disks, the services, the clock, the
// lease, and what may still go wrong. It is copied at every crash.
type world struct {
	bound     *setup
	journal   *disk.Disk
	authority *disk.Disk
	now       time.Duration // since the epoch
	service   service
	left      Budget
	lease     leaseState
	lives     int  // processes that were started
	calm      bool // nothing more goes wrong
	damaged   bool // the end of the journal was: an attempt may be suspect

	standing []standing      // by effect, as the last process read or wrote it
	fixed    []int           // by effect: 1 and more is the payload of the first durable proposal
	asked    []int           // by effect: payload that the callers ask for
	tokens   []journal.Token // of every request that left
}

// Budget is how much may go wrong.
type Budget struct {
	Crashes int // of the process, nested: a recovery is crashed like anything else
	Changes int // of the world: the lease is revoked, a fact changes, a person does it, a day passes
	Faults  int // of calls to a service: refused, lost, late, unanswered, replayed
	IO      int // errors of the journal's disk
}

// leaseState is how far the revocation of the lease has come.
type leaseState byte

const (
	alive    leaseState = iota
	recorded            // it can be read
	returned            // nothing may be dispatched any more
)

// standing is what the journal says of an effect.
type standing byte

const (
	unknown standing = iota
	proposed
	dispatched
	committed
	refused
	ambiguous
	mismatched
)

func (w *world) clone() *world {
	c := *w
	c.journal, c.authority = w.journal.Clone(), w.authority.Clone()
	c.service = w.service.clone()
	c.standing, c.fixed, c.asked = slices.Clone(w.standing), slices.Clone(w.fixed), slices.Clone(w.asked)
	c.tokens = slices.Clone(w.tokens)
	return &c
}

// describe appends everything of w that something later can depend on.
func (w *world) describe(b []byte) []byte {
	for _, s := range [][16]byte{w.journal.Sum(), w.authority.Sum()} {
		b = append(b, s[:]...)
	}
	b = binary.AppendVarint(b, int64(w.now))
	l := w.left
	b = append(b, byte(l.Crashes), byte(l.Changes), byte(l.Faults), byte(l.IO), byte(w.lease), bit(w.lives > 0), bit(w.calm), bit(w.damaged))
	for e := range w.standing {
		b = append(b, byte(w.standing[e]), byte(w.fixed[e]), byte(w.asked[e]))
	}
	for _, t := range w.tokens {
		b = describeToken(b, t)
	}
	return w.service.describe(b)
}

// digest is 128 bits of SHA-256.
func digest(b []byte) [16]byte {
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}

// crash is the world after its process died in the given way, which is none of
// its own where it ended by itself. Requests on their way live on.
func (w *world) crash(how move) *world {
	c := w.clone()
	switch how.way {
	case power:
		c.journal = disk.Of(c.journal.Synced())
	case torn:
		c.journal, c.damaged = c.torn()[how.arg], true
	}
	if how.way != exits {
		c.left.Crashes--
	}
	for i := range c.service.flying {
		f := &c.service.flying[i]
		if d := c.deadline(f.effect); d != never {
			f.deadline = max(f.deadline, d)
		}
	}
	c.calm = false
	return c
}

// deadline is until when a request that is on its way now may land. Where the
// bound is unknown and the service absorbs repeats, that nothing lands later than
// the margin is what its keys rest on.
func (w *world) deadline(e int) time.Duration {
	switch can := w.bound.profiles[e].Can; {
	case can.LandingBound > 0 && w.has(boundUnderstated):
		return w.now + 10*can.LandingBound
	case can.LandingBound > 0:
		return w.now + can.LandingBound
	case can.DedupWindow > 0:
		return w.now + can.DedupMargin
	}
	return never
}

// lag is how old an answer of a lookup may be.
func (w *world) lag(e int) time.Duration {
	if w.has(lagUnderstated) {
		return 10 * w.bound.profiles[e].Can.LookupLag
	}
	return w.bound.profiles[e].Can.LookupLag
}

// torn are disks on which the power went while the unsynced sectors were being
// written: the first alone got there, all but the first, all but the last.
func (w *world) torn() []*disk.Disk {
	var all, some []*disk.Disk
	for d := range w.journal.FewStates(disk.Sectors, 0) {
		all = append(all, d)
	}
	if n := len(all); n >= 4 && n <= 256 {
		for _, i := range []int{1, n - 2, n/2 - 1} {
			some = append(some, all[i])
		}
	}
	if len(some) > 0 && len(all) == 4 {
		some = some[:2]
	}
	return some
}

// land lets flight i arrive.
func (w *world) land(i int) verdict {
	f := w.service.flying[i]
	w.service.flying = slices.Delete(w.service.flying, i, i+1)
	return w.arrive(f.effect, f.payload, f.token)
}
