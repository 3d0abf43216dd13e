package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/baselines"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// dayMix is how many requests of a day are of which kind. It is an assumption.
type dayMix struct {
	name, what                                                   string
	routine, over, flagged, ineligible, duplicate, crash, byHand int
	stale, partial                                               int // of over: refunded by hand after the approval, whole and a third
}

// dayMixes are the rows: the reference, and a sweep around it.
var dayMixes = []dayMix{
	{"reference", "the reference mix: of 100 requests 15 are over the limit, 10 are refunded by hand meanwhile", 60, 15, 5, 5, 5, 5, 5, 3, 2},
	{"earlier", "the earlier reference mix: none is refunded by a third", 60, 15, 5, 5, 5, 5, 5, 3, 0},
	{"changed_0", "nobody refunds by hand", 65, 15, 5, 5, 5, 5, 0, 0, 0},
	{"changed_20", "20 are refunded by hand meanwhile", 55, 15, 5, 5, 5, 5, 10, 6, 4},
	{"changed_30", "30 are refunded by hand meanwhile", 50, 15, 5, 5, 5, 5, 15, 9, 6},
	{"over_30", "30 are over the limit", 45, 30, 5, 5, 5, 5, 5, 3, 2},
}

const (
	dayLimit   = 50            // dollars that need nobody
	largeLimit = 200           // dollars above which another group is asked
	dayLease   = "L-day"       //
	dayAnswers = 4 * time.Hour // what each group has
)

// requests are a day's, in the order in which they arrive.
func (m dayMix) requests() (all []dayRequest) {
	rng := newMersenne(daySeed)
	add := func(kind string, dollars int, change func(*dayRequest)) {
		r := dayRequest{ID: fmt.Sprintf("req-%03d", len(all)+1), Kind: kind, Amount: int64(dollars) * 100}
		if change != nil {
			change(&r)
		}
		all = append(all, r)
	}
	small := func() int { return rng.between(5, dayLimit) }
	for range m.routine {
		add("routine", small(), nil)
	}
	for i := range m.over {
		add("over_limit", rng.between(dayLimit+1, 300), func(r *dayRequest) {
			r.Late = true
			switch {
			case i < m.stale:
				r.ByHand = r.Amount
			case i < m.stale+m.partial:
				r.ByHand = r.Amount / 300 * 100
			}
		})
	}
	for range m.flagged {
		add("flagged", small(), func(r *dayRequest) { r.Flagged = true })
	}
	for range m.ineligible {
		add("ineligible", small(), func(r *dayRequest) { r.Ineligible = true })
	}
	for range m.crash {
		add("crash", small(), func(r *dayRequest) { r.Crash = true })
	}
	for range m.byHand {
		add("refunded_by_hand", small(), func(r *dayRequest) { r.ByHand = r.Amount })
	}
	for _, r := range sampled(rng, all[:m.routine], m.duplicate) {
		r.Kind = "duplicate"
		all = append(all, r)
	}
	shuffled(rng, all)
	return all
}

// The policies.
const (
	policyEveryone = "everyone"
	policyRules    = "rules"
	policyHand     = "rules+hand-check"
	policyGate     = "rules+gate"
)

// Approvals is a day of refund requests under four policies of approving them.
func Approvals() *Experiment {
	e := &Experiment{
		Name:  "approvals",
		Short: "of a day's refund requests, how many still need a person, and how many go wrong",
		Long: `One process works off a day of 100 synthetic requests, is killed in the middle of
five sends, and asks people what its policy says. People also refund by hand, between
the decision or the approval and the send. The mix of the requests is an assumption;
the rows sweep it. Counted are the reviews that people did, and the orders that got
another amount than their case approves.`,
		Example: "  interlock-bench approvals\n  interlock-bench approvals --row reference --column rules+gate --keep kept",
		Run:     runApprovals, Judge: judgeDay, Child: approvalsChild, Page: approvalsPage,
		Columns: []Column{
			{Name: policyEveryone, What: "a person approves every request, then it is sent with an idempotency key"},
			{Name: policyRules, What: "what passes the rules is sent with a key at once, the rest waits for a person"},
			{Name: policyHand, What: "the same rules; lease and facts are read again before each send, and what changed goes to a person", Holds: true},
			{Name: policyGate, What: "the same rules in the gate: escalations, signed decisions and corrections in its journal", Holds: true},
		},
	}
	for _, m := range dayMixes {
		e.Rows = append(e.Rows, Row{Name: m.name, Group: "mix", What: m.what})
		for _, c := range e.Columns {
			declared := ""
			if c.Holds {
				declared = declaredReviews[m.name+"/"+c.Name]
			}
			if m.name == "reference" && !c.Holds {
				declared = declaredReviews[m.name+"/"+c.Name]
			}
			e.Cells = append(e.Cells, Cell{Row: m.name, Column: c.Name, Declared: declared,
				Trials: []faults.Trial{{Experiment: e.Name, Row: m.name, Column: c.Name, Faults: kills(m.crash)}}})
		}
	}
	return e
}

