package protocol_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// keyOf is a person's key in these tests.
func keyOf(person string) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, person)
	return ed25519.NewKeyFromSeed(seed)
}

func signer(name string) protocol.Member {
	return protocol.Member{Name: name, Key: keyOf(name).Public().(ed25519.PublicKey)}
}

// leads and managers decide: ana and bob sign, cy is attested only.
func (r *rig) group(name string, members ...protocol.Member) {
	r.Helper()
	if err := r.authority.SetGroup(context.Background(), protocol.Group{Name: name, Principal: "finance", Members: members}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) rule(rule protocol.Rule) {
	r.Helper()
	if err := r.authority.SetRule(context.Background(), rule); err != nil {
		r.Fatal(err)
	}
}

// over10 asks about whatever is above 10, and about facts that changed.
func over10() protocol.Rule {
	return protocol.Rule{
		ID: "over-10", Principal: "finance", Actions: []string{"refund"}, Changed: true,
		Within: []protocol.Limit{{Field: "amount", Max: "10"}},
		Route:  []protocol.Step{{Group: "leads", Within: 4 * time.Hour}, {Group: "managers"}},
		Left:   &protocol.Left{Field: "amount", Of: protocol.Expected{Premise: "paid"}, Less: []protocol.Expected{{Premise: "refunded", Whose: "others"}}},
	}
}

// newDesk is a rig whose refunds above 10 need a person.
func newDesk(t testing.TB, can protocol.Capabilities) *rig {
	r := newRig(t, can)
	r.group("leads", signer("ana"), signer("bob"))
	r.group("managers", protocol.Member{Name: "cy"})
	r.rule(over10())
	r.service.set("paid", "100")
	return r
}

// paid is a proposal that also rests on what was paid.
func (r *rig) paid(request string, amount int) protocol.Proposal {
	p := r.proposal(request, amount)
	p.Premises = append(p.Premises, protocol.Premise{Name: "paid", Seen: json.RawMessage(r.service.fact("paid")), At: r.clock.Now(), Holds: protocol.Unchanged})
	return p
}

func (r *rig) inbox() []protocol.Waiting {
	r.Helper()
	list, err := r.gate.Inbox(context.Background(), false)
	if err != nil {
		r.Fatal(err)
	}
	return list
}

// one is the one thing that waits.
func (r *rig) one() protocol.Waiting {
	r.Helper()
	list := r.inbox()
	if len(list) != 1 {
		r.Fatalf("%d things wait, want 1", len(list))
	}
	return list[0]
}

func (r *rig) decision(w protocol.Waiting, person string, approve bool) protocol.Decision {
	return protocol.Decision{Namespace: namespace, Effect: w.Effect, Escalation: w.Answers, Approve: approve, Person: person, At: r.clock.Now()}
}

// decide signs where the person has a key in the authority log.
func (r *rig) decide(d protocol.Decision) (protocol.Result, error) {
	r.Helper()
	if d.Person != "cy" {
		if s, err := protocol.SignDecision(keyOf(d.Person), d); err == nil {
			d = s
		} else if !errors.Is(err, protocol.ErrDecision) {
			r.Fatal(err)
		}
	}
	return r.gate.Decide(context.Background(), d)
}

func (r *rig) approve(w protocol.Waiting, person string) protocol.Result {
	r.Helper()
	got, err := r.decide(r.decision(w, person, true))
	if err != nil {
		r.Fatal(err)
	}
	return got
}

// refusedDecision checks that a decision doesn't count.
func (r *rig) refusedDecision(d protocol.Decision, why string) *protocol.DecisionError {
	r.Helper()
	_, err := r.decide(d)
	var e *protocol.DecisionError
	if !errors.Is(err, protocol.ErrDecision) || !errors.As(err, &e) {
		r.Fatalf("want a DecisionError (%s), have %v", why, err)
	}
	return e
}

func TestAnEscalatedEffectIsSentUnderItsApproval(t *testing.T) { // I7
	r := newDesk(t, tier1())
	r.want(r.submit(r.paid("case-1", 20)), "REFUSED:awaiting_decision", 0)
	r.want(r.submit(r.paid("case-1", 20)), "REFUSED:awaiting_decision", 0)
	r.want(r.recover(true), "REFUSED:awaiting_decision", 0)
	w := r.one()
	if w.For != "decision" || w.Group != "leads" || w.Rule != "over-10" || w.Left != "100" || len(w.Read) != 3 {
		t.Errorf("the inbox shows %+v", w)
	}
	r.want(r.approve(w, "ana"), "NOT_SENT", 0)
	r.want(r.recover(true), "COMMITTED", 1)
	got := r.submit(r.paid("case-1", 20))
	r.want(got, "DUPLICATE_IGNORED", 1)
	if len(r.inbox()) != 0 {
		t.Error("it still waits")
	}
	if a := got.Receipt.Asked; len(a) != 1 || a[0].Decision.Person != "ana" || a[0].Signed != "signed" {
		t.Errorf("the receipt says %+v", a)
	}
	if !strings.Contains(got.Receipt.Authorized.Basis, "approved by ana") {
		t.Errorf("authorized: %s", got.Receipt.Authorized.Basis)
	}
}

func TestARoutineEffectNeedsNobody(t *testing.T) {
	r := newDesk(t, tier1())
	r.want(r.submit(r.paid("case-1", 10)), "COMMITTED", 1)
}

func TestARejectionEndsIt(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	got, err := r.decide(r.decision(r.one(), "ana", false))
	if err != nil {
		t.Fatal(err)
	}
	r.want(got, "REFUSED:rejected", 0)
	r.want(r.submit(r.paid("case-1", 20)), "REFUSED:rejected", 0)
	r.grant(lease("L-other"))
	p := r.paid("case-1", 20)
	p.Lease = "L-other"
	r.want(r.submit(p), "REFUSED:rejected", 0)
	if results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{}); err != nil || len(results) != 0 {
		t.Errorf("recover gave %v, %v", results, err)
	}
}

