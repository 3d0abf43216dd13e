package protocol_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// refusedCorrection checks that a correction isn't accepted, and that it changed
// nothing.
func (r *rig) refusedCorrection(w protocol.Waiting, person string, amount int, why string) {
	r.Helper()
	before := len(r.kinds(w.Effect))
	if _, err := r.correct(w, person, amount); !errors.Is(err, protocol.ErrCorrection) {
		r.Fatalf("want a CorrectionError (%s), have %v", why, err)
	}
	if n := len(r.kinds(w.Effect)); n != before {
		r.Errorf("%s: %d entries were written", why, n-before)
	}
}

// refused is what could be corrected.
func (r *rig) refused(request string) protocol.Waiting {
	r.Helper()
	list, err := r.gate.Inbox(context.Background(), true)
	if err != nil {
		r.Fatal(err)
	}
	for _, w := range list {
		if w.Request == request {
			return w
		}
	}
	r.Fatalf("nothing can be done about %s", request)
	return protocol.Waiting{}
}

// TestACorrectionIsANewEffect: it has an id of its own, says what it corrects and
// why that counts as not landed, and the old one is never sent (I8).
func TestACorrectionIsANewEffect(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	r.service.set("refunded", "7")
	r.clock.advance(4 * 3600e9)
	r.recover(false) // moved up, on the facts of now
	w := r.one()
	if w.Left != "93" && w.Left != "100" {
		t.Errorf("left: %q", w.Left)
	}
	got, err := r.correct(w, "cy", 13)
	if err != nil {
		t.Fatal(err)
	}
	next := protocol.EffectID(namespace, "case-1", 1)
	if got.Effect != next || got.Receipt.Revision != 1 || got.Receipt.Corrects.Effect != id("case-1") {
		t.Fatalf("it became %s\n%s", got.Effect, got.Receipt)
	}
	if !strings.Contains(got.Receipt.Corrects.Basis, "nothing was sent") {
		t.Errorf("basis: %s", got.Receipt.Corrects.Basis)
	}
	// The new amount is routed to the leads first, and cy is none of them.
	r.want(r.recover(false), "REFUSED:awaiting_decision", 0)
	r.approve(r.one(), "ana")
	r.want(r.recover(false), "COMMITTED", 1)
	r.want(r.submit(r.paid("case-1", 20)), "REFUSED:closed", 0)
	r.want(r.submit(r.paid("case-1", 13)), "DUPLICATE_IGNORED", 1)
	r.want(r.submit(r.paid("case-1", 14)), "REFUSED:conflicting_payload", 1)
	if n := r.service.landings(id("case-1")) + r.service.landings(next); n != 1 {
		t.Errorf("landed %d times", n)
	}
	old, err := r.gate.Receipt(context.Background(), id("case-1"))
	if err != nil || old.Status.String() != "REFUSED:closed" || *old.Corrected != next || old.Executed.Is != protocol.No {
		t.Errorf("the old one says %v\n%s", err, old)
	}
	r.refusedCorrection(protocol.Waiting{Effect: id("case-1"), Answers: w.Answers}, "cy", 12, "it was corrected before")
}

// TestWhoAcceptsACorrectionApprovesIt, where that person is in the group that the
// revision is routed to.
func TestWhoAcceptsACorrectionApprovesIt(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	if _, err := r.correct(r.one(), "ana", 15); err != nil {
		t.Fatal(err)
	}
	got := r.recover(false)
	r.want(got, "COMMITTED", 1)
	if len(got.Receipt.Asked) != 0 || got.Receipt.Corrects.Signed != "signed" {
		t.Errorf("the receipt says\n%s", got.Receipt)
	}
}

// TestC13NothingThatMayLandIsCorrected: in flight, its owner dead, a person offers a
// correction; it is turned away until the original is settled.
func TestC13NothingThatMayLandIsCorrected(t *testing.T) {
	r := newDesk(t, tier2())
	r.submit(r.paid("case-1", 20))
	r.approve(r.one(), "ana")
	r.dies("gate/intent-durable", func() { r.gate.Recover(context.Background(), protocol.RecoverOptions{}) })
	w := protocol.Waiting{Effect: id("case-1")}
	r.refusedCorrection(w, "ana", 15, "it may still land")
	r.service.set("refunded", "5")
	r.want(r.recover(true), "REFUSED:stale_premise_at_recovery", 0)
	got, err := r.correct(r.refused("case-1"), "ana", 15)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.Receipt.Corrects.Basis, "landing bound") {
		t.Errorf("basis: %s", got.Receipt.Corrects.Basis)
	}
	r.want(r.recover(true), "COMMITTED", 1)
	if r.service.landings(id("case-1")) != 0 {
		t.Error("the original landed as well")
	}
}