// declaredReviews are the reference's figures.
var declaredReviews = map[string]string{
	"reference/" + policyEveryone: "100_reviews 10_wrong BAD",
	"reference/" + policyRules:    "25_reviews 10_wrong BAD",
	"reference/" + policyGate:     "36_reviews 0_wrong ok",
	"earlier/" + policyGate:       "33_reviews 0_wrong ok",
}

// dayRules are the gate's rules: the first that matches says whom to ask.
func dayRules() []protocol.Rule {
	limit := func(dollars int) []protocol.Limit {
		return []protocol.Limit{{Field: "amount", Max: fmt.Sprint(dollars * 100)}}
	}
	refunds := []string{actionRefund}
	return []protocol.Rule{
		{ID: "flagged", Principal: principal, Actions: refunds, Within: []protocol.Limit{{Field: "flagged", Equals: json.RawMessage("false")}},
			Route: []protocol.Step{{Group: "risk"}}},
		{ID: "large", Principal: principal, Actions: refunds, Within: limit(largeLimit),
			Route: []protocol.Step{{Group: "controller", Within: dayAnswers}, {Group: "finance-manager"}}},
		{ID: "default", Principal: principal, Actions: refunds, Within: limit(dayLimit), Changed: true,
			Facts: []protocol.Expected{{Premise: "eligible", Equals: json.RawMessage("true")}},
			Route: []protocol.Step{{Group: "ap-leads", Within: dayAnswers}, {Group: "finance-manager"}}},
	}
}

func runApprovals(ctx context.Context, t faults.Trial) (Outcome, error) {
	at := slices.IndexFunc(dayMixes, func(m dayMix) bool { return m.name == t.Row })
	if at < 0 {
		return Outcome{}, fmt.Errorf("experiments: no mix is called %q", t.Row)
	}
	profile, _ := sim.ProfileNamed("t1")
	h, err := runDay(ctx, t, profile, func(s *faults.Stage) (*dayWorld, error) {
		w := &dayWorld{
			requests: dayMixes[at].requests(), every: 5 * time.Minute, latency: 90 * time.Minute,
			gate: t.Column == policyGate, eager: t.Column != policyEveryone,
		}
		return newDayWorld(ctx, s, w, profile, protocol.Lease{
			ID: dayLease, Principal: principal, Holder: agentID, Actions: []string{actionRefund},
			Limits: []protocol.Limit{{Field: "amount", Max: "30000"}}, Expires: s.Now().Add(leaseLife),
		}, dayRules())
	})
	if err != nil {
		return Outcome{}, err
	}
	count := tallied(h)
	o := Outcome{Trial: t, History: h, Verdict: judgeDay(h), Status: fmt.Sprintf("%d_reviews", count.reviews), Record: "none"}
	switch t.Column {
	case policyGate:
		o.Record = "full"
	case policyHand:
		o.Record = "partial"
	}
	kinds, again := map[string]int{}, map[string]int{}
	for _, r := range dayMixes[at].requests() {
		if n := count.reviewed[r.ID]; n > 0 && r.Kind != "duplicate" {
			kinds[r.Kind] += n
			if n > 1 {
				again[r.ID] = n
			}
		}
	}
	o.Extra = map[string]any{
		"reviews": count.reviews, "wrong": count.wrong, "killed": count.kills, "over": count.over, "kinds": kinds, "again": again,
	}
	return o, nil
}

// dayPolicy is what the process does with requests and answers.
type dayPolicy interface {
	waiting(ctx context.Context) (listed bool, items []dayItem, err error)
	tick(ctx context.Context) error
	arrive(ctx context.Context, e dayEvent, seen sim.Order) error
	answer(ctx context.Context, e dayEvent) error
	Close() error
}

