package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Ways in which the first implementation of the idea went wrong, by number.

func TestB01RecoveryAsksPremisesAndLeaseAgain(t *testing.T) {
	for _, can := range []protocol.Capabilities{tier1(), tier2()} {
		r := newRig(t, can)
		r.dies("gate/intent-durable", func() { r.submit(r.proposal("case-1", 20)) })
		r.service.set("refunded", "20")
		r.want(r.recover(true), "REFUSED:stale_premise_at_recovery", 0)
	}
}

func TestB02ADuplicateDoesNotResendWhatIsUnresolved(t *testing.T) {
	r := newRig(t, tier3())
	r.service.script = []simulatedAnswer{ackLost}
	r.submit(r.proposal("case-1", 20))
	r.want(r.submit(r.proposal("case-1", 20)), "AMBIGUOUS", 1)
	r.want(r.submit(r.proposal("case-1", 20)), "AMBIGUOUS", 1)
	if len(r.service.sent) != 1 {
		t.Errorf("%d requests", len(r.service.sent))
	}
}

func TestB03ConcurrentSubmitsDispatchOnce(t *testing.T) {
	r := newRig(t, tier3())
	p := r.proposal("case-1", 20)
	var all sync.WaitGroup
	results := make([]protocol.Result, 8)
	for i := range results {
		all.Go(func() { results[i], _ = r.gate.Submit(context.Background(), p) })
	}
	all.Wait()
	committed := 0
	for _, got := range results {
		switch got.Status.String() {
		case "COMMITTED":
			committed++
		case "IN_FLIGHT", "DUPLICATE_IGNORED":
		default:
			t.Errorf("status %s", got.Status)
		}
	}
	if n := r.service.landings(id("case-1")); committed != 1 || n != 1 {
		t.Errorf("%d committed, landed %d times", committed, n)
	}
}

// W7: another lease decides anew.
func TestB04ARetryIsJudgedOnTheFactsFirstRecorded(t *testing.T) {
	r := newRig(t, tier1())
	r.once("gate/proposed", func() { r.service.set("refunded", "20") })
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:stale_premise", 0)
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:stale_premise", 0) // decided on fresh facts, under the same lease
	r.restart()
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:stale_premise", 0)
	r.grant(lease("L-second"))
	p := r.proposal("case-1", 20)
	p.Lease = "L-second"
	r.once("gate/proposed", func() { r.service.set("refunded", "30") })
	r.want(r.submit(p), "REFUSED:stale_premise", 0)                        // a new authority brings its own
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:stale_premise", 0) // and takes nothing off the first one's
	r.service.set("refunded", "20")
	r.want(r.submit(p), "COMMITTED", 1)
}

// W9: what was read before is asked again inside the step that appends.
func TestB09AnotherPayloadCantWinARace(t *testing.T) {
	for _, at := range []string{"gate/claimed", "gate/proposed", "gate/premises-read", "gate/intent-durable", "gate/sent"} {
		r := newRig(t, tier1())
		r.once(at, func() {
			if got := r.submit(r.proposal("case-1", 15)); got.Status.String() != "IN_FLIGHT" {
				t.Errorf("at %s: %s", at, got.Status)
			}
		})
		r.want(r.submit(r.proposal("case-1", 20)), "COMMITTED", 1)
		r.want(r.submit(r.proposal("case-1", 15)), "REFUSED:conflicting_payload", 1)
	}
}

