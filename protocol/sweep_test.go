package protocol_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// TestReferenceCells are the gate's cells of the refund table.
func TestReferenceCells(t *testing.T) {
	refunds := func(r *rig) protocol.Result { return r.submit(r.proposal("case-4471", 20)) }
	for _, row := range []struct {
		name string
		run  func(*rig) protocol.Result
		want [3]string
		n    [3]int
	}{
		{"happy_path", refunds, [3]string{"COMMITTED", "COMMITTED", "COMMITTED"}, [3]int{1, 1, 1}},
		{"crash_before_send", func(r *rig) protocol.Result {
			r.dies("gate/intent-durable", func() { refunds(r) })
			return r.recover(true)
		}, [3]string{"COMMITTED_BY_RETRY", "REAPPLIED_AFTER_QUERY", "AMBIGUOUS"}, [3]int{1, 1, 0}},
		{"crash_before_ack", func(r *rig) protocol.Result {
			r.dies("service/applied", func() { refunds(r) })
			return r.recover(true)
		}, [3]string{"COMMITTED_BY_RETRY", "COMMITTED_ON_QUERY", "AMBIGUOUS"}, [3]int{1, 1, 1}},
		{"duplicate_submit", func(r *rig) protocol.Result {
			refunds(r)
			return refunds(r)
		}, [3]string{"DUPLICATE_IGNORED", "DUPLICATE_IGNORED", "DUPLICATE_IGNORED"}, [3]int{1, 1, 1}},
		{"model_redecides", func(r *rig) protocol.Result {
			r.dies("service/applied", func() { refunds(r) })
			r.recover(true)
			return r.submit(r.proposal("case-4471", 30))
		}, [3]string{"REFUSED:conflicting_payload", "REFUSED:conflicting_payload", "REFUSED:conflicting_payload"}, [3]int{1, 1, 1}},
		{"conflicting_payload", func(r *rig) protocol.Result {
			refunds(r)
			return r.submit(r.proposal("case-4471", 30))
		}, [3]string{"REFUSED:conflicting_payload", "REFUSED:conflicting_payload", "REFUSED:conflicting_payload"}, [3]int{1, 1, 1}},
		{"lease_revoked", func(r *rig) protocol.Result {
			p := r.proposal("case-4471", 20)
			r.revoke("L-refund")
			return r.submit(p)
		}, [3]string{"REFUSED:lease", "REFUSED:lease", "REFUSED:lease"}, [3]int{}},
		{"stale_eligibility", func(r *rig) protocol.Result {
			p := r.proposal("case-4471", 20)
			r.service.set("eligible", "false")
			return r.submit(p)
		}, [3]string{"REFUSED:stale_premise", "REFUSED:stale_premise", "REFUSED:stale_premise"}, [3]int{}},
		{"refund_during_outage", func(r *rig) protocol.Result {
			r.dies("gate/intent-durable", func() { refunds(r) })
			r.service.set("refunded", "20")
			return r.recover(true)
		}, [3]string{"REFUSED:stale_premise_at_recovery", "REFUSED:stale_premise_at_recovery", "AMBIGUOUS"}, [3]int{}},
		{"lease_revoked_during_outage", func(r *rig) protocol.Result {
			r.dies("gate/intent-durable", func() { refunds(r) })
			r.revoke("L-refund")
			return r.recover(true)
		}, [3]string{"REFUSED:lease_at_recovery", "REFUSED:lease_at_recovery", "AMBIGUOUS"}, [3]int{}},
		{"key_expired", func(r *rig) protocol.Result {
			r.dies("service/applied", func() { refunds(r) })
			r.clock.advance(25 * time.Hour)
			return r.recover(true)
		}, [3]string{"COMMITTED_ON_QUERY", "COMMITTED_ON_QUERY", "AMBIGUOUS"}, [3]int{1, 1, 1}},
	} {
		for i, can := range []protocol.Capabilities{tier1(), tier2(), tier3()} {
			t.Run(fmt.Sprintf("%s@t%d", row.name, i+1), func(t *testing.T) {
				r := newRig(t, can)
				r.want(row.run(r), row.want[i], row.n[i])
			})
		}
	}
}

