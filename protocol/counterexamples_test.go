package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// The histories that broke earlier wordings of the contract, by number. C12 is in
// symbol_test.go and C22 in restored_test.go; C13 comes with corrections; C15, C23
// and C27 are the journal's, C26 is the wire's.

func TestC01LagAfterTheFence(t *testing.T) {
	can := protocol.Capabilities{Lookup: true, LookupLag: 5 * time.Second, Fencing: true}
	r := newRig(t, can)
	r.dies("service/applied", func() { r.submit(r.proposal("case-1", 20)) })
	got := r.recover(false)
	r.want(got, "IN_FLIGHT", 1)
	if got.RetryAfter <= 0 || got.RetryAfter > can.LookupLag {
		t.Errorf("retry after %v, want the lag", got.RetryAfter)
	}
	r.want(r.recover(true), "COMMITTED_ON_QUERY", 1)
}

func TestC02AnAnswerAskedForEarlierIsThrownAway(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{lands(29 * time.Second)}
	r.want(r.submit(r.proposal("case-1", 20)), "IN_FLIGHT", 0)
	r.want(r.recover(false), "IN_FLIGHT", 0) // asked at 0 s: absent
	r.want(r.recover(true), "COMMITTED_ON_QUERY", 1)
}

func TestC03TheBoundCountsFromTakeover(t *testing.T) {
	r := newRig(t, tier2())
	r.dies("gate/intent-durable", func() { r.submit(r.proposal("case-1", 20)) })
	// The dead process was stopped for an hour and sent just before it died.
	r.clock.advance(time.Hour)
	r.clock.after(20*time.Second, func() {
		r.service.apply(protocol.Request{Effect: id("case-1"), Payload: json.RawMessage(`{"amount":20,"order":"881"}`)}, journal.Token{Segment: 1, Seq: 4})
	})
	r.want(r.recover(false), "IN_FLIGHT", 0)
	r.want(r.recover(true), "COMMITTED_ON_QUERY", 1)
}

func TestC04NotSentSettlesItsOwnAttemptOnly(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{lands(20 * time.Second), says(protocol.NotSent)}
	r.want(r.submit(r.proposal("case-1", 20)), "IN_FLIGHT", 0)
	r.want(r.recover(false), "IN_FLIGHT", 0) // the resend was not sent
	r.revoke("L-refund")
	got := r.submit(r.proposal("case-1", 20))
	r.want(got, "IN_FLIGHT", 0)
	r.want(r.recover(true), "COMMITTED_ON_QUERY", 1)
}

func TestC05ARejectedResendSettlesItsOwnAttemptOnly(t *testing.T) {
	for _, answer := range []protocol.Outcome{protocol.PremiseFailed, protocol.Rejected} {
		r := newRig(t, tier1())
		r.service.script = []simulatedAnswer{ackLost, says(answer)}
		r.want(r.submit(r.proposal("case-1", 20)), "IN_FLIGHT", 1)
		r.want(r.recover(true), "COMMITTED_ON_QUERY", 1)
	}
}

func TestC06UnknownBoundEndsAmbiguous(t *testing.T) {
	can := tier2()
	can.LandingBound = 0
	r := newRig(t, can)
	r.service.script = []simulatedAnswer{neverLands}
	r.want(r.submit(r.proposal("case-1", 20)), "IN_FLIGHT", 0)
	r.want(r.recover(false), "AMBIGUOUS", 0)
}

func TestC07ASendThatTimedOutCanBeRecoveredByItsOwnProcess(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{ackLost}
	r.want(r.submit(r.proposal("case-1", 20)), "IN_FLIGHT", 1)
	r.want(r.recover(false), "COMMITTED_BY_RETRY", 1)
}

// simulatedSessions is a store whose claims are lost without proof of death, as
// those of a database session are.
type simulatedSessions struct{ journal.Store }

func (s simulatedSessions) Claim(ctx context.Context, id journal.ID) (*journal.Claim, error) {
	c, err := s.Store.Claim(ctx, id)
	if err != nil {
		return nil, err
	}
	return journal.NewClaim(id, false, c.Release), nil
}