func TestB11OneFailureDoesNotStopTheOthers(t *testing.T) {
	r := newRig(t, tier2())
	other := newSimulatedService()
	other.can, other.clock = tier2(), r.clock
	wide := lease("L-other")
	wide.Actions = []string{"refund", "credit"}
	r.grant(wide)
	if err := r.gate.Register("credit", other); err != nil {
		t.Fatal(err)
	}
	p := r.proposal("case-0", 20)
	p.Lease, p.Effect.Action = "L-other", "credit"
	other.script = []simulatedAnswer{ackLost}
	r.submit(p)
	r.service.script = []simulatedAnswer{ackLost}
	r.submit(r.proposal("case-1", 20))
	r.restart() // and nothing is registered for "credit"
	results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true})
	if err != nil || len(results) != 2 {
		t.Fatalf("%v, %v", results, err)
	}
	if got := results[0]; got.Status.String() != "UNRESOLVED" || !errors.Is(got.Err, protocol.ErrUnregistered) {
		t.Errorf("unregistered: %s, %v", got.Status, got.Err)
	}
	r.want(results[1], "COMMITTED_ON_QUERY", 1)
	if open, err := r.gate.Report(context.Background()); err != nil || len(open) != 1 || open[0].Standing != "in doubt" {
		t.Errorf("open: %+v, %v", open, err)
	}
}

