package oracle_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// The profiles that the histories are held to.
var (
	t1          = history.Service{DedupWindow: 24 * time.Hour, Lookup: true, LandingBound: 30 * time.Second}
	t2          = history.Service{Lookup: true, LandingBound: 30 * time.Second}
	t3          = history.Service{}
	t1Unbounded = history.Service{DedupWindow: 24 * time.Hour, Lookup: true}
	t2Unbounded = history.Service{Lookup: true}
	t2Fenced    = history.Service{Lookup: true, Fencing: true}
	t2Forgets   = history.Service{Lookup: true, LookupWindow: time.Hour, LandingBound: 30 * time.Second}
	keysOnly    = history.Service{DedupWindow: 24 * time.Hour}
)

var approval = history.Approval{Request: "case-4471", Order: "881", Case: "case-4471", Amount: 20_00, Agent: "agent-7", Lease: "L-refund"}

// script writes a history by hand, one call an event.
type script struct {
	h        history.History
	now      time.Duration
	worker   int
	requests int
	refunds  int
}

// begin opens a history with its declaration, the lease and a started worker.
func begin(s history.Service, approved ...history.Approval) *script {
	if len(approved) == 0 {
		approved = []history.Approval{approval}
	}
	w := &script{}
	w.add("supervisor", history.Declared, history.Declaration{Approved: approved, Service: s})
	w.add("principal", history.Granted, history.Lease{Lease: "L-refund", Holder: "agent-7", Max: 20_00, Expires: 720 * time.Hour})
	w.add("service", history.Changed, history.Order{Order: "881", Eligible: true, Paid: 100_00})
	return w.start()
}

func (w *script) add(who string, kind history.Kind, body any) *script {
	e := history.Event{N: len(w.h) + 1, At: w.now, Who: who, Kind: kind}
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			panic(err)
		}
		e.Body = b
	}
	w.h = append(w.h, e)
	return w
}

func (w *script) who() string { return fmt.Sprintf("worker#%d", w.worker) }

func (w *script) start() *script {
	w.worker++
	return w.add(w.who(), history.Started, nil)
}

func (w *script) kill() *script { return w.add(w.who(), history.Killed, nil) }

func (w *script) wait(d time.Duration) *script { w.now += d; return w }

func (w *script) point(p trace.Point) *script {
	w.add(w.who(), history.Passed, nil)
	w.h[len(w.h)-1].Point = p
	return w
}

// look passes the last point before a request leaves.
func (w *script) look() *script { return w.point("sim/before-send") }

func (w *script) ask(amount int64) *script { return w.askFor("881", "case-4471", amount) }

func (w *script) askFor(order, case_ string, amount int64) *script {
	w.requests++
	return w.add("service", history.Requested, history.Request{Order: order, Case: case_, Amount: amount, Number: w.requests})
}

// land applies the latest request.
func (w *script) land(amount int64) *script { return w.landFor("881", "case-4471", amount, w.requests) }

func (w *script) byHand(amount int64) *script { return w.landFor("881", "case-4471", amount, 0) }

func (w *script) landFor(order, case_ string, amount int64, request int) *script {
	w.refunds++
	return w.add("service", history.Applied, history.Landing{
		ID: fmt.Sprintf("re_%d", w.refunds), Order: order, Case: case_, Amount: amount, Request: request,
	})
}

// pay is a look, a request and its landing.
func (w *script) pay(amount int64) *script { return w.look().ask(amount).land(amount) }

func (w *script) tell(status string, says history.Says) *script {
	return w.tellOf("case-4471", 20_00, status, says, "submit")
}

func (w *script) recovered(status string, says history.Says) *script {
	return w.tellOf("case-4471", 20_00, status, says, "recover")
}

func (w *script) tellOf(request string, amount int64, status string, says history.Says, during string) *script {
	return w.add(w.who(), history.Told, history.Answer{Request: request, Amount: amount, Status: status, Says: says, During: during})
}

func (w *script) revoke() *script { return w.revoking().revoked("L-refund") }

func (w *script) revoking() *script {
	return w.add("principal", history.Revoking, history.Lease{Lease: "L-refund"})
}

func (w *script) revoked(lease string) *script {
	return w.add("principal", history.Revoked, history.Lease{Lease: lease})
}

func (w *script) eligible(is bool) *script {
	return w.add("service", history.Changed, history.Order{Order: "881", Eligible: is, Paid: 100_00})
}