// approvalsChild is the program under test.
func approvalsChild(c *faults.Child) error {
	var t dayTask
	if err := c.Task(&t); err != nil {
		return err
	}
	client := sim.Client{Network: t.Network, Address: t.Address, Clock: c, Timeout: clientTimeout, Trace: c.At}
	var policy dayPolicy = &plainPolicy{c, t.Column, baselines.Sim{Client: client}}
	if t.Column == policyGate {
		gate, err := openDayGate(c, t, client)
		if err != nil {
			return err
		}
		policy = &gatePolicy{c, gate}
	}
	defer policy.Close()
	ctx := context.Background()
	for again := c.Start() > 1; ; again = false {
		listed, items, err := policy.waiting(ctx)
		if err != nil {
			return err
		}
		var e dayEvent
		if err := c.Ask(askEvent, eventQuestion{again, listed, items}, &e); err != nil {
			return err
		}
		if e.What == "end" {
			c.Tell(history.Finished, "", nil)
			return nil
		}
		if err := c.Wait(ctx, e.At-c.Mono()); err != nil {
			return err
		}
		if err := policy.tick(ctx); err != nil {
			return err
		}
		switch e.What {
		case "arrival":
			seen, err := client.Order(ctx, e.Request.order(), e.Request.ID, "")
			if err == nil {
				err = c.Ask(askHand, handQuestion{Request: e.Request.ID}, nil)
			}
			if err == nil {
				err = policy.arrive(ctx, e, seen)
			}
			if err != nil {
				return err
			}
		case "answer":
			if err := policy.answer(ctx, e); err != nil {
				return err
			}
		}
	}
}

// plainPolicy is each policy without the gate.
type plainPolicy struct {
	child   *faults.Child
	column  string
	service baselines.Service
}

func (p *plainPolicy) waiting(context.Context) (bool, []dayItem, error) { return false, nil, nil }
func (p *plainPolicy) tick(context.Context) error                       { return nil }
func (p *plainPolicy) Close() error                                     { return nil }

func (p *plainPolicy) arrive(ctx context.Context, e dayEvent, seen sim.Order) error {
	r := e.Request
	if p.column == policyEveryone || r.Amount > dayLimit*100 || r.Flagged || !seen.Eligible {
		return p.ask(fmt.Sprintf("arrival %d", e.Number), r, r.Amount, seen)
	}
	return p.send(ctx, r, r.Amount, seen.Eligible, seen.Others)
}

// ask puts the request before a person.
func (p *plainPolicy) ask(id string, r dayRequest, amount int64, seen sim.Order) error {
	return p.child.Ask(askQueue, dayItem{ID: id, Request: r.ID, Amount: amount, Eligible: seen.Eligible, Others: seen.Others, Group: groupOf(r, amount)}, nil)
}

func groupOf(r dayRequest, amount int64) string {
	switch {
	case r.Flagged:
		return "risk"
	case amount > largeLimit*100:
		return "controller"
	}
	return "ap-leads"
}

func (p *plainPolicy) answer(ctx context.Context, e dayEvent) error {
	if e.Verdict == "reject" {
		return nil
	}
	if e.Verdict == "correct" && e.Amount > dayLimit*100 && groupOf(e.Request, e.Amount) != e.Item.Group {
		// The rest is another group's to decide on.
		seen := sim.Order{Eligible: e.Item.Eligible, Others: e.Item.Others}
		return p.ask(e.Item.ID+", corrected", e.Request, e.Amount, seen)
	}
	if err := p.child.Ask(askHand, handQuestion{Request: e.Request.ID, Approved: true}, nil); err != nil {
		return err
	}
	return p.send(ctx, e.Request, e.Amount, e.Item.Eligible, e.Item.Others)
}

// send sends with the request's key. The hand check looks before: what landed is
// not sent again, a dead lease stops it, and facts that aren't those that it was
// decided on go to a person.
func (p *plainPolicy) send(ctx context.Context, r dayRequest, amount int64, eligible bool, others int64) error {
	if p.column == policyHand {
		found, err := p.service.Find(ctx, r.ID)
		if err != nil || found.Landed {
			return err
		}
		if lease, err := p.service.Lease(ctx, dayLease); err != nil || !lease.Live || amount > lease.Max {
			return errors.Join(err, errors.New("the day's lease doesn't cover it"))
		}
		now, err := p.service.Order(ctx, r.order(), r.ID, r.ID)
		if err != nil {
			return err
		}
		if now.Eligible != eligible || now.Others != others {
			return p.ask(fmt.Sprintf("%s changed to %d", r.ID, now.Others), r, amount, now)
		}
	}
	p.service.Refund(ctx, sim.Refund{Order: r.order(), Case: r.ID, Amount: amount, Effect: r.ID, Key: r.ID})
	return nil
}