func TestB15ReceiptsRefuseWhatIsNoHistory(t *testing.T) {
	r := newRig(t, tier1())
	r.submit(r.proposal("case-1", 20))
	store, err := r.reader()(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	entries, err := protocol.EntriesOf(store, id("case-1"))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := protocol.ReceiptFromEntries(entries)
	if err != nil || whole.Executed.Is != protocol.Yes {
		t.Fatalf("%v, %v", whole.Executed, err)
	}
	if own, err := r.gate.Receipt(context.Background(), id("case-1")); err != nil || own.String() != whole.String() {
		t.Errorf("a reader and the gate derive different receipts: %v", err)
	}
	last := len(entries) - 1
	alone := entries[last]
	alone.Prev = journal.Hash{}
	alone.Hash = alone.Sum()
	edited := slices.Clone(entries)
	edited[0].Body = json.RawMessage(strings.Replace(string(edited[0].Body), "881", "882", 1))
	for why, list := range map[string][]journal.Entry{
		"nothing":           nil,
		"a lone COMMITTED":  {alone},
		"an entry is gone":  slices.Delete(slices.Clone(entries), 1, 2),
		"the first is gone": entries[1:],
		"a body was edited": edited,
		"committed twice":   append(slices.Clone(entries), entries[last]),
	} {
		if _, err := protocol.ReceiptFromEntries(list); !errors.Is(err, protocol.ErrReceipt) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

func TestB15aAResendThatMayHaveBeenSentStaysInDoubt(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{neverLands, lands(20 * time.Second)}
	r.submit(r.proposal("case-1", 20))
	r.want(r.recover(false), "IN_FLIGHT", 0)
	r.revoke("L-refund")
	r.want(r.recover(true), "COMMITTED_ON_QUERY", 1)
}

func TestB15bAKeyIsNotTrustedForEver(t *testing.T) {
	noLookup := tier1()
	noLookup.Lookup = false
	for _, c := range []struct {
		can  protocol.Capabilities
		want string
	}{{tier1(), "COMMITTED_ON_QUERY"}, {noLookup, "AMBIGUOUS"}} {
		r := newRig(t, c.can)
		r.dies("service/applied", func() { r.submit(r.proposal("case-1", 20)) })
		r.clock.advance(25 * time.Hour)
		r.want(r.recover(true), c.want, 1)
	}
}

func TestB41ARefusalAfterAmbiguousSettlesNothing(t *testing.T) {
	r := newRig(t, tier3())
	r.service.script = []simulatedAnswer{ackLost}
	r.submit(r.proposal("case-1", 20))
	r.want(r.recover(false), "AMBIGUOUS", 1)
	got := r.submit(r.proposal("case-1", 15))
	r.want(got, "REFUSED:conflicting_payload", 1)
	if got.Receipt.Status.String() != "AMBIGUOUS" {
		t.Errorf("the receipt says %s", got.Receipt.Status)
	}
	r.restart()
	r.want(r.submit(r.proposal("case-1", 20)), "AMBIGUOUS", 1)
}

func TestB42AndB59ARejectedResendWithAFailingLookupIsNotSentAgain(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{lands(time.Second), says(protocol.Rejected)}
	r.submit(r.proposal("case-1", 20))
	r.service.lookup = errors.New("502")
	got := r.recover(true)
	if got.Status.String() != "UNRESOLVED" || got.Err == nil || len(r.service.sent) != 2 {
		t.Errorf("%s, %v, %d requests", got.Status, got.Err, len(r.service.sent))
	}
	r.service.lookup = nil
	r.clock.advance(time.Minute)
	if got := r.recover(true); r.service.landings(got.Effect) != 1 || got.Status.Final != protocol.Committed {
		t.Errorf("%s, landed %d times", got.Status, r.service.landings(got.Effect))
	}
}

func TestB56ADifferingPayloadIsToldWhatRecoveryDid(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{ackLost}
	r.submit(r.proposal("case-1", 20))
	got := r.submit(r.proposal("case-1", 15))
	r.want(got, "REFUSED:conflicting_payload", 1)
	if got.Recovered.String() != "COMMITTED_BY_RETRY" {
		t.Errorf("recovered %s", got.Recovered)
	}
}

func TestB57WhatAnotherSettledMeanwhileIsReadFromTheJournal(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{ackLost, ackLost}
	r.submit(r.proposal("case-1", 20))
	r.submit(r.proposal("case-2", 20))
	r.once("gate/claimed", func() { // the first of two is claimed; another recovery settles the second
		results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{})
		if err != nil || len(results) != 2 || results[1].Status.String() != "COMMITTED_BY_RETRY" {
			t.Errorf("inner: %v, %v", results, err)
		}
	})
	results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{})
	if err != nil || len(results) != 2 {
		t.Fatalf("%v, %v", results, err)
	}
	for _, got := range results {
		r.want(got, "COMMITTED_BY_RETRY", 1)
	}
}

func TestB58Boundaries(t *testing.T) {
	r := newRig(t, tier1())
	r.clock.advance(30*24*time.Hour - time.Second - time.Nanosecond)
	r.want(r.submit(r.proposal("case-1", 20)), "COMMITTED", 1)
	r.clock.advance(time.Nanosecond)
	r.want(r.submit(r.proposal("case-2", 20)), "REFUSED:lease", 0) // one clock margin before its end it may be over by another clock

	r = newRig(t, tier2())
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.clock.advance(31*time.Second - time.Nanosecond)
	r.want(r.recover(false), "IN_FLIGHT", 0)
	r.clock.advance(time.Nanosecond)
	r.want(r.recover(false), "REAPPLIED_AFTER_QUERY", 1)
}

func TestB62AProposalWithoutAuthorityTakesNoOthersPlace(t *testing.T) {
	r := newRig(t, tier1())
	r.service.refuse = 1
	r.want(r.submit(r.proposal("case-1", 20)), "NOT_SENT", 0)
	p := r.proposal("case-1", 20)
	p.Agent = "agent-9"
	got := r.submit(p)
	r.want(got, "REFUSED:lease", 0)
	if got.Receipt.Agent != "agent-7" || len(got.Receipt.TurnedAway) != 1 || got.Receipt.TurnedAway[0].Agent != "agent-9" {
		t.Errorf("the receipt is about %s, turned away %+v", got.Receipt.Agent, got.Receipt.TurnedAway)
	}
	r.want(r.recover(false), "COMMITTED", 1)
}

func TestB65ConcurrentRecoveriesSendOnce(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.clock.advance(time.Minute)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := r.service.landings(id("case-1")); n != 1 {
		t.Errorf("landed %d times", n)
	}
}

func TestB55AndB66AndB67ASlowLookupKeepsItsClaim(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.clock.advance(time.Minute)
	r.once("service/lookup", func() {
		r.clock.advance(time.Hour)
		r.want(r.recover(true), "IN_FLIGHT", 0)
		r.want(r.submit(r.proposal("case-1", 20)), "IN_FLIGHT", 0)
	})
	r.want(r.recover(false), "REAPPLIED_AFTER_QUERY", 1)
}

func TestB69TheLastUseMakesAReceipt(t *testing.T) {
	r := newRig(t, tier1())
	single := lease("L-once")
	single.Uses = 1
	r.grant(single)
	p := r.proposal("case-1", 20)
	p.Lease = "L-once"
	got := r.submit(p)
	r.want(got, "COMMITTED", 1)
	if got.Receipt.Authorized.Is != protocol.Yes {
		t.Errorf("authorized: %+v", got.Receipt.Authorized)
	}
}

func TestB73AFailedReadIsNoAbsenceAndNoChange(t *testing.T) {
	r := newRig(t, tier2())
	r.service.observe = func(string) error { return errors.New("timeout") }
	got := r.submit(r.proposal("case-1", 20))
	r.want(got, "NOT_SENT", 0)
	r.service.observe = nil
	r.service.set("eligible", `{"broken`)
	r.want(r.recover(false), "NOT_SENT", 0)
	r.service.set("eligible", `true`)
	r.service.script = []simulatedAnswer{lands(time.Hour)}
	r.want(r.recover(false), "IN_FLIGHT", 0)
	r.service.lookup = errors.New("malformed")
	r.clock.advance(time.Minute)
	if got := r.recover(true); got.Status.String() != "UNRESOLVED" || len(r.service.sent) != 1 {
		t.Errorf("%s, %d requests", got.Status, len(r.service.sent))
	}
}

func TestB89ANewAttemptHasABoundOfItsOwn(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{neverLands, lands(25 * time.Second)}
	r.submit(r.proposal("case-1", 20))
	r.clock.advance(31 * time.Second)
	r.want(r.recover(false), "IN_FLIGHT", 0) // sent anew, not answered
	r.clock.advance(20 * time.Second)
	r.want(r.recover(false), "IN_FLIGHT", 0)
	r.want(r.recover(true), "COMMITTED_ON_QUERY", 1)
}

func TestB92AnExpectationIsMoreThanUnchanged(t *testing.T) {
	r := newRig(t, tier1())
	r.service.set("eligible", "false")
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:premise_false_at_decision", 0)
}

func TestW01TheLastStepReadsTheLeaseAndOldPremisesAgain(t *testing.T) {
	r := newRig(t, tier3())
	r.once("gate/intent-durable", func() {
		if v := r.revoke("L-refund"); len(v.Doubt) != 1 {
			t.Errorf("in doubt under the lease: %+v", v.Doubt)
		}
	})
	got := r.submit(r.proposal("case-1", 20))
	r.want(got, "REFUSED:lease", 0)
	if len(r.service.sent) != 0 || got.Receipt.Executed.Basis != "certainly not sent" {
		t.Errorf("%d requests, executed: %+v", len(r.service.sent), got.Receipt.Executed)
	}

	r = newRig(t, tier3())
	r.once("gate/intent-durable", func() {
		r.service.set("refunded", "20")
		r.clock.advance(2 * time.Second)
	})
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:stale_premise", 0)

	r = newRig(t, tier3())
	r.once("gate/intent-durable", func() {
		r.service.observe = func(string) error { return errors.New("timeout") }
		r.clock.advance(2 * time.Second)
	})
	r.want(r.submit(r.proposal("case-1", 20)), "NOT_SENT", 0)
	r.service.observe = nil
	r.want(r.recover(true), "COMMITTED", 1)
}

func TestW02AnAgentInALoopAddsNothing(t *testing.T) {
	r := newRig(t, tier1())
	r.submit(r.proposal("case-1", 20))
	for range 5 {
		r.want(r.submit(r.proposal("case-1", 30)), "REFUSED:conflicting_payload", 1)
	}
	want := []journal.Kind{journal.Proposed, journal.Authorized, journal.Dispatched, journal.Committed, journal.Conflicted}
	if got := r.kinds(id("case-1")); !slices.Equal(got, want) {
		t.Errorf("entries %v, want %v", got, want)
	}
}

func TestW04ARefusedConnectionIsNotSentAtEveryTier(t *testing.T) {
	for _, can := range []protocol.Capabilities{tier1(), tier2(), tier3()} {
		r := newRig(t, can)
		r.service.refuse = 3
		r.want(r.submit(r.proposal("case-1", 20)), "NOT_SENT", 0)
		r.want(r.recover(true), "COMMITTED", 1)
	}
}

func TestW10APremiseHasAnAge(t *testing.T) {
	for _, c := range []struct {
		wait time.Duration
		want string
	}{{time.Minute, "COMMITTED"}, {time.Minute + 1, "REFUSED:stale_premise"}} {
		r := newRig(t, tier1())
		p := r.proposal("case-1", 20)
		p.Premises[0].MaxAge = time.Minute
		r.clock.advance(c.wait)
		if got := r.submit(p); got.Status.String() != c.want {
			t.Errorf("after %v: %s", c.wait, got.Status)
		}
	}
}

// TestRecoverAnswersOnlyForWhatItWorkedOn: the sweep found results without an
// effect beside the error of a broken disk.
func TestRecoverAnswersOnlyForWhatItWorkedOn(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{ackLost, ackLost}
	r.submit(r.proposal("case-1", 20))
	r.submit(r.proposal("case-2", 20))
	r.disk.fail(errors.New("EIO"))
	results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{})
	if !errors.Is(err, journal.ErrPoisoned) {
		t.Fatalf("recovered on a broken disk: %v", err)
	}
	for _, got := range results {
		if got.Effect.IsZero() || got.Status == (protocol.Status{}) {
			t.Errorf("a result of nothing: %+v", got)
		}
	}
}