func (w *script) end() history.History {
	return w.add(w.who(), history.Finished, nil).add(w.who(), history.Exited, history.Exit{}).h
}

// TestJudge is the judge's whole opinion, one history a line.
func TestJudge(t *testing.T) {
	done, not, unknown, pending := history.SaysDone, history.SaysNot, history.SaysUnknown, history.SaysPending
	twice := approval
	twice.Request = "case-4471-b"
	for _, c := range []struct {
		name   string
		why    string
		h      history.History
		class  oracle.Class
		money  int64
		answer string // "" is agrees
		window int
	}{
		{"happy_path", "what was approved, once",
			begin(t1).pay(20_00).tell("COMMITTED", done).end(), oracle.Correct, 20_00, "", 0},
		{"naive crash_before_ack", "each send is a refund",
			begin(t1).pay(20_00).kill().start().pay(20_00).tell("RETRIED", done).end(), oracle.Duplicate, 40_00, "", 0},
		{"absorbed resend", "two requests and one landing are right",
			begin(t1).pay(20_00).kill().start().look().ask(20_00).tell("RETRIED", done).end(), oracle.Correct, 20_00, "", 0},
		{"naive model_redecides", "a second landing of another amount is a second landing",
			begin(t1).pay(20_00).kill().start().pay(30_00).tellOf("case-4471", 30_00, "APPLIED", done, "submit").end(), oracle.Duplicate, 50_00, "", 0},
		{"key error for other parameters", "the service refused $30, $20 landed once",
			begin(t1).pay(20_00).kill().start().look().ask(30_00).tellOf("case-4471", 30_00, "APPLIED:key_reused_with_different_params", not, "submit").end(),
			oracle.Correct, 20_00, "", 0},
		{"replayed result for another amount", "the money is right, the caller was told that $30 went",
			begin(t1).pay(20_00).tell("COMPLETED:ok", done).tellOf("case-4471", 30_00, "REPLAYED:ok", done, "submit").end(),
			oracle.Correct, 20_00, oracle.Disagrees, 0},
		{"gate refund_during_outage", "refusing what a person has paid is right",
			begin(t1).look().kill().byHand(20_00).start().recovered("REFUSED:stale_premise_at_recovery", not).end(), oracle.Correct, 20_00, "", 0},
		{"naive refund_during_outage", "the request came after the person's refund",
			begin(t1).look().kill().byHand(20_00).start().pay(20_00).tell("RETRIED", done).end(), oracle.Duplicate, 40_00, "", 0},
		{"refund by hand after the landing", "what a person pays later is not the column's doing",
			begin(t1).pay(20_00).tell("COMMITTED", done).byHand(20_00).end(), oracle.Correct, 40_00, "", 0},
		{"refund by hand between look and landing", "the one-step window is counted and not held against the column",
			begin(t1).look().byHand(20_00).ask(20_00).land(20_00).tell("COMMITTED", done).end(), oracle.Correct, 40_00, "", 1},
		{"gate stale_eligibility", "refused, and nothing left",
			begin(t1).eligible(false).tell("REFUSED:stale_premise", not).end(), oracle.Correct, 0, "", 0},
		{"naive stale_eligibility", "sent when the order was no longer eligible",
			begin(t1).eligible(false).pay(20_00).tell("APPLIED", done).end(), oracle.Stale, 20_00, "", 0},
		{"eligible again", "at the last look everything held",
			begin(t1).eligible(false).eligible(true).pay(20_00).tell("COMMITTED", done).end(), oracle.Correct, 20_00, "", 0},
		{"changed and back, refused", "facts had gone away, so refusing is right",
			begin(t1).eligible(false).eligible(true).tell("REFUSED:stale_premise", not).end(), oracle.Correct, 0, "", 0},
		{"changed_between_check_and_send", "nobody can see a change after the last look",
			begin(t1).look().eligible(false).ask(20_00).land(20_00).tell("COMMITTED", done).end(), oracle.Correct, 20_00, "", 1},
		{"lookup_other_amount", "who is shown money that the ledger doesn't have must stop for a person",
			begin(t2).pay(20_00).kill().start().add("service", history.Asked, history.Question{What: "refunds", Answer: "landed 2100", Wrong: true}).
				recovered("UNRESOLVED:mismatch", unknown).end(), oracle.Ambiguous, 20_00, "", 0},
		{"wrong only later", "when it gave up, the lookup would have told",
			begin(t2).pay(20_00).kill().start().recovered("AMBIGUOUS", unknown).
				add("service", history.Asked, history.Question{What: "refunds", Answer: "landed 2100", Wrong: true}).end(), oracle.Stuck, 20_00, "", 0},
		{"no points", "a program without points is judged at its request",
			begin(t1).eligible(false).ask(20_00).land(20_00).tell("APPLIED", done).end(), oracle.Stale, 20_00, "", 0},
		{"stale, and a look of its own", "the dead process's look is not this one's",
			begin(t1).look().kill().eligible(false).start().ask(20_00).land(20_00).tell("RETRIED", done).end(), oracle.Stale, 20_00, "", 0},
		{"each look serves one request", "the second request has no look of its own",
			begin(t1, approval, twice).pay(20_00).tell("COMMITTED", done).eligible(false).ask(20_00).land(20_00).
				tellOf("case-4471-b", 20_00, "COMMITTED", done, "submit").end(), oracle.Stale, 40_00, "", 0},
		{"gate lease_revoked", "refused, and nothing left",
			begin(t1).revoke().tell("REFUSED:lease", not).end(), oracle.Correct, 0, "", 0},
		{"naive lease_revoked", "sent after the revocation had returned",
			begin(t1).revoke().pay(20_00).tell("APPLIED", done).end(), oracle.Unauthorized, 20_00, "", 0},
		{"sent while being revoked", "a revocation is an interval (I4)",
			begin(t1).revoking().look().revoked("L-refund").ask(20_00).land(20_00).tell("COMMITTED", done).end(), oracle.Correct, 20_00, "", 1},
		{"refused while being revoked", "either is right during the interval",
			begin(t1).revoking().tell("REFUSED:lease", not).revoked("L-refund").end(), oracle.Correct, 0, "", 0},
		{"lease_expired", "it ended by the clock",
			begin(t1).wait(721*time.Hour).pay(20_00).tell("APPLIED", done).end(), oracle.Unauthorized, 20_00, "", 0},
		{"lease_renewed", "a grant that names it is the same authority",
			begin(t1).add("principal", history.Granted, history.Lease{Lease: "L-2", Replaces: "L-refund", Holder: "agent-7", Max: 20_00}).
				wait(721*time.Hour).pay(20_00).tell("COMMITTED", done).end(), oracle.Correct, 20_00, "", 0},
		{"renewed and the first revoked", "revoking the replaced one revokes its replacements",
			begin(t1).add("principal", history.Granted, history.Lease{Lease: "L-2", Replaces: "L-refund", Holder: "agent-7", Max: 20_00}).
				revoke().pay(20_00).tell("APPLIED", done).end(), oracle.Unauthorized, 20_00, "", 0},
		{"another lease", "a lease that replaces nothing is no authority for this approval",
			begin(t1).revoke().add("principal", history.Granted, history.Lease{Lease: "L-9", Holder: "agent-7"}).
				pay(20_00).tell("APPLIED", done).end(), oracle.Unauthorized, 20_00, "", 0},
		{"gate crash_before_send t3", "nothing tells, and nothing landed",
			begin(t3).look().kill().start().recovered("AMBIGUOUS", unknown).end(), oracle.Ambiguous, 0, "", 0},
		{"gate crash_before_ack t3", "nothing tells, though it landed",
			begin(t3).pay(20_00).kill().start().recovered("AMBIGUOUS", unknown).end(), oracle.Ambiguous, 20_00, "", 0},
		{"gate crash_before_send t2, bound unknown", "an absence is worth nothing while it may still land (I10)",
			begin(t2Unbounded).look().kill().start().recovered("AMBIGUOUS", unknown).end(), oracle.Ambiguous, 0, "", 0},
		{"gate refund_during_outage t1, bound unknown", "a key helps only who may send again",
			begin(t1Unbounded).look().kill().byHand(20_00).start().recovered("AMBIGUOUS", unknown).end(), oracle.Ambiguous, 20_00, "", 0},
		{"gate lease_revoked_during_outage t1, bound unknown", "the same for a revoked lease",
			begin(t1Unbounded).look().kill().revoke().start().recovered("AMBIGUOUS", unknown).end(), oracle.Ambiguous, 0, "", 0},
		{"lookup_forgot", "past its own window a lookup tells nothing",
			begin(t2Forgets).pay(20_00).kill().wait(2*time.Hour).start().recovered("AMBIGUOUS", unknown).end(), oracle.Ambiguous, 20_00, "", 0},
		{"key_expired_no_lookup", "past the key's window nothing tells",
			begin(keysOnly).pay(20_00).kill().wait(25*time.Hour).start().recovered("AMBIGUOUS", unknown).end(), oracle.Ambiguous, 20_00, "", 0},
		{"keys forgotten early", "the service forgot them, whatever it declared",
			begin(keysOnly).pay(20_00).kill().add("service", history.Forgot, nil).start().recovered("AMBIGUOUS", unknown).end(), oracle.Ambiguous, 20_00, "", 0},
		{"doubt inside the key's window", "the same key would have been absorbed",
			begin(keysOnly).pay(20_00).kill().start().recovered("AMBIGUOUS", unknown).end(), oracle.Stuck, 20_00, "", 0},
		{"doubt with a bound", "waiting out the bound and asking would have told",
			begin(t2).look().kill().start().recovered("AMBIGUOUS", unknown).end(), oracle.Stuck, 0, "", 0},
		{"doubt with a fence", "a fence would have told",
			begin(t2Fenced).look().kill().start().recovered("AMBIGUOUS", unknown).end(), oracle.Stuck, 0, "", 0},
		{"doubt though it can be found", "a lookup needs no bound to find what landed",
			begin(t2Unbounded).pay(20_00).kill().start().recovered("AMBIGUOUS", unknown).end(), oracle.Stuck, 20_00, "", 0},
		{"model_redecides recovered", "COMMITTED first, then $30 refused",
			begin(t1).pay(20_00).kill().start().recovered("COMMITTED_BY_RETRY", done).tellOf("case-4471", 30_00, "REFUSED:conflicting_payload", not, "submit").end(),
			oracle.Correct, 20_00, "", 0},
		{"model_redecides t3", "the last answer is a right refusal; the doubt stands in the record",
			begin(t3).pay(20_00).kill().start().recovered("AMBIGUOUS", unknown).tellOf("case-4471", 30_00, "REFUSED:conflicting_payload", not, "submit").end(),
			oracle.Correct, 20_00, "", 0},
		{"refusing the wrong amount only", "$30 was never approved",
			begin(t1).tellOf("case-4471", 30_00, "REFUSED:lease", not, "submit").end(), oracle.Correct, 0, "", 0},
		{"gate duplicate_submit", "ignoring a duplicate is right",
			begin(t1).pay(20_00).tell("COMMITTED", done).tell("DUPLICATE_IGNORED", done).end(), oracle.Correct, 20_00, "", 0},
		{"refusing a duplicate", "right too, though the last answer then says that nothing went",
			begin(t1).pay(20_00).tell("COMMITTED", done).tell("REFUSED", not).end(), oracle.Correct, 20_00, oracle.Disagrees, 0},
		{"unrelated_change_during_outage, refused", "another case's refund takes nothing from this one",
			begin(t1).landFor("881", "goodwill-1", 5_00, 0).tell("REFUSED:stale_premise", not).end(), oracle.FalseRefusal, 0, "", 0},
		{"refused and landed later", "the caller was told that it did not happen",
			begin(t1).look().ask(20_00).tell("REFUSED", not).land(20_00).end(), oracle.Correct, 20_00, oracle.Disagrees, 0},
		{"told before it landed", "done means that it has happened",
			begin(t1).look().ask(20_00).tell("COMMITTED", done).land(20_00).end(), oracle.Correct, 20_00, oracle.Disagrees, 0},
		{"in flight, then settled", "the last answer counts",
			begin(t1).look().ask(20_00).tell("IN_FLIGHT", pending).land(20_00).recovered("COMMITTED_ON_QUERY", done).end(), oracle.Correct, 20_00, "", 0},
		{"an observer's pending", "somebody was told the outcome",
			begin(t1).pay(20_00).tell("COMMITTED", done).tell("IN_FLIGHT", pending).end(), oracle.Correct, 20_00, "", 0},
		{"dropped under a dead lease", "nothing was owed any more",
			begin(t1).kill().revoke().start().end(), oracle.Correct, 0, "", 0},
		{"one_approval_two_effects", "the lease is for one effect, a resend is no second",
			begin(t1, approval, history.Approval{Request: "case-2", Order: "882", Case: "case-2", Amount: 20_00, Agent: "agent-7", Lease: "L-one"}).
				add("principal", history.Granted, history.Lease{Lease: "L-one", Uses: 1}).
				pay(20_00).tell("COMMITTED", done).
				look().askFor("882", "case-2", 20_00).landFor("882", "case-2", 20_00, 2).tellOf("case-2", 20_00, "COMMITTED", done, "submit").end(),
			oracle.Correct, 40_00, "", 0},
		{"duplicate and stale", "the worst of what was found",
			begin(t1).pay(20_00).kill().eligible(false).start().pay(20_00).tell("RETRIED", done).end(), oracle.Duplicate, 40_00, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := oracle.Judge(c.h)
			answer := c.answer
			if answer == "" {
				answer = oracle.Agrees
			}
			if v.Class != c.class || v.Money != c.money || v.Answer != answer || v.Window != c.window {
				t.Errorf("%s\n got %v %d %s window %d %v\nwant %v %d %s window %d",
					c.why, v.Class, v.Money, v.Answer, v.Window, v.Why, c.class, c.money, answer, c.window)
			}
			if (v.Class == oracle.Correct) != (len(v.Broke) == 0) {
				t.Errorf("a verdict of %v names the rules %v", v.Class, v.Broke)
			}
		})
	}
}

