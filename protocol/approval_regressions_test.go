package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Ways in which the first implementation of the idea went wrong with approvals, by
// number.

func TestB15aNobodyApprovesAsPolicy(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	r.refusedDecision(r.decision(r.one(), "policy", true), "no person has that name")
	if err := r.authority.SetGroup(context.Background(), protocol.Group{Name: "leads", Principal: "finance", Members: []protocol.Member{{Name: "policy"}}}); !errors.Is(err, protocol.ErrRule) {
		t.Errorf("a group has it: %v", err)
	}
}

// B16 and B25: the send rests on what the approver saw.
func TestB16FactsThatThePersonDidntSeeAreAskedAgain(t *testing.T) {
	for _, c := range []struct {
		at, why string
	}{
		{"", "before the send begins"},
		{"gate/connected", "before the premises are read"},
		{"gate/intent-durable", "after the dispatch, where they are read again"},
	} {
		r := newDesk(t, tier1())
		r.submit(r.paid("case-1", 20))
		first := r.one()
		r.approve(first, "ana")
		changes := func() { r.service.set("refunded", "7") }
		if c.at == "" {
			changes()
		} else {
			r.once(c.at, func() { changes(); r.clock.advance(2 * time.Second) })
		}
		r.want(r.recover(false), "REFUSED:awaiting_decision", 0)
		w := r.one()
		if w.Answers == first.Answers || len(w.Changed) != 1 || !strings.Contains(w.Changed[0], "refunded") || w.Left != "93" {
			t.Errorf("%s: asked again about %+v", c.why, w.Escalation)
		}
		r.refusedDecision(r.decision(first, "ana", true), "the first question is answered")
		r.approve(w, "bob")
		r.want(r.recover(false), "COMMITTED", 1)
	}
}

// B17 and B26: who left the group approves nothing any more.
func TestB17ARemovedApproverSendsNothing(t *testing.T) {
	for _, at := range []string{"", "gate/connected", "gate/premises-read", "gate/lease-shared"} {
		r := newDesk(t, tier1())
		r.submit(r.paid("case-1", 20))
		r.approve(r.one(), "ana")
		leaves := func() { r.group("leads", signer("bob")) }
		switch at {
		case "":
			leaves()
			r.want(r.recover(false), "REFUSED:awaiting_decision", 0)
		case "gate/lease-shared":
			continue // the removal waits for this dispatch: TestARemovalWaitsForADispatch
		default:
			r.once(at, leaves)
			r.want(r.recover(false), "REFUSED:awaiting_decision", 0)
		}
		w := r.one()
		if !strings.Contains(w.Why, "isn't in group") {
			t.Errorf("asked because %s", w.Why)
		}
		r.approve(w, "bob")
		r.want(r.recover(false), "COMMITTED", 1)
	}
}

// TestARemovalWaitsForADispatch: when the removal has returned, what was dispatched
// on the approval is in the journal already (I4, I7).
func TestARemovalWaitsForADispatch(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	r.approve(r.one(), "ana")
	returned := make(chan error, 1)
	began := false
	r.onStep = func(p string) {
		switch p {
		case "gate/lease-shared":
			began = true
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			// It can't wait for itself here: with no time to wait it says so.
			err := r.authority.SetGroup(ctx, protocol.Group{Name: "leads", Principal: "finance", Members: []protocol.Member{signer("bob")}})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("a call that has no time: %v", err)
			}
			go func() {
				returned <- r.authority.SetGroup(context.Background(), protocol.Group{Name: "managers", Principal: "finance", Members: []protocol.Member{{Name: "cy"}, {Name: "dan"}}})
			}()
		case "gate/rechecked":
			select {
			case <-returned:
				t.Error("it returned while a dispatch was under way")
			default:
			}
		}
	}
	got := r.recover(false)
	if err := <-returned; err != nil {
		t.Error(err)
	}
	r.want(got, "COMMITTED", 1)
	if !began {
		t.Error("nothing was dispatched")
	}
}

func TestB18AnAmbiguousEffectIsDescribedAsSuch(t *testing.T) {
	r := newRig(t, tier3())
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	r.recover(false)
	r.want(r.submit(r.proposal("case-1", 30)), "REFUSED:conflicting_payload", 0)
	receipt, err := r.gate.Receipt(context.Background(), id("case-1"))
	if err != nil || receipt.Status.Final != protocol.Ambiguous || !strings.Contains(receipt.Sentence(), "nobody can tell") {
		t.Errorf("%v: %s", err, receipt.Sentence())
	}
}

