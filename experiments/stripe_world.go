package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/clock"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/sim"
	"github.com/interlock-bench/interlock-bench/targets/stripe"
	"github.com/interlock-bench/interlock-bench/targets/stripe/emulator"
)

// approvals is what people decided and granted for one trial at Stripe: a lease
// per request, at a desk that anybody can ask and, for the gate, in the
// authority log.
type approvals struct {
	refundWorld // stage, column, desk and authority
	submits     stripeRow
	given       *stripeTask
}

// approve records what is approved and grants it. The task gets its requests.
func (a *approvals) approve(intent string, requests []string, declared history.Service) error {
	var list []history.Approval
	for _, r := range requests {
		list = append(list, history.Approval{Request: r, Order: intent, Case: r, Amount: approved, Agent: agentID, Lease: leaseOf(r)})
	}
	a.record(history.Declared, "", history.Declaration{Approved: list, Service: declared})
	a.service = sim.New(a.stage.As("desk"), sim.Profile{Name: "desk"})
	for _, p := range list {
		if err := a.grant(grant{id: p.Lease, holder: agentID, forCase: p.Case, max: p.Amount, life: leaseLife}); err != nil {
			return err
		}
	}
	desk, err := net.Listen("unix", a.deskAddress())
	if err != nil {
		return fmt.Errorf("experiments: the lease desk can't listen: %w", err)
	}
	return a.service.Start(desk)
}

func (a *approvals) deskAddress() string { return filepath.Join(a.stage.Dir(), "desk") }

// Answer hands out the row's submits in order. After a restart the last one is
// asked for again where recovery found nothing to settle; the task names its
// request.
func (a *approvals) Answer(what string, question json.RawMessage) (any, error) {
	if what != askNext {
		return a.refundWorld.Answer(what, question)
	}
	var q nextQuestion
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, err
	}
	n := nextAnswer{Submit: true, Repeat: true}
	if a.asked == 0 || q.Settled {
		if a.asked == len(a.row.Submits) {
			return nextAnswer{}, nil
		}
		a.asked++
		n.Repeat = false
	}
	n.Request = a.submits.request(a.asked - 1)
	n.Lease = leaseOf(n.Request)
	a.given.Request, a.given.Case, a.given.Lease = n.Request, n.Request, n.Lease
	return n, nil
}

// stripeWorld is everything around the column in one trial on the emulator.
type stripeWorld struct {
	approvals
	stripe *emulator.Server
	intent string
	seed   uint64
	after  map[string]any // what became of the money, once the world is closed
}

func newStripeWorld(ctx context.Context, stage *faults.Stage, row stripeRow, c column, t faults.Trial, given *stripeTask) (*stripeWorld, error) {
	w := &stripeWorld{seed: t.Seed}
	w.refundWorld = refundWorld{stage: stage, column: c, row: row.Row}
	w.submits, w.given = row, given
	w.keep = func(state string) error { return keepState(ctx, state) }
	w.stripe = emulator.New(stage.As("service"), emulator.Options{
		Keys: []string{emulatedKey}, Settles: row.settles, Secret: webhookSecret,
		Effect: stripe.MetaEffect, Case: stripe.MetaCase, Anchor: stripe.MetaAnchor,
	})
	requests := row.requests
	if requests == nil {
		requests = []string{caseID}
	}
	can := stripe.Target{Client: &stripe.Client{}}.Capabilities()
	first := history.Service{DedupWindow: can.DedupWindow, Lookup: can.Lookup, LandingBound: can.LandingBound}
	w.intent = "pi_" + orderID
	if err := w.approve(w.intent, requests, first); err != nil {
		return nil, errors.Join(err, w.shut())
	}
	w.stripe.Pay(w.intent, paid, "usd", orElse(row.card, "pm_card_visa"))
	if row.service != nil {
		row.service(w.stripe)
	}
	address := filepath.Join(stage.Dir(), "stripe")
	l, err := net.Listen("unix", address)
	if err == nil {
		err = w.stripe.Start(l)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("experiments: the emulator can't listen: %w", err), w.shut())
	}
	*given = stripeTask{
		task: task{
			Experiment: t.Experiment, Column: t.Column, State: stage.State(), File: fileOf(t),
			Agent: agentID, Order: w.intent, Request: requests[0], Case: requests[0], Lease: leaseOf(requests[0]),
		},
		Base: emulatedBase, Socket: address, Desk: w.deskAddress(), Drift: row.drift,
	}
	return w, nil
}