// capped puts a cap over both cases of h.
func capped(most int64, h history.History) history.History {
	d, err := history.Body[history.Declaration](h[0])
	if err != nil {
		panic(err)
	}
	d.Caps = []history.Cap{{Name: "refunds", Max: most, Cases: []string{"case-4471", "case-2"}}}
	if h[0].Body, err = json.Marshal(d); err != nil {
		panic(err)
	}
	return h
}

// TestACapHoldsBeforeItIsSpent: refusing what a cap has no room for is right, also
// while what takes the room is still under way; with room it is wrong.
func TestACapHoldsBeforeItIsSpent(t *testing.T) {
	second := history.Approval{Request: "case-2", Order: "882", Case: "case-2", Amount: 20_00, Agent: "agent-7", Lease: "L-refund"}
	for most, want := range map[int64]oracle.Class{30_00: oracle.Correct, 40_00: oracle.FalseRefusal} {
		h := capped(most, begin(t1, approval, second).look().ask(20_00).
			tellOf("case-2", 20_00, "REFUSED:over_budget", history.SaysNot, "submit").
			land(20_00).tell("COMMITTED", history.SaysDone).end())
		if v := oracle.Judge(h); v.Class != want {
			t.Errorf("with a cap of %d: %v, want %v: %v", most, v.Class, want, v.Why)
		}
	}
}