// TestWhatDoesntFitFailsClosed: what a rule can't compare goes to a person, what a
// limit can't compare isn't covered.
func TestWhatDoesntFitFailsClosed(t *testing.T) {
	for _, c := range []struct {
		payload, why string
	}{
		{`{"order":"881","amount":true}`, "a boolean is no number"},
		{`{"order":"881","amount":"5"}`, "a number in quotes isn't one"},
		{`{"order":"881"}`, "the field is missing"},
		{`{"order":"881","amount":null}`, "null is no number"},
		{`{"order":"881","amount":[5]}`, "a list is no number"},
		{`{"order":"881","amount":-5}`, "a negative amount is inside no limit"},
	} {
		r := newDesk(t, tier1())
		l := lease("L-wide")
		l.Limits = nil
		r.grant(l)
		p := r.paid("case-1", 5)
		p.Lease, p.Effect.Payload = "L-wide", json.RawMessage(c.payload)
		if got := r.submit(p); got.Status.Reason != protocol.AwaitingDecision {
			t.Errorf("%s: %s", c.why, got.Status)
			continue
		}
		d := r.decision(r.one(), "ana", true)
		d.Limits = []protocol.Limit{{Field: "amount", Max: "20"}}
		r.refusedDecision(d, c.why)
	}
	for _, bad := range []string{"NaN", "Infinity", "-Infinity", "1e9999", "true", ""} {
		r := newDesk(t, tier1())
		r.submit(r.paid("case-1", 20))
		d := r.decision(r.one(), "ana", true)
		d.Limits = []protocol.Limit{{Field: "amount", Max: bad}}
		r.refusedDecision(d, "a limit of "+bad)
		rule := over10()
		rule.Within = []protocol.Limit{{Field: "amount", Max: bad}}
		if err := r.authority.SetRule(context.Background(), rule); !errors.Is(err, protocol.ErrRule) {
			t.Errorf("a rule with the limit %q: %v", bad, err)
		}
	}
}

