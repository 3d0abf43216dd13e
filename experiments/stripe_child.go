package experiments

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/interlock-bench/interlock-bench/baselines"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/clock"
	"github.com/interlock-bench/interlock-bench/protocol/wire"
	"github.com/interlock-bench/interlock-bench/targets/sim"
	"github.com/interlock-bench/interlock-bench/targets/stripe"
)

// stripeTask is the task of a program under test that refunds at Stripe. The key
// is not in it: a live program takes it from its environment.
type stripeTask struct {
	task
	Base   string // of the API; "" is Stripe's
	Socket string // of the emulator; "" dials Base
	Desk   string // socket of the lease desk
	Drift  bool
	// Live says that the service is somewhere else, so time is the machine's.
	Live  bool
	Bound time.Duration // assumed of the service; 0 is the target's default
	Lag   time.Duration // likewise
	Limit time.Duration // for everything that the program does; 0 sets none
}

// emulatedKey is what the emulator is spoken to with. It is nobody's.
const emulatedKey = "sk_test_emulated"

// KeyVariable names the environment variable that holds the key.
const KeyVariable = "STRIPE_API_KEY"

// stripeWork is the program under test.
func stripeWork(c *faults.Child) error {
	var t stripeTask
	if err := c.Task(&t); err != nil {
		return err
	}
	o := stripe.Options{Key: emulatedKey, Base: t.Base, Socket: t.Socket, Clock: c, Trace: c.At}
	var wait context.CancelFunc
	ctx := context.Background()
	if t.Live {
		o.Key, o.Clock = os.Getenv(KeyVariable), clock.System
		ctx, wait = clock.System.Timeout(ctx, t.Limit)
		defer wait()
	}
	client, err := stripe.Open(o)
	if err != nil {
		return err
	}
	service := stripeService{
		client: client, intent: t.Order,
		desk: sim.Client{Network: "unix", Address: t.Desk, Clock: o.Clock, Timeout: clientTimeout},
	}
	if t.Drift && c.Start() > 1 {
		service.drift = map[string]string{"start": strconv.Itoa(c.Start())}
	}
	err = act(ctx, c, t.task, setting{
		columns: stripeColumns, clock: o.Clock, service: service, lookup: true, key: true,
		target: stripe.Target{Client: client, Bound: t.Bound, Lag: t.Lag}, propose: proposeStripe,
	})
	if ctx.Err() != nil {
		return fmt.Errorf("not settled within %v: Stripe didn't answer, or what was sent may still land: %w", t.Limit, err)
	}
	return err
}

// proposeStripe is the refund as the gate journals it, with what it rests on:
// the payment stands, nobody disputes it, it is still of the amount that the
// agent saw, and nothing was refunded by others under this case.
func proposeStripe(d baselines.Decision) (any, []protocol.Premise) {
	value := func(v any) json.RawMessage {
		b, _ := json.Marshal(v)
		return b
	}
	disputed := !d.Seen.Eligible && d.Seen.Note == succeeded
	return stripe.Payload{Amount: d.Amount, Case: d.Case, Currency: "usd", PaymentIntent: d.Order}, []protocol.Premise{
		{Name: stripe.PremiseStatus, Seen: value(d.Seen.Note), At: d.SeenAt, Holds: protocol.Equals, Want: value(succeeded)},
		{Name: stripe.PremiseDisputed, Seen: value(disputed), At: d.SeenAt, Holds: protocol.Equals, Want: value(false)},
		{Name: stripe.PremisePaid, Seen: value(d.Seen.Paid), At: d.SeenAt, Holds: protocol.Unchanged},
		{Name: stripe.PremiseRefunded, Whose: stripe.UnderThisCase, Seen: value(d.Seen.Others), At: d.SeenAt, Holds: protocol.Equals, Want: value(0)},
	}
}

// succeeded is the status of a charge that was paid.
const succeeded = "succeeded"

// stripeService is Stripe as the baselines use it: the same client that the gate
// has, in the words of the simulated service.
type stripeService struct {
	client *stripe.Client
	intent string
	desk   sim.Client        // Stripe has no lease desk
	drift  map[string]string // metadata that the caller adds
}

// Refund sends one request. A key that isn't the request's own is a fresh call
// id, which has to differ from those of other requests.
func (s stripeService) Refund(ctx context.Context, r sim.Refund) sim.Reply {
	p, err := s.client.Prepare(ctx)
	if err != nil {
		return sim.Reply{Outcome: wire.NotSent}
	}
	defer p.Close()
	metadata := map[string]string{stripe.MetaEffect: r.Effect, stripe.MetaRequest: r.Effect, stripe.MetaCase: r.Case}
	for name, value := range s.drift {
		metadata[name] = value
	}
	key := r.Key
	if key != r.Effect {
		key = r.Effect + "." + key
	}
	got := p.Refund(ctx, stripe.Refund{PaymentIntent: r.Order, Amount: r.Amount, Metadata: metadata}, key)
	return sim.Reply{Outcome: got.Outcome, Code: got.Status, Word: stripeWord(got), Body: got.Body, Replayed: got.Replayed}
}

// stripeWord is a reply in the words of the reference table.
func stripeWord(r stripe.Reply) string {
	switch {
	case r.Outcome != wire.Answered:
		return r.Outcome.String()
	case r.Status/100 == 2 && r.Replayed:
		return sim.WordRepeated
	case r.Status/100 == 2:
		return sim.WordOK
	case r.Status == http.StatusConflict:
		return sim.WordInProgress
	case r.Type == "idempotency_error":
		return sim.WordKeyReused
	}
	return orElse(r.Code, r.Type)
}

// Find looks the effect up in the metadata of the payment's refunds.
func (s stripeService) Find(ctx context.Context, effect string) (sim.Found, error) {
	found, err := s.client.Find(ctx, s.intent, effect)
	if err != nil {
		return sim.Found{}, err
	}
	f := sim.Found{Landed: len(found) > 0}
	for _, r := range found {
		f.Refunds = append(f.Refunds, history.Landing{ID: r.ID, Order: s.intent, Case: r.Metadata[stripe.MetaCase], Amount: r.Amount, Effect: effect})
	}
	return f, nil
}

// Order reads the payment. Its note is the charge's status.
func (s stripeService) Order(ctx context.Context, intent, caseID, effect string) (sim.Order, error) {
	f, err := s.client.Facts(ctx, intent, caseID, effect)
	return sim.Order{
		Order: intent, Eligible: f.Status == succeeded && !f.Disputed, Paid: f.Paid, Refunded: f.Refunded, Others: f.Others, Note: f.Status,
	}, err
}

func (s stripeService) Lease(ctx context.Context, id string) (sim.Lease, error) {
	return s.desk.Lease(ctx, id)
}