func TestC08NoProofOfDeathLeavesTheBoundUnknown(t *testing.T) {
	r := newRig(t, tier2())
	r.dies("gate/intent-durable", func() { r.submit(r.proposal("case-1", 20)) })
	r.kill()
	r.store = func(s journal.Store) journal.Store { return simulatedSessions{s} }
	r.open()
	r.want(r.recover(true), "AMBIGUOUS", 0)
	if !slices.Contains(r.kinds(id("case-1")), journal.TakenOver) {
		t.Error("the takeover left no entry")
	}
	r.kill()
	r.store = nil // a later recovery with proof doesn't bring the bound back
	r.open()
	if results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true}); err != nil || len(results) != 0 {
		t.Errorf("recover: %v, %v; want nothing settled", results, err)
	}
}

func TestC09TheKeyWindowIsReadAgainAsTheLastStep(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{lands(23 * time.Hour)} // far beyond the declared bound, so that a resend would land
	r.submit(r.proposal("case-1", 20))
	r.clock.advance(22*time.Hour - 2*time.Second)
	sent := len(r.service.sent)
	r.once("gate/intent-durable", func() { r.clock.advance(3 * time.Second) })
	r.recover(false)
	if n := len(r.service.sent) - sent; n != 0 {
		t.Errorf("%d requests left after the key window", n)
	}
}

func TestC10EveryResendIsADispatchUnderTheAtomicChecks(t *testing.T) {
	for _, at := range []string{"gate/authority-read", "gate/connected", "gate/premises-read"} {
		r := newRig(t, tier1())
		r.dies("gate/intent-durable", func() { r.submit(r.proposal("case-1", 20)) })
		r.once(at, func() { r.revoke("L-refund") })
		r.want(r.recover(true), "REFUSED:lease_at_recovery", 0)
		if n := len(r.service.sent); n != 0 {
			t.Errorf("revoked at %s: %d requests left", at, n)
		}
	}
}

func TestC11AReplayedFailureGoesOnToTheLookup(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{{fails: true}}
	r.want(r.submit(r.proposal("case-1", 20)), "IN_FLIGHT", 1)
	r.want(r.recover(true), "COMMITTED_ON_QUERY", 1)
}

func TestC11AReplayedFailureThatDidNotLandWaitsForTheEndOfItsKey(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{{lost: true, fails: true}}
	r.submit(r.proposal("case-1", 20))
	r.want(r.recover(false), "IN_FLIGHT", 0)
	r.clock.advance(time.Minute)
	got := r.recover(false)
	r.want(got, "IN_FLIGHT", 0)
	if got.RetryAfter < 23*time.Hour {
		t.Errorf("retry after %v, want the end of the key window", got.RetryAfter)
	}
	r.want(r.recover(true), "REAPPLIED_AFTER_QUERY", 1)
}

// W3: a person can say what became of it, and is kept to what was asked.
func TestC14ResolvedNotLandedClosesTheEffect(t *testing.T) {
	r := newRig(t, tier3())
	r.service.script = []simulatedAnswer{lands(time.Hour)}
	r.submit(r.proposal("case-1", 20))
	got := r.recover(false)
	r.want(got, "AMBIGUOUS", 0)
	r.want(r.resolve(got, false), "REFUSED:resolved_not_landed", 0)
	r.proved(r.reader(), journal.Resolved)
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:closed", 0)
	r.clock.advance(2 * time.Hour)
	if n := r.service.landings(id("case-1")); n != 1 {
		t.Errorf("landed %d times", n)
	}
	r.restart()
	if got := r.submit(r.proposal("case-1", 20)); got.Status.String() != "REFUSED:closed" {
		t.Errorf("after a restart: %s", got.Status)
	}
}

// resolve gives a person's word on what got asks.
func (r *rig) resolve(got protocol.Result, landed bool) protocol.Result {
	r.Helper()
	if got.Receipt.Question == nil {
		r.Fatal("the receipt asks nothing")
	}
	word, err := protocol.SignResolution(r.person, protocol.Resolution{
		Namespace: namespace, Effect: got.Effect, Question: *got.Receipt.Question, Landed: landed,
		Person: "ruth", Evidence: "dashboard, order 881", At: r.clock.Now(),
	})
	if err != nil {
		r.Fatal(err)
	}
	result, err := r.gate.Resolve(context.Background(), word)
	if err != nil {
		r.Fatal(err)
	}
	return result
}

func TestC15ARevocationReturnsOnlyWhenALaterRecordProvesIt(t *testing.T) {
	r := newRig(t, tier1())
	r.revoke("L-refund")
	r.proved(journal.FileOpener(r.path("authority"), journal.Options{Mode: journal.Reader}), journal.Revoked)
}

