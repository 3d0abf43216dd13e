package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

func budget(cap string) protocol.Budget {
	return protocol.Budget{Name: "refunds", Principal: "finance", Holders: []string{"agent-7", "agent-8"}, Field: "amount", Cap: cap}
}

func (r *rig) setBudget(b protocol.Budget) {
	r.Helper()
	if err := r.authority.SetBudget(context.Background(), b); err != nil {
		r.Fatal(err)
	}
}

// budgetRig is a desk whose lease requires a budget.
func budgetRig(t testing.TB, can protocol.Capabilities, b protocol.Budget) *rig {
	t.Helper()
	r := newRig(t, can)
	r.setBudget(b)
	l := lease("L-capped")
	l.Budget = b.Name
	r.grant(l)
	return r
}

// capped is a refund under the lease that requires the budget.
func (r *rig) capped(request string, amount int) protocol.Proposal {
	p := r.proposal(request, amount)
	p.Lease = "L-capped"
	return p
}

// wantHolders checks whom a refusal names.
func (r *rig) wantHolders(got protocol.Result, want string) {
	r.Helper()
	var names []string
	for _, h := range got.Receipt.Held {
		if h.Effect != id(h.Request) {
			r.Errorf("%s is not effect %s", h.Request, h.Effect)
		}
		names = append(names, h.Request+" "+h.Amount)
		if !strings.Contains(got.Receipt.Why, h.Request) {
			r.Errorf("%q doesn't name %s", got.Receipt.Why, h.Request)
		}
	}
	if have := strings.Join(names, ", "); have != want {
		r.Errorf("held by %q, want %q", have, want)
	}
}

func TestABudgetIsNotExceeded(t *testing.T) {
	r := budgetRig(t, tier1(), budget("30"))
	got := r.submit(r.capped("case-1", 20))
	r.want(got, "COMMITTED", 1)
	want := protocol.Draw{Budget: "refunds", Granted: 4, Amount: "20", Cap: "30", Others: "0"}
	if d := got.Receipt.Attempts[0].Draw; d == nil || *d != want || got.Receipt.Budget != "refunds" {
		t.Errorf("drew %+v on %q, want %+v", d, got.Receipt.Budget, want)
	}
	got = r.submit(r.capped("case-2", 20))
	r.want(got, "REFUSED:over_budget", 0)
	r.wantHolders(got, "case-1 20")
	if got.Receipt.Authorized.Is != protocol.No || got.Receipt.Executed.Is != protocol.No {
		t.Errorf("a refusal before any dispatch:\n%s", got.Receipt)
	}
	r.want(r.submit(r.capped("case-3", 10)), "COMMITTED", 1) // the cap is inclusive
	r.want(r.submit(r.capped("case-1", 20)), "DUPLICATE_IGNORED", 1)
	r.restart() // the journal alone knows
	got = r.submit(r.capped("case-4", 1))
	r.want(got, "REFUSED:over_budget", 0)
	r.wantHolders(got, "case-3 10, case-1 20")
}

func TestABudgetCantBeDodged(t *testing.T) {
	r := budgetRig(t, tier1(), budget("30"))
	other := budget("1000")
	other.Name = "petty"
	r.setBudget(other)
	p := r.capped("case-1", 20)
	p.Budget = "petty"
	r.want(r.submit(p), "REFUSED:lease", 0) // its lease requires another
	p = r.capped("case-2", 20)
	p.Budget = "refunds"
	r.want(r.submit(p), "COMMITTED", 1)
	r.want(r.submit(r.capped("case-3", 20)), "REFUSED:over_budget", 0) // named or not

	// A claim that was recorded binds the retries under the same authority.
	p = r.proposal("case-4", 20)
	p.Budget = "refunds"
	r.want(r.submit(p), "REFUSED:over_budget", 0)
	p.Budget = ""
	r.want(r.submit(p), "REFUSED:over_budget", 0)

	loose := lease("L-loose")
	loose.Replaces = "L-capped"
	if err := r.authority.Grant(context.Background(), loose); !errors.Is(err, protocol.ErrLease) {
		t.Errorf("a renewal without the budget is wider: %v", err)
	}
	loose.Budget = "petty"
	if err := r.authority.Grant(context.Background(), loose); !errors.Is(err, protocol.ErrLease) {
		t.Errorf("a renewal under another budget is wider: %v", err)
	}
}