func TestB07RecoveryDuringASendDoesNotSend(t *testing.T) {
	r := newRig(t, tier2())
	r.once("service/send", func() { // the request is out and not applied yet
		r.clock.advance(time.Hour)
		r.want(r.recover(true), "IN_FLIGHT", 0)
	})
	r.want(r.submit(r.proposal("case-1", 20)), "COMMITTED", 1)

	r = newRig(t, tier2())
	r.service.script = []simulatedAnswer{{late: 20 * time.Second, does: func() { r.dead = true; panic(killed{}) }}}
	if !r.run(func() { r.submit(r.proposal("case-1", 20)) }) {
		t.Fatal("nobody died")
	}
	r.clock.after(20*time.Second, func() { // what the service had taken in by then
		r.service.apply(protocol.Request{Effect: id("case-1"), Payload: json.RawMessage(`{"amount":20,"order":"881"}`)}, journal.Token{Segment: 1, Seq: 4})
	})
	r.restart()
	r.want(r.recover(true), "COMMITTED_ON_QUERY", 1)
	if len(r.service.sent) != 1 {
		t.Errorf("%d requests", len(r.service.sent))
	}
}

func TestB08RecoveryAsksForTheLeaseOfTheSend(t *testing.T) {
	for _, c := range []struct{ revoked, want string }{{"L-refund", "REFUSED:lease_at_recovery"}, {"L-second", "REAPPLIED_AFTER_QUERY"}} {
		r := newRig(t, tier2())
		r.grant(lease("L-second"))
		r.dies("gate/intent-durable", func() { r.submit(r.proposal("case-1", 20)) })
		p := r.proposal("case-1", 20)
		p.Lease = "L-second"
		r.want(r.submit(p), "IN_FLIGHT", 0)
		r.revoke(c.revoked)
		landings := 0
		if c.revoked == "L-second" {
			landings = 1
		}
		r.want(r.recover(true), c.want, landings)
	}
}