// proved checks that a later record proves the last entry of a kind.
func (r *rig) proved(open journal.Opener, kind journal.Kind) {
	r.Helper()
	var at, proven journal.Seq
	store, err := open(func(e journal.Entry) error {
		if e.Kind == kind {
			at = e.Seq
		}
		return nil
	})
	if err != nil {
		r.Fatal(err)
	}
	defer store.Close()
	store.View(context.Background(), func(h journal.Head) { proven = h.Proven })
	if at == 0 || proven < at {
		r.Errorf("%v is entry %d, proved up to %d", kind, at, proven)
	}
}

func TestC16ATargetThatWasDownLandsLaterThanAnyGuess(t *testing.T) {
	can := tier2()
	can.LandingBound = 2 * time.Hour // covers the target's own outage
	r := newRig(t, can)
	r.service.script = []simulatedAnswer{lands(time.Hour)}
	r.submit(r.proposal("case-1", 20))
	r.clock.advance(59 * time.Minute)
	r.want(r.recover(false), "IN_FLIGHT", 0)
	r.want(r.recover(true), "COMMITTED_ON_QUERY", 1)
}

func TestC17AFenceIsOfOneEffect(t *testing.T) {
	can := tier2()
	can.Fencing, can.LandingBound = true, 0
	r := newRig(t, can)
	r.service.script = []simulatedAnswer{neverLands, lands(time.Minute)}
	r.submit(r.proposal("case-1", 20))
	r.submit(r.proposal("case-2", 20))
	if _, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{}); err != nil {
		t.Fatal(err)
	}
	r.clock.advance(time.Hour)
	for _, request := range []string{"case-1", "case-2"} {
		if n := r.service.landings(id(request)); n != 1 {
			t.Errorf("%s landed %d times", request, n)
		}
	}
}

func TestC18AWrongFirstProposalDoesNotHoldTheRequest(t *testing.T) {
	r := newRig(t, tier1())
	r.want(r.submit(r.proposal("case-1", 30)), "REFUSED:lease", 0)
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:conflicting_payload", 0) // the same authority
	r.grant(lease("L-second"))
	p := r.proposal("case-1", 20)
	p.Lease = "L-second"
	r.want(r.submit(p), "COMMITTED", 1)
}

func TestC19RecoveryContinuesAProposal(t *testing.T) {
	for _, can := range []protocol.Capabilities{tier1(), tier2(), tier3()} {
		r := newRig(t, can)
		r.dies("gate/proposed", func() { r.submit(r.proposal("case-1", 20)) })
		r.want(r.recover(false), "COMMITTED", 1)
	}
}

func TestC20UsesCountEffectsNotAttempts(t *testing.T) {
	r := newRig(t, tier1())
	single := lease("L-once")
	single.Uses = 1
	r.grant(single)
	p, q := r.proposal("case-1", 20), r.proposal("case-2", 20)
	p.Lease, q.Lease = "L-once", "L-once"
	r.dies("gate/intent-durable", func() { r.submit(p) })
	r.want(r.submit(q), "REFUSED:lease", 0)
	r.want(r.recover(false), "COMMITTED_BY_RETRY", 1)
	r.want(r.submit(q), "REFUSED:lease", 0)
}

func TestC21ATemporaryNoIsNotFinal(t *testing.T) {
	r := newRig(t, tier3())
	r.service.script = []simulatedAnswer{{lost: true, says: protocol.Answer{Outcome: protocol.NotExecuted, Reason: "401", RetryAfter: time.Minute}}}
	got := r.submit(r.proposal("case-1", 20))
	r.want(got, "NOT_SENT", 0)
	if got.RetryAfter != time.Minute {
		t.Errorf("retry after %v, want what the target says", got.RetryAfter)
	}
	r.want(r.submit(r.proposal("case-1", 20)), "COMMITTED", 1)
}

