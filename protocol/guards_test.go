package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// What each guard holds alone. Most of what may go wrong is held by several
// guards, and a test that looks at money only passes as long as one of them is
// there.

func TestALastCheckInRecoveryIsNamedAsInSubmit(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.clock.advance(time.Minute)
	r.once("gate/intent-durable", func() { r.revoke("L-refund") })
	r.want(r.recover(false), "REFUSED:lease", 0) // it was authorized when it was dispatched
}

func TestEveryConnectionIsGivenUp(t *testing.T) {
	r := newRig(t, tier1())
	r.once("gate/sent", func() {
		if r.service.open != 0 {
			t.Error("the answer is there and its connection stands")
		}
	})
	r.want(r.submit(r.proposal("case-1", 20)), "COMMITTED", 1)
	r.once("gate/connected", func() { r.service.set("refunded", "20") })
	r.want(r.submit(r.proposal("case-2", 20)), "REFUSED:stale_premise", 0)
	if r.service.dials != 2 || r.service.open != 0 {
		t.Errorf("%d connections made, %d stand", r.service.dials, r.service.open)
	}
}

func TestR6ComesBeforeTheEndOfAKeyThatReplays(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{{lost: true, fails: true}}
	r.submit(r.proposal("case-1", 20))
	r.want(r.recover(false), "IN_FLIGHT", 0)
	r.service.set("refunded", "20")
	r.want(r.recover(true), "REFUSED:stale_premise_at_recovery", 0)
	if waited := r.clock.Mono(); waited > time.Hour {
		t.Errorf("it waited %v for a key that it doesn't need", waited)
	}
}

func TestAKeyThatReplaysATemporaryNoHoldsNothingUp(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{{lost: true, says: protocol.Answer{Outcome: protocol.NotExecuted, Replayed: true}}}
	r.want(r.submit(r.proposal("case-1", 20)), "NOT_SENT", 0)
	r.want(r.submit(r.proposal("case-1", 20)), "COMMITTED", 1)
}

func TestAPremiseForTheTargetIsNotRead(t *testing.T) {
	can := tier2()
	can.Conditional = true
	r := newRig(t, can)
	p := r.proposal("case-1", 20)
	p.Premises[1].Holds = protocol.ByTarget
	r.service.observe = func(name string) error {
		if name == "refunded" {
			return errors.New("nobody but the service can read this")
		}
		return nil
	}
	r.want(r.submit(p), "COMMITTED", 1)
}

func TestASlowConnectionMakesNoPremiseOld(t *testing.T) {
	r := newRig(t, tier1())
	read := 0
	r.onStep = func(p string) {
		switch p {
		case "service/prepare":
			r.clock.advance(5 * time.Second)
		case "service/observe":
			read++
		}
	}
	r.want(r.submit(r.proposal("case-1", 20)), "COMMITTED", 1)
	if read != 2 {
		t.Errorf("two premises were read %d times", read)
	}
}

func TestARefusalOfItsOwnIsRecordedThoughTheSameWasTurnedAway(t *testing.T) {
	r := newRig(t, tier1())
	r.service.refuse = 1
	r.submit(r.proposal("case-1", 20))
	other := r.proposal("case-1", 20)
	other.Agent = "agent-9"
	r.want(r.submit(other), "REFUSED:lease", 0) // turned away: agent-7 is at it
	r.service.set("refunded", "20")
	r.want(r.recover(false), "REFUSED:stale_premise", 0)
	r.want(r.submit(other), "REFUSED:lease", 0) // a decision of its own now
	if open, err := r.gate.Report(context.Background()); err != nil || len(open) != 0 {
		t.Errorf("open: %+v, %v", open, err)
	}
}

func TestWhatWasTurnedAwayIsKept(t *testing.T) {
	r := newRig(t, tier1())
	r.submit(r.proposal("case-1", 20))
	got := r.submit(r.proposal("case-1", 30)).Receipt.TurnedAway
	if len(got) != 1 || got[0].Effect == nil || string(got[0].Effect.Payload) != `{"amount":30,"order":"881"}` {
		t.Errorf("turned away: %+v", got)
	}
}

func TestEvidenceIsKeptAsItCame(t *testing.T) {
	for _, c := range []struct{ result, want string }{
		{`{"id":"re_1"}`, `{"id":"re_1"}`},
		{`done, thank you`, `"done, thank you"`},
		{``, ``},
	} {
		r := newRig(t, tier3())
		r.service.script = []simulatedAnswer{{says: protocol.Answer{Outcome: protocol.Done, Result: json.RawMessage(c.result)}}}
		got := r.submit(r.proposal("case-1", 20))
		r.want(got, "COMMITTED", 1)
		if string(got.Receipt.Result) != c.want {
			t.Errorf("%q is kept as %q, want %q", c.result, got.Receipt.Result, c.want)
		}
	}
}

func TestAnUnknownBoundIsNotWaitedFor(t *testing.T) {
	can := tier2()
	can.LandingBound, can.LookupLag = 0, 5*time.Second
	r := newRig(t, can)
	r.service.script = []simulatedAnswer{neverLands}
	if got := r.submit(r.proposal("case-1", 20)); got.RetryAfter != time.Second {
		t.Errorf("retry after %v", got.RetryAfter)
	}
}