func TestB12RecoveryCallsTheTargetOfTheRecordedAction(t *testing.T) {
	r := newRig(t, tier2())
	other := newSimulatedService()
	other.can, other.clock = tier2(), r.clock
	wide := lease("L-both")
	wide.Actions = []string{"refund", "credit"}
	r.grant(wide)
	register := func() {
		if err := r.gate.Register("credit", other); err != nil {
			t.Fatal(err)
		}
	}
	register()
	p := r.proposal("case-1", 20)
	p.Lease, p.Effect.Action = "L-both", "credit"
	r.dies("gate/intent-durable", func() { r.submit(p) })
	register()
	if got := r.recover(true); got.Status.String() != "REAPPLIED_AFTER_QUERY" || other.landings(got.Effect) != 1 || len(r.service.sent) != 0 {
		t.Errorf("%s, credit landed %d times, refund was sent %d times", got.Status, other.landings(got.Effect), len(r.service.sent))
	}
	p.Effect.Action = "refund" // the same content under another action is other content
	if got := r.submit(p); got.Status.String() != "REFUSED:conflicting_payload" {
		t.Errorf("the other action: %s", got.Status)
	}
}

func TestB13ATornEndAndAnEmptyLockFileStopNobody(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{ackLost}
	r.submit(r.proposal("case-1", 20))
	whole := r.disk.size()
	r.once("gate/looked-up", func() { r.dead = true; panic(killed{}) })
	r.run(func() { r.recover(true) })
	r.kill()
	if f := r.disk.last(); whole > 0 {
		f.bytes = append(f.bytes, []byte("\x1eILF torn")...)
		f.durable = slices.Clone(f.bytes)
	}
	if err := os.Truncate(filepath.Join(r.path("journal"), "lock"), 0); err != nil {
		t.Fatal(err)
	}
	r.open()
	r.want(r.recover(true), "COMMITTED_ON_QUERY", 1)
}

