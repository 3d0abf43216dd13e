package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/interlock-bench/interlock-bench/baselines"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/wire"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// actionRefund is the action that leases grant and the gate's target carries out.
const actionRefund = "refund"

// payload is a refund as the gate journals it.
type payload struct {
	Amount   int64  `json:"amount"`
	Case     string `json:"case"`
	Currency string `json:"currency"`
	Order    string `json:"order"`
}

// gateColumn is the gate as a column.
type gateColumn struct {
	gate    *protocol.Gate
	drain   *journal.Drain
	propose func(baselines.Decision) (payload any, premises []protocol.Premise)
}

// budgetOf is the budget that a decision draws on; "" is none.
func budgetOf(d baselines.Decision) string {
	if d.Cap == 0 {
		return ""
	}
	return budgetName
}

// openShared opens the gate with its journal in a database, which several
// processes have open.
func openShared(o opening) (baselines.Column, error) {
	o.task.Store = storeSQLite
	return openGate(o)
}

// openGate opens the gate over the target of the opening.
func openGate(o opening) (baselines.Column, error) {
	drain, err := journal.OpenDrain(o.authorityDir())
	if err != nil {
		return nil, err
	}
	gate, err := protocol.Open(context.Background(), protocol.Config{
		Namespace: namespace,
		Journal: gateJournal(o.task.State, o.task.Store, journal.Options{
			Namespace: namespace, Now: o.Clock.Now, Dir: o.dir, Trace: o.trace, Identity: o.task.Column, Restored: o.restored,
		}),
		Authority: journal.FileOpener(o.authorityDir(), journal.Options{Mode: journal.Reader, Namespace: namespace, Now: o.Clock.Now}),
		Drain:     drain,
		Clock:     o.Clock,
		Trace:     o.trace,
	})
	if err != nil {
		drain.Close()
		return nil, err
	}
	if err := gate.Register(actionRefund, o.target); err != nil {
		return nil, errors.Join(err, gate.Close(), drain.Close())
	}
	return &gateColumn{gate: gate, drain: drain, propose: o.propose}, nil
}

// Recover works until nothing can be settled by waiting.
func (g *gateColumn) Recover(ctx context.Context) (baselines.Told, bool, error) {
	results, err := g.gate.Recover(ctx, protocol.RecoverOptions{Wait: true})
	if err != nil || len(results) == 0 {
		return baselines.Told{}, false, err
	}
	told, err := toldOf(results[len(results)-1])
	return told, true, err
}

func (g *gateColumn) Submit(ctx context.Context, d baselines.Decision) (baselines.Told, error) {
	content, premises := g.propose(d)
	body, err := json.Marshal(content)
	if err != nil {
		return baselines.Told{}, err
	}
	result, err := g.gate.Submit(ctx, protocol.Proposal{
		Request:  d.Request,
		Agent:    d.Agent,
		Lease:    d.Lease,
		Premises: premises,
		Budget:   budgetOf(d),
		Effect:   protocol.Effect{Action: actionRefund, Payload: body},
	})
	if err != nil {
		return baselines.Told{}, err
	}
	told, err := toldOf(result)
	told.Amount = d.Amount
	return told, err
}

func (g *gateColumn) Close() error { return errors.Join(g.gate.Close(), g.drain.Close()) }

// proposal is how the gate is asked for a refund.
type proposal struct {
	conditional bool   // the service checks premises itself, with the effect
	further     string // "", or what the refund rests on besides
}

// refund is the refund as the gate journals it, with what it rests on.
func (p proposal) refund(d baselines.Decision) (any, []protocol.Premise) {
	usual := payload{Amount: d.Amount, Case: d.Case, Currency: "usd", Order: d.Order}
	return usual.spelled(d.Spelling), p.premises(d)
}

// spelled is the payload with its amount as a decimal, or with its keys in
// another order. All are one value.
func (p payload) spelled(how string) any {
	switch how {
	case "decimal":
		return json.RawMessage(fmt.Sprintf(`{"amount":%d.0,"case":%q,"currency":%q,"order":%q}`, p.Amount, p.Case, p.Currency, p.Order))
	case "reordered":
		return json.RawMessage(fmt.Sprintf(`{"order":%q,"currency":%q,"case":%q,"amount":%d}`, p.Order, p.Currency, p.Case, p.Amount))
	}
	return p
}

// premises are what the refund rests on: the order is eligible and nobody else
// has refunded under this case, whatever the agent saw, and what was paid is
// still what it saw. A service that can checks the first two with the effect.
func (p proposal) premises(d baselines.Decision) []protocol.Premise {
	value := func(v any) json.RawMessage {
		b, _ := json.Marshal(v)
		return b
	}
	all := []protocol.Premise{
		{Name: "eligible", Seen: value(d.Seen.Eligible), Holds: protocol.Equals, Want: value(true)},
		{Name: "paid", Seen: value(d.Seen.Paid), Holds: protocol.Unchanged},
		{Name: "refunded", Whose: "others under this case", Seen: value(d.Seen.Others), Holds: protocol.Equals, Want: value(0)},
	}
	switch p.further {
	case "total":
		all = append(all, protocol.Premise{Name: "refunded", Seen: value(d.Seen.Refunded), Holds: protocol.Unchanged})
	case "version":
		all = append(all, protocol.Premise{Name: "version", Seen: value(d.Seen.Version), Holds: protocol.Unchanged})
	}
	for i := range all {
		all[i].At = d.SeenAt
		if p.conditional && all[i].Holds == protocol.Equals {
			all[i].Holds = protocol.ByTarget
		}
	}
	return all
}