func TestBudgetsFailClosed(t *testing.T) {
	for i, c := range []struct {
		payload string
		change  func(*protocol.Budget)
		fits    bool
		why     string
	}{
		{`{"amount":20}`, nil, true, "the cap is inclusive"},
		{`{"amount":0}`, nil, true, "nothing is drawn"},
		{`{"amount":20.0e0}`, nil, true, "numbers, not spellings"},
		{`{"amount":20.01}`, nil, false, "a cent too much"},
		{`{"amount":-20}`, nil, false, "a negative amount would make room for others"},
		{`{"amount":"20"}`, nil, false, "B70: a string is no number"},
		{`{"amount":true}`, nil, false, "B61: a boolean is no number"},
		{`{"amount":null}`, nil, false, "null is no number"},
		{`{"amount":"NaN"}`, nil, false, "B70: no number"},
		{`{"amount":[20]}`, nil, false, "a list is no number"},
		{`{}`, nil, false, "the field is missing"},
		{`{"amount":1e-50}`, nil, false, "more digits than are counted, which the journal couldn't be read with"},
		{`{"amount":20}`, func(b *protocol.Budget) { b.Field = "to.amount" }, false, "the field is elsewhere"},
		{`{"to":{"amount":20}}`, func(b *protocol.Budget) { b.Field = "to.amount" }, true, "names joined with dots"},
		{`{"amount":20}`, func(b *protocol.Budget) { b.Cap = "19.999999999999999999999999999999999999" }, false, "caps are exact"},
		{`{"amount":0.3}`, func(b *protocol.Budget) { b.Cap = "0.3" }, true, "decimals are exact"},
		{`{"amount":1e-9}`, func(b *protocol.Budget) { b.Cap = "0.000000001" }, true, "decimals are exact"},
		{`{"amount":20}`, func(b *protocol.Budget) { b.Holders = []string{"agent-8"} }, false, "another agent's"},
		{`{"amount":20}`, func(b *protocol.Budget) { b.Name = "petty" }, false, "the budget is unknown"},
		{`{"amount":1}`, func(b *protocol.Budget) { b.Cap = "0" }, false, "nobody may spend"},
	} {
		r := newRig(t, tier1())
		b := budget("20")
		if c.change != nil {
			c.change(&b)
		}
		r.setBudget(b)
		l := lease("L-capped")
		l.Limits, l.Budget = nil, "refunds"
		r.grant(l)
		p := r.capped(fmt.Sprintf("case-%d", i), 0)
		p.Effect.Payload = json.RawMessage(c.payload)
		want, landings := "REFUSED:over_budget", 0
		if c.fits {
			want, landings = "COMMITTED", 1
		}
		t.Log(c.payload, b, c.why)
		r.want(r.submit(p), want, landings)
	}
}