func TestAFactThatARuleLooksAt(t *testing.T) {
	for _, c := range []struct {
		seen, why string
		want      string
	}{
		{"true", "as the rule has it", "COMMITTED"},
		{"false", "another value", "REFUSED:awaiting_decision"},
		{"1", "true is not 1", "REFUSED:awaiting_decision"},
		{`"true"`, "nor a string", "REFUSED:awaiting_decision"},
	} {
		r := newRig(t, tier1())
		r.group("leads", signer("ana"))
		r.rule(protocol.Rule{
			ID: "eligible", Principal: "finance", Actions: []string{"refund"}, Route: []protocol.Step{{Group: "leads"}},
			Facts: []protocol.Expected{{Premise: "eligible", Equals: json.RawMessage("true")}},
		})
		r.service.set("eligible", c.seen)
		p := r.proposal("case-1", 20)
		p.Premises[0].Holds, p.Premises[0].Want = protocol.Unchanged, nil
		if got := r.submit(p).Status.String(); got != c.want {
			t.Errorf("%s (%s): %s, want %s", c.seen, c.why, got, c.want)
		}
		p = r.proposal("case-2", 20)
		p.Premises = p.Premises[1:]
		if got := r.submit(p).Status.String(); got != "REFUSED:awaiting_decision" {
			t.Errorf("the fact is missing: %s", got)
		}
	}
}

func TestDeadlinesMoveUpTheChain(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	w := r.one()
	if want := r.clock.Now().Add(4 * time.Hour); !w.Deadline.Equal(want) {
		t.Errorf("deadline %s, want %s", w.Deadline, want)
	}
	r.clock.advance(4*time.Hour - 1)
	if r.one().Late {
		t.Error("late a moment too early")
	}
	r.clock.advance(1)
	if !r.one().Late {
		t.Error("not late at the deadline")
	}
	r.refusedDecision(r.decision(w, "ana", true), "too late")
	r.want(r.recover(false), "REFUSED:awaiting_decision", 0)
	up := r.one()
	if up.Group != "managers" || !up.Deadline.IsZero() || !up.Passed.Equal(w.Deadline) || up.Late {
		t.Errorf("moved up: %+v", up.Escalation)
	}
	r.refusedDecision(r.decision(w, "ana", true), "another group is asked now")
	r.refusedDecision(r.decision(up, "ana", true), "ana is no manager")
	if got := r.approve(up, "cy"); got.Receipt.Asked[1].Signed != "attested only" {
		t.Errorf("the receipt says %q", got.Receipt.Asked[1].Signed)
	}
	r.want(r.recover(false), "COMMITTED", 1)
}

func TestAtTheEndOfTheChainItIsRefused(t *testing.T) {
	r := newDesk(t, tier1())
	rule := over10()
	rule.Route = []protocol.Step{{Group: "leads", Within: time.Hour}, {Group: "managers", Within: time.Hour}}
	r.rule(rule)
	r.submit(r.paid("case-1", 20))
	r.clock.advance(time.Hour)
	r.recover(false)
	r.clock.advance(time.Hour)
	r.want(r.recover(false), "REFUSED:undecided", 0)
	r.want(r.submit(r.paid("case-1", 20)), "REFUSED:awaiting_decision", 0) // and asks again
	if w := r.one(); w.Group != "leads" {
		t.Errorf("asks %s first", w.Group)
	}
	r.approve(r.one(), "bob")
	r.want(r.recover(false), "COMMITTED", 1)
}