func TestAnIntentNamesTheGuardsThatHeld(t *testing.T) {
	r := newRig(t, tier1())
	r.submit(r.proposal("case-1", 20))
	for _, e := range r.entries("case-1", journal.Authorized) {
		var said struct {
			Body struct{ Held []string }
		}
		if err := json.Unmarshal(e.Body, &said); err != nil {
			t.Fatal(err)
		}
		for _, guard := range []string{"S1", "S2", "S3", "S4", "S5", "S8", "S9", "S11"} {
			if !slices.Contains(said.Body.Held, guard) {
				t.Errorf("%s is not among %v", guard, said.Body.Held)
			}
		}
	}
}

// entries are those of one kind of a request's effect.
func (r *rig) entries(request string, kind journal.Kind) (list []journal.Entry) {
	r.Helper()
	store, err := r.reader()(nil)
	if err != nil {
		r.Fatal(err)
	}
	defer store.Close()
	all, err := protocol.EntriesOf(store, id(request))
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range all {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	if list == nil {
		r.Fatalf("%s has no %v", request, kind)
	}
	return list
}

// TestB87ARepeatSeesWhatAnotherDid has two recoveries at one effect at once, with
// claims that keep nobody out.
func TestB87ARepeatSeesWhatAnotherDid(t *testing.T) {
	for _, can := range []protocol.Capabilities{tier1(), tier2()} {
		r := newRig(t, can)
		r.kill()
		r.store = func(s journal.Store) journal.Store { return simulatedFreeClaims{s} }
		r.open()
		r.service.script = []simulatedAnswer{neverLands, lands(time.Hour), applies}
		r.submit(r.proposal("case-1", 20))
		r.clock.advance(time.Minute)
		r.once("gate/premises-read", func() { r.recover(false) })
		r.recover(false)
		if n := len(r.service.sent); n != 2 {
			t.Errorf("tier %d: %d requests, want the first and the inner repeat", can.Tier(), n)
		}
	}
}

func TestC18OnlyWhatWasNeverDispatchedMakesRoom(t *testing.T) {
	fresh := func(r *rig, amount int) protocol.Proposal {
		r.grant(lease("L-second"))
		p := r.proposal("case-1", amount)
		p.Lease = "L-second"
		return p
	}
	r := newRig(t, tier2()) // refused, and dispatched before
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.revoke("L-refund")
	r.want(r.recover(true), "REFUSED:lease_at_recovery", 0)
	r.want(r.submit(fresh(r, 15)), "REFUSED:conflicting_payload", 0)

	r = newRig(t, tier2()) // not refused
	r.service.refuse = 1
	r.want(r.submit(r.proposal("case-1", 20)), "NOT_SENT", 0)
	r.want(r.submit(fresh(r, 15)), "REFUSED:conflicting_payload", 0)
}

func TestB49AFinalNoIsNotAskedAgain(t *testing.T) {
	r := newRig(t, tier3())
	r.service.script = []simulatedAnswer{says(protocol.Rejected)}
	for range 3 {
		r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:target_rejected", 0)
	}
	r.restart()
	r.grant(lease("L-second"))
	p := r.proposal("case-1", 20)
	p.Lease = "L-second"
	r.want(r.submit(p), "REFUSED:target_rejected", 0)
	if len(r.service.sent) != 1 {
		t.Errorf("%d requests", len(r.service.sent))
	}
}

func TestC20AUsedUpLeaseDispatchesNothing(t *testing.T) {
	r := newRig(t, tier1())
	single := lease("L-once")
	single.Uses = 1
	r.grant(single)
	p, q := r.proposal("case-1", 20), r.proposal("case-2", 20)
	p.Lease, q.Lease = "L-once", "L-once"
	r.want(r.submit(p), "COMMITTED", 1)
	r.want(r.submit(q), "REFUSED:lease", 0)
	if kinds := r.kinds(id("case-2")); slices.Contains(kinds, journal.Dispatched) {
		t.Errorf("entries %v: the last look is not the first", kinds)
	}
}

func TestAUseComesBackWithWhatDidNotLand(t *testing.T) {
	for _, answer := range []protocol.Outcome{protocol.Rejected, protocol.NotExecuted} {
		r := newRig(t, tier3())
		single := lease("L-once")
		single.Uses = 1
		r.grant(single)
		p, q := r.proposal("case-1", 20), r.proposal("case-2", 20)
		p.Lease, q.Lease = "L-once", "L-once"
		r.service.script = []simulatedAnswer{says(answer)}
		r.submit(p)
		r.want(r.submit(q), "COMMITTED", 1)
	}
}

// TestASuspectHoldsItsUse is about a lost attempt under a lease that was renewed:
// its use is that of the line.
func TestASuspectHoldsItsUse(t *testing.T) {
	for _, named := range []string{"L-once", "L-again"} {
		r := newRig(t, tier3())
		once := lease("L-once")
		once.Uses = 1
		r.grant(once)
		again := once
		again.ID, again.Replaces = "L-again", "L-once"
		r.grant(again)
		p, q := r.proposal("case-1", 20), r.proposal("case-2", 20)
		p.Lease, q.Lease = named, named
		r.dies("gate/proposed", func() { r.submit(p) })
		r.suspect("case-1")
		r.want(r.submit(q), "REFUSED:lease", 0)
		if v := r.revoke("L-once"); len(v.Doubt) != 1 || v.Doubt[0].Request != "case-1" {
			t.Errorf("under %s: in doubt %+v", named, v.Doubt)
		}
	}
}

func TestAnExpectationOfWhatOnlyMustNotChangeIsNone(t *testing.T) {
	r := newRig(t, tier1())
	p := r.proposal("case-1", 20)
	p.Premises[1].Want = json.RawMessage("7")
	r.want(r.submit(p), "COMMITTED", 1)
}

func TestAPremiseIsANameAndWhose(t *testing.T) {
	for _, change := range []func(*protocol.Premise){
		func(p *protocol.Premise) { p.Whose = "the case itself" },
		func(p *protocol.Premise) { p.Name = "disputed" },
	} {
		r := newRig(t, tier1())
		p := r.proposal("case-1", 20)
		more := p.Premises[1]
		change(&more)
		r.service.facts["disputed"] = "0"
		p.Premises = append(p.Premises, more)
		r.service.value = func(of protocol.Premise) (string, bool) { // what the premise added last shows later
			return "9", len(r.service.sent) == 0 && of.Name == more.Name && of.Whose == more.Whose
		}
		r.want(r.submit(p), "REFUSED:stale_premise", 0)
	}
}

func TestAnInterruptedRecoveryGivesItsClaimsUp(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{neverLands, neverLands}
	r.submit(r.proposal("case-1", 20))
	r.submit(r.proposal("case-2", 20))
	ctx, cancel := context.WithCancel(context.Background())
	r.once("gate/looked-up", cancel)
	if _, err := r.gate.Recover(ctx, protocol.RecoverOptions{Wait: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true})
	if err != nil || len(results) != 2 {
		t.Fatalf("%v, %v", results, err)
	}
	for _, got := range results {
		r.want(got, "REAPPLIED_AFTER_QUERY", 1)
	}
}

// TestRecoverWorksOnEachWhenItsTimeHasCome has two effects whose bounds end five
// seconds apart.
func TestRecoverWorksOnEachWhenItsTimeHasCome(t *testing.T) {
	for _, first := range []string{"case-1", "case-2"} {
		r := newRig(t, tier2())
		r.service.script = []simulatedAnswer{neverLands, neverLands}
		r.submit(r.proposal(first, 20))
		r.clock.advance(5 * time.Second)
		r.submit(r.proposal(map[string]string{"case-1": "case-2", "case-2": "case-1"}[first], 20))
		results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true})
		if err != nil || len(results) != 2 {
			t.Fatalf("%v, %v", results, err)
		}
		if got := []time.Duration{r.service.ledger[0].at, r.service.ledger[1].at}; !slices.Equal(got, []time.Duration{31 * time.Second, 36 * time.Second}) {
			t.Errorf("sent anew at %v, want each at the end of its own bound", got)
		}
		if r.service.asked != 4 {
			t.Errorf("asked %d times, want twice for each", r.service.asked)
		}
	}
}

