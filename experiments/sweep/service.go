package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// profile is what a service promises, and whether it leaves the gate without an
// answer at times.
type profile struct {
	name   string
	can    protocol.Capabilities
	doubts bool // AMBIGUOUS may be the honest end
}

func profiles() []profile {
	const second = time.Second
	t1 := protocol.Capabilities{ClientTimeout: 10 * second, DedupWindow: 24 * time.Hour, DedupMargin: 2 * time.Hour, Lookup: true, LandingBound: 30 * second}
	t2 := protocol.Capabilities{ClientTimeout: 10 * second, Lookup: true, LandingBound: 30 * second}
	with := func(c protocol.Capabilities, change func(*protocol.Capabilities)) protocol.Capabilities {
		change(&c)
		return c
	}
	return []profile{
		{"t1", t1, false},
		{"t2", t2, false},
		{"t3", protocol.Capabilities{ClientTimeout: 10 * second}, true},
		{"blind", with(t1, func(c *protocol.Capabilities) { c.Lookup = false }), true},
		{"unbounded", with(t2, func(c *protocol.Capabilities) { c.LandingBound = 0 }), true},
		{"lagging", with(t2, func(c *protocol.Capabilities) { c.LookupLag = 5 * second }), false},
		{"forgetful", with(t2, func(c *protocol.Capabilities) { c.LookupWindow = time.Hour }), true},
		{"conditional", with(t2, func(c *protocol.Capabilities) { c.Conditional = true }), false},
		{"fenced", with(t2, func(c *protocol.Capabilities) { c.Fencing, c.LandingBound = true, 0 }), false},
	}
}

// service is a target with a ledger. It keeps its promises, and is unkind in
// every way that they allow.
type service struct {
	profile
	clock *clock
	facts map[string]string
	next  []manner // what it does with the next requests; then it applies and answers
	deaf  int      // connections it refuses
	mute  int      // lookups that fail
	blind int      // reads that fail

	ledger  []landing
	keys    map[journal.ID]time.Duration // when a key was taken
	failed  map[journal.ID]bool          // keys that replay a failure
	fences  map[journal.ID]journal.Token
	said    map[journal.ID]map[protocol.Outcome]bool
	read    map[journal.ID]map[string]reading // what was last read for an effect
	pending map[journal.ID]int                // requests that will yet be applied

	step    func(name string, id journal.ID)
	sending func(protocol.Request)
}

type landing struct {
	effect  journal.ID
	payload string
	at      time.Duration
}

type reading struct {
	value string
	at    time.Duration
}

// manner is one way to treat a request.
type manner struct {
	name  string
	lost  bool          // it never arrives
	late  time.Duration // it is applied that much later
	says  protocol.Outcome
	fails bool // applied, and its key replays a failure from then on
}

func newService(p profile, c *clock) *service {
	return &service{
		profile: p, clock: c, facts: map[string]string{"eligible": "true", "refunded": "0"},
		keys: map[journal.ID]time.Duration{}, failed: map[journal.ID]bool{}, fences: map[journal.ID]journal.Token{},
		said: map[journal.ID]map[protocol.Outcome]bool{}, read: map[journal.ID]map[string]reading{}, pending: map[journal.ID]int{},
	}
}

func (s *service) Capabilities() protocol.Capabilities { return s.can }

func (s *service) Prepare(_ context.Context, r protocol.Request) (protocol.Attempt, error) {
	s.step("connect", r.Effect)
	if s.deaf > 0 {
		s.deaf--
		return nil, errors.New("connection refused")
	}
	return &connection{s, r}, nil
}

type connection struct {
	s *service
	r protocol.Request
}

func (c *connection) Close() error { return nil }

func (c *connection) Send(_ context.Context, e protocol.Envelope) protocol.Answer {
	s, id := c.s, c.r.Effect
	s.sending(c.r)
	how := manner{says: protocol.Done}
	if len(s.next) > 0 {
		how, s.next = s.next[0], s.next[1:]
	}
	if s.said[id] == nil {
		s.said[id] = map[protocol.Outcome]bool{}
	}
	s.step("received", id)
	for _, p := range c.r.Premises {
		if s.facts[p.Name] != string(p.Seen) {
			s.said[id][protocol.PremiseFailed] = true
			return protocol.Answer{Outcome: protocol.PremiseFailed, Premise: p.Name, Reason: "412"}
		}
	}
	if s.failed[id] && s.knows(id) {
		return protocol.Answer{Replayed: true, Reason: "500, replayed"}
	}
	switch {
	case how.lost:
	case how.late > 0:
		s.pending[id]++
		s.clock.after(how.late, func() { s.pending[id]--; s.apply(c.r, e.Token) })
	default:
		s.apply(c.r, e.Token)
		if how.fails && s.can.DedupWindow > 0 {
			s.failed[id] = true
		}
		s.step("applied", id)
	}
	s.said[id][how.says] = true
	return protocol.Answer{Outcome: how.says, Reason: how.name, Result: json.RawMessage(`{"state":"succeeded"}`)}
}

func (s *service) knows(id journal.ID) bool {
	at, ok := s.keys[id]
	return ok && s.clock.Mono() < at+s.can.DedupWindow
}

// apply applies a request unless its key or a fence forbids it; both are looked
// at as it lands (C32).
func (s *service) apply(r protocol.Request, t journal.Token) {
	if s.can.DedupWindow > 0 && s.knows(r.Effect) || s.can.Fencing && t.Less(s.fences[r.Effect]) {
		return
	}
	s.keys[r.Effect] = s.clock.Mono()
	s.ledger = append(s.ledger, landing{r.Effect, string(r.Payload), s.clock.Mono()})
}

func (s *service) Lookup(_ context.Context, r protocol.Request) (protocol.Finding, error) {
	s.step("lookup", r.Effect)
	if s.mute > 0 {
		s.mute--
		return protocol.Finding{}, errors.New("502")
	}
	for _, l := range s.ledger {
		age := s.clock.Mono() - l.at
		if l.effect == r.Effect && age >= s.can.LookupLag && (s.can.LookupWindow == 0 || age < s.can.LookupWindow) {
			return protocol.Finding{Landed: true, Same: l.payload == string(r.Payload), Result: json.RawMessage(l.payload)}, nil
		}
	}
	return protocol.Finding{}, nil
}

func (s *service) Observe(_ context.Context, p protocol.Premise, r protocol.Request) (json.RawMessage, error) {
	s.step("observe", r.Effect)
	if s.blind > 0 {
		s.blind--
		return nil, errors.New("timeout")
	}
	if s.read[r.Effect] == nil {
		s.read[r.Effect] = map[string]reading{}
	}
	s.read[r.Effect][p.Name] = reading{s.facts[p.Name], s.clock.Mono()}
	return json.RawMessage(s.facts[p.Name]), nil
}

func (s *service) Fence(_ context.Context, id journal.ID, t journal.Token) error {
	s.step("fence", id)
	if s.blind > 0 {
		s.blind--
		return errors.New("timeout")
	}
	if !s.fences[id].Less(t) {
		return fmt.Errorf("token %s is not above %s", t, s.fences[id])
	}
	s.fences[id] = t
	return nil
}

// landings are those of one effect.
func (s *service) landings(id journal.ID) (of []landing) {
	for _, l := range s.ledger {
		if l.effect == id {
			of = append(of, l)
		}
	}
	return of
}