func TestApprovalLimits(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	w := r.one()
	for _, c := range []struct {
		change func(*protocol.Decision)
		why    string
	}{
		{func(d *protocol.Decision) { d.Limits = []protocol.Limit{{Field: "amount", Max: "19"}} }, "the payload is above its limit"},
		{func(d *protocol.Decision) {
			d.Limits = []protocol.Limit{{Field: "order", Equals: json.RawMessage(`"882"`)}}
		}, "it matches another order"},
		{func(d *protocol.Decision) {
			d.Limits = []protocol.Limit{{Field: "customer", Equals: json.RawMessage(`"c-1"`)}}
		}, "the payload has no such field"},
		{func(d *protocol.Decision) { d.Limits = []protocol.Limit{{Field: "amount"}} }, "a limit to nothing"},
		{func(d *protocol.Decision) { d.Expires = r.clock.Now() }, "it has ended"},
		{func(d *protocol.Decision) { d.Expires = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "JSON has no such time"},
		{func(d *protocol.Decision) { d.Attempts = -1 }, "a negative number of sends"},
		{func(d *protocol.Decision) { d.At = time.Time{} }, "made at no time"},
		{func(d *protocol.Decision) { d.Namespace = "another" }, "another desk's"},
		{func(d *protocol.Decision) { d.Escalation = journal.Hash{1} }, "it answers nothing"},
		{func(d *protocol.Decision) { d.Effect = id("case-2") }, "another effect"},
	} {
		d := r.decision(w, "ana", true)
		c.change(&d)
		r.refusedDecision(d, c.why)
	}
	d := r.decision(w, "ana", true)
	d.Limits = []protocol.Limit{{Field: "amount", Max: "20"}, {Field: "order", Equals: json.RawMessage(`"881"`)}}
	d.Expires, d.Attempts = r.clock.Now().Add(time.Hour), 1
	if _, err := r.decide(d); err != nil {
		t.Fatal(err)
	}
	r.want(r.recover(false), "COMMITTED", 1)
}

func TestAnApprovalThatEndedAsksAgain(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	d := r.decision(r.one(), "ana", true)
	d.Expires = r.clock.Now().Add(time.Hour)
	if _, err := r.decide(d); err != nil {
		t.Fatal(err)
	}
	r.clock.advance(time.Hour)
	r.want(r.recover(false), "REFUSED:awaiting_decision", 0)
	r.approve(r.one(), "bob")
	r.want(r.recover(false), "COMMITTED", 1)
}

// TestTwoDecideAtOnce: one wins, the other is told who and when.
func TestTwoDecideAtOnce(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	w := r.one()
	people := []string{"ana", "bob"}
	errs := make([]error, 2)
	var all sync.WaitGroup
	for i, person := range people {
		all.Go(func() { _, errs[i] = r.decide(r.decision(w, person, i == 0)) })
	}
	all.Wait()
	won := 0
	for i, err := range errs {
		if err == nil {
			won++
			continue
		}
		var e *protocol.DecisionError
		if !errors.As(err, &e) || e.By != people[1-i] || e.At.IsZero() {
			t.Errorf("%s is told %v", people[i], err)
		}
	}
	if won != 1 {
		t.Errorf("%d decisions counted", won)
	}
}

// TestAStrippedJournalDoesntLookUnasked: who takes the decisions out of an effect's
// chain, and makes its hashes fit again, leaves what names them.
func TestAStrippedJournalDoesntLookUnasked(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	r.approve(r.one(), "ana")
	r.want(r.recover(false), "COMMITTED", 1)
	entries := r.chain(id("case-1"))
	if _, err := protocol.ReceiptFromEntries(entries); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		drop []journal.Kind
		why  string
	}{
		{[]journal.Kind{journal.Escalated, journal.Decided}, "both"},
		{[]journal.Kind{journal.Decided}, "the decision"},
		{[]journal.Kind{journal.Escalated}, "the question"},
	} {
		if _, err := protocol.ReceiptFromEntries(rechained(entries, c.drop...)); !errors.Is(err, protocol.ErrReceipt) {
			t.Errorf("without %s it makes a receipt: %v", c.why, err)
		}
	}
}

func (r *rig) chain(effect journal.ID) []journal.Entry {
	r.Helper()
	store, err := r.reader()(func(journal.Entry) error { return nil })
	if err != nil {
		r.Fatal(err)
	}
	defer store.Close()
	entries, err := protocol.EntriesOf(store, effect)
	if err != nil {
		r.Fatal(err)
	}
	return entries
}

// rechained leaves entries of some kinds out and makes the hashes fit.
func rechained(entries []journal.Entry, without ...journal.Kind) (out []journal.Entry) {
	var prev journal.Hash
next:
	for _, e := range entries {
		for _, k := range without {
			if e.Kind == k {
				continue next
			}
		}
		e.Prev = prev
		e.Hash = e.Sum()
		prev = e.Hash
		out = append(out, e)
	}
	return out
}