// TestAPersonsWordIsABasis: ambiguous, settled by a person as not landed, corrected.
// The revision's receipt carries whose word it rests on.
func TestAPersonsWordIsABasis(t *testing.T) {
	r := newDesk(t, tier3())
	r.submit(r.paid("case-1", 20))
	r.approve(r.one(), "ana")
	r.service.script = []simulatedAnswer{neverLands}
	r.recover(false)
	amb := r.recover(false)
	r.want(amb, "AMBIGUOUS", 0)
	w := r.one()
	if w.For != "settling" {
		t.Errorf("for %s", w.For)
	}
	r.refusedCorrection(w, "ana", 15, "nobody can tell")
	r.resolve(amb, false)
	got, err := r.correct(r.refused("case-1"), "ana", 15)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.Receipt.Corrects.Basis, "word of ruth") {
		t.Errorf("basis: %s", got.Receipt.Corrects.Basis)
	}
	r.want(r.recover(false), "COMMITTED", 1)
	if old, err := r.gate.Receipt(context.Background(), id("case-1")); err != nil || old.Executed.Is != protocol.No || !strings.Contains(old.Executed.Basis, "ruth") {
		t.Errorf("%v\n%s", err, old)
	}
}

func TestWhatCantBeCorrected(t *testing.T) {
	r := newDesk(t, tier1())
	r.want(r.submit(r.paid("case-1", 10)), "COMMITTED", 1)
	r.refusedCorrection(protocol.Waiting{Effect: id("case-1")}, "ana", 5, "it landed")
	r.submit(r.paid("case-2", 20))
	w := r.one()
	r.refusedCorrection(w, "cy", 15, "the leads are asked")
	r.refusedCorrection(w, "policy", 15, "nobody")
	r.refusedCorrection(w, "ana", 20, "the same payload")
	r.refusedCorrection(w, "", 15, "a person was asked; no lease accepts it")
	stale := w
	stale.Answers = journal.Hash{1}
	r.refusedCorrection(stale, "ana", 15, "an older state of it")
	r.approve(w, "ana")
	r.refusedCorrection(w, "ana", 15, "it is approved and still to be sent")
	if _, err := r.correct(protocol.Waiting{Effect: id("case-9")}, "ana", 5); !errors.Is(err, protocol.ErrUnknown) {
		t.Errorf("an effect that nobody knows: %v", err)
	}
}

// TestALeaseAcceptsAsManyCorrectionsAsItSays: the approval's own rule, for what
// nobody was asked about.
func TestALeaseAcceptsAsManyCorrectionsAsItSays(t *testing.T) {
	r := newRig(t, tier1())
	l := lease("L-repair")
	l.Corrections = 1
	r.grant(l)
	propose := func(request string, amount int) protocol.Proposal {
		p := r.proposal(request, amount)
		p.Lease = "L-repair"
		return p
	}
	r.want(r.submit(propose("case-1", 30)), "REFUSED:lease", 0)
	r.want(r.submit(propose("case-1", 20)), "REFUSED:conflicting_payload", 0) // never a new id of its own accord
	r.refusedCorrection(r.refused("case-1"), "", 25, "the lease doesn't cover it")
	if _, err := r.correct(r.refused("case-1"), "", 20); err != nil {
		t.Fatal(err)
	}
	got := r.recover(false)
	r.want(got, "COMMITTED", 1)
	if !strings.Contains(got.Receipt.Corrects.Accepted, "L-repair") {
		t.Errorf("accepted by %s", got.Receipt.Corrects.Accepted)
	}

	p := propose("case-2", 20)
	r.service.set("refunded", "5")
	r.want(r.submit(p), "REFUSED:stale_premise", 0)
	if _, err := r.correct(r.refused("case-2"), "", 15); err != nil {
		t.Fatal(err)
	}
	r.service.set("refunded", "8")
	r.want(r.recover(false), "REFUSED:stale_premise", 0) // it rests on the facts that were read
	w := r.refused("case-2")
	r.refusedCorrection(w, "", 12, "one correction is all")
	r.refusedCorrection(r.refused("case-2"), "ruth", 12, "a person with a key signs with it")

	narrower := lease("L-none")
	r.grant(narrower)
	p = propose("case-3", 30)
	p.Lease = "L-none"
	r.submit(p)
	r.refusedCorrection(r.refused("case-3"), "", 20, "this lease accepts none")
	wider := lease("L-none-2")
	wider.Replaces, wider.Corrections = "L-none", 1
	if err := r.authority.Grant(context.Background(), wider); !errors.Is(err, protocol.ErrLease) {
		t.Errorf("a renewal accepts more corrections: %v", err)
	}
}

// TestCorrectionsSurviveEveryCrash: killed at every point of accepting and sending a
// correction; one of the two lands, once.
func TestCorrectionsSurviveEveryCrash(t *testing.T) {
	for at := 0; ; at++ {
		r := newDesk(t, tier1())
		r.submit(r.paid("case-1", 20))
		w := r.one()
		r.killAt(at, nil)
		died := r.run(func() {
			r.correct(w, "ana", 15)
			r.gate.Recover(context.Background(), protocol.RecoverOptions{})
		})
		if !died {
			if at < 5 {
				t.Fatalf("only %d points were passed", at)
			}
			return
		}
		r.restart()
		r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true})
		for _, w := range r.inbox() {
			if _, err := r.correct(w, "ana", 15); err != nil {
				t.Fatalf("point %d: %v", at, err)
			}
			r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true})
		}
		if old, next := r.service.landings(id("case-1")), r.service.landings(protocol.EffectID(namespace, "case-1", 1)); old != 0 || next != 1 {
			t.Fatalf("killed at point %d: the original landed %d times, the correction %d", at, old, next)
		}
	}
}