// TestEveryRuleIsNeeded plants, for each rule, a history that this rule alone
// catches: without the rule it would pass.
func TestEveryRuleIsNeeded(t *testing.T) {
	done, not, unknown, pending := history.SaysDone, history.SaysNot, history.SaysUnknown, history.SaysPending
	also := approval
	also.Request, also.Amount = "case-4471-b", 10_00
	small := func(amount int64) history.Approval { p := approval; p.Amount = amount; return p }
	other := history.Approval{Request: "case-2", Order: "882", Case: "case-2", Amount: 20_00, Agent: "agent-7", Lease: "L-refund"}
	planted := map[string][]history.History{
		"more-landings": {
			// Two approvals and three landings of no more money.
			begin(t1, small(10_00), func() history.Approval { p := approval; p.Request = "b"; return p }()).
				pay(10_00).pay(10_00).pay(10_00).tell("APPLIED", done).end(),
		},
		"more-money": {
			// Two approvals and two landings, both of the greater.
			begin(t1, approval, also).pay(20_00).pay(20_00).tell("APPLIED", done).end(),
		},
		"claimed-done":   {begin(t1).tell("COMMITTED", done).end()},
		"dropped":        {begin(t1).kill().start().end()},
		"lease-not-live": {begin(t1).revoke().pay(20_00).tell("APPLIED", done).end()},
		"lease-does-not-cover": {
			begin(t1, small(25_00)).pay(25_00).tellOf("case-4471", 25_00, "APPLIED", done, "submit").end(),
			begin(t1, func() history.Approval { p := approval; p.Agent = "agent-8"; return p }()).pay(20_00).tell("APPLIED", done).end(),
			begin(t1, func() history.Approval { p := approval; p.Lease = "L-5"; return p }()).
				add("principal", history.Granted, history.Lease{Lease: "L-5", Case: "case-5"}).pay(20_00).tell("APPLIED", done).end(),
			begin(t1, func() history.Approval { p := approval; p.Lease = "L-one"; return p }(), func() history.Approval { p := other; p.Lease = "L-one"; return p }()).
				add("principal", history.Granted, history.Lease{Lease: "L-one", Uses: 1}).
				pay(20_00).tell("COMMITTED", done).
				look().askFor("882", "case-2", 20_00).landFor("882", "case-2", 20_00, 2).tellOf("case-2", 20_00, "COMMITTED", done, "submit").end(),
		},
		"not-approved": {
			begin(t1).pay(10_00).tellOf("case-4471", 10_00, "APPLIED", done, "submit").end(),
			begin(t1).pay(20_00).tell("APPLIED", done).look().askFor("999", "case-4471", 20_00).landFor("999", "case-4471", 20_00, 2).end(),
		},
		"over-cap": {
			capped(30_00, begin(t1, approval, other).pay(20_00).tell("APPLIED", done).
				look().askFor("882", "case-2", 20_00).landFor("882", "case-2", 20_00, 2).tellOf("case-2", 20_00, "APPLIED", done, "submit").end()),
		},
		"not-eligible":    {begin(t1).eligible(false).pay(20_00).tell("APPLIED", done).end()},
		"never-settled":   {begin(t1).look().ask(20_00).tell("IN_FLIGHT", pending).end()},
		"hung":            {begin(t1).pay(20_00).tell("COMMITTED", done).add("worker#1", history.Hung, history.Exit{Text: "stacks"}).h},
		"avoidable-doubt": {begin(t2).look().kill().start().recovered("AMBIGUOUS", unknown).end()},
		"false-refusal":   {begin(t1).tell("REFUSED:lease", not).end()},
		"honest-doubt":    {begin(t3).look().kill().start().recovered("AMBIGUOUS", unknown).end()},
	}
	for _, rule := range oracle.Rules {
		if len(planted[rule.Name]) == 0 {
			t.Errorf("rule %s has no history that only it catches", rule.Name)
		}
		for i, h := range planted[rule.Name] {
			v := oracle.Judge(h)
			if !slices.Equal(v.Broke, []string{rule.Name}) || v.Class != rule.Class {
				t.Errorf("history %d planted for %s (%v) is %v, caught by %v: %v", i+1, rule.Name, rule.Class, v.Class, v.Broke, v.Why)
			}
		}
		delete(planted, rule.Name)
	}
	for name := range planted {
		t.Errorf("histories are planted for %s, which is no rule", name)
	}
}