func TestWhoMayDecide(t *testing.T) {
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	w := r.one()
	for _, c := range []struct{ person, why string }{
		{"policy", "nobody's name"},
		{" Policy", "nobody's name either"},
		{"", "no name"},
		{"agent-7", "who proposed it"},
		{"cy", "a manager, and the leads are asked"},
		{"ruth", "settles, and is in no group"},
	} {
		r.refusedDecision(r.decision(w, c.person, true), c.why)
	}
	forged, err := protocol.SignDecision(keyOf("mallory"), r.decision(w, "ana", true))
	if err != nil {
		t.Fatal(err)
	}
	unsigned := r.decision(w, "ana", true)
	altered, _ := protocol.SignDecision(keyOf("ana"), r.decision(w, "ana", false))
	altered.Approve = true
	for _, d := range []protocol.Decision{forged, unsigned, altered} {
		if _, err := r.gate.Decide(context.Background(), d); !errors.Is(err, protocol.ErrDecision) {
			t.Errorf("taken: %v", err)
		}
	}
	for _, bad := range []string{"policy", "POLICY ", "", "x\ny"} {
		err := r.authority.SetGroup(context.Background(), protocol.Group{Name: "g", Principal: "finance", Members: []protocol.Member{{Name: bad}}})
		if !errors.Is(err, protocol.ErrRule) {
			t.Errorf("%q became a member: %v", bad, err)
		}
	}
	if err := r.authority.SetGroup(context.Background(), protocol.Group{Name: "leads", Principal: "mallory"}); !errors.Is(err, protocol.ErrRule) {
		t.Errorf("somebody else's group was changed: %v", err)
	}
	if err := r.authority.SetRule(context.Background(), protocol.Rule{ID: "over-10", Principal: "mallory", Actions: []string{"refund"}, Route: []protocol.Step{{Group: "leads"}}, Withdrawn: true}); !errors.Is(err, protocol.ErrRule) {
		t.Errorf("somebody else's rule was withdrawn: %v", err)
	}
}

// TestEverySentence walks every status there is: each has a sentence that says
// whether a retry may help, and none shows what the payload holds.
func TestEverySentence(t *testing.T) {
	for _, s := range protocol.Statuses() {
		text := protocol.Result{Status: s}.Sentence()
		if !strings.Contains(text, "retry") {
			t.Errorf("%s (%v): %q doesn't say whether a retry may help", s, s, text)
		}
	}
	for _, amount := range []string{"7321", "9.73"} {
		for name, got := range spoken(t, amount) {
			for _, text := range []string{got.Sentence(), got.Receipt.Sentence()} {
				if strings.Contains(text, amount) || strings.Contains(text, "secret-order") {
					t.Errorf("%s shows the payload: %s", name, text)
				}
			}
		}
	}
}

// spoken are results of many kinds for a payload that nobody is to see.
func spoken(t *testing.T, amount string) map[string]protocol.Result {
	all := map[string]protocol.Result{}
	start := func() (*rig, protocol.Proposal) {
		r := newDesk(t, tier1())
		l := lease("L-wide")
		l.Limits = []protocol.Limit{{Field: "amount", Max: "9000"}}
		r.grant(l)
		p := r.paid("case-1", 0)
		p.Lease, p.Effect.Payload = "L-wide", fmt.Appendf(nil, `{"amount":%s,"order":"secret-order"}`, amount)
		return r, p
	}
	r, p := start()
	all["first"] = r.submit(p)
	for _, w := range r.inbox() {
		all["approved"] = r.approve(w, "ana")
		all["done"] = r.recover(false)
	}
	all["again"] = r.submit(p)
	p.Effect.Payload = fmt.Appendf(nil, `{"amount":%s,"order":"secret-order","x":1}`, amount)
	all["conflict"] = r.submit(p)

	r, p = start()
	p.Lease = "L-refund"
	p.Effect.Payload = fmt.Appendf(nil, `{"amount":%s1,"order":"secret-order"}`, amount)
	all["lease"] = r.submit(p)

	r, p = start()
	l := lease("L-order")
	l.Limits = []protocol.Limit{{Field: "order", Equals: json.RawMessage(`"another"`)}}
	r.grant(l)
	p.Lease = "L-order"
	all["limit"] = r.submit(p)

	r, p = start()
	all["asked"] = r.submit(p)
	for _, w := range r.inbox() {
		got, err := r.decide(r.decision(w, "bob", false))
		if err != nil {
			t.Fatal(err)
		}
		all["rejected"] = got
	}
	return all
}

