package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

func TestLeaseLimitsFailClosed(t *testing.T) {
	amount := func(max string) []protocol.Limit { return []protocol.Limit{{Field: "amount", Max: max}} }
	for i, c := range []struct {
		limits  []protocol.Limit
		payload string
		covered bool
		why     string
	}{
		{amount("20"), `{"amount":20}`, true, "the limit is inclusive"},
		{amount("20"), `{"amount":2e1}`, true, "numbers, not spellings"},
		{amount("20.00"), `{"amount":20}`, true, "numbers, not spellings"},
		{amount("0.3"), `{"amount":0.3}`, true, "decimals are exact"},
		{amount("0.3"), `{"amount":0.30000000000000004}`, false, "decimals are exact"},
		{amount("20"), `{"amount":20.01}`, false, "a cent too much"},
		{amount("20"), `{"amount":true}`, false, "B61: a boolean is no number"},
		{amount("20"), `{"amount":"20"}`, false, "B70: a string is no number"},
		{amount("20"), `{"amount":null}`, false, "null is no number"},
		{amount("20"), `{}`, false, "the field is missing"},
		{amount("20"), `{"amount":{"amount":5}}`, false, "an object is no number"},
		{[]protocol.Limit{{Field: "to.account", Equals: json.RawMessage(`"A"`)}}, `{"to":{"account":"A"}}`, true, "names joined with dots"},
		{[]protocol.Limit{{Field: "to.account", Equals: json.RawMessage(`"A"`)}}, `{"to":{"account":"B"}}`, false, "another value"},
		{[]protocol.Limit{{Field: "to.account", Equals: json.RawMessage(`"A"`)}}, `{"to":"A"}`, false, "no such member"},
		{[]protocol.Limit{{Field: "n", Equals: json.RawMessage(`1`)}}, `{"n":true}`, false, "B61: true is not 1"},
		{[]protocol.Limit{{Field: "n", Equals: json.RawMessage(`1`)}}, `{"n":1.0}`, true, "equal values"},
	} {
		r := newRig(t, tier1())
		l := lease("L-limits")
		l.Limits = c.limits
		r.grant(l)
		p := r.proposal(fmt.Sprintf("case-%d", i), 0)
		p.Lease, p.Effect.Payload = "L-limits", json.RawMessage(c.payload)
		want := "REFUSED:lease"
		if c.covered {
			want = "COMMITTED"
		}
		if got := r.submit(p); got.Status.String() != want {
			t.Errorf("%s under %+v: %s, want %s: %s", c.payload, c.limits, got.Status, want, c.why)
		}
	}
}