// TestHistoriesThatCantBeJudged breaks one assumption each of a history that is
// fine otherwise.
func TestHistoriesThatCantBeJudged(t *testing.T) {
	fine := func() *script { return begin(t1).pay(20_00).tell("COMMITTED", history.SaysDone) }
	if v := oracle.Judge(fine().end()); v.Class != oracle.Correct {
		t.Fatalf("the unbroken history is %v: %v", v.Class, v.Why)
	}
	bent := func(bend func(history.History) history.History) history.History { return bend(fine().end()) }
	for _, c := range []struct {
		why string
		h   history.History
	}{
		{"nothing happened", nil},
		{"an event is missing", bent(func(h history.History) history.History { return slices.Delete(h, 4, 5) })},
		{"a number is wrong", bent(func(h history.History) history.History { h[3].N = 9; return h })},
		{"time runs backwards", bent(func(h history.History) history.History { h[0].At = time.Hour; return h })},
		{"no declaration", bent(func(h history.History) history.History { h[0].Kind = history.Acted; return h })},
		{"two declarations", fine().add("supervisor", history.Declared, history.Declaration{Approved: []history.Approval{approval}}).end()},
		{"nothing is approved", bent(func(h history.History) history.History { h[0].Body = json.RawMessage(`{}`); return h })},
		{"an approval without an amount", bent(func(h history.History) history.History {
			h[0].Body = json.RawMessage(`{"approved":[{"request":"a","order":"b","case":"c"}]}`)
			return h
		})},
		{"the declaration can't be read", bent(func(h history.History) history.History { h[0].Body = json.RawMessage(`[`); return h })},
		{"an unknown kind", fine().add("service", "dreamt", nil).end()},
		{"a point without a name", fine().add("worker#1", history.Passed, nil).end()},
		{"an answer without a status", fine().tell("", history.SaysDone).end()},
		{"an answer that claims nothing known", fine().tell("COMMITTED", "perhaps").end()},
		{"an answer without a body", fine().add("worker#1", history.Told, nil).end()},
		{"a landing of a request nobody read", fine().landFor("881", "case-4471", 5_00, 7).end()},
		{"a landing without an amount", fine().byHand(0).end()},
		{"a landing whose id was used", fine().add("service", history.Applied, history.Landing{ID: "re_1", Order: "1", Amount: 1}).end()},
		{"a request number used twice", fine().add("service", history.Requested, history.Request{Number: 1}).end()},
		{"a lease without a name", fine().add("principal", history.Granted, history.Lease{}).end()},
		{"an order without a name", fine().add("service", history.Changed, history.Order{}).end()},
		{"a process that was never started speaks", fine().add("worker#9", history.Told, history.Answer{Request: "a", Status: "b", Says: history.SaysNot}).end()},
		{"a dead process speaks", begin(t1).kill().tell("COMMITTED", history.SaysDone).h},
		{"a process is started twice", fine().add("worker#1", history.Started, nil).end()},
		{"a process is killed that isn't there", fine().add("worker#9", history.Killed, nil).end()},
		{"a process is stopped that isn't there", fine().add("worker#9", history.Stopped, nil).end()},
		{"a process goes on that was not stopped", fine().add("worker#1", history.Continued, nil).end()},
		{"a stopped process speaks", begin(t1).add("worker#1", history.Stopped, nil).tell("COMMITTED", history.SaysDone).h},
		{"a process is still stopped", fine().add("worker#1", history.Stopped, nil).h},
		{"no process", begin(t1).h[:3]},
		{"a process is still running", fine().h},
		{"a process failed by itself", fine().add("worker#1", history.Exited, history.Exit{Code: 70, Text: "no journal"}).h},
		{"a planned fault never happened", fine().add("supervisor", history.Unfired, nil).end()},
	} {
		if v := oracle.Judge(c.h); v.Class != oracle.Unknown || len(v.Why) == 0 || len(v.Broke) != 0 {
			t.Errorf("%s: judged %v %v", c.why, v.Class, v.Why)
		}
	}
}