const (
	emulatedBase  = "http://stripe-emulator"
	webhookSecret = "whsec_emulated"
)

// Do carries out what rows name.
func (w *stripeWorld) Do(action string, _ func(until ...trace.Point)) error {
	switch action {
	case "refund-by-hand":
		return w.stripe.RefundByHand(w.intent, caseID, approved)
	case "chargeback":
		return w.stripe.Chargeback(w.intent)
	}
	return fmt.Errorf("experiments: Stripe's world can't do %q", action)
}

func (w *stripeWorld) shut() error {
	if w.service == nil {
		return w.stripe.Close()
	}
	return errors.Join(w.stripe.Close(), w.service.Close())
}

// Close looks at what the column left behind and at what became of the money,
// and ends the world.
func (w *stripeWorld) Close() error {
	w.evidence = w.column.evidence(evidenceOf{state: w.stage.State(), now: w.stage.Now})
	after, err := w.settlement()
	w.after = after
	return errors.Join(err, w.shut(), w.keep(w.stage.State()))
}

// settlement reads what became of the money of the request that the cell shows,
// after all webhooks were delivered twice and in no order.
func (w *stripeWorld) settlement() (map[string]any, error) {
	now := principalClock{clock.System, w.stage}
	client, err := stripe.Open(stripe.Options{Key: emulatedKey, Base: emulatedBase, Socket: w.given.Socket, Clock: now})
	if err != nil {
		return nil, err
	}
	effect := w.submits.shown()
	if w.column.gate {
		effect = protocol.EffectID(namespace, effect, 0).String()
	}
	told, err := notices(w.stripe.Deliveries(), w.intent, w.seed, now)
	if err != nil {
		return nil, err
	}
	settled, err := client.Settle(context.Background(), w.intent, effect)
	if err != nil {
		return nil, err
	}
	after := map[string]any{"settlement": settled.Money(), "webhooks": told}
	committed := len(settled.Refunds) > 0
	if !w.column.gate || !committed || settled.Returned+settled.ChargedBack == 0 {
		return after, nil
	}
	receipt, err := w.receipt()
	after["receipt"] = stripe.Beside(receipt, settled)
	return after, err
}

// notices verifies every webhook, twice and shuffled, and counts those that told
// of the payment for the first time, by type.
func notices(deliveries []emulator.Delivery, intent string, seed uint64, now clock.Clock) (string, error) {
	twice := append(append([]emulator.Delivery(nil), deliveries...), deliveries...)
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(twice), func(i, j int) { twice[i], twice[j] = twice[j], twice[i] })
	hooks := stripe.Webhooks{Secret: webhookSecret, Clock: now}
	heard := map[string]int{}
	for _, d := range twice {
		n, err := hooks.Accept(d.Payload, d.Header)
		if err != nil {
			return "", fmt.Errorf("experiments: a webhook of the emulator is not taken: %w", err)
		}
		if !n.Again && n.PaymentIntent == intent {
			heard[n.Type]++
		}
	}
	var kinds []string
	for _, d := range deliveries { // in the order of the events
		if n := heard[d.Type]; n > 0 {
			kinds = append(kinds, fmt.Sprintf("%s %d", d.Type, n))
			delete(heard, d.Type)
		}
	}
	return strings.Join(kinds, ", "), nil
}

// receipt is what the gate's journal proves of the request that the cell shows.
func (w *stripeWorld) receipt() (protocol.Receipt, error) {
	store, err := w.journalReader()(func(journal.Entry) error { return nil })
	if err != nil {
		return protocol.Receipt{}, err
	}
	defer store.Close()
	entries, err := protocol.EntriesOf(store, protocol.EffectID(namespace, w.submits.shown(), 0))
	if err != nil {
		return protocol.Receipt{}, err
	}
	return protocol.ReceiptFromEntries(entries)
}