func TestGrantRefusesWhatIsNoLease(t *testing.T) {
	r := newRig(t, tier1())
	r.grant(lease("L-revoked"))
	r.revoke("L-revoked")
	r.grant(lease("L-old"))
	renewal := lease("L-new")
	renewal.Replaces = "L-old"
	r.grant(renewal)
	for _, c := range []struct {
		change func(*protocol.Lease)
		why    string
	}{
		{func(l *protocol.Lease) { l.ID = "" }, "no id"},
		{func(l *protocol.Lease) { l.ID = "L-refund" }, "granted before"},
		{func(l *protocol.Lease) { l.Principal = "agent-7" }, "an agent can't grant to itself"},
		{func(l *protocol.Lease) { l.Holder = "" }, "no holder"},
		{func(l *protocol.Lease) { l.Actions = nil }, "no action"},
		{func(l *protocol.Lease) { l.Expires = time.Time{} }, "B60: no end"},
		{func(l *protocol.Lease) { l.Uses = -1 }, "negative uses"},
		{func(l *protocol.Lease) { l.Limits[0].Max = "NaN" }, "B60: no number"},
		{func(l *protocol.Lease) { l.Limits[0].Max = "1e999999999" }, "an exponent out of reach"},
		{func(l *protocol.Lease) { l.Limits[0].Max = "" }, "limits nothing"},
		{func(l *protocol.Lease) { l.Replaces = "L-none" }, "replaces nothing"},
		{func(l *protocol.Lease) { l.Replaces = "L-revoked" }, "replaces a revoked one"},
		{func(l *protocol.Lease) { l.Replaces = "L-old" }, "replaced already"},
		{func(l *protocol.Lease) { l.Replaces, l.Principal = "L-new", "sales" }, "another principal"},
		{func(l *protocol.Lease) { l.Replaces, l.Holder = "L-new", "agent-9" }, "another holder"},
		{func(l *protocol.Lease) { l.Replaces, l.Limits = "L-new", nil }, "wider: no limit"},
		{func(l *protocol.Lease) { l.Replaces, l.Limits[0].Max = "L-new", "21" }, "wider: a greater limit"},
		{func(l *protocol.Lease) { l.Replaces, l.Actions = "L-new", []string{"refund", "credit"} }, "wider: another action"},
	} {
		l := lease("L-x")
		c.change(&l)
		if err := r.authority.Grant(context.Background(), l); !errors.Is(err, protocol.ErrLease) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
}

func TestARenewedLeaseIsTheSameAuthority(t *testing.T) {
	r := newRig(t, tier2())
	single := lease("L-a")
	single.Uses, single.Expires = 1, epoch.Add(time.Hour)
	r.grant(single)
	p := r.proposal("case-1", 20)
	p.Lease = "L-a"
	r.dies("gate/intent-durable", func() { r.submit(p) })
	r.clock.advance(2 * time.Hour) // expired during the outage
	renewed := single
	renewed.ID, renewed.Replaces, renewed.Expires = "L-b", "L-a", epoch.AddDate(0, 0, 9)
	r.grant(renewed)
	r.want(r.recover(true), "REAPPLIED_AFTER_QUERY", 1)
	q := r.proposal("case-2", 20)
	q.Lease = "L-b"
	r.want(r.submit(q), "REFUSED:lease", 0) // one use for the whole line

	r = newRig(t, tier2())
	again := lease("L-again")
	again.Replaces = "L-refund"
	r.grant(again)
	r.revoke("L-refund") // and with it the renewal
	p = r.proposal("case-1", 20)
	p.Lease = "L-again"
	r.want(r.submit(p), "REFUSED:lease", 0)
}

func TestARevocationNamesWhatIsInDoubtUnderIt(t *testing.T) {
	r := newRig(t, tier3())
	r.grant(lease("L-other"))
	r.service.script = []simulatedAnswer{ackLost, ackLost, ackLost}
	for _, c := range []struct{ request, lease string }{{"case-1", "L-refund"}, {"case-2", "L-other"}, {"case-3", "L-refund"}} {
		p := r.proposal(c.request, 20)
		p.Lease = c.lease
		r.submit(p)
	}
	r.submit(r.proposal("case-1", 20)) // ambiguous now
	v := r.revoke("L-refund")
	if len(v.Doubt) != 2 || v.Doubt[0].Request != "case-1" || v.Doubt[0].Standing != "ambiguous" ||
		v.Doubt[1].Request != "case-3" || v.Doubt[1].Standing != "in doubt" {
		t.Errorf("in doubt: %+v", v.Doubt)
	}
	if again := r.revoke("L-refund"); len(again.Doubt) != 2 {
		t.Errorf("revoked again: %+v", again)
	}
	if _, err := r.authority.Revoke(context.Background(), "L-none", protocol.RevokeOptions{}); !errors.Is(err, protocol.ErrLease) {
		t.Errorf("an unknown lease: %v", err)
	}
}

func TestNothingIsDispatchedAfterARevocationReturned(t *testing.T) {
	r := newRig(t, tier1())
	var all sync.WaitGroup
	begun := make(chan struct{}, 1)
	for worker := range 8 {
		all.Go(func() {
			for n := range 40 {
				got, err := r.gate.Submit(context.Background(), r.proposal(fmt.Sprintf("case-%d-%d", worker, n), 20))
				if err != nil {
					t.Error(err)
				}
				select {
				case begun <- struct{}{}:
				default:
				}
				if got.Status.String() == "REFUSED:lease" {
					return
				}
			}
		})
	}
	<-begun
	r.revoke("L-refund")
	var returned journal.Seq
	store, err := r.reader()(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	store.View(context.Background(), func(h journal.Head) { returned = h.Seq })
	all.Wait()
	for e, err := range store.Since(returned) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == journal.Dispatched {
			t.Errorf("entry %d was dispatched after the revocation had returned at %d", e.Seq, returned)
		}
	}
}

func TestADispatchGoesOnWhileAPrincipalHoldsTheAppendLock(t *testing.T) {
	r := newRig(t, tier1())
	stopped, goOn := make(chan struct{}), make(chan struct{})
	slow, err := protocol.OpenAuthority(journal.FileOpener(r.path("authority"), journal.Options{
		Mode: journal.Appender, Namespace: namespace, Now: r.clock.Now,
		Trace: func(p trace.Point, _ string) {
			if p == journal.Written {
				stopped <- struct{}{}
				<-goOn
			}
		},
	}), r.openDrain(), protocol.AuthorityOptions{Clock: r.clock})
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	granted := make(chan error)
	go func() { granted <- slow.Grant(context.Background(), lease("L-slow")) }()
	<-stopped
	r.want(r.submit(r.proposal("case-1", 20)), "COMMITTED", 1)
	p := r.proposal("case-2", 20)
	p.Lease = "L-slow"
	r.want(r.submit(p), "REFUSED:lease", 0) // written, and not proved yet
	goOn <- struct{}{}
	<-stopped
	goOn <- struct{}{}
	if err := <-granted; err != nil {
		t.Fatal(err)
	}
	r.want(r.submit(p), "COMMITTED", 1)
}

func TestADrainThatPassesItsDeadlineSaysSo(t *testing.T) {
	r := newRig(t, tier1())
	ctx, cancel := context.WithCancel(context.Background())
	hasty, err := protocol.OpenAuthority(journal.FileOpener(r.path("authority"), journal.Options{
		Mode: journal.Appender, Namespace: namespace, Now: r.clock.Now,
	}), r.openDrain(), protocol.AuthorityOptions{Clock: r.clock, Trace: func(p trace.Point, _ string) {
		if p == protocol.PointSealed {
			cancel() // the deadline passes when the revocation is recorded
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer hasty.Close()
	r.once("gate/lease-shared", func() {
		v, err := hasty.Revoke(ctx, "L-refund", protocol.RevokeOptions{})
		if !errors.Is(err, protocol.ErrUndecided) || !v.Undecided || v.Holder != "agent-7" {
			t.Errorf("%+v, %v", v, err)
		}
	})
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:lease", 0)
	if v := r.revoke("L-refund"); v.Undecided || len(v.Doubt) != 0 {
		t.Errorf("revoked again: %+v", v)
	}
}

func TestALeaseThatIsBeingDrainedIsDead(t *testing.T) {
	r := newRig(t, tier1())
	r.once("gate/premises-read", func() { r.revoke("L-refund") })
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:lease", 0)
	if kinds := r.kinds(id("case-1")); len(kinds) != 2 {
		t.Errorf("entries %v", kinds)
	}
}