func TestB18AConflictSaysNothingOfAnAmbiguousEffect(t *testing.T) {
	r := newRig(t, tier3())
	r.service.script = []simulatedAnswer{ackLost}
	r.submit(r.proposal("case-1", 20))
	r.recover(false)
	r.want(r.submit(r.proposal("case-1", 15)), "REFUSED:conflicting_payload", 1)
	got, err := r.gate.Receipt(context.Background(), id("case-1"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Status.Final != protocol.Ambiguous || got.Why != "" || string(got.Payload) != `{"amount":20,"order":"881"}` || len(got.TurnedAway) != 1 {
		t.Errorf("the receipt says %s, why %q, of %s, turned away %d", got.Status, got.Why, got.Payload, len(got.TurnedAway))
	}
}

func TestB29AResendInFlightThatLandedHasAReceipt(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{neverLands, lands(20 * time.Second)}
	r.submit(r.proposal("case-1", 20))
	r.want(r.recover(true), "COMMITTED_ON_QUERY", 1)
	got, err := r.gate.Receipt(context.Background(), id("case-1"))
	if err != nil || got.Executed.Is != protocol.Yes || len(got.Attempts) != 2 {
		t.Errorf("%v, executed: %+v, %d attempts", err, got.Executed, len(got.Attempts))
	}
}

func TestB32WhatIsNoEntryIsReported(t *testing.T) {
	r := newRig(t, tier1())
	r.submit(r.proposal("case-1", 20))
	store, err := r.reader()(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	entries, err := protocol.EntriesOf(store, id("case-1"))
	if err != nil {
		t.Fatal(err)
	}
	for why, spoil := range map[string]func(*journal.Entry){
		"no kind": func(e *journal.Entry) { e.Kind = 0; e.Hash = e.Sum() },
		"no hash": func(e *journal.Entry) { e.Hash = journal.Hash{} },
		"no body": func(e *journal.Entry) { e.Body = nil; e.Hash = e.Sum() },
		"no JSON": func(e *journal.Entry) { e.Body = json.RawMessage("{"); e.Hash = e.Sum() },
		"nothing": func(e *journal.Entry) { *e = journal.Entry{} },
	} {
		for i := range entries {
			spoilt := slices.Clone(entries)
			spoil(&spoilt[i])
			if _, err := protocol.ReceiptFromEntries(spoilt[:i+1]); !errors.Is(err, protocol.ErrReceipt) && !errors.Is(err, journal.ErrFormat) {
				t.Errorf("entry %d, %s: %v", i, why, err)
			}
		}
	}
}

func TestB49AFinalNoIsNotSentAgain(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{says(protocol.Rejected)}
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:target_rejected", 0)
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:target_rejected", 0)
	r.restart()
	if results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true}); err != nil || len(results) != 0 {
		t.Errorf("recovered %v, %v", results, err)
	}
	r.grant(lease("L-second"))
	p := r.proposal("case-1", 20)
	p.Lease = "L-second"
	r.want(r.submit(p), "REFUSED:target_rejected", 0)
	if len(r.service.sent) != 1 {
		t.Errorf("%d requests", len(r.service.sent))
	}
}

func TestB52AFactIsReadOnceAndWhatIsReadIsWhatIsJudged(t *testing.T) {
	r := newRig(t, tier1())
	reads := 0
	r.onStep = func(p string) {
		if p == "service/observe" {
			reads++
			defer r.service.set("refunded", "20") // a second read would see this
		}
	}
	got := r.submit(r.proposal("case-1", 20))
	if reads != 2 || len(got.Receipt.Attempts) != 0 {
		t.Errorf("%d reads of two premises, %d attempts", reads, len(got.Receipt.Attempts))
	}
	r.want(got, "REFUSED:stale_premise", 0)
	r.onStep = nil
	r.service.set("refunded", "0")
	got = r.submit(r.proposal("case-1", 20))
	r.want(got, "COMMITTED", 1)
	if read := got.Receipt.Attempts[0].Read; len(read) != 2 || string(read[1].Value) != "0" {
		t.Errorf("on record is %+v", read)
	}
}

func TestB71ARetryRecoversWhatAStartLeftToAnother(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.once("gate/claimed", func() { // somebody is at it when another one starts
		results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true})
		if err != nil || len(results) != 1 || results[0].Status.String() != "IN_FLIGHT" {
			t.Errorf("the start: %v, %v", results, err)
		}
		r.dead = true
		panic(killed{})
	})
	if !r.run(func() { r.recover(false) }) {
		t.Fatal("nobody died")
	}
	r.restart()
	r.want(r.submit(r.proposal("case-1", 20)), "COMMITTED_BY_RETRY", 1)
}