func TestAnAmbiguousEffectThatTurnsUpIsReported(t *testing.T) {
	for _, c := range []struct{ payload, want string }{
		{`{"amount":20,"order":"881"}`, "COMMITTED_ON_QUERY"}, {`{"amount":7}`, "UNRESOLVED:mismatch"},
	} {
		can := tier2()
		can.LandingBound = 0
		r := newRig(t, can)
		r.service.script = []simulatedAnswer{neverLands}
		r.submit(r.proposal("case-1", 20))
		r.want(r.recover(false), "AMBIGUOUS", 0)
		r.service.ledger = append(r.service.ledger, simulatedLanding{id("case-1"), c.payload, 0})
		if got := r.recover(false); got.Status.String() != c.want {
			t.Errorf("%s: %s, want %s", c.payload, got.Status, c.want)
		}
	}
}

func TestB57WhatAnotherRefusedMeanwhileIsReadFromTheJournal(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{neverLands, neverLands}
	r.submit(r.proposal("case-1", 20))
	r.submit(r.proposal("case-2", 20))
	r.clock.advance(time.Minute)
	r.service.set("refunded", "20")
	r.once("gate/claimed", func() {
		if _, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{}); err != nil {
			t.Error(err)
		}
	})
	results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{})
	if err != nil || len(results) != 2 {
		t.Fatalf("%v, %v", results, err)
	}
	for _, got := range results {
		r.want(got, "REFUSED:stale_premise_at_recovery", 0)
		if n := len(r.entries(map[bool]string{true: "case-1", false: "case-2"}[got.Effect == id("case-1")], journal.Refused)); n != 1 {
			t.Errorf("refused %d times", n)
		}
	}
}

func TestAFailedLookupLetsTheKeyBeTriedAgain(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{neverLands, neverLands, applies}
	r.submit(r.proposal("case-1", 20))
	r.service.lookup = errors.New("502")
	if got := r.recover(false); got.Status.String() != "UNRESOLVED" {
		t.Errorf("%s", got.Status)
	}
	r.want(r.recover(false), "COMMITTED_BY_RETRY", 1)
}

func TestWithoutALookupTheKeyIsTriedUntilItsWindowEnds(t *testing.T) {
	can := tier1()
	can.Lookup = false
	r := newRig(t, can)
	r.service.script = []simulatedAnswer{neverLands, neverLands, applies}
	r.submit(r.proposal("case-1", 20))
	r.want(r.recover(false), "IN_FLIGHT", 0)
	r.want(r.recover(false), "COMMITTED_BY_RETRY", 1)
}