func TestABudgetIsFullAgainInTheNextPeriod(t *testing.T) {
	for _, c := range []struct {
		period protocol.Period
		last   time.Time // in the period that the epoch lies in
	}{
		{protocol.Hourly, time.Date(2026, 1, 2, 3, 59, 59, 0, time.UTC)},
		{protocol.Daily, time.Date(2026, 1, 2, 23, 59, 59, 0, time.UTC)},
		{protocol.Weekly, time.Date(2026, 1, 4, 23, 59, 59, 0, time.UTC)}, // a Sunday
		{protocol.Monthly, time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC)},
	} {
		b := budget("20")
		b.Period = c.period
		r := budgetRig(t, tier1(), b)
		forLong := lease("L-long")
		forLong.Budget, forLong.Expires = "refunds", epoch.AddDate(1, 0, 0)
		r.grant(forLong)
		in := func(request string) protocol.Proposal {
			p := r.proposal(request, 20)
			p.Lease = "L-long"
			return p
		}
		r.want(r.submit(in("case-1")), "COMMITTED", 1)
		r.clock.advance(c.last.Sub(epoch))
		got := r.submit(in("case-2"))
		r.want(got, "REFUSED:over_budget", 0)
		r.clock.advance(time.Second)
		got = r.submit(in("case-2"))
		r.want(got, "COMMITTED", 1)
		if from := got.Receipt.Attempts[0].Draw.From; !from.Equal(c.last.Add(time.Second)) {
			t.Errorf("%s: counted from %s", c.period, from)
		}
		r.clock.skew = -48 * time.Hour // a clock set back doesn't bring the last period's room back
		r.want(r.submit(in("case-3")), "REFUSED:over_budget", 0)
	}
}

// TestABudgetIsHeldByWhatMayLand: in doubt, ambiguous and suspect effects hold
// what they draw (I9).
func TestABudgetIsHeldByWhatMayLand(t *testing.T) {
	t.Run("in doubt", func(t *testing.T) {
		r := budgetRig(t, tier2(), budget("30"))
		r.service.script = []simulatedAnswer{neverLands}
		r.want(r.submit(r.capped("case-1", 20)), "IN_FLIGHT", 0)
		got := r.submit(r.capped("case-2", 20))
		r.want(got, "REFUSED:over_budget", 0)
		r.wantHolders(got, "case-1 20")
		r.want(r.recover(true), "REAPPLIED_AFTER_QUERY", 1) // its own hold isn't in its way
	})
	t.Run("resent", func(t *testing.T) {
		r := budgetRig(t, tier1(), budget("30"))
		r.service.script = []simulatedAnswer{neverLands}
		r.submit(r.capped("case-1", 20))
		r.want(r.recover(true), "COMMITTED_BY_RETRY", 1)
	})
	t.Run("ambiguous", func(t *testing.T) {
		r := budgetRig(t, tier3(), budget("30"))
		r.service.script = []simulatedAnswer{neverLands}
		r.submit(r.capped("case-1", 20))
		doubt := r.recover(true)
		r.want(doubt, "AMBIGUOUS", 0)
		r.restart()
		got := r.submit(r.capped("case-2", 20))
		r.want(got, "REFUSED:over_budget", 0)
		r.wantHolders(got, "case-1 20")
		r.want(r.resolve(doubt, false), "REFUSED:resolved_not_landed", 0)
		r.want(r.submit(r.capped("case-3", 20)), "COMMITTED", 1)
	})
	t.Run("suspect", func(t *testing.T) {
		r := budgetRig(t, tier2(), budget("30"))
		r.loses(func() { r.submit(r.capped("case-1", 20)) })
		got := r.submit(r.capped("case-2", 20))
		r.want(got, "REFUSED:over_budget", 0)
		r.wantHolders(got, "case-1 20")
		r.want(r.recover(true), "COMMITTED_ON_QUERY", 1)
		got = r.submit(r.capped("case-3", 20))
		r.want(got, "REFUSED:over_budget", 0)
		r.wantHolders(got, "case-1 20")
	})
	t.Run("suspect, landed before anybody asks", func(t *testing.T) {
		r := budgetRig(t, tier2(), budget("30"))
		r.loses(func() { r.submit(r.capped("case-1", 20)) })
		r.want(r.recover(true), "COMMITTED_ON_QUERY", 1)
		got := r.submit(r.capped("case-2", 20))
		r.want(got, "REFUSED:over_budget", 0)
		r.wantHolders(got, "case-1 20")
	})
}

// loses runs f, whose process is killed behind the landing; then nothing that the
// journal holds of the attempt can be read any more.
func (r *rig) loses(f func()) {
	r.Helper()
	var proposed int
	if !r.run(func() {
		r.onStep = func(p string) {
			switch p {
			case "gate/proposed":
				proposed = r.disk.size()
			case "service/applied":
				r.dead = true
				panic(killed{})
			}
		}
		f()
	}) {
		r.Fatal("nothing was applied")
	}
	r.onStep = nil
	r.kill()
	r.disk.rot(proposed)
	r.open()
}

