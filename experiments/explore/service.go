package explore

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// service is what the services hold: one for each effect, which has a profile of
// its own. It is a value; clone copies it.
type service struct {
	landed []landing
	flying []flight
	keys   []key           // by effect
	fences []journal.Token // by effect
	facts  []fact          // by effect
	finals []bool          // by effect: a request was refused for good
	unmet  []bool          // by effect: it landed on a premise that the service was to check, and that had changed
}

// landing is a line of the ledger.
type landing struct {
	effect, payload int
	at              time.Duration
	hand            bool // a person's, outside of the gate
}

// flight is a request that was sent and has not arrived. It lands when the
// scheduler says so, at the deadline at the latest, or never.
type flight struct {
	effect, payload int
	token           journal.Token
	deadline        time.Duration // never where the bound is unknown
	number          int           // in a history that is told
}

const never = time.Duration(1<<63 - 1)

// key is what a service remembers of an idempotency key.
type key struct {
	known  bool
	at     time.Duration
	failed bool // it replays a failure
}

// fact is what a premise says.
type fact byte

const (
	asSeen  fact = iota // what the agent saw
	changed             // something else
	byHand              // a person has done it
)

func newService(effects int) service {
	return service{
		keys: make([]key, effects), fences: make([]journal.Token, effects),
		facts: make([]fact, effects), finals: make([]bool, effects), unmet: make([]bool, effects),
	}
}

func (s service) clone() service {
	return service{
		slices.Clone(s.landed), slices.Clone(s.flying), slices.Clone(s.keys),
		slices.Clone(s.fences), slices.Clone(s.facts), slices.Clone(s.finals), slices.Clone(s.unmet),
	}
}

// verdict is what a service says of a request that arrives.
type verdict int

const (
	applied  verdict = iota
	absorbed         // the key is known
	replayed         // the key is known, and replays a failure
	fenced           // the token is too old
	unmet            // the premise doesn't hold
)

// arrive is a request that gets to the service at now.
func (w *world) arrive(e, payload int, token journal.Token) verdict {
	s, p := &w.service, w.bound.profiles[e]
	if w.has(doneUnasked) {
		return absorbed
	}
	switch k := &s.keys[e]; {
	case p.Can.DedupWindow > 0 && w.remembers(e) && k.failed:
		return replayed
	case p.Can.DedupWindow > 0 && w.remembers(e):
		return absorbed
	case p.Can.Fencing && token.Less(s.fences[e]):
		return fenced
	case p.Can.Conditional && s.facts[e] != asSeen && !w.has(conditionIgnored):
		return unmet
	case p.Can.DedupWindow > 0:
		*k = key{known: true, at: w.now}
	}
	s.unmet[e] = s.unmet[e] || p.Can.Conditional && s.facts[e] != asSeen
	s.landed = append(s.landed, landing{effect: e, payload: payload, at: w.now})
	return applied
}

// remembers reports whether the service still knows the key of effect e.
func (w *world) remembers(e int) bool {
	k := w.service.keys[e]
	return k.known && w.now < k.at+w.bound.profiles[e].Can.DedupWindow && !w.has(keyForgotten)
}

// found is what a lookup sees whose answer is of the given time.
func (w *world) found(e int, asOf time.Duration) (landing, bool) {
	window := w.bound.profiles[e].Can.LookupWindow
	for _, l := range w.service.landed {
		if l.effect == e && !l.hand && l.at <= asOf && (window == 0 || w.now < l.at+window) {
			return l, true
		}
	}
	return landing{}, false
}

// landings counts what landed of effect e, people's hands aside.
func (s service) landings(e int) (n int) {
	for _, l := range s.landed {
		if l.effect == e && !l.hand {
			n++
		}
	}
	return n
}

// describe appends everything of s.
func (s service) describe(b []byte) []byte {
	for _, l := range s.landed {
		b = append(b, 'L', byte(l.effect), byte(l.payload), bit(l.hand))
		b = binary.AppendVarint(b, int64(l.at))
	}
	for _, f := range s.flying {
		b = append(b, 'F', byte(f.effect), byte(f.payload))
		b = describeToken(b, f.token)
		b = binary.AppendVarint(b, int64(f.deadline))
	}
	for e := range s.keys {
		k := s.keys[e]
		b = append(b, 'E', bit(k.known), bit(k.failed), byte(s.facts[e]), bit(s.finals[e]), bit(s.unmet[e]))
		b = binary.AppendVarint(b, int64(k.at))
		b = describeToken(b, s.fences[e])
	}
	return b
}

func describeToken(b []byte, t journal.Token) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, t.Segment), uint64(t.Seq))
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