func TestAnAbsenceChangesNothingOfWhatIsAmbiguous(t *testing.T) {
	r := newRig(t, tier3())
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.want(r.recover(false), "AMBIGUOUS", 0)
	again := func(why string) {
		t.Helper()
		began, dials := r.clock.Mono(), r.service.dials
		results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true})
		if err != nil || len(results) != 0 || r.clock.Mono() != began || r.service.dials != dials {
			t.Errorf("%s: %v, %v, after %v", why, results, err, r.clock.Mono()-began)
		}
		if n := len(r.entries("case-1", journal.Ambiguous)); n != 1 {
			t.Errorf("%s: left to a person %d times", why, n)
		}
	}
	again("nobody can be asked")
	r.service.can = tier2() // the service learned to answer
	r.restart()
	again("it isn't found")
}

func TestC35AnAbsenceDoesNotUndoAMismatch(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.service.ledger = append(r.service.ledger, simulatedLanding{id("case-1"), `{"amount":7}`, 0})
	mismatch := func(why string) {
		t.Helper()
		if got := r.recover(true); got.Status.String() != "UNRESOLVED:mismatch" || len(r.service.sent) != 1 {
			t.Errorf("%s: %s, %d requests", why, got.Status, len(r.service.sent))
		}
	}
	mismatch("other content is there")
	r.service.ledger = nil
	r.clock.advance(time.Hour)
	mismatch("it is gone")
	r.service.can = tier3()
	r.restart()
	mismatch("nobody can be asked")
}

func TestC02ALookupThatOutlastsTheBoundDoesNotCount(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{lands(30 * time.Second)}
	r.submit(r.proposal("case-1", 20))
	r.clock.advance(29 * time.Second)
	slow := false
	r.service.asking = func() { // the answer is decided when the question comes, and takes its time
		if !slow {
			slow = true
			r.clock.advance(10 * time.Second)
		}
	}
	r.want(r.recover(false), "COMMITTED_ON_QUERY", 1)
}

func TestC25ALookupThatOutlastsItsWindowAnswersNothing(t *testing.T) {
	can := tier2()
	can.LookupWindow = time.Hour
	r := newRig(t, can)
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.clock.advance(50 * time.Minute)
	r.service.asking = func() { r.clock.advance(20 * time.Minute) }
	r.want(r.recover(false), "AMBIGUOUS", 0)
}

func TestAFenceThatFailsLeavesTheEffectOpen(t *testing.T) {
	can := protocol.Capabilities{Lookup: true, Fencing: true}
	r := newRig(t, can)
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.service.fence = errors.New("503")
	if got := r.recover(false); got.Status.String() != "UNRESOLVED" || got.Err == nil {
		t.Errorf("%s, %v", got.Status, got.Err)
	}
	r.service.fence = nil
	r.want(r.recover(false), "REAPPLIED_AFTER_QUERY", 1)
}

func TestAnAbsenceSettlesTheAttemptsBeforeIt(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{neverLands, neverLands}
	r.submit(r.proposal("case-1", 20))
	r.want(r.recover(true), "REAPPLIED_AFTER_QUERY", 1)

	r = newRig(t, tier2())
	r.service.script = []simulatedAnswer{neverLands, neverLands}
	r.submit(r.proposal("case-1", 20))
	r.clock.advance(time.Minute)
	r.want(r.recover(false), "IN_FLIGHT", 0) // sent anew, not answered
	if open, err := r.gate.Report(context.Background()); err != nil || len(open) != 1 || open[0].Attempts != 1 {
		t.Errorf("open: %+v, %v", open, err)
	}
}

func TestTheAnchorIsTheFirstAttempt(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.restart()
	got := r.recover(true)
	first := r.entries("case-1", journal.Dispatched)[0].Hash
	for _, s := range r.service.sent {
		if s.Anchor != first {
			t.Errorf("sent with the anchor %s, want %s", s.Anchor, first)
		}
	}
	if got.Receipt.Anchor == nil || *got.Receipt.Anchor != first || len(r.service.sent) != 2 {
		t.Errorf("the receipt has %v", got.Receipt.Anchor)
	}
}

func TestASuspectAfterAnOutcome(t *testing.T) {
	r := newRig(t, tier3()) // committed: the outcome outlived the cut
	r.submit(r.proposal("case-1", 20))
	r.suspect("case-1")
	r.want(r.submit(r.proposal("case-1", 20)), "DUPLICATE_IGNORED", 1)

	r = newRig(t, tier3()) // closed by a person: the same
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.resolve(r.recover(false), false)
	r.suspect("case-1")
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:closed", 0)

	r = newRig(t, tier3()) // refused: the cut held an attempt made after that
	r.once("gate/proposed", func() { r.service.set("refunded", "20") })
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:stale_premise", 0)
	r.suspect("case-1")
	r.want(r.recover(false), "AMBIGUOUS", 0)
}