// TestABlockerBehindTheReservationLeaksNothing: what stops an effect between its
// dispatch and its first byte gives the budget back.
func TestABlockerBehindTheReservationLeaksNothing(t *testing.T) {
	r := budgetRig(t, tier1(), budget("20"))
	own := lease("L-own")
	own.Budget = "refunds"
	r.grant(own)
	r.once("gate/intent-durable", func() { r.revoke("L-own") })
	p := r.proposal("case-1", 20)
	p.Lease = "L-own"
	got := r.submit(p)
	r.want(got, "REFUSED:lease", 0)
	if got.Receipt.Attempts[0].Draw == nil {
		t.Errorf("the blocker came before the reservation:\n%s", got.Receipt)
	}
	r.want(r.submit(r.capped("case-2", 20)), "COMMITTED", 1)
}

// TestARefusalAtRecoveryFreesTheBudget (I9).
func TestARefusalAtRecoveryFreesTheBudget(t *testing.T) {
	r := budgetRig(t, tier2(), budget("20"))
	own := lease("L-own")
	own.Budget = "refunds"
	r.grant(own)
	p := r.proposal("case-1", 20)
	p.Lease = "L-own"
	r.service.script = []simulatedAnswer{neverLands}
	r.want(r.submit(p), "IN_FLIGHT", 0)
	r.want(r.submit(r.capped("case-2", 20)), "REFUSED:over_budget", 0)
	r.revoke("L-own")
	r.want(r.recover(true), "REFUSED:lease_at_recovery", 0)
	r.want(r.submit(r.capped("case-2", 20)), "COMMITTED", 1)
}

func TestABudgetIsGivenBackByWhatDidNotLand(t *testing.T) {
	for _, c := range []struct {
		answer protocol.Outcome
		status string
	}{
		{protocol.NotSent, "NOT_SENT"},
		{protocol.NotExecuted, "NOT_SENT"},
		{protocol.Rejected, "REFUSED:target_rejected"},
		{protocol.PremiseFailed, "REFUSED:stale_premise"},
	} {
		r := budgetRig(t, tier1(), budget("20"))
		r.service.script = []simulatedAnswer{says(c.answer)}
		r.want(r.submit(r.capped("case-1", 20)), c.status, 0)
		r.want(r.submit(r.capped("case-2", 20)), "COMMITTED", 1)
		if c.status == "NOT_SENT" { // it is open, and has to take its turn
			r.want(r.recover(false), "REFUSED:over_budget", 0)
		}
	}
}

func TestAnotherCapIsHeldAgainstRecovery(t *testing.T) {
	r := budgetRig(t, tier2(), budget("40"))
	r.service.script = []simulatedAnswer{neverLands, neverLands}
	r.submit(r.capped("case-1", 20))
	r.setBudget(budget("10"))
	got := r.recover(true)
	r.want(got, "REFUSED:over_budget", 0)
	if got.Receipt.Authorized.Is != protocol.Yes || !strings.Contains(got.Receipt.Authorized.Basis, "later no") {
		t.Errorf("authorized at its dispatch, and later not:\n%s", got.Receipt)
	}
	r.setBudget(budget("20"))
	r.submit(r.capped("case-2", 20))
	r.setBudget(budget("20"))
	b := budget("20")
	b.Holders = []string{"agent-8"}
	r.setBudget(b)
	r.want(r.recover(true), "REFUSED:over_budget", 0) // no holder any more

	// A resend asks the cap as well; what then can't be sent is looked up.
	r = budgetRig(t, tier1(), budget("40"))
	r.service.script = []simulatedAnswer{ackLost}
	r.submit(r.capped("case-1", 20))
	r.setBudget(budget("10"))
	r.want(r.recover(true), "COMMITTED_ON_QUERY", 1)
	if len(r.service.sent) != 1 {
		t.Errorf("it was sent %d times", len(r.service.sent))
	}
	r.setBudget(budget("30"))
	r.want(r.submit(r.capped("case-2", 20)), "REFUSED:over_budget", 0)
}