// B19, B28 and B35: what the inbox shows outlives a restart, facts and reason and
// what would still fit, and is not read anew.
func TestB19ARestartedInboxKeepsReasonAndFacts(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	r.approve(r.one(), "ana")
	r.service.set("refunded", "60")
	r.recover(false)
	before, _ := json.Marshal(r.one())
	r.service.set("refunded", "90")
	r.service.set("eligible", "false")
	r.restart()
	after, _ := json.Marshal(r.one())
	if string(before) != string(after) {
		t.Errorf("before %s\nafter  %s", before, after)
	}
	list, err := protocol.ReadInbox(context.Background(), r.reader(), r.clock.Now(), false)
	if err != nil || len(list) != 1 {
		t.Fatalf("a second inbox: %v, %d", err, len(list))
	}
	second, _ := json.Marshal(list[0])
	if string(second) != string(before) {
		t.Errorf("a second inbox shows %s", second)
	}
	// Approved on the facts shown; those of now are others, and are asked about.
	r.approve(r.one(), "bob")
	r.want(r.recover(false), "REFUSED:awaiting_decision", 0)
	if w := r.one(); w.Left != "10" {
		t.Errorf("left %q", w.Left)
	}
}

// B20 and B21: a resubmission changes neither the route nor what is shown.
func TestB20AResubmissionChangesNothing(t *testing.T) {
	r := newDesk(t, tier1())
	big := over10()
	big.ID, big.Within, big.Route = "over-15", []protocol.Limit{{Field: "amount", Max: "15"}}, []protocol.Step{{Group: "managers"}}
	r.submit(r.paid("case-1", 20))
	before := r.one()
	r.rule(big)
	for _, amount := range []int{30, 5, 20} {
		got := r.submit(r.paid("case-1", amount))
		if amount != 20 && got.Status.Reason != protocol.ConflictingPayload {
			t.Errorf("%d: %s", amount, got.Status)
		}
	}
	after := r.one()
	if after.Group != before.Group || after.Answers != before.Answers || string(after.Payload) != string(before.Payload) {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func TestB22ALaterLowerAnswerDoesntCount(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	first := r.one()
	r.clock.advance(4 * time.Hour)
	r.recover(false)
	if _, err := r.decide(r.decision(r.one(), "cy", false)); err != nil {
		t.Fatal(err)
	}
	r.refusedDecision(r.decision(first, "ana", true), "a manager said no since")
	if results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{}); err != nil || len(results) != 0 {
		t.Errorf("recover gave %v, %v", results, err)
	}
}

// B36: one effect whose recovery fails doesn't keep another's deadline from moving.
func TestB36OneThatFailsStopsNoOther(t *testing.T) {
	r := newDesk(t, tier1())
	l := lease("L-mail")
	l.Actions = []string{"refund", "mail"}
	r.grant(l)
	other := newSimulatedService()
	other.clock, other.can = r.clock, tier2()
	if err := r.gate.Register("mail", other); err != nil {
		t.Fatal(err)
	}
	p := r.paid("case-0", 5)
	p.Lease, p.Premises, p.Effect.Action = "L-mail", nil, "mail"
	other.script, other.lookup = []simulatedAnswer{ackLost}, errors.New("503")
	r.submit(p)
	r.submit(r.paid("case-1", 20))
	r.clock.advance(4 * time.Hour)
	results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{})
	if err != nil || len(results) != 2 || results[0].Status.Final != protocol.Unresolved || results[1].Status.Reason != protocol.AwaitingDecision {
		t.Fatalf("%v, %v", err, results)
	}
	if w := r.one(); w.Group != "managers" {
		t.Errorf("still with %s", w.Group)
	}
}

func TestB38AStepWithoutATimeHasNoDeadline(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	r.clock.advance(5 * time.Hour)
	r.recover(false)
	if w := r.one(); !w.Deadline.IsZero() {
		t.Errorf("the managers have until %s", w.Deadline)
	}
	r.clock.advance(1000 * time.Hour)
	r.want(r.recover(false), "REFUSED:awaiting_decision", 0)
	if w := r.one(); w.Group != "managers" || w.Late {
		t.Errorf("it moved on: %+v", w)
	}
}