func TestTwoCommitsAreNoJournal(t *testing.T) {
	r := newRig(t, tier3())
	r.submit(r.proposal("case-1", 20))
	twice := r.entries("case-1", journal.Committed)[0]
	r.kill()
	store, err := journal.FileOpener(r.path("journal"), journal.Options{Namespace: namespace, Dir: r.disk, Now: r.clock.Now})(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) {
		return []journal.Entry{{Kind: twice.Kind, Effect: twice.Effect, Body: twice.Body}}, nil
	})
	store.Close()
	if err != nil {
		t.Fatal(err)
	}
	_, err = protocol.Open(context.Background(), protocol.Config{
		Namespace: namespace, Clock: r.clock,
		Journal:   journal.FileOpener(r.path("journal"), journal.Options{Namespace: namespace, Dir: r.disk, Now: r.clock.Now}),
		Authority: journal.FileOpener(r.path("authority"), journal.Options{Mode: journal.Reader, Namespace: namespace}),
	})
	if !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("opened with two commits of one effect: %v", err)
	}
}

// TestAWordIsCheckedThoughItsSignatureIsRight signs each wrong word anew.
func TestAWordIsCheckedThoughItsSignatureIsRight(t *testing.T) {
	r := newRig(t, tier3())
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	asked := r.recover(false)
	r.submit(r.proposal("case-2", 20))
	good := protocol.Resolution{
		Namespace: namespace, Effect: asked.Effect, Question: *asked.Receipt.Question, Landed: true,
		Person: "ruth", Evidence: "bank statement", At: r.clock.Now(),
	}
	for why, change := range map[string]func(*protocol.Resolution){
		"nobody by that name":    func(x *protocol.Resolution) { x.Person = "agent-7" },
		"no evidence":            func(x *protocol.Resolution) { x.Evidence = "" },
		"another journal":        func(x *protocol.Resolution) { x.Namespace = "other" },
		"a question of the past": func(x *protocol.Resolution) { x.Question[0]++ },
		"an effect of the past":  func(x *protocol.Resolution) { x.Effect = id("case-2") },
		"an unknown effect":      func(x *protocol.Resolution) { x.Effect = id("case-3") },
	} {
		word := good
		change(&word)
		word, err := protocol.SignResolution(r.person, word)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.gate.Resolve(context.Background(), word); !errors.Is(err, protocol.ErrResolution) {
			t.Errorf("%s: %v", why, err)
		}
	}
	if _, err := protocol.SignResolution(r.person[:7], good); !errors.Is(err, protocol.ErrResolution) {
		t.Errorf("signed with half a key: %v", err)
	}
	if err := good.Verify(nil); !errors.Is(err, protocol.ErrResolution) {
		t.Errorf("verified without a key: %v", err)
	}
}

// TestAByteThatIsHeldDispatchesNothing holds the lease's byte as a revocation does
// that drains it.
func TestAByteThatIsHeldDispatchesNothing(t *testing.T) {
	for _, revoked := range []bool{false, true} {
		r := newRig(t, tier1())
		let := func() {}
		r.once("gate/premises-read", func() {
			if revoked {
				r.revoke("L-refund")
			}
			let = r.held(t, r.granted(t, journal.Granted))
		})
		got := r.submit(r.proposal("case-1", 20))
		if kinds := r.kinds(id("case-1")); slices.Contains(kinds, journal.Dispatched) {
			t.Errorf("entries %v", kinds)
		}
		let()
		if revoked {
			r.want(got, "REFUSED:lease", 0)
			continue
		}
		r.want(got, "NOT_SENT", 0)
		r.want(r.recover(false), "COMMITTED", 1)
	}
}