// TestEveryPoint kills the gate at every point that a submit passes, and its
// recovery at every point that passes, and then leaves it alone: it ends with one
// landing at tiers 1 and 2, and honestly at tier 3 (I2, I13, C6, C19).
func TestEveryPoint(t *testing.T) {
	for i, can := range []protocol.Capabilities{tier1(), tier2(), tier3()} {
		var submits []string
		r := newRig(t, can)
		r.onStep = func(p string) { submits = append(submits, p) }
		r.submit(r.proposal("case-1", 20))
		for n := range submits {
			var recovers []string
			converges(t, can, n, -1, &recovers)
			if i == 2 || testing.Short() {
				continue
			}
			for m := range recovers {
				converges(t, can, n, m, &recovers)
			}
		}
	}
}

// TestPointsAreTheOnesPassed compares the declared points with those passed, both
// ways.
func TestPointsAreTheOnesPassed(t *testing.T) {
	passed := map[trace.Point]bool{}
	run := func(can protocol.Capabilities, f func(*rig)) {
		r := newRig(t, can)
		f(r)
		for p := range r.passed {
			passed[p] = true
		}
	}
	fenced := tier2()
	fenced.Fencing = true
	doubt := func(r *rig) { r.dies("gate/intent-durable", func() { r.submit(r.proposal("case-1", 20)) }) }
	run(tier1(), func(r *rig) { r.submit(r.proposal("case-1", 20)); r.revoke("L-refund") })
	run(tier2(), func(r *rig) { doubt(r); r.recover(true) })
	run(fenced, func(r *rig) { doubt(r); r.recover(true) })
	run(tier3(), func(r *rig) { doubt(r); r.resolve(r.recover(true), true) })
	run(tier1(), func(r *rig) {
		r.group("leads", signer("ana"))
		r.rule(over10())
		r.submit(r.proposal("case-1", 20))
		r.approve(r.one(), "ana")
	})
	run(tier2(), func(r *rig) {
		doubt(r)
		r.kill()
		r.store = func(s journal.Store) journal.Store { return simulatedSessions{s} }
		r.open()
		r.recover(true)
	})
	for _, p := range protocol.Points() {
		if !passed[p] {
			t.Errorf("%s is declared and was not passed", p)
		}
		delete(passed, p)
	}
	for p := range passed {
		if strings.HasPrefix(string(p), "gate/") || strings.HasPrefix(string(p), "authority/") {
			t.Errorf("%s was passed and is not declared", p)
		}
	}
}

// converges kills a submit at its n-th point and the recovery at its m-th.
func converges(t *testing.T, can protocol.Capabilities, n, m int, recovers *[]string) {
	t.Helper()
	r := newRig(t, can)
	at := r.killAt(n, nil)
	if !r.run(func() { r.submit(r.proposal("case-1", 20)) }) {
		t.Fatalf("tier %d: point %d was not passed", can.Tier(), n)
	}
	trial := fmt.Sprintf("tier %d, killed at %s", can.Tier(), *at)
	r.restart()
	if m >= 0 {
		at = r.killAt(m, nil)
		r.run(func() { r.recover(true) })
		trial += " and at " + *at
		r.restart()
	} else {
		r.onStep = func(p string) { *recovers = append(*recovers, p) }
	}
	if _, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true}); err != nil {
		t.Fatalf("%s: %v", trial, err)
	}
	r.onStep = nil
	got := r.submit(r.proposal("case-1", 20))
	landings := r.service.landings(got.Effect)
	switch final := got.Status.Final; {
	case final == protocol.Committed && landings == 1:
	case final == protocol.Ambiguous && can.Tier() == 3 && landings <= 1:
	default:
		t.Errorf("%s: %s, landed %d times", trial, got.Status, landings)
	}
	if open, err := r.gate.Report(context.Background()); err != nil || len(open) > 0 && can.Tier() < 3 {
		t.Errorf("%s: open %+v, %v", trial, open, err)
	}
	r.kill()
}