// openDayGate opens the gate of a day's process.
func openDayGate(c *faults.Child, t dayTask, client sim.Client) (*protocol.Gate, error) {
	gate, err := protocol.Open(context.Background(), protocol.Config{
		Namespace: namespace, Clock: c, Trace: c.At,
		Journal:   journal.FileOpener(filepath.Join(t.State, "journal"), journal.Options{Namespace: namespace, Now: c.Now, Trace: c.At, Identity: t.Column}),
		Authority: journal.FileOpener(authorityDir(t.State), journal.Options{Mode: journal.Reader, Namespace: namespace, Now: c.Now}),
	})
	if err != nil {
		return nil, err
	}
	return gate, gate.Register(actionRefund, dayTarget{refundTarget{client, t.Profile}})
}

// dayTarget is the refund service, which knows nothing of flags: they are the
// rules' matter and stay in the journal.
type dayTarget struct{ refundTarget }

func (t dayTarget) Prepare(ctx context.Context, r protocol.Request) (protocol.Attempt, error) {
	var p payload
	if err := json.Unmarshal(r.Payload, &p); err != nil {
		return nil, err
	}
	var err error
	if r.Payload, err = json.Marshal(p); err != nil {
		return nil, err
	}
	return t.refundTarget.Prepare(ctx, r)
}

// gatePolicy is the gate: its rules are the authority log's, its queue the journal.
type gatePolicy struct {
	child *faults.Child
	gate  *protocol.Gate
}

func (p *gatePolicy) Close() error { return p.gate.Close() }

func (p *gatePolicy) waiting(ctx context.Context) (bool, []dayItem, error) {
	list, err := p.gate.Inbox(ctx, false)
	if err != nil {
		return false, nil, err
	}
	items := []dayItem{}
	for _, w := range list {
		if w.For != "decision" {
			continue
		}
		var body payload
		if err := json.Unmarshal(w.Payload, &body); err != nil {
			return false, nil, err
		}
		i := dayItem{ID: w.Answers.String(), Request: w.Request, Effect: w.Effect, Amount: body.Amount, Group: w.Group}
		for _, f := range w.Read {
			switch f.Name {
			case "eligible":
				err = json.Unmarshal(f.Value, &i.Eligible)
			case "refunded":
				err = json.Unmarshal(f.Value, &i.Others)
			}
			if err != nil {
				return false, nil, err
			}
		}
		if !w.Deadline.IsZero() {
			i.Due = p.child.Mono() + w.Deadline.Sub(p.child.Now())
		}
		items = append(items, i)
	}
	return true, items, nil
}

func (p *gatePolicy) tick(ctx context.Context) error {
	_, err := p.gate.Recover(ctx, protocol.RecoverOptions{Wait: true})
	return err
}

func (p *gatePolicy) arrive(ctx context.Context, e dayEvent, seen sim.Order) error {
	_, err := p.gate.Submit(ctx, dayProposal(e.Request, e.Request.Amount, dayLease, seen, p.child.Now()))
	return err
}

// dayProposal is a refund of a day as the gate is asked for it, on what was seen.
func dayProposal(r dayRequest, amount int64, lease string, seen sim.Order, at time.Time) protocol.Proposal {
	value := func(v any) json.RawMessage { b, _ := json.Marshal(v); return b }
	return protocol.Proposal{
		Request: r.ID, Agent: agentID, Lease: lease,
		Premises: []protocol.Premise{
			{Name: "eligible", Seen: value(seen.Eligible), At: at, Holds: protocol.Unchanged},
			{Name: "refunded", Whose: "others under this case", Seen: value(seen.Others), At: at, Holds: protocol.Unchanged},
		},
		Effect: protocol.Effect{Action: actionRefund, Payload: value(dayPayload(r, amount))},
	}
}

// answer records what the person says; what was said before the process died is
// there already. Then the gate sends what was approved.
func (p *gatePolicy) answer(ctx context.Context, e dayEvent) error {
	var err error
	if e.Verdict == "correct" {
		var c protocol.Correction
		if err = json.Unmarshal(e.Signed, &c); err == nil {
			_, err = p.gate.Correct(ctx, c)
		}
	} else {
		var d protocol.Decision
		if err = json.Unmarshal(e.Signed, &d); err == nil {
			_, err = p.gate.Decide(ctx, d)
		}
	}
	if err != nil && !errors.Is(err, protocol.ErrDecision) && !errors.Is(err, protocol.ErrCorrection) {
		return err
	}
	if e.Verdict != "reject" {
		if err := p.child.Ask(askHand, handQuestion{Request: e.Request.ID, Approved: true}, nil); err != nil {
			return err
		}
	}
	return p.tick(ctx)
}