func TestAnAuthorityNeedsNoOptions(t *testing.T) {
	r := newRig(t, tier1())
	a, err := protocol.OpenAuthority(journal.FileOpener(r.path("authority"), journal.Options{
		Mode: journal.Appender, Namespace: namespace, Now: r.clock.Now,
	}), r.openDrain(), protocol.AuthorityOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	none := journal.FileOpener(filepath.Join(r.dir, "none"), journal.Options{Mode: journal.Reader})
	if v, err := a.Revoke(context.Background(), "L-refund", protocol.RevokeOptions{Journal: none, Deadline: time.Hour}); err != nil || len(v.Doubt) != 0 {
		t.Errorf("a journal that isn't there yet: %+v, %v", v, err)
	}
}

func TestRevokingAgainAppendsNothingAndKeepsNothingOpen(t *testing.T) {
	r := newRig(t, tier1())
	head := func() (at journal.Seq) {
		store, err := journal.FileOpener(r.path("authority"), journal.Options{Mode: journal.Reader})(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		store.View(context.Background(), func(h journal.Head) { at = h.Seq })
		return at
	}
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	r.revoke("L-refund")
	entries, files := head(), open()
	for range 20 {
		r.revoke("L-refund")
	}
	if head() != entries {
		t.Errorf("the authority grew from %d to %d entries", entries, head())
	}
	if n := open(); n > files+10 { // other tests have files of their own
		t.Errorf("%d files are open, and were %d", n, files)
	}
}

func TestPremisesAreReadAgainAfterASecond(t *testing.T) {
	for _, c := range []struct {
		wait time.Duration
		read int
	}{{900 * time.Millisecond, 2}, {1100 * time.Millisecond, 4}} {
		r := newRig(t, tier1())
		read := 0
		r.onStep = func(p string) {
			switch p {
			case "gate/intent-durable":
				r.clock.advance(c.wait)
			case "service/observe":
				read++
			}
		}
		r.want(r.submit(r.proposal("case-1", 20)), "COMMITTED", 1)
		if read != c.read {
			t.Errorf("two premises, %v before the first byte: read %d times, want %d", c.wait, read, c.read)
		}
	}
}

func TestAGateNeedsBothLogsAndActionsWithNames(t *testing.T) {
	r := newRig(t, tier1())
	log := r.reader()
	for _, c := range []protocol.Config{{Namespace: namespace}, {Namespace: namespace, Journal: log}, {Namespace: namespace, Authority: log}} {
		if _, err := protocol.Open(context.Background(), c); err == nil {
			t.Errorf("opened with %+v", c)
		}
	}
	var misfit *protocol.MisfitError
	for _, action := range []string{"", "re\nfund"} {
		if err := r.gate.Register(action, r.service); !errors.As(err, &misfit) {
			t.Errorf("registered for %q: %v", action, err)
		}
	}
}

func TestWhatIsOpenIsReportedOldestFirst(t *testing.T) {
	r := newRig(t, tier2())
	var want, got []string
	for n := range 12 {
		want = append(want, fmt.Sprintf("case-%d", n))
		r.service.script = append(r.service.script, neverLands)
		r.submit(r.proposal(want[n], 20))
	}
	r.service.ledger = append(r.service.ledger, simulatedLanding{id("case-3"), `{"amount":7}`, 0})
	if _, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{}); err != nil {
		t.Fatal(err)
	}
	open, err := r.gate.Report(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range open {
		got = append(got, o.Request)
		if standing := map[bool]string{true: "mismatch", false: "in doubt"}[o.Request == "case-3"]; o.Standing != standing {
			t.Errorf("%s is %s, want %s", o.Request, o.Standing, standing)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("open: %v", got)
	}
}

// simulatedFailure is a store whose next look fails behind a claim, or that
// forgets what it is asked to read again.
type simulatedFailure struct {
	journal.Store
	blind, forgets bool
	claimed        bool
}

func (s *simulatedFailure) Claim(ctx context.Context, id journal.ID) (*journal.Claim, error) {
	s.claimed = true
	return s.Store.Claim(ctx, id)
}

func (s *simulatedFailure) View(ctx context.Context, f func(journal.Head)) error {
	if s.blind && s.claimed {
		s.blind = false
		return fs.ErrInvalid
	}
	return s.Store.View(ctx, f)
}

func (s *simulatedFailure) Since(after journal.Seq) iter.Seq2[journal.Entry, error] {
	if s.forgets {
		return func(func(journal.Entry, error) bool) {}
	}
	return s.Store.Since(after)
}

func TestAFailedClaimIsGivenUp(t *testing.T) {
	r := newRig(t, tier1())
	r.kill()
	r.store = func(s journal.Store) journal.Store { return &simulatedFailure{Store: s, blind: true} }
	r.open()
	if _, err := r.gate.Submit(context.Background(), r.proposal("case-1", 20)); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("the look behind the claim failed: %v", err)
	}
	r.want(r.submit(r.proposal("case-1", 20)), "COMMITTED", 1)
}

func TestAnEntryThatIsGoneIsAnError(t *testing.T) {
	r := newRig(t, tier1())
	r.submit(r.proposal("case-1", 20))
	r.kill()
	r.store = func(s journal.Store) journal.Store { return &simulatedFailure{Store: s, forgets: true} }
	r.open()
	if _, err := r.gate.Receipt(context.Background(), id("case-1")); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("a receipt of entries that aren't there: %v", err)
	}
}

func TestTriesOfTheLastDecisionDontSlowTheNext(t *testing.T) {
	r := newRig(t, tier1())
	r.service.refuse = 3
	for range 3 {
		r.submit(r.proposal("case-1", 20))
	}
	r.service.set("refunded", "20")
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:stale_premise", 0)
	r.grant(lease("L-second"))
	p := r.proposal("case-1", 20)
	p.Lease = "L-second"
	r.service.refuse = 1
	if got := r.submit(p); got.RetryAfter != time.Second {
		t.Errorf("the first try is to be repeated after %v", got.RetryAfter)
	}
}

func TestARetryThatIsNotSentAddsNothing(t *testing.T) {
	r := newRig(t, tier1())
	r.service.refuse = 3
	for range 3 {
		r.want(r.submit(r.proposal("case-1", 20)), "NOT_SENT", 0)
	}
	if kinds := r.kinds(id("case-1")); !slices.Equal(kinds, []journal.Kind{journal.Proposed}) {
		t.Errorf("entries %v", kinds)
	}
}

func TestADecisionOfAnotherAuthorityIsNotOnesOwn(t *testing.T) {
	decided := func() (r *rig, first, second protocol.Proposal) {
		r = newRig(t, tier1())
		r.grant(lease("L-second"))
		r.service.refuse = 2
		first = r.proposal("case-1", 20)
		r.want(r.submit(first), "NOT_SENT", 0)
		r.service.set("refunded", "10")
		second = r.proposal("case-1", 20)
		second.Lease = "L-second"
		r.want(r.submit(second), "NOT_SENT", 0)
		return r, first, second
	}
	r, first, second := decided()
	r.want(r.submit(first), "REFUSED:stale_premise", 0) // its own facts changed, whatever the other saw
	r.want(r.submit(second), "COMMITTED", 1)
	r, _, _ = decided()
	r.want(r.recover(false), "COMMITTED", 1) // the second decision is in force
}

func TestB09AnotherPayloadCantBeRecordedOverTheFirst(t *testing.T) {
	r := newRig(t, tier3())
	r.kill()
	r.store = func(s journal.Store) journal.Store { return simulatedFreeClaims{s} }
	r.open()
	r.once("gate/claimed", func() { r.want(r.submit(r.proposal("case-1", 15)), "COMMITTED", 1) })
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:conflicting_payload", 1)
}

func TestAnAnswerThatNeedsNoClaimWaitsForNone(t *testing.T) {
	can := tier2()
	can.LandingBound = 0
	r := newRig(t, can)
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.want(r.recover(false), "AMBIGUOUS", 0)
	asked := false
	r.once("service/lookup", func() { // recovery has the claim
		asked = true
		r.want(r.submit(r.proposal("case-1", 20)), "AMBIGUOUS", 0)
		r.want(r.submit(r.proposal("case-1", 15)), "REFUSED:conflicting_payload", 0)
	})
	if _, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{}); err != nil || !asked {
		t.Errorf("asked: %v, %v", asked, err)
	}
}