func TestC24OtherContentUnderOurIdIsAMismatch(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.service.apply(protocol.Request{Effect: id("case-1"), Payload: json.RawMessage(`{"amount":7}`)}, journal.Token{})
	got := r.recover(true)
	if got.Status.String() != "UNRESOLVED:mismatch" {
		t.Fatalf("status %s", got.Status)
	}
	if got := r.submit(r.proposal("case-1", 20)); got.Status.String() != "UNRESOLVED:mismatch" {
		t.Errorf("submitted again: %s", got.Status)
	}
	if got := r.resolve(got, false); got.Status.String() != "REFUSED:resolved_not_landed" {
		t.Errorf("resolved: %s", got.Status)
	}
	if len(r.service.sent) != 1 {
		t.Errorf("%d requests", len(r.service.sent))
	}
}

func TestC25ALookupThatForgotAnswersNothing(t *testing.T) {
	can := tier2()
	can.LookupWindow = time.Hour
	r := newRig(t, can)
	r.dies("service/applied", func() { r.submit(r.proposal("case-1", 20)) })
	r.clock.advance(2 * time.Hour)
	r.want(r.recover(true), "AMBIGUOUS", 1)
	if r.service.asked != 0 {
		t.Errorf("asked %d times past the window", r.service.asked)
	}
}

func TestC28ASuspectIsAnUnsettledAttempt(t *testing.T) {
	for _, c := range []struct {
		can    protocol.Capabilities
		landed bool
		want   string
	}{
		{tier1(), true, "COMMITTED_ON_QUERY"}, // never by the key: what was sent is unknown
		{tier1(), false, "REAPPLIED_AFTER_QUERY"},
		{tier2(), true, "COMMITTED_ON_QUERY"},
		{tier2(), false, "REAPPLIED_AFTER_QUERY"},
		{tier3(), false, "AMBIGUOUS"},
	} {
		r := newRig(t, c.can)
		r.dies("gate/proposed", func() { r.submit(r.proposal("case-1", 20)) })
		r.suspect("case-1")
		if c.landed {
			r.service.apply(protocol.Request{Effect: id("case-1"), Payload: json.RawMessage(`{"amount":20,"order":"881"}`)}, journal.Token{})
		}
		landings := 0
		if c.want != "AMBIGUOUS" {
			landings = 1
		}
		r.want(r.recover(true), c.want, landings)
	}
}

// suspect lets the next process find a SUSPECT entry, as the store writes it
// after it cut a tail.
func (r *rig) suspect(request string) {
	r.Helper()
	r.kill()
	store, err := journal.FileOpener(r.path("journal"), journal.Options{Namespace: namespace, Dir: r.disk, Now: r.clock.Now})(nil)
	if err != nil {
		r.Fatal(err)
	}
	if _, err := store.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) {
		return []journal.Entry{{Kind: journal.Suspect, Effect: id(request)}}, nil
	}); err != nil {
		r.Fatal(err)
	}
	store.Close()
	r.open()
}

func TestC28ASuspectWhoseProposalIsLostIsSettledByTheNextSubmit(t *testing.T) {
	r := newRig(t, tier2())
	r.suspect("case-1")
	if got := r.recover(true); got.Status.String() != "UNRESOLVED" || got.Err == nil {
		t.Errorf("nothing to go by: %s, %v", got.Status, got.Err)
	}
	r.want(r.submit(r.proposal("case-1", 20)), "IN_FLIGHT", 0)
	r.want(r.recover(true), "REAPPLIED_AFTER_QUERY", 1)
}

func TestC29AFenceIsAboveEveryCutAttempt(t *testing.T) {
	can := tier2()
	can.Fencing, can.LandingBound = true, 0
	r := newRig(t, can)
	// Killed before the sync: the entry is lost, the request is on the wire.
	r.dies("gate/proposed", func() { r.submit(r.proposal("case-1", 20)) })
	cut := journal.Token{Segment: 1, Seq: 4}
	r.clock.after(time.Minute, func() {
		r.service.apply(protocol.Request{Effect: id("case-1"), Payload: json.RawMessage(`{"amount":20,"order":"881"}`)}, cut)
	})
	r.suspect("case-1")
	r.want(r.recover(true), "REAPPLIED_AFTER_QUERY", 1)
	r.clock.advance(time.Hour)
	if n := r.service.landings(id("case-1")); n != 1 {
		t.Errorf("landed %d times: the fence was not above %s", n, cut)
	}
}