func TestUnfiredIsNoPassEvenWhereMoneyIsWrong(t *testing.T) {
	h := begin(t1).pay(20_00).pay(20_00).tell("APPLIED", history.SaysDone).add("supervisor", history.Unfired, nil).end()
	if v := oracle.Judge(h); v.Class != oracle.Unknown || v.Unfired != 1 || v.Money != 40_00 {
		t.Errorf("judged %+v", v)
	}
}

func TestFigures(t *testing.T) {
	h := begin(t1).add("model", history.Modelled, history.Decision{Request: "case-4471", Amount: 20_00}).
		add("service", history.Asked, history.Question{What: "order"}).
		look().ask(20_00).land(20_00).wait(time.Second).kill().wait(2*time.Second).start().
		add("service", history.Asked, history.Question{What: "lookup"}).
		look().ask(20_00).wait(3*time.Second).recovered("COMMITTED_BY_RETRY", history.SaysDone).wait(time.Second).end()
	v := oracle.Judge(h)
	if v.Class != oracle.Correct || v.Attempts != 2 || v.Requests != 4 || v.ModelCalls != 1 || v.Settled != 5*time.Second {
		t.Errorf("judged %+v", v)
	}
}

func TestJudgeIsPure(t *testing.T) {
	h := begin(t1).pay(20_00).kill().start().pay(20_00).tell("RETRIED", history.SaysDone).end()
	before, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	one, two := fmt.Sprintf("%+v", oracle.Judge(h)), fmt.Sprintf("%+v", oracle.Judge(h))
	after, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if one != two || string(before) != string(after) {
		t.Errorf("two judgements of one history:\n%s\n%s", one, two)
	}
}

