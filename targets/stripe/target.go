package stripe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	api "github.com/stripe/stripe-go/v76"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/wire"
)

// Payload is a refund as the gate journals it.
type Payload struct {
	Amount        int64  `json:"amount"` // in the smallest unit of the currency
	Case          string `json:"case"`
	Currency      string `json:"currency"`
	PaymentIntent string `json:"payment_intent"`
}

// Target refunds payments. It is a protocol.Target of tier 1 that can be looked
// up and has an assumed landing bound.
type Target struct {
	Client *Client
	// Bound is how long after a send ended a refund may still be made, as Assumed
	// assumes: Stripe promises none. 0 is an hour.
	Bound   time.Duration
	Assumed string // who assumes the bound, for the receipt; "" is "the operator"
	// Lag is how long a refund may stay out of lists, which Stripe doesn't say; 0 is
	// a minute.
	Lag time.Duration
}

// What Stripe keeps of an idempotency key: it may be pruned when it is 24 hours
// old ("Idempotent requests"). The margin covers clocks and late landings.
const (
	keyWindow = 24 * time.Hour
	keyMargin = 2 * time.Hour
)

// Capabilities are what is declared of Stripe. The landing bound is no promise of
// Stripe's and not the client's timeout.
func (t Target) Capabilities() protocol.Capabilities {
	c := protocol.Capabilities{
		ClientTimeout: t.Client.Timeout,
		DedupWindow:   keyWindow, DedupMargin: keyMargin,
		Lookup: true, LookupLag: t.Lag,
		LandingBound: t.Bound, BoundAssumed: t.Assumed,
	}
	if c.LookupLag == 0 {
		c.LookupLag = time.Minute
	}
	if c.LandingBound == 0 {
		c.LandingBound = time.Hour
	}
	if c.BoundAssumed == "" {
		c.BoundAssumed = "the operator"
	}
	return c
}

func payloadOf(r protocol.Request) (Payload, error) {
	var p Payload
	d := json.NewDecoder(bytes.NewReader(r.Payload))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return p, fmt.Errorf("stripe: the payload is no refund: %w", err)
	}
	if _, err := d.Token(); err != io.EOF || p.Amount < 1 || p.PaymentIntent == "" || p.Currency == "" || p.Case == "" {
		return p, fmt.Errorf("stripe: the payload is no refund: it needs amount, case, currency and payment_intent")
	}
	return p, nil
}

// Prepare connects.
func (t Target) Prepare(ctx context.Context, r protocol.Request) (protocol.Attempt, error) {
	p, err := payloadOf(r)
	if err != nil {
		return unfit{err}, nil
	}
	prepared, err := t.Client.Prepare(ctx)
	if err != nil {
		return nil, err
	}
	return &attempt{prepared, r, p}, nil
}

// unfit is an attempt at what Stripe has no request for.
type unfit struct{ why error }

func (u unfit) Send(context.Context, protocol.Envelope) protocol.Answer {
	return protocol.Answer{Outcome: protocol.Rejected, Reason: u.why.Error()}
}

func (unfit) Close() error { return nil }

type attempt struct {
	prepared *Prepared
	request  protocol.Request
	payload  Payload
}

// Send sends the refund with parameters that are the same in every attempt:
// metadata is compared with the key like everything else. The fencing token has
// no place among them, since it changes, and stays at home.
func (a *attempt) Send(ctx context.Context, e protocol.Envelope) protocol.Answer {
	effect := a.request.Effect.String()
	return Classify(a.prepared.Refund(ctx, Refund{
		PaymentIntent: a.payload.PaymentIntent,
		Amount:        a.payload.Amount,
		Metadata: map[string]string{
			MetaEffect: effect, MetaRequest: a.request.Request, MetaCase: a.payload.Case, MetaAnchor: e.Anchor.String(),
		},
	}, effect))
}

func (a *attempt) Close() error { return a.prepared.Close() }

// Classify says what a reply means by the rows of the submit table. Stripe's
// pages are named where they say so.
//
//   - 2xx is done, whatever state the refund is in (S15): a refund that failed or
//     waits is one that Stripe made.
//   - 409, 5xx, 408 and no answer leave it open (S18). A 5xx says nothing of the
//     outcome ("Advanced error handling"), a 409 that a first request runs.
//   - 401, 403 and 429 are answered before anything is done, on a replay too, and
//     may be gone next time (S17). They speak of their own request only.
//   - 400, 402 and 404 are final, since the key keeps them (S16). So is a key that
//     was first used with other parameters: under this key this is never done.
func Classify(r Reply) protocol.Answer {
	a := protocol.Answer{Result: r.Body, Reason: r.Reason, Replayed: r.Replayed && r.Status >= 400}
	switch {
	case r.Outcome == wire.NotSent:
		a.Outcome = protocol.NotSent
	case r.Outcome != wire.Answered:
		a.Outcome = protocol.Unknown
	case r.Status/100 == 2:
		a.Outcome = protocol.Done
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden, r.Status == http.StatusTooManyRequests:
		a.Outcome = protocol.NotExecuted
	case r.Status == http.StatusBadRequest, r.Status == http.StatusPaymentRequired, r.Status == http.StatusNotFound:
		a.Outcome = protocol.Rejected
	default:
		a.Outcome = protocol.Unknown
	}
	return a
}