func TestS1bIsInFlightWhileInDoubt(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.service.lookup = errors.New("502")
	got := r.submit(r.proposal("case-1", 20))
	r.want(got, "IN_FLIGHT", 0)
	if got.Recovered.String() != "UNRESOLVED" || got.Err == nil {
		t.Errorf("recovered %s, %v", got.Recovered, got.Err)
	}
}

// TestASuspectsHoldMovesToTheLine is about an effect that held a use under a
// renewed lease's name, and then under its line's.
func TestASuspectsHoldMovesToTheLine(t *testing.T) {
	r := newRig(t, tier2())
	twice := lease("L-twice")
	twice.Uses = 2
	r.grant(twice)
	again := twice
	again.ID, again.Replaces = "L-again", "L-twice"
	r.grant(again)
	p, q := r.proposal("case-1", 20), r.proposal("case-2", 20)
	p.Lease, q.Lease = "L-again", "L-again"
	r.dies("gate/proposed", func() { r.submit(p) })
	r.suspect("case-1")
	r.want(r.recover(true), "REAPPLIED_AFTER_QUERY", 1)
	r.want(r.submit(q), "COMMITTED", 1) // the first effect has one use, not two
}

func TestB61AQuotedNumberIsNoNumber(t *testing.T) {
	for _, seen := range []string{`"0"`, `false`, `null`, `0.5`} {
		r := newRig(t, tier1())
		p := r.proposal("case-1", 20)
		p.Premises[1].Seen = json.RawMessage(seen)
		r.want(r.submit(p), "REFUSED:stale_premise", 0)
	}
}

func TestB15ALoneCommitIsNoHistoryWhoeverFoundIt(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{ackLost}
	r.submit(r.proposal("case-1", 20))
	r.want(r.recover(true), "COMMITTED_ON_QUERY", 1)
	alone := r.entries("case-1", journal.Committed)[0]
	alone.Prev = journal.Hash{}
	alone.Hash = alone.Sum()
	if got, err := protocol.ReceiptFromEntries([]journal.Entry{alone}); !errors.Is(err, protocol.ErrReceipt) {
		t.Errorf("executed %s, %v", got.Executed.Is, err)
	}
}

// held takes a byte of the drain as a revocation does, or another cap, until the
// function it returns is called.
func (r *rig) held(t *testing.T, n journal.Seq) (let func()) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(r.path("authority"), "drain"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	const setLock = 37 // F_OFD_SETLK
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: int64(n), Len: 1}
	if err := syscall.FcntlFlock(f.Fd(), setLock, &lock); err != nil {
		t.Errorf("byte %d is held: %v", n, err)
	}
	return func() { f.Close() }
}

// granted is the entry of the authority log that is the first of a kind.
func (r *rig) granted(t *testing.T, kind journal.Kind) (n journal.Seq) {
	t.Helper()
	store, err := journal.FileOpener(r.path("authority"), journal.Options{Mode: journal.Reader})(func(e journal.Entry) error {
		if e.Kind == kind && n == 0 {
			n = e.Seq
		}
		return nil
	})
	if err != nil || n == 0 {
		t.Fatalf("no %v: %v", kind, err)
	}
	store.Close()
	return n
}

func refundsBudget(most string) protocol.Budget {
	return protocol.Budget{Name: "refunds", Principal: "finance", Holders: []string{"agent-7"}, Field: "amount", Cap: most}
}

func TestABudgetsByteThatIsHeldLetsTheLeasesGo(t *testing.T) {
	r := newRig(t, tier1())
	if err := r.authority.SetBudget(context.Background(), refundsBudget("100")); err != nil {
		t.Fatal(err)
	}
	p := r.proposal("case-1", 20)
	p.Budget = "refunds"
	var let func()
	r.once("gate/premises-read", func() { let = r.held(t, r.granted(t, journal.Budgeted)) })
	r.want(r.submit(p), "NOT_SENT", 0)
	r.held(t, r.granted(t, journal.Granted))()
	let()
	r.want(r.recover(false), "COMMITTED", 1)
}