// TestALateRequestIsItsSendersOwn has a request read when another process was
// started already: the effect it names leads back to the look before it.
func TestALateRequestIsItsSendersOwn(t *testing.T) {
	w := begin(t1).look()
	w.h[len(w.h)-1].Subject = "effect-1"
	w.kill().eligible(false).start()
	w.requests++
	w.add("service", history.Requested, history.Request{Order: "881", Case: "case-4471", Amount: 20_00, Effect: "effect-1", Number: w.requests})
	h := w.land(20_00).recovered("COMMITTED_ON_QUERY", history.SaysDone).end()
	if v := oracle.Judge(h); v.Class != oracle.Correct || v.Window != 1 {
		t.Errorf("judged %v, window %d: %v", v.Class, v.Window, v.Why)
	}
}

// TestAVerdictNamesAllThatBroke lands $30 where a lease covers $20: too much,
// not approved and not covered.
func TestAVerdictNamesAllThatBroke(t *testing.T) {
	h := begin(t1).pay(30_00).tellOf("case-4471", 30_00, "APPLIED", history.SaysDone, "submit").end()
	v := oracle.Judge(h)
	if want := []string{"more-money", "lease-does-not-cover", "not-approved"}; !slices.Equal(v.Broke, want) || v.Class != oracle.Duplicate || len(v.Why) != 3 {
		t.Errorf("judged %v by %v: %v", v.Class, v.Broke, v.Why)
	}
}

