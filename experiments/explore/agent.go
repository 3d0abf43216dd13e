package explore

import (
	"encoding/binary"
	"iter"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// agent is a coroutine: a caller of the gate, or a principal. It runs from one
// stop to the next, and nobody else runs meanwhile.
type agent struct {
	index  int
	next   func() (struct{}, bool)
	finish func()
	yield  func(struct{}) bool

	at   stop
	how  way // how it is to go on from there
	done bool
	dead bool  // its process is gone: what still runs of it does nothing
	err  error // of the journal; its process ends

	seen    [16]byte // digest of all that it observed up to here: what it is going to do depends on that alone
	unseen  []byte   // observed since
	heard   [16]byte // the authority as it read it last
	opening bool     // it opens the gate: it is unwound by errors
	sharing sharing  // whether it holds the lease's byte
	looks   []look   // by effect: what it knows of its present attempt
}

// stop is where an agent stands.
type stop struct {
	kind   stopKind
	name   string
	effect int           // -1 for none
	wake   time.Duration // stopWait
	alone  bool          // it holds a lock that others would block on
}

// stopKind says in which ways an agent may go on.
type stopKind byte

const (
	stopPoint   stopKind = iota // a trace point, or a call that can't fail here
	stopPrepare                 // connecting
	stopObserve                 // reading a premise
	stopSend                    // before the first byte
	stopLookup
	stopFence
	stopWrite // of the journal's disk
	stopSync
	stopDisk // another call of the disk
	stopWait // for the clock
	stopTurn // until no other agent is at the journal
	stopLast // until the other agents are done
)

// killed unwinds an agent whose process is gone.
type killed struct{}

// newAgent is a coroutine that has not begun.
func newAgent(index, effects int, run func(*agent)) *agent {
	a := &agent{index: index, looks: make([]look, effects)}
	a.next, a.finish = iter.Pull(func(yield func(struct{}) bool) {
		a.yield = yield
		defer func() {
			if v := recover(); v != nil {
				if _, ok := v.(killed); !ok {
					panic(v)
				}
			}
		}()
		run(a)
	})
	return a
}

// stop lets the scheduler decide, and returns how to go on.
func (a *agent) stop(s stop) way {
	if a.dead {
		return on
	}
	a.at = s
	if s.kind != stopPoint {
		a.share(s.name, false)
	}
	a.unseen = append(a.unseen, s.name...)
	a.see(byte(s.kind), byte(s.effect+1))
	a.seen = digest(append(a.unseen, a.seen[:]...))
	a.unseen = a.unseen[:0]
	if !a.yield(struct{}{}) {
		a.dead = true
		if a.opening {
			return on // opening what is held until it fails has to give it back
		}
		panic(killed{})
	}
	a.see(byte(a.how))
	return a.how
}

// end unwinds the agent.
func (a *agent) end() {
	a.dead = true
	a.finish()
}

// see notes something that the agent observed.
func (a *agent) see(b ...byte) { a.unseen = append(a.unseen, b...) }

func (a *agent) seeTime(d time.Duration) {
	a.see('t')
	a.unseen = binary.AppendVarint(a.unseen, int64(d))
}

// sharing is how far a dispatch has come that holds the lease's byte.
type sharing byte

const (
	apart     sharing = iota // no dispatch is under way
	looking                  // it has the byte and looks at the authority again
	appending                // it appends, up to the sync
)

// share follows an agent from stop to stop.
func (a *agent) share(name string, point bool) {
	switch {
	case name == string(protocol.PointLeaseShared):
		a.sharing = looking
	case name == string(protocol.PointRechecked) && a.sharing == looking:
		a.sharing = appending
	case a.sharing == looking, point && name != string(journal.Written) && name != string(journal.Synced):
		a.sharing = apart // a guard stopped it, or its intent is durable
	}
}
