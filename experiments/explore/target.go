package explore

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// target is the service of one effect, as the gate calls it.
type target struct {
	p      *process
	effect int
	can    protocol.Capabilities
}

// targetFencer is a target that can fence.
type targetFencer struct{ target }

func (t target) Capabilities() protocol.Capabilities { return t.can }

func (t target) call(kind stopKind, name string) (*agent, way) {
	a := t.p.x.running
	return a, a.stop(stop{kind: kind, name: name, effect: t.effect})
}

func (t target) Prepare(_ context.Context, r protocol.Request) (protocol.Attempt, error) {
	a, how := t.call(stopPrepare, "service/connect")
	if how == failed {
		return nil, errFailed
	}
	a.looks[t.effect] = look{connected: true}
	return &connection{target: t, request: r}, nil
}

func (t target) Observe(_ context.Context, _ protocol.Premise, _ protocol.Request) (json.RawMessage, error) {
	a, how := t.call(stopObserve, "service/observe")
	if how == failed {
		return nil, errFailed
	}
	w := t.p.x.w
	f := w.service.facts[t.effect]
	if w.has(premiseCached) {
		f = asSeen
	}
	a.see('f', byte(f), byte(w.service.facts[t.effect]))
	t.p.x.tell.asked("premise", t.effect, string(factValue(f)))
	a.looks[t.effect].read, a.looks[t.effect].fact, a.looks[t.effect].at = true, w.service.facts[t.effect], w.now
	return factValue(f), nil
}

func factValue(f fact) json.RawMessage {
	return [...]json.RawMessage{json.RawMessage(openSeen), json.RawMessage(`"closed"`), json.RawMessage(`"paid"`)}[f]
}

func (t target) Lookup(_ context.Context, r protocol.Request) (protocol.Finding, error) {
	a, how := t.call(stopLookup, "service/lookup")
	w := t.p.x.w
	asOf := w.now
	switch how {
	case failed:
		return protocol.Finding{}, errFailed
	case stale:
		asOf -= w.lag(t.effect)
	}
	l, ok := w.found(t.effect, asOf)
	if w.has(lookupLies) {
		ok = false
	}
	t.p.x.tell.asked("lookup", t.effect, map[bool]string{false: "absent", true: "landed"}[ok])
	a.see('l', bit(ok), byte(l.payload))
	if !ok {
		return protocol.Finding{}, nil
	}
	return protocol.Finding{Landed: true, Same: bytes.Equal(payload(l.payload), r.Payload), Result: json.RawMessage(`{"id":"re_1"}`)}, nil
}

func (t targetFencer) Fence(_ context.Context, _ journal.ID, token journal.Token) error {
	_, how := t.call(stopFence, "service/fence")
	w := t.p.x.w
	fence := &w.service.fences[t.effect]
	if how == failed || !fence.Less(token) {
		return errFailed
	}
	if !w.has(fenceIgnored) {
		*fence = token
	}
	if how == ackLost {
		return errFailed
	}
	return nil
}

// connection is one prepared request.
type connection struct {
	target
	request protocol.Request
}

func (c *connection) Close() error { return nil }

func (c *connection) Send(_ context.Context, e protocol.Envelope) protocol.Answer {
	a, how := c.call(stopSend, "service/send")
	x, w := c.p.x, c.p.x.w
	n := 0
	if bytes.Equal(c.request.Payload, payload(1)) {
		n = 1
	}
	if how == unsent {
		if w.has(unsentLies) {
			x.tell.arrived(c.effect, n, x.tell.sent(c.effect, n, e.Token), w.arrive(c.effect, n, e.Token))
		}
		return protocol.Answer{Outcome: protocol.NotSent, Reason: "no byte left"}
	}
	x.judgeSend(a, c.effect, n, e.Token)
	w.tokens = append(w.tokens, e.Token)
	number := x.tell.sent(c.effect, n, e.Token)
	answer := protocol.Answer{}
	switch how {
	case on, ackLost:
		v := w.arrive(c.effect, n, e.Token)
		x.tell.arrived(c.effect, n, number, v)
		if w.has(sentTwice) {
			x.tell.arrived(c.effect, n, number, w.arrive(c.effect, n, e.Token))
		}
		if how == on {
			answer = answerOf(v)
		}
	case late:
		w.service.flying = append(w.service.flying, flight{c.effect, n, e.Token, w.deadline(c.effect), number})
	case rejected:
		w.service.finals[c.effect] = true
		if w.has(noLies) {
			x.tell.arrived(c.effect, n, number, w.arrive(c.effect, n, e.Token))
		}
		answer = protocol.Answer{Outcome: protocol.Rejected, Reason: "no"}
	case busy:
		answer = protocol.Answer{Outcome: protocol.NotExecuted, Reason: "429"}
	case stored:
		if !w.remembers(c.effect) {
			w.service.keys[c.effect] = key{known: true, at: w.now, failed: true}
		}
	}
	c.call(stopPoint, "service/arrived")
	if how == late || how == lost {
		w.now += clientTimeout
		for i := range w.service.flying {
			if f := &w.service.flying[i]; f.token == e.Token {
				f.deadline = w.deadline(c.effect)
			}
		}
	}
	x.tell.answered(number, outcomeWords[answer.Outcome])
	a.see('a', byte(answer.Outcome), bit(answer.Replayed))
	return answer
}

// outcomeWords are the answers as a history has them.
var outcomeWords = map[protocol.Outcome]string{
	protocol.Unknown: "nothing", protocol.Done: "ok", protocol.PremiseFailed: "premise_failed",
	protocol.Rejected: "refused", protocol.NotExecuted: "busy",
}

// answerOf is what a service answers where nothing goes wrong on the way.
func answerOf(v verdict) protocol.Answer {
	switch v {
	case applied, absorbed:
		return protocol.Answer{Outcome: protocol.Done, Result: json.RawMessage(`{"id":"re_1"}`)}
	case replayed:
		return protocol.Answer{Replayed: true, Reason: "500, replayed"}
	case unmet:
		return protocol.Answer{Outcome: protocol.PremiseFailed, Premise: "state", Reason: "412"}
	}
	return protocol.Answer{Outcome: protocol.Rejected, Reason: "fenced"}
}

// target is the service of effect e.
func (p *process) target(e int, can protocol.Capabilities) protocol.Target {
	t := target{p, e, can}
	if can.Fencing {
		return targetFencer{t}
	}
	return t
}