// TestWindow holds what counts as the window between a sender's last look and
// its first byte to senders that did look, in the same life, at the same instant
// (I3, I4).
func TestWindow(t *testing.T) {
	const effect = "e1"
	asks := func(w *script, of string) *script {
		w.add("service", history.Asked, history.Question{What: "order", Effect: of})
		w.h[len(w.h)-1].Subject = "881"
		return w
	}
	pays := func(w *script) *script {
		w.look()
		w.requests++
		return w.add("service", history.Requested, history.Request{Order: "881", Case: "case-4471", Amount: 20_00, Effect: effect, Number: w.requests}).land(20_00)
	}
	told := func(w *script, doubt int) *script {
		return w.revoking().add("principal", history.Revoked, history.Lease{Lease: "L-refund", Doubt: doubt})
	}
	for _, c := range []struct {
		name, why string
		w         *script
		class     oracle.Class
		window    int
	}{
		{"ineligible behind the look", "nobody but the service could have seen it", pays(asks(begin(t1), effect).eligible(false)), oracle.Correct, 1},
		{"refunded by hand behind the look", "likewise", pays(asks(begin(t1), effect).byHand(20_00)), oracle.Correct, 1},
		{"ineligible before the look", "it was there to be seen", pays(asks(begin(t1).eligible(false), effect)), oracle.Stale, 0},
		{"a look for something else", "the agent's reading before it decided is no look of the sender's", pays(asks(begin(t1), "").eligible(false)), oracle.Stale, 0},
		{"a look for another effect", "likewise", pays(asks(begin(t1), "e2").eligible(false)), oracle.Stale, 0},
		{"time passed since the look", "who waits looks again", pays(asks(begin(t1), effect).eligible(false).wait(time.Second)), oracle.Stale, 0},
		{"a look in an earlier life", "who restarts looks again", pays(asks(begin(t1), effect).eligible(false).kill().start()), oracle.Stale, 0},
		{"revoked, and told of one in doubt", "the principal knows that it may land", pays(told(begin(t1), 1)), oracle.Correct, 1},
		{"revoked, and told of none", "nothing was under way", pays(told(begin(t1), 0)), oracle.Unauthorized, 0},
		{"told of one in doubt, which died", "a restart is a new dispatch", pays(told(begin(t1), 1).kill().start()), oracle.Unauthorized, 0},
		{"told of one in doubt, a moment ago", "what was in doubt has left", pays(told(begin(t1), 1).wait(time.Second)), oracle.Unauthorized, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := oracle.Judge(c.w.tell("COMMITTED", history.SaysDone).end())
			if v.Class != c.class || v.Window != c.window {
				t.Errorf("judged %s with %d in the window, want %s with %d: %s: %v", v.Class, v.Window, c.class, c.window, c.why, v.Why)
			}
		})
	}

	twice := pays(pays(told(begin(t1), 1)))
	if v := oracle.Judge(twice.tell("COMMITTED", history.SaysDone).end()); !slices.Contains(v.Broke, "lease-not-live") {
		t.Errorf("a second request behind a revocation broke %v; only the one in doubt may leave", v.Broke)
	}
}