func TestB41ARefusalAfterDoubtClearsNoDoubt(t *testing.T) {
	r := newRig(t, tier3())
	r.service.script = []simulatedAnswer{ackLost}
	r.submit(r.proposal("case-1", 20))
	r.recover(false)
	r.submit(r.proposal("case-1", 30))
	r.want(r.submit(r.proposal("case-1", 20)), "AMBIGUOUS", 1)
	if _, err := r.correct(protocol.Waiting{Effect: id("case-1")}, "ruth", 10); !errors.Is(err, protocol.ErrCorrection) {
		t.Errorf("corrected: %v", err)
	}
}

// B43: an approval kept in somebody's memory isn't one.
func TestB43AStaleApprovalDoesntOverrideANewerDecision(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	stale := r.decision(r.one(), "ana", true) // read by a second inbox
	if _, err := r.decide(r.decision(r.one(), "bob", false)); err != nil {
		t.Fatal(err)
	}
	if e := r.refusedDecision(stale, "bob rejected it"); e.By != "bob" || e.At.IsZero() {
		t.Errorf("told of %q at %s", e.By, e.At)
	}
}

// B44: after an outage each deadline is told as the time that it was, and the next
// group has its own time.
func TestB44DeadlinesThatPassedInAnOutage(t *testing.T) {
	r := newDesk(t, tier1())
	rule := over10()
	rule.Route = []protocol.Step{{Group: "leads", Within: time.Hour}, {Group: "managers", Within: time.Hour}}
	r.rule(rule)
	r.submit(r.paid("case-1", 20))
	was := r.one().Deadline
	r.kill()
	r.clock.advance(48 * time.Hour)
	r.open()
	r.recover(false)
	w := r.one()
	if !w.Passed.Equal(was) || !w.Deadline.Equal(r.clock.Now().Add(time.Hour)) || w.Group != "managers" {
		t.Errorf("%+v", w.Escalation)
	}
}

// B49 and B51: what was refused after an approval isn't sent on it again.
func TestB51ARefusalUsesAnApprovalUp(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	r.approve(r.one(), "ana")
	r.revoke("L-refund")
	r.want(r.recover(false), "REFUSED:lease", 0)
	r.grant(lease("L-new"))
	p := r.paid("case-1", 20)
	p.Lease = "L-new"
	r.service.set("eligible", "false")
	r.want(r.submit(p), "REFUSED:awaiting_decision", 0)
	if w := r.one(); len(w.Changed) != 1 || len(w.Read) != 3 {
		t.Errorf("asked on the facts of now: %+v", w.Escalation)
	}

	r = newDesk(t, tier1())
	r.submit(r.paid("case-2", 20))
	r.approve(r.one(), "ana")
	r.service.script = []simulatedAnswer{says(protocol.Rejected)}
	r.want(r.recover(false), "REFUSED:target_rejected", 0)
	r.want(r.submit(r.paid("case-2", 20)), "REFUSED:target_rejected", 0)
}

// B52: each fact is read once for each check.
func TestB52AFactIsReadOnce(t *testing.T) {
	r := newDesk(t, tier1())
	read := 0
	r.service.observe = func(string) error { read++; return nil }
	r.submit(r.paid("case-1", 20))
	if read != 3 {
		t.Errorf("three facts were read %d times", read)
	}
	r.approve(r.one(), "ana")
	r.gate.Report(context.Background())
	if read != 3 {
		t.Errorf("an inbox reads facts: %d", read)
	}
	r.recover(false)
	if read != 6 {
		t.Errorf("%d readings for one send", read-3)
	}
}

// B62: what is in doubt is told under the name of who dispatched it.
func TestB62DoubtBelongsToItsDispatcher(t *testing.T) {
	r := newRig(t, tier3())
	r.service.script = []simulatedAnswer{ackLost}
	r.submit(r.proposal("case-1", 20))
	other := r.proposal("case-1", 30)
	other.Agent = "agent-9"
	r.submit(other)
	open, err := r.gate.Report(context.Background())
	if err != nil || len(open) != 1 || open[0].Agent != "agent-7" {
		t.Errorf("%v, %+v", err, open)
	}
	if w := r.one(); w.Agent != "agent-7" {
		t.Errorf("the inbox says %s", w.Agent)
	}
}