// killAt kills the process at the n-th point it passes from now on, and says
// where that was.
func (r *rig) killAt(n int, also func(p string)) *string {
	at := new(string)
	r.onStep = func(p string) {
		if also != nil {
			also(p)
		}
		if n--; n < 0 {
			*at, r.dead = p, true
			panic(killed{})
		}
	}
	return at
}

func TestFiveInDoubtTakeOneBound(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = slices.Repeat([]simulatedAnswer{neverLands}, 5)
	for n := range 5 {
		r.submit(r.proposal(fmt.Sprintf("case-%d", n), 20))
	}
	r.restart()
	began := r.clock.Mono()
	results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true})
	if err != nil || len(results) != 5 {
		t.Fatalf("%v, %v", results, err)
	}
	for _, got := range results {
		r.want(got, "REAPPLIED_AFTER_QUERY", 1)
	}
	if took, bound := r.clock.Mono()-began, 31*time.Second; took != bound {
		t.Errorf("took %v, want one landing bound and clock margin, %v", took, bound)
	}
}

func TestAFencedTargetNeedsNoBound(t *testing.T) {
	can := protocol.Capabilities{Lookup: true, Fencing: true}
	for n, want := range []string{"REAPPLIED_AFTER_QUERY", "COMMITTED_ON_QUERY"} {
		r := newRig(t, can)
		r.dies([]string{"gate/intent-durable", "service/applied"}[n], func() { r.submit(r.proposal("case-1", 20)) })
		began := r.clock.Mono()
		r.want(r.recover(false), want, 1)
		if r.clock.Mono() != began {
			t.Error("it waited")
		}
	}
	r := newRig(t, can) // killed between the durable fence and the target's word for it
	r.dies("gate/intent-durable", func() { r.submit(r.proposal("case-1", 20)) })
	r.dies("gate/fence-durable", func() { r.recover(false) })
	r.want(r.recover(false), "REAPPLIED_AFTER_QUERY", 1)
}

func TestAConditionalTargetDecidesOnItsOwnPremises(t *testing.T) {
	can := tier2()
	can.Conditional = true
	r := newRig(t, can)
	p := r.proposal("case-1", 20)
	p.Premises[1].Holds = protocol.ByTarget
	r.once("gate/last-checked", func() { r.service.set("refunded", "20") })
	got := r.submit(p)
	r.want(got, "REFUSED:stale_premise", 0)
	if got.Receipt.Executed.Basis != "the target's answer" {
		t.Errorf("executed: %+v", got.Receipt.Executed)
	}
	plain := newRig(t, tier2())
	if _, err := plain.gate.Submit(context.Background(), p); err == nil {
		t.Error("a target that can't check was trusted to")
	}
}

func TestAPremiseCanBeReadBeforeConnecting(t *testing.T) {
	r := newRig(t, tier1())
	var steps []string
	r.onStep = func(p string) {
		if p == "service/prepare" || p == "service/observe" {
			steps = append(steps, p)
		}
	}
	p := r.proposal("case-1", 20)
	p.Premises[1].BeforeConnect = true
	r.want(r.submit(p), "COMMITTED", 1)
	if want := []string{"service/observe", "service/prepare", "service/observe"}; !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
}

func TestEveryAttemptCarriesTheSameBytesAndAnchor(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{neverLands, neverLands}
	p := r.proposal("case-1", 20)
	p.Effect.Payload = []byte("{\"note\":\"<b>&\u2028 é\", \"amount\":2e1}")
	r.submit(p)
	r.restart()
	r.recover(true)
	if len(r.service.sent) != 3 {
		t.Fatalf("%d requests, want a send, a resend and a new attempt", len(r.service.sent))
	}
	first := r.service.sent[0]
	if want := "{\"amount\":20,\"note\":\"<b>&\u2028 é\"}"; string(first.Payload) != want {
		t.Errorf("sent %s, want %s", first.Payload, want)
	}
	for _, s := range r.service.sent[1:] {
		if string(s.Payload) != string(first.Payload) || s.Anchor != first.Anchor || !first.Token.Less(s.Token) {
			t.Errorf("sent %s, anchor %s, token %s after %s, %s, %s", s.Payload, s.Anchor, s.Token, first.Payload, first.Anchor, first.Token)
		}
	}
}