func TestALeaseThatCameUnderABudgetMeanwhileIsSharedAnew(t *testing.T) {
	r := newRig(t, tier1())
	if err := r.authority.SetBudget(context.Background(), refundsBudget("100")); err != nil {
		t.Fatal(err)
	}
	under := lease("L-under")
	under.Replaces, under.Budget = "L-refund", "refunds"
	r.once("gate/lease-shared", func() { r.grant(under) })
	r.want(r.submit(r.proposal("case-1", 20)), "NOT_SENT", 0)
	if kinds := r.kinds(id("case-1")); slices.Contains(kinds, journal.Dispatched) {
		t.Errorf("entries %v", kinds)
	}
	r.want(r.recover(false), "COMMITTED", 1)
}

func TestASuspectWhoseDecisionWasLostHoldsItsUseFromTheNext(t *testing.T) {
	r := newRig(t, tier2())
	single := lease("L-once")
	single.Uses = 1
	r.grant(single)
	p, q := r.proposal("case-1", 20), r.proposal("case-2", 20)
	p.Lease, q.Lease = "L-once", "L-once"
	r.suspect("case-1")
	r.want(r.submit(p), "IN_FLIGHT", 0)
	r.want(r.submit(q), "REFUSED:lease", 0)
}

func TestWhatIsTurnedAwayFromASecretEffectIsNotKept(t *testing.T) {
	r := secretRig(t, tier1())
	r.submit(r.payout("case-1", account))
	other := r.payout("case-1", account)
	text, err := json.Marshal(map[string]any{"order": "881", "amount": 20, "memo": account}) // the secret in another place
	if err != nil {
		t.Fatal(err)
	}
	other.Effect.Payload, other.Secrets = text, nil
	got := r.submit(other)
	r.want(got, "REFUSED:conflicting_payload", 1)
	if away := got.Receipt.TurnedAway; len(away) != 1 || away[0].Effect == nil || len(away[0].Effect.Payload) > len("null") {
		t.Errorf("kept: %s", away[0].Effect.Payload)
	}
}

func TestABudgetThatIsSetToWhatItIsAppendsNothing(t *testing.T) {
	r := newRig(t, tier1())
	alone, err := protocol.OpenAuthority(journal.FileOpener(r.path("authority"), journal.Options{
		Mode: journal.Appender, Namespace: namespace, Now: r.clock.Now,
	}), nil, protocol.AuthorityOptions{}) // without a drain, as where journal and authority are one database
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	for _, most := range []string{"100", "100", "50", "50"} {
		if err := alone.SetBudget(context.Background(), refundsBudget(most)); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	store, err := journal.FileOpener(r.path("authority"), journal.Options{Mode: journal.Reader})(func(e journal.Entry) error {
		if e.Kind == journal.Budgeted {
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
	if n != 2 {
		t.Errorf("two caps are %d entries", n)
	}
}

func TestASuspectDrawsOnABudgetOnce(t *testing.T) {
	budgeted := func(most string) (r *rig, p, q protocol.Proposal) {
		r = newRig(t, tier2())
		if err := r.authority.SetBudget(context.Background(), refundsBudget(most)); err != nil {
			t.Fatal(err)
		}
		p, q = r.proposal("case-1", 20), r.proposal("case-2", 20)
		p.Budget, q.Budget = "refunds", "refunds"
		r.dies("gate/proposed", func() { r.submit(p) })
		r.suspect("case-1")
		return r, p, q
	}
	r, _, q := budgeted("40") // by the lost attempt, or by the one that followed
	r.want(r.recover(true), "REAPPLIED_AFTER_QUERY", 1)
	r.restart()
	r.want(r.submit(q), "COMMITTED", 1)

	r, _, q = budgeted("20") // and not at all where it came to nothing
	r.service.set("refunded", "5")
	r.want(r.recover(true), "REFUSED:stale_premise_at_recovery", 0)
	q.Premises[1].Seen = json.RawMessage("5")
	r.want(r.submit(q), "COMMITTED", 1)
}

// TestAMemberWithoutAKeyHasTheOneThatTheGateKnows has ruth in a group that names no
// key of hers.
func TestAMemberWithoutAKeyHasTheOneThatTheGateKnows(t *testing.T) {
	r := newRig(t, tier3())
	err := r.authority.SetGroup(context.Background(), protocol.Group{
		Name: "desk", Principal: "finance", Members: []protocol.Member{{Name: "ruth"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.want(r.resolve(r.recover(false), false), "REFUSED:resolved_not_landed", 0)
}

func TestAWordComesTooLateForWhatWasFound(t *testing.T) {
	can := tier2()
	can.LandingBound = 0
	r := newRig(t, can)
	r.service.script = []simulatedAnswer{lands(time.Hour)}
	r.submit(r.proposal("case-1", 20))
	asked := r.recover(false)
	r.want(asked, "AMBIGUOUS", 0)
	word, err := protocol.SignResolution(r.person, protocol.Resolution{
		Namespace: namespace, Effect: asked.Effect, Question: *asked.Receipt.Question, Landed: false,
		Person: "ruth", Evidence: "nothing on the statement", At: r.clock.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	r.clock.advance(2 * time.Hour)
	r.want(r.recover(false), "COMMITTED_ON_QUERY", 1)
	if _, err := r.gate.Resolve(context.Background(), word); !errors.Is(err, protocol.ErrResolution) {
		t.Errorf("a word on what is settled: %v", err)
	}
	r.want(r.submit(r.proposal("case-1", 20)), "DUPLICATE_IGNORED", 1)
}