func TestC30TheWindowCountsFromTheFirstAttemptOfTheKey(t *testing.T) {
	for _, c := range []struct {
		first protocol.Outcome
		want  string
		why   string
	}{
		{protocol.NotExecuted, "COMMITTED_ON_QUERY", "the target saw the key at 0 h and forgets it at 24 h"},
		{protocol.NotSent, "COMMITTED_BY_RETRY", "the target saw the key at 21:50 h only"},
	} {
		r := newRig(t, tier1())
		r.service.script = []simulatedAnswer{says(c.first), ackLost}
		r.want(r.submit(r.proposal("case-1", 20)), "NOT_SENT", 0)
		r.clock.advance(21*time.Hour + 50*time.Minute)
		r.want(r.submit(r.proposal("case-1", 20)), "IN_FLIGHT", 1)
		r.clock.advance(20 * time.Minute)
		got := r.recover(true)
		if got.Status.String() != c.want {
			t.Errorf("%s: %s, want %s", c.why, got.Status, c.want)
		}
	}
}

func TestC31AnUnknownBoundIsAStatedAssumptionAndNoAbsence(t *testing.T) {
	can := tier1()
	can.LandingBound = 0
	r := newRig(t, can)
	r.dies("gate/intent-durable", func() { r.submit(r.proposal("case-1", 20)) })
	got := r.recover(false)
	r.want(got, "COMMITTED_BY_RETRY", 1)
	if len(got.Receipt.Assumptions) != 1 {
		t.Errorf("assumptions on the receipt: %q", got.Receipt.Assumptions)
	}
	r = newRig(t, can)
	r.service.script = []simulatedAnswer{neverLands, neverLands}
	r.submit(r.proposal("case-1", 20))
	r.want(r.recover(true), "AMBIGUOUS", 0)
}

func TestC32ARequestThatWasQueuedBeforeTheFenceIsRefusedAsItLands(t *testing.T) {
	can := tier2()
	can.Fencing, can.LandingBound = true, 0
	r := newRig(t, can)
	r.service.script = []simulatedAnswer{lands(time.Hour)}
	r.submit(r.proposal("case-1", 20))
	r.revoke("L-refund")
	r.want(r.recover(true), "REFUSED:lease_at_recovery", 0)
	r.clock.advance(2 * time.Hour)
	if n := r.service.landings(id("case-1")); n != 0 {
		t.Errorf("landed %d times after the refusal", n)
	}
}

func TestC33LaterClaimsDontRestartTheBound(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	var got protocol.Result
	for range 4 {
		r.clock.advance(10 * time.Second)
		got = r.submit(r.proposal("case-1", 20))
	}
	r.want(got, "REAPPLIED_AFTER_QUERY", 1)
}

func TestC34TheClaimEndsAfterTheOutcome(t *testing.T) {
	r := newRig(t, tier1())
	asked := 0
	r.once("gate/sent", func() {
		asked++
		got := r.submit(r.proposal("case-1", 20))
		if got.Status.String() != "IN_FLIGHT" || got.Owner == "" {
			t.Errorf("with the answer in hand: %s, owner %q", got.Status, got.Owner)
		}
		if results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{}); err != nil || len(results) != 1 || results[0].Status.String() != "IN_FLIGHT" {
			t.Errorf("recovered meanwhile: %v, %v", results, err)
		}
	})
	r.want(r.submit(r.proposal("case-1", 20)), "COMMITTED", 1)
	if asked != 1 || len(r.service.sent) != 1 {
		t.Errorf("asked %d times, %d requests", asked, len(r.service.sent))
	}
}

func TestC35AMismatchOutlivesARestart(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{neverLands, neverLands}
	r.submit(r.proposal("case-1", 20))
	r.service.mu.Lock()
	r.service.ledger = append(r.service.ledger, simulatedLanding{id("case-1"), `{"amount":7}`, 0})
	r.service.mu.Unlock()
	if got := r.recover(false); got.Status.String() != "UNRESOLVED:mismatch" {
		t.Fatalf("status %s", got.Status)
	}
	r.restart()
	sent := len(r.service.sent)
	if got := r.recover(true); got.Status.String() != "UNRESOLVED:mismatch" || len(r.service.sent) != sent {
		t.Errorf("status %s, %d requests more", got.Status, len(r.service.sent)-sent)
	}
}