// TestAHoldStaysInItsPeriod: the same request sent again counts where it counted;
// a new attempt behind an absence counts in the present period.
func TestAHoldStaysInItsPeriod(t *testing.T) {
	daily := budget("20")
	daily.Period = protocol.Daily
	day := 21 * time.Hour
	t.Run("resend", func(t *testing.T) {
		r := budgetRig(t, tier1(), daily)
		r.service.script = []simulatedAnswer{ackLost}
		r.submit(r.capped("case-1", 20))
		r.clock.advance(day)
		r.want(r.submit(r.capped("case-2", 20)), "COMMITTED", 1)
		r.want(r.recover(true), "COMMITTED_BY_RETRY", 1)
		r.want(r.submit(r.capped("case-3", 20)), "REFUSED:over_budget", 0)
	})
	t.Run("reapply", func(t *testing.T) {
		r := budgetRig(t, tier2(), daily)
		r.service.script = []simulatedAnswer{neverLands}
		r.submit(r.capped("case-1", 20))
		r.clock.advance(day)
		r.want(r.recover(true), "REAPPLIED_AFTER_QUERY", 1)
		got := r.submit(r.capped("case-2", 20))
		r.want(got, "REFUSED:over_budget", 0)
		r.wantHolders(got, "case-1 20")
	})
	t.Run("reapply without room", func(t *testing.T) {
		r := budgetRig(t, tier2(), daily)
		r.service.script = []simulatedAnswer{neverLands}
		r.submit(r.capped("case-1", 20))
		r.clock.advance(day)
		r.want(r.submit(r.capped("case-2", 20)), "COMMITTED", 1)
		got := r.recover(true)
		r.want(got, "REFUSED:over_budget", 0)
		r.wantHolders(got, "case-2 20")
	})
}