func TestB83AndB84AndB85AMandateIsForOneUseOneCustomerAndAnAmount(t *testing.T) {
	mandate := lease("L-mandate")
	mandate.Uses = 1
	mandate.Limits = append(mandate.Limits, protocol.Limit{Field: "order", Equals: json.RawMessage(`"881"`)})
	for _, c := range []struct{ why, payload, want string }{
		{"B84: another customer's", `{"order":"882","amount":20}`, "REFUSED:lease"},
		{"B85: no amount at all", `{"order":"881"}`, "REFUSED:lease"},
		{"B85: above the range", `{"order":"881","amount":20.01}`, "REFUSED:lease"},
		{"what it is for", `{"order":"881","amount":20}`, "COMMITTED"},
	} {
		r := newRig(t, tier1())
		r.grant(mandate)
		submit := func(request string) protocol.Result {
			p := r.proposal(request, 20)
			p.Lease, p.Effect.Payload = "L-mandate", json.RawMessage(c.payload)
			return r.submit(p)
		}
		if got := submit("case-1"); got.Status.String() != c.want {
			t.Errorf("%s: %s", c.why, got.Status)
		}
		for _, again := range []string{"case-2", "case-3"} { // B83: three times
			if got := submit(again); got.Status.String() != "REFUSED:lease" {
				t.Errorf("%s, %s: %s", c.why, again, got.Status)
			}
		}
	}
}

func TestB94AHungSenderKeepsItsClaim(t *testing.T) {
	r := newRig(t, tier2())
	r.once("service/send", func() {
		r.clock.advance(24 * time.Hour) // longer than any timer would wait
		r.want(r.recover(true), "IN_FLIGHT", 0)
		r.want(r.submit(r.proposal("case-1", 20)), "IN_FLIGHT", 0)
	})
	r.want(r.submit(r.proposal("case-1", 20)), "COMMITTED", 1)
	if len(r.service.sent) != 1 {
		t.Errorf("%d requests", len(r.service.sent))
	}
}