func TestResolveTakesOnlyAPersonsSignedWord(t *testing.T) {
	r := newRig(t, tier3())
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	asked := r.recover(false)
	good := protocol.Resolution{
		Namespace: namespace, Effect: asked.Effect, Question: *asked.Receipt.Question, Landed: true,
		Person: "ruth", Evidence: "bank statement", At: r.clock.Now(),
	}
	good, err := protocol.SignResolution(r.person, good)
	if err != nil {
		t.Fatal(err)
	}
	for why, change := range map[string]func(*protocol.Resolution){
		"nobody by that name":      func(x *protocol.Resolution) { x.Person = "agent-7" },
		"the other answer":         func(x *protocol.Resolution) { x.Landed = false },
		"no evidence":              func(x *protocol.Resolution) { x.Evidence = "" },
		"another effect":           func(x *protocol.Resolution) { x.Effect = id("case-2") },
		"another journal":          func(x *protocol.Resolution) { x.Namespace = "other" },
		"a question of the past":   func(x *protocol.Resolution) { x.Question[0]++ },
		"a signature of something": func(x *protocol.Resolution) { x.Signature = slices.Clone(x.Signature); x.Signature[3]++ },
	} {
		word := good
		change(&word)
		if _, err := r.gate.Resolve(context.Background(), word); !errors.Is(err, protocol.ErrResolution) {
			t.Errorf("%s: %v", why, err)
		}
	}
	got, err := r.gate.Resolve(context.Background(), good)
	if err != nil || got.Status.String() != "COMMITTED" || got.Receipt.Executed.Is != protocol.Yes {
		t.Errorf("%v, %v", got.Status, err)
	}
	if _, err := r.gate.Resolve(context.Background(), good); !errors.Is(err, protocol.ErrResolution) {
		t.Errorf("said twice: %v", err)
	}
	r.restart()
	if got := r.submit(r.proposal("case-1", 20)); got.Status.String() != "DUPLICATE_IGNORED" {
		t.Errorf("after a restart: %s", got.Status)
	}
}

// simulatedFreeClaims is a store that gives every claim to everybody: what is
// left then is the atomic step.
type simulatedFreeClaims struct{ journal.Store }

func (simulatedFreeClaims) Claim(_ context.Context, id journal.ID) (*journal.Claim, error) {
	return journal.NewClaim(id, true, func() {}), nil
}

func TestB87TheAtomicStepSeesWhatAnotherDid(t *testing.T) {
	for _, c := range []struct {
		answer simulatedAnswer
		inner  string
		outer  string
	}{
		{applies, "COMMITTED", "DUPLICATE_IGNORED"},
		{ackLost, "IN_FLIGHT", "IN_FLIGHT"},
	} {
		r := newRig(t, tier3())
		r.kill()
		r.store = func(s journal.Store) journal.Store { return simulatedFreeClaims{s} }
		r.open()
		r.service.script = []simulatedAnswer{c.answer}
		r.once("gate/premises-read", func() { r.want(r.submit(r.proposal("case-1", 20)), c.inner, 1) })
		r.want(r.submit(r.proposal("case-1", 20)), c.outer, 1)
		if len(r.service.sent) != 1 {
			t.Errorf("%d requests", len(r.service.sent))
		}
	}
}

func TestC27ATurnedAwayProposalHidesNoAttempt(t *testing.T) {
	r := newRig(t, tier3())
	r.service.refuse = 1
	r.want(r.submit(r.proposal("case-1", 20)), "NOT_SENT", 0)
	r.want(r.submit(r.proposal("case-1", 30)), "REFUSED:conflicting_payload", 0)
	before := r.disk.size()
	r.dies("service/applied", func() { r.recover(false) })
	r.kill()
	r.disk.rot(before) // AUTHORIZED and DISPATCHED can't be read any more
	r.open()
	r.want(r.recover(true), "AMBIGUOUS", 1)
}

func TestC32AFenceCoversOnlyOlderAttempts(t *testing.T) {
	can := tier2()
	can.Fencing, can.LandingBound = true, 0
	r := newRig(t, can)
	r.service.script = []simulatedAnswer{neverLands, lands(time.Minute)}
	r.submit(r.proposal("case-1", 20))
	r.want(r.recover(false), "IN_FLIGHT", 0)             // fenced, absent, sent anew, not answered
	r.want(r.recover(false), "REAPPLIED_AFTER_QUERY", 1) // fenced again
	r.clock.advance(time.Hour)
	if n := r.service.landings(id("case-1")); n != 1 {
		t.Errorf("landed %d times", n)
	}
}
