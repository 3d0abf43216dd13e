package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// approvals drives a gate, its inbox and two people with anything that may happen,
// and holds them to what people said: nothing above 10 lands without an approval,
// and of a request and its corrections one lands.
type approvals struct {
	*rig
	members  map[string]bool
	seen     map[string]protocol.Waiting // what each person read last, and may be old
	approved map[journal.ID]bool         // ever, by somebody who was in the group
	denied   map[journal.ID]bool
}

var approvalRequests = []string{"case-1", "case-2"}

func (a *approvals) submit(t *rapid.T) {
	p := a.paid(rapid.SampledFrom(approvalRequests).Draw(t, "request"), rapid.SampledFrom([]int{5, 20, 20}).Draw(t, "amount"))
	if _, err := a.gate.Submit(context.Background(), p); err != nil {
		t.Fatal(err)
	}
}

func (a *approvals) recovers(t *rapid.T) {
	if _, err := a.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: rapid.Bool().Draw(t, "wait")}); err != nil {
		t.Fatal(err)
	}
}

// reads is a person who opens the inbox, and answers later.
func (a *approvals) reads(t *rapid.T) {
	list, err := a.gate.Inbox(context.Background(), true)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) > 0 {
		a.seen[rapid.SampledFrom([]string{"ana", "bob"}).Draw(t, "who")] = rapid.SampledFrom(list).Draw(t, "what")
	}
}

func (a *approvals) answers(t *rapid.T) {
	person := rapid.SampledFrom([]string{"ana", "bob"}).Draw(t, "who")
	w, ok := a.seen[person]
	if !ok {
		return
	}
	yes := rapid.Bool().Draw(t, "yes")
	d := a.decision(w, person, yes)
	if rapid.Bool().Draw(t, "once") {
		d.Attempts = 1
	}
	before := a.denied[w.Effect]
	if yes { // a decision may be durable before the process dies
		a.approved[w.Effect] = a.approved[w.Effect] || a.members[person]
	}
	_, err := a.decide(d)
	switch {
	case err == nil && !a.members[person]:
		t.Fatalf("%s decided and is in no group", person)
	case err == nil && before:
		t.Fatalf("decided again after a rejection")
	case err == nil && !yes:
		a.denied[w.Effect] = true
	case err != nil && !errors.Is(err, protocol.ErrDecision):
		t.Fatal(err)
	}
}

func (a *approvals) corrects(t *rapid.T) {
	person := rapid.SampledFrom([]string{"ana", "bob"}).Draw(t, "who")
	w, ok := a.seen[person]
	if !ok || w.Revision > 2 {
		return
	}
	amount := rapid.SampledFrom([]int{4, 15}).Draw(t, "amount")
	next := protocol.EffectID(namespace, w.Request, w.Revision+1)
	a.approved[next] = a.approved[next] || a.members[person]
	if _, err := a.correct(w, person, amount); err != nil && !errors.Is(err, protocol.ErrCorrection) && !errors.Is(err, journal.ErrHeld) {
		t.Fatal(err)
	}
}

// orDies kills the process on the way, or not.
func (a *approvals) orDies(t *rapid.T, f func(t *rapid.T)) {
	at := rapid.IntRange(-20, 15).Draw(t, "killed at point")
	a.onStep = nil
	if at >= 0 {
		a.killAt(at, nil)
	}
	if a.run(func() { f(t) }) {
		a.restart()
	}
	a.onStep = nil
}

func (a *approvals) holds(t *rapid.T) {
	for _, request := range approvalRequests {
		landed := 0
		for revision := range uint64(5) {
			effect := protocol.EffectID(namespace, request, revision)
			n := a.service.landings(effect)
			landed += n
			for _, l := range a.service.ledger {
				if l.effect == effect && l.payload != `{"amount":5,"order":"881"}` && l.payload != `{"amount":4,"order":"881"}` && !a.approved[effect] {
					t.Fatalf("%s revision %d landed and nobody approved it: %s", request, revision, l.payload)
				}
			}
			if n > 0 && a.denied[effect] {
				t.Fatalf("%s revision %d landed and was rejected", request, revision)
			}
			receipt, err := a.gate.Receipt(context.Background(), effect)
			if errors.Is(err, protocol.ErrUnknown) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if receipt.Executed.Is == protocol.No && n > 0 || receipt.Executed.Is == protocol.Yes && n == 0 {
				t.Fatalf("landed %d times, and the receipt says\n%s", n, receipt)
			}
		}
		if landed > 1 {
			t.Fatalf("%s landed %d times", request, landed)
		}
	}
}

func TestApprovalMachine(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		can := rapid.SampledFrom([]protocol.Capabilities{tier1(), tier2()}).Draw(rt, "profile")
		a := &approvals{
			rig: newDesk(t, can), members: map[string]bool{"ana": true, "bob": true}, seen: map[string]protocol.Waiting{},
			approved: map[journal.ID]bool{}, denied: map[journal.ID]bool{},
		}
		defer a.kill()
		a.group("managers", signer("ana"), signer("bob"))
		rt.Repeat(map[string]func(*rapid.T){
			"":        a.holds,
			"submit":  func(t *rapid.T) { a.orDies(t, a.submit) },
			"recover": func(t *rapid.T) { a.orDies(t, a.recovers) },
			"read":    a.reads,
			"answer":  func(t *rapid.T) { a.orDies(t, a.answers) },
			"correct": func(t *rapid.T) { a.orDies(t, a.corrects) },
			"time": func(t *rapid.T) {
				a.clock.advance(time.Duration(rapid.SampledFrom([]int{1, 31, 3600, 15000}).Draw(t, "seconds")) * time.Second)
			},
			"world": func(t *rapid.T) {
				a.service.set("refunded", fmt.Sprint(rapid.SampledFrom([]int{0, 7}).Draw(t, "refunded")))
			},
			"service": func(t *rapid.T) {
				a.service.script = append(a.service.script, rapid.SampledFrom([]simulatedAnswer{
					ackLost, neverLands, says(protocol.NotSent), says(protocol.NotExecuted),
				}).Draw(t, "answer"))
			},
			"join or leave": func(t *rapid.T) {
				person := rapid.SampledFrom([]string{"ana", "bob"}).Draw(t, "who")
				a.members[person] = !a.members[person]
				var in []protocol.Member
				for _, p := range []string{"ana", "bob"} {
					if a.members[p] {
						in = append(in, signer(p))
					}
				}
				a.group("leads", in...)
				a.group("managers", in...)
			},
		})
		// Left alone, with ana in both groups, everything ends.
		a.service.script, a.onStep = nil, nil
		a.group("leads", signer("ana"))
		a.group("managers", signer("ana"))
		for range 4 {
			if _, err := a.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true}); err != nil {
				rt.Fatal(err)
			}
			for _, w := range a.inbox() {
				a.approved[w.Effect] = true
				if _, err := a.decide(a.decision(w, "ana", true)); err != nil && !w.Late {
					rt.Fatal(err)
				}
			}
		}
		open, err := a.gate.Report(context.Background())
		if err != nil || len(open) > 0 {
			rt.Fatalf("left open: %+v, %v", open, err)
		}
		a.holds(rt)
	})
}