func TestB95NothingThatItsWriterCanRewriteIsCalledTamperEvident(t *testing.T) {
	r := newRig(t, tier1())
	r.submit(r.proposal("case-1", 20))
	store, err := r.reader()(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	entries, err := protocol.EntriesOf(store, id("case-1"))
	if err != nil {
		t.Fatal(err)
	}
	var prev journal.Hash
	for i := range entries { // the writer builds another chain, of another amount
		entries[i].Body = json.RawMessage(strings.ReplaceAll(string(entries[i].Body), `"amount":20`, `"amount":19`))
		entries[i].Prev = prev
		entries[i].Hash = entries[i].Sum()
		prev = entries[i].Hash
	}
	rebuilt, err := protocol.ReceiptFromEntries(entries)
	if err != nil {
		t.Fatalf("a rebuilt chain is consistent: %v", err)
	}
	text, err := json.Marshal(rebuilt)
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.ToLower(rebuilt.String() + string(text)); strings.Contains(said, "tamper") {
		t.Errorf("the receipt promises what its writer can undo:\n%s", said)
	}
}

func TestW08AuthorizedMeansClearedToSend(t *testing.T) {
	r := newRig(t, tier1())
	r.once("gate/connected", func() { r.service.set("refunded", "20") })
	got := r.submit(r.proposal("case-1", 20))
	r.want(got, "REFUSED:stale_premise", 0)
	if kinds := r.kinds(id("case-1")); slices.Contains(kinds, journal.Authorized) || got.Receipt.Authorized.Is != protocol.No {
		t.Errorf("entries %v, authorized: %+v", kinds, got.Receipt.Authorized)
	}
}

// TestResendThatNeverLeftIsTriedAgain: a connection that can't be made once,
// during recovery, is no reason to leave to a person what the key still settles. It
// was where the target doesn't bound its landings: the lookup finds nothing, and
// nothing else speaks for the attempt.
func TestResendThatNeverLeftIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		why  string
		fail func(*rig)
	}{
		{"connection", "refused before a byte was written", func(r *rig) { r.service.refuse = 1 }},
		{"busy", "declared not executed", func(r *rig) { r.service.script = []simulatedAnswer{says(protocol.NotExecuted)} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Log(c.why)
			can := tier1()
			can.LandingBound = 0
			r := newRig(t, can)
			r.service.script = []simulatedAnswer{neverLands}
			r.want(r.submit(r.proposal("case-1", 20)), "IN_FLIGHT", 0)
			c.fail(r)
			r.want(r.recover(false), "IN_FLIGHT", 0)
			r.want(r.recover(true), "COMMITTED_BY_RETRY", 1)
		})
	}
	t.Run("window over", func(t *testing.T) {
		can := tier1()
		can.LandingBound = 0
		r := newRig(t, can)
		r.service.script = []simulatedAnswer{neverLands}
		r.submit(r.proposal("case-1", 20))
		r.service.refuse = 1 << 20
		r.want(r.recover(true), "AMBIGUOUS", 0)
	})
}

// TestRecoverDoesNotAnswerWithAnEarlierTry: the sweep found a NOT_SENT beside the
// error of a disk that broke when the next try had been sent and had landed.
func TestRecoverDoesNotAnswerWithAnEarlierTry(t *testing.T) {
	r := newRig(t, tier1())
	r.service.refuse = 2
	r.want(r.submit(r.proposal("case-1", 20)), "NOT_SENT", 0)
	r.once("service/applied", func() { r.disk.fail(errors.New("EIO")) })
	results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true})
	if !errors.Is(err, journal.ErrPoisoned) || r.service.landings(id("case-1")) != 1 {
		t.Fatalf("%v, landed %d times", err, r.service.landings(id("case-1")))
	}
	for _, got := range results {
		if got.Receipt.Executed.Is == protocol.No {
			t.Errorf("it landed, and the answer is %s\n%s", got.Status, got.Receipt)
		}
	}
}