func FuzzReceiptOfDecisions(f *testing.F) {
	r := newDesk(f, tier1())
	r.submit(r.paid("case-1", 20))
	r.approve(r.one(), "ana")
	r.recover(false)
	r.submit(r.paid("case-2", 20))
	got, err := r.correct(r.one(), "ana", 15)
	if err != nil {
		f.Fatal(err)
	}
	chains := [][]journal.Entry{r.chain(id("case-1")), r.chain(id("case-2")), r.chain(got.Effect)}
	for i, chain := range chains {
		for j, e := range chain {
			f.Add(byte(i), byte(j), uint16(e.Kind), []byte(e.Body))
		}
	}
	f.Fuzz(func(t *testing.T, chain, at byte, kind uint16, body []byte) {
		entries := append([]journal.Entry(nil), chains[int(chain)%len(chains)]...)
		i := int(at) % len(entries)
		entries[i].Kind, entries[i].Body = journal.Kind(kind), body
		receipt, err := protocol.ReceiptFromEntries(rechained(entries))
		if err != nil {
			return
		}
		_ = receipt.String()
		for _, a := range receipt.Attempts { // what was sent, was sent as it had to be
			if a.Outcome == "committed" && len(receipt.Asked) > 0 && receipt.Asked[len(receipt.Asked)-1].Decision == nil {
				t.Errorf("sent while somebody was asked:\n%s", receipt)
			}
		}
	})
}

// correct accepts another amount for what waits, or was refused.
func (r *rig) correct(w protocol.Waiting, person string, amount int) (protocol.Result, error) {
	r.Helper()
	c := protocol.Correction{
		Namespace: namespace, Effect: w.Effect, Answers: w.Answers, Person: person, At: r.clock.Now(),
		Payload: fmt.Appendf(nil, `{"order":"881","amount":%d}`, amount),
	}
	if person != "" && person != "cy" {
		var err error
		if c, err = protocol.SignCorrection(keyOf(person), c); err != nil {
			r.Fatal(err)
		}
	}
	return r.gate.Correct(context.Background(), c)
}

// TestWhatAPersonSaysIsText: a note that isn't UTF-8 would be read back as another
// one, and the signature over it would hold no more. It is refused before anything
// is recorded, signed or attested, and the question stays open.
func TestWhatAPersonSaysIsText(t *testing.T) {
	const note = "caf\xe9"
	r := newDesk(t, tier1())
	r.submit(r.paid("case-1", 20))
	w := r.one()
	d := r.decision(w, "ana", true)
	d.Note = note
	if _, err := protocol.SignDecision(keyOf("ana"), d); !errors.Is(err, protocol.ErrDecision) {
		t.Errorf("it is signed: %v", err)
	}
	r.refusedDecision(d, "the note isn't UTF-8")
	c := protocol.Correction{Namespace: namespace, Effect: w.Effect, Answers: w.Answers, Payload: json.RawMessage(`{"order":"881","amount":5}`), Person: "ana", Note: note, At: r.clock.Now()}
	if _, err := protocol.SignCorrection(keyOf("ana"), c); !errors.Is(err, protocol.ErrCorrection) {
		t.Errorf("a correction is signed: %v", err)
	}
	if _, err := r.gate.Correct(context.Background(), c); !errors.Is(err, protocol.ErrCorrection) {
		t.Errorf("a correction is accepted: %v", err)
	}
	s := protocol.Resolution{Namespace: namespace, Effect: w.Effect, Person: "ana", Evidence: note, At: r.clock.Now()}
	if _, err := protocol.SignResolution(keyOf("ana"), s); !errors.Is(err, protocol.ErrResolution) {
		t.Errorf("a resolution is signed: %v", err)
	}
	d.Note = "café, \ufffd"
	if _, err := r.decide(d); err != nil {
		t.Errorf("text is refused: %v", err)
	}
	r.restart()
	r.want(r.submit(r.paid("case-1", 20)), "COMMITTED", 1)
}