// fact is what the service calls a premise.
func fact(p protocol.Premise) string {
	if p.Name == "refunded" && p.Whose != "" {
		return "others"
	}
	return p.Name
}

// toldOf says what a result claims.
func toldOf(r protocol.Result) (baselines.Told, error) {
	told := baselines.Told{Status: r.Status.String()}
	switch r.Status.Final {
	case protocol.Committed:
		told.Says = baselines.Done
	case protocol.Refused:
		told.Says = baselines.Not
	case protocol.Ambiguous:
		told.Says = baselines.Nobody
	default:
		told.Says = baselines.Pending
		if r.Status.Reason == protocol.Mismatch {
			told.Says = baselines.Nobody
		}
	}
	var p payload
	if len(r.Payload) > 0 {
		if err := json.Unmarshal(r.Payload, &p); err != nil {
			return told, fmt.Errorf("experiments: the journaled payload: %w", err)
		}
	}
	told.Amount = p.Amount
	return told, nil
}

// refundTarget is the simulated refund service as the gate sees it.
type refundTarget struct {
	client  sim.Client
	profile sim.Profile
}

func (t refundTarget) Capabilities() protocol.Capabilities {
	c := t.profile.Declared()
	return protocol.Capabilities{
		ClientTimeout: t.client.Timeout,
		DedupWindow:   c.DedupWindow,
		DedupMargin:   c.DedupMargin,
		Lookup:        c.Lookup,
		LookupLag:     c.LookupLag,
		LookupWindow:  c.LookupWindow,
		LandingBound:  c.LandingBound,
		Conditional:   c.Conditional,
		Fencing:       c.Fencing,
	}
}

func (t refundTarget) Prepare(ctx context.Context, r protocol.Request) (protocol.Attempt, error) {
	p, err := t.client.Prepare(ctx)
	if err != nil {
		return nil, err
	}
	return &refundAttempt{p, r}, nil
}

func (t refundTarget) Lookup(ctx context.Context, r protocol.Request) (protocol.Finding, error) {
	found, err := t.client.Find(ctx, r.Effect.String())
	if err != nil || !found.Landed {
		return protocol.Finding{}, err
	}
	var want payload
	if err := json.Unmarshal(r.Payload, &want); err != nil {
		return protocol.Finding{}, err
	}
	same := len(found.Refunds) == 1 && found.Refunds[0].Order == want.Order && found.Refunds[0].Case == want.Case && found.Refunds[0].Amount == want.Amount
	return protocol.Finding{Landed: true, Same: same, Result: found.Body}, nil
}

func (t refundTarget) Observe(ctx context.Context, p protocol.Premise, r protocol.Request) (json.RawMessage, error) {
	var about payload
	if err := json.Unmarshal(r.Payload, &about); err != nil {
		return nil, err
	}
	order, err := t.client.Order(ctx, about.Order, about.Case, r.Effect.String())
	if err != nil {
		return nil, err
	}
	switch fact(p) {
	case "eligible":
		return json.Marshal(order.Eligible)
	case "paid":
		return json.Marshal(order.Paid)
	case "others":
		return json.Marshal(order.Others)
	case "refunded":
		return json.Marshal(order.Refunded)
	case "version":
		return json.Marshal(order.Version)
	}
	return nil, fmt.Errorf("experiments: the refund service has no fact called %q", p.Name)
}

// Fence asks the service to refuse older attempts.
func (t refundTarget) Fence(ctx context.Context, effect journal.ID, token journal.Token) error {
	return t.client.Fence(ctx, effect.String(), token.String())
}

type refundAttempt struct {
	prepared *sim.Prepared
	request  protocol.Request
}

func (a *refundAttempt) Send(ctx context.Context, e protocol.Envelope) protocol.Answer {
	envelope := sim.Envelope{
		Key:    a.request.Effect.String(),
		Effect: a.request.Effect.String(),
		Anchor: e.Anchor.String(),
		Token:  e.Token.String(),
	}
	if len(a.request.Premises) > 0 {
		envelope.Premises = map[string]json.RawMessage{}
		for _, p := range a.request.Premises {
			envelope.Premises[fact(p)] = p.Want
		}
	}
	r, err := a.prepared.Send(ctx, a.request.Payload, envelope)
	reason := r.Word
	if err != nil {
		reason = err.Error()
	}
	answer := protocol.Answer{Reason: reason, RetryAfter: r.RetryAfter, Replayed: r.Replayed, Result: r.Body}
	switch {
	case r.Outcome == wire.NotSent:
		answer.Outcome = protocol.NotSent
	case r.Outcome != wire.Answered:
		answer.Outcome = protocol.Unknown
	case r.Code/100 == 2:
		answer.Outcome = protocol.Done
	case r.Code == 401 || r.Code == 429:
		answer.Outcome = protocol.NotExecuted
	case r.Word == sim.WordPremise:
		answer.Outcome, answer.Premise = protocol.PremiseFailed, r.Premise
	case r.Word == sim.WordOverRefund, r.Word == sim.WordUnknownOrder:
		answer.Outcome = protocol.Rejected
	default:
		answer.Outcome = protocol.Unknown // 5xx, 409 in progress, and whatever the service doesn't declare
	}
	return answer
}

func (a *refundAttempt) Close() error { return a.prepared.Close() }