// B96: a cap that several effects share is checked where they are dispatched.
func TestConcurrentEffectsShareACap(t *testing.T) {
	r := budgetRig(t, tier1(), budget("100"))
	var all sync.WaitGroup
	var mu sync.Mutex
	told := map[string]int{}
	for worker := range 8 {
		all.Go(func() {
			for n := range 3 {
				got, err := r.gate.Submit(context.Background(), r.capped(fmt.Sprintf("case-%d-%d", worker, n), 20))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				told[got.Status.String()]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if told["COMMITTED"] != 5 || told["REFUSED:over_budget"] != 19 || len(r.service.ledger) != 5 {
		t.Errorf("told %v, %d landed", told, len(r.service.ledger))
	}
}

func TestSetBudgetRefusesWhatIsNoBudget(t *testing.T) {
	r := newRig(t, tier1())
	r.setBudget(budget("20"))
	for _, c := range []struct {
		change func(*protocol.Budget)
		why    string
	}{
		{func(b *protocol.Budget) { b.Name = "" }, "no name"},
		{func(b *protocol.Budget) { b.Principal = "" }, "no principal"},
		{func(b *protocol.Budget) { b.Principal = "agent-7" }, "an agent can't grant to itself"},
		{func(b *protocol.Budget) { b.Holders = nil }, "nobody may draw"},
		{func(b *protocol.Budget) { b.Holders = []string{"a\n"} }, "no name"},
		{func(b *protocol.Budget) { b.Field = "" }, "no field"},
		{func(b *protocol.Budget) { b.Cap = "" }, "no cap"},
		{func(b *protocol.Budget) { b.Cap = "NaN" }, "B70: no number"},
		{func(b *protocol.Budget) { b.Cap = "Infinity" }, "B70: no number"},
		{func(b *protocol.Budget) { b.Cap = "-1" }, "a negative cap"},
		{func(b *protocol.Budget) { b.Cap = "1e999999999" }, "an exponent out of reach"},
		{func(b *protocol.Budget) { b.Period = "fortnight" }, "no period"},
		{func(b *protocol.Budget) { b.Principal = "sales" }, "another principal's budget"},
		{func(b *protocol.Budget) { b.Field = "cents" }, "what is held was counted in another unit"},
		{func(b *protocol.Budget) { b.Period = protocol.Daily }, "what is held was counted in another period"},
	} {
		b := budget("30")
		c.change(&b)
		if err := r.authority.SetBudget(context.Background(), b); !errors.Is(err, protocol.ErrBudget) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
}

// TestALowerCapCountsAsSoonAsItCanBeRead, and a higher one once it is proved.
func TestALowerCapCountsAsSoonAsItCanBeRead(t *testing.T) {
	for _, c := range []struct {
		to      string
		pending string // while the change isn't proved
		then    string
	}{
		{"10", "REFUSED:over_budget", "REFUSED:over_budget"},
		{"30", "REFUSED:over_budget", "COMMITTED"},
	} {
		r := budgetRig(t, tier1(), budget("15"))
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
		set := make(chan error)
		go func() { set <- slow.SetBudget(context.Background(), budget(c.to)) }()
		<-stopped
		r.want(r.submit(r.capped("case-1", 20)), c.pending, 0)
		want, n := "COMMITTED", 1
		if c.to == "10" {
			want, n = "REFUSED:over_budget", 0
		}
		r.want(r.submit(r.capped("case-2", 12)), want, n)
		goOn <- struct{}{}
		<-stopped
		goOn <- struct{}{}
		if err := <-set; err != nil {
			t.Fatal(err)
		}
		r.want(r.submit(r.capped("case-3", 18)), c.then, map[string]int{"COMMITTED": 1}[c.then])
	}
}

// TestALowerCapWaitsForDispatchesUnderWay: when SetBudget has returned, nothing is
// dispatched by the cap before.
func TestALowerCapWaitsForDispatchesUnderWay(t *testing.T) {
	r := budgetRig(t, tier1(), budget("20"))
	ctx, cancel := context.WithCancel(context.Background())
	hasty, err := protocol.OpenAuthority(journal.FileOpener(r.path("authority"), journal.Options{
		Mode: journal.Appender, Namespace: namespace, Now: r.clock.Now,
	}), r.openDrain(), protocol.AuthorityOptions{Clock: r.clock, Trace: func(p trace.Point, _ string) {
		if p == protocol.PointSealed {
			cancel() // the deadline passes when the cap is recorded
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer hasty.Close()
	r.once("gate/rechecked", func() {
		if err := hasty.SetBudget(ctx, budget("10")); !errors.Is(err, protocol.ErrUndecided) {
			t.Errorf("a dispatch is under way: %v", err)
		}
	})
	r.want(r.submit(r.capped("case-1", 20)), "COMMITTED", 1)
	r.setBudget(budget("10"))
	r.want(r.submit(r.capped("case-2", 5)), "REFUSED:over_budget", 0)
}

// TestARenewalUnderABudgetIsNotOvertaken: a dispatch that was to draw on nothing
// begins again where the lease came to require a budget on its way.
func TestARenewalUnderABudgetIsNotOvertaken(t *testing.T) {
	r := newRig(t, tier1())
	r.setBudget(budget("20"))
	r.once("gate/lease-shared", func() {
		l := lease("L-next")
		l.Replaces, l.Budget = "L-refund", "refunds"
		r.grant(l)
	})
	r.want(r.submit(r.proposal("case-1", 20)), "NOT_SENT", 0)
	got := r.submit(r.proposal("case-1", 20))
	r.want(got, "COMMITTED", 1)
	if a := got.Receipt.Attempts; len(a) != 1 || a[0].Draw == nil {
		t.Errorf("nothing was drawn:\n%s", got.Receipt)
	}
	r.want(r.submit(r.proposal("case-2", 20)), "REFUSED:over_budget", 0)
}