func TestB69TheLastAllowedSendMakesAReceipt(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	d := r.decision(r.one(), "ana", true)
	d.Attempts = 1
	if _, err := r.decide(d); err != nil {
		t.Fatal(err)
	}
	r.service.script = []simulatedAnswer{says(protocol.NotExecuted)}
	r.recover(false)
	// The one send is used up; the next asks again.
	r.want(r.recover(false), "REFUSED:awaiting_decision", 0)
	d = r.decision(r.one(), "bob", true)
	d.Attempts = 1
	if _, err := r.decide(d); err != nil {
		t.Fatal(err)
	}
	got := r.recover(false)
	r.want(got, "COMMITTED", 1)
	if len(got.Receipt.Attempts) != 2 || len(got.Receipt.Asked) != 2 {
		t.Errorf("the receipt says\n%s", got.Receipt)
	}
}

// B72: a retry under an approval that stands asks nobody again.
func TestB72ARetryAsksNobodyAgain(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	r.approve(r.one(), "ana")
	r.service.refuse = 1
	r.want(r.recover(false), "NOT_SENT", 0)
	r.service.script = []simulatedAnswer{says(protocol.NotExecuted)}
	r.want(r.recover(false), "NOT_SENT", 0)
	r.dies("gate/premises-read", func() { r.gate.Recover(context.Background(), protocol.RecoverOptions{}) })
	if n := len(r.inbox()); n != 0 {
		t.Errorf("%d things wait", n)
	}
	r.want(r.recover(false), "COMMITTED", 1)
}

// B82 to B85: an approval is one effect's, once, and names what it covers.
func TestB83AnApprovalIsForOneEffect(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	r.submit(r.paid("case-2", 20))
	list := r.inbox()
	d := r.decision(list[0], "ana", true)
	d.Effect = list[1].Effect
	r.refusedDecision(d, "it answers another effect's question")
	r.approve(list[0], "ana")
	results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{})
	if err != nil || len(results) != 2 {
		t.Fatalf("%v, %v", err, results)
	}
	for _, got := range results {
		want := "REFUSED:awaiting_decision"
		if got.Effect == list[0].Effect {
			want = "COMMITTED"
		}
		if got.Status.String() != want {
			t.Errorf("%s: %s, want %s", got.Receipt.Request, got.Status, want)
		}
	}
	r.want(r.submit(r.paid("case-1", 20)), "DUPLICATE_IGNORED", 1)
}

func TestB86OverTheApprovalIsSaidAsSuch(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	d := r.decision(r.one(), "ana", true)
	d.Limits = []protocol.Limit{{Field: "amount", Max: "15"}}
	if e := r.refusedDecision(d, "15 is less than 20"); !strings.Contains(e.Why, "no approval covers it") {
		t.Errorf("it says %q", e.Why)
	}
}

// TestANewRuleIsAskedAtTheDispatch: it counts from the moment it can be read, and its
// withdrawal takes nothing back that was escalated.
func TestANewRuleIsAskedAtTheDispatch(t *testing.T) {
	r := newRig(t, tier1())
	r.service.set("paid", "100")
	r.group("leads", signer("ana"))
	r.once("gate/premises-read", func() { r.rule(over10()) })
	r.want(r.submit(r.paid("case-1", 20)), "REFUSED:awaiting_decision", 0)
	if !slices.Equal(r.kinds(id("case-1")), []journal.Kind{journal.Proposed, journal.Escalated}) {
		t.Errorf("entries %v", r.kinds(id("case-1")))
	}
	withdrawn := over10()
	withdrawn.Withdrawn = true
	r.rule(withdrawn)
	// What was escalated stays so (I7); what comes now needs nobody.
	r.want(r.submit(r.paid("case-1", 20)), "REFUSED:awaiting_decision", 0)
	r.want(r.submit(r.paid("case-2", 20)), "COMMITTED", 1)
	r.approve(r.one(), "ana")
	r.want(r.recover(false), "COMMITTED", 1)
}

// TestAnApprovalThatIsGoneAtRecovery: in doubt, found absent, and the approver left.
func TestAnApprovalThatIsGoneAtRecovery(t *testing.T) {
	for _, can := range []protocol.Capabilities{tier1(), tier2()} {
		r := newDesk(t, can)
		r.submit(r.paid("case-1", 20))
		r.approve(r.one(), "ana")
		r.dies("gate/intent-durable", func() { r.gate.Recover(context.Background(), protocol.RecoverOptions{}) })
		r.group("leads", signer("bob"))
		r.want(r.recover(true), "REFUSED:approval_at_recovery", 0)
		r.want(r.submit(r.paid("case-1", 20)), "REFUSED:awaiting_decision", 0)
		r.approve(r.one(), "bob")
		r.want(r.recover(true), "COMMITTED", 1)
	}
}