// Lookup looks for the effect id in the metadata of all refunds of the payment.
// Whoever holds a key of the account can change that metadata later: a refund
// whose id was edited away is not found.
func (t Target) Lookup(ctx context.Context, r protocol.Request) (protocol.Finding, error) {
	want, err := payloadOf(r)
	if err != nil {
		return protocol.Finding{}, err
	}
	found, err := t.Client.Find(ctx, want.PaymentIntent, r.Effect.String())
	if err != nil || len(found) == 0 {
		return protocol.Finding{}, err
	}
	same := len(found) == 1 && found[0].Amount == want.Amount && string(found[0].Currency) == want.Currency && found[0].Metadata[MetaCase] == want.Case
	result, err := json.Marshal(evidenceOf(found))
	return protocol.Finding{Landed: true, Same: same, Result: result}, err
}

// Find returns the refunds of a payment that carry an effect, in every state.
func (c *Client) Find(ctx context.Context, intent, effect string) ([]*api.Refund, error) {
	all, err := c.Refunds(ctx, intent)
	if err != nil {
		return nil, err
	}
	var found []*api.Refund
	for _, r := range all {
		if r.Metadata[MetaEffect] == effect {
			found = append(found, r)
		}
	}
	return found, nil
}

// found is a refund as evidence.
type found struct {
	ID            string            `json:"id"`
	Amount        int64             `json:"amount"`
	Currency      string            `json:"currency"`
	Status        string            `json:"status"`
	FailureReason string            `json:"failure_reason,omitempty"`
	Created       int64             `json:"created"`
	Metadata      map[string]string `json:"metadata"`
}

func evidenceOf(refunds []*api.Refund) (list []found) {
	for _, r := range refunds {
		list = append(list, found{r.ID, r.Amount, string(r.Currency), string(r.Status), string(r.FailureReason), r.Created, r.Metadata})
	}
	return list
}

// Names of premises that Observe reads.
const (
	PremiseStatus   = "status"   // of the charge: "succeeded"
	PremisePaid     = "paid"     // its amount
	PremiseCurrency = "currency" // its currency
	PremiseDisputed = "disputed" // whether the cardholder objected
	PremiseRefunded = "refunded" // what other effects and people refunded of it
)

// UnderThisCase, as Whose of PremiseRefunded, counts the refunds of the effect's
// own case, and those that name no case: a refund made in the dashboard has none,
// and may be for any.
const UnderThisCase = "others under this case"

// Observe reads one premise.
func (t Target) Observe(ctx context.Context, p protocol.Premise, r protocol.Request) (json.RawMessage, error) {
	about, err := payloadOf(r)
	if err != nil {
		return nil, err
	}
	if p.Name == PremiseRefunded {
		all, err := t.Client.Refunds(ctx, about.PaymentIntent)
		if err != nil {
			return nil, err
		}
		whose := about.Case
		if p.Whose != UnderThisCase {
			whose = ""
		}
		return json.Marshal(Others(all, whose, r.Effect.String()))
	}
	f, err := t.Client.charge(ctx, about.PaymentIntent)
	if err != nil {
		return nil, err
	}
	switch p.Name {
	case PremiseStatus:
		return json.Marshal(f.Status)
	case PremisePaid:
		return json.Marshal(f.Paid)
	case PremiseCurrency:
		return json.Marshal(f.Currency)
	case PremiseDisputed:
		return json.Marshal(f.Disputed)
	}
	return nil, fmt.Errorf("stripe: a payment has no fact called %q", p.Name)
}

// Facts are a payment as seen from a case and an effect.
type Facts struct {
	Status   string // of the charge; "" where there is none
	Paid     int64
	Currency string
	Disputed bool
	Refunded int64 // refunds that neither failed nor were cancelled
	Others   int64 // of these, what counts against the case and is not the effect's own
}

// Facts reads them. An empty effect leaves none out.
func (c *Client) Facts(ctx context.Context, intent, caseID, effect string) (Facts, error) {
	f, err := c.charge(ctx, intent)
	if err != nil {
		return f, err
	}
	all, err := c.Refunds(ctx, intent)
	if err != nil {
		return f, err
	}
	f.Refunded, f.Others = Others(all, "", ""), Others(all, caseID, effect)
	return f, nil
}

func (c *Client) charge(ctx context.Context, intent string) (Facts, error) {
	p, err := c.Payment(ctx, intent)
	if err != nil {
		return Facts{}, err
	}
	f := Facts{Paid: p.AmountReceived, Currency: string(p.Currency)}
	if p.LatestCharge != nil {
		f.Status, f.Disputed = string(p.LatestCharge.Status), p.LatestCharge.Disputed
	}
	return f, nil
}

// Others sums refunds that neither failed nor were cancelled and don't carry the
// effect: those of a case with those of none, or where caseID is empty, all.
func Others(refunds []*api.Refund, caseID, effect string) (sum int64) {
	for _, r := range refunds {
		gone := r.Status == api.RefundStatusFailed || r.Status == api.RefundStatusCanceled
		own := effect != "" && r.Metadata[MetaEffect] == effect
		of := r.Metadata[MetaCase]
		if !gone && !own && (caseID == "" || of == caseID || of == "") {
			sum += r.Amount
		}
	}
	return sum
}
