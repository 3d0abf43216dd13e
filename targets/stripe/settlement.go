package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	api "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/webhook"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/clock"
)

// Settlement is what became of an effect's money after it was committed, as
// Stripe said when it was read. It is evidence beside a receipt and decides
// nothing: a refund that fails later is not sent again.
type Settlement struct {
	ReadAt      time.Time `json:"read_at"`
	Refunds     []found   `json:"refunds"` // of the effect
	Disputes    []Dispute `json:"disputes,omitempty"`
	Arrived     int64     `json:"arrived"`      // of the effect's refunds, in the smallest unit
	Waiting     int64     `json:"waiting"`      // pending, or waiting for the customer
	Returned    int64     `json:"returned"`     // failed or cancelled: back in the balance
	ChargedBack int64     `json:"charged_back"` // of the payment, by disputes that are not won or mere inquiries
}

// Dispute is one of the payment.
type Dispute struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"`
	Status string `json:"status"`
}

// Settle reads what became of an effect. It needs no webhook.
func (t Target) Settle(ctx context.Context, r protocol.Request) (Settlement, error) {
	p, err := payloadOf(r)
	if err != nil {
		return Settlement{}, err
	}
	return t.Client.Settle(ctx, p.PaymentIntent, r.Effect.String())
}

// Settle reads what became of the refunds of a payment that carry an effect.
func (c *Client) Settle(ctx context.Context, intent, effect string) (Settlement, error) {
	s := Settlement{ReadAt: c.Clock.Now().UTC().Truncate(time.Second)}
	refunds, err := c.Find(ctx, intent, effect)
	if err != nil {
		return s, err
	}
	disputes, err := c.Disputes(ctx, intent)
	if err != nil {
		return s, err
	}
	s.Refunds = evidenceOf(refunds)
	for _, r := range refunds {
		switch r.Status {
		case api.RefundStatusSucceeded:
			s.Arrived += r.Amount
		case api.RefundStatusFailed, api.RefundStatusCanceled:
			s.Returned += r.Amount
		default:
			s.Waiting += r.Amount
		}
	}
	for _, d := range disputes {
		s.Disputes = append(s.Disputes, Dispute{d.ID, d.Amount, string(d.Status)})
		if d.Status != api.DisputeStatusWon && !strings.HasPrefix(string(d.Status), "warning_") {
			s.ChargedBack += d.Amount
		}
	}
	return s, nil
}

// String is the settlement in one sentence for each thing that happened.
func (s Settlement) String() string {
	if len(s.Refunds) == 0 && len(s.Disputes) == 0 {
		return "no refund of this effect, no dispute"
	}
	var parts []string
	for _, r := range s.Refunds {
		part := fmt.Sprintf("%s of %s %s", r.ID, amount(r.Amount), r.Status)
		if r.FailureReason != "" {
			part += " (" + r.FailureReason + ")"
		}
		parts = append(parts, part)
	}
	for _, d := range s.Disputes {
		parts = append(parts, fmt.Sprintf("dispute %s over %s %s", d.ID, amount(d.Amount), d.Status))
	}
	return strings.Join(parts, "; ")
}

// Money is where the effect's money is, in words.
func (s Settlement) Money() string {
	words := amount(s.Arrived) + " arrived"
	for _, p := range []struct {
		sum  int64
		what string
	}{{s.Waiting, "waiting"}, {s.Returned, "back in the balance"}, {s.ChargedBack, "charged back"}} {
		if p.sum > 0 {
			words += ", " + amount(p.sum) + " " + p.what
		}
	}
	return words
}

// amount prints cents; the currency is the payment's.
func amount(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// Beside is a receipt with the settlement under it. What the receipt says of the
// commit stands, whatever became of the money.
func Beside(r protocol.Receipt, s Settlement) string {
	return fmt.Sprintf("%s%-12s %s\n%-12s %s, read at %s\n", r, "settlement", s.Money(), "", s, s.ReadAt.Format(time.RFC3339))
}

// Webhooks takes Stripe's notices. A notice says what to read again; it changes
// nothing by itself, so order and repeats don't matter. It is safe for use by
// several goroutines.
type Webhooks struct {
	Secret string      // whsec_…
	Clock  clock.Clock // nil is clock.System

	mu   sync.Mutex
	seen map[string]bool
}

// Tolerance is how far a notice's stamp may be from the clock, to either side.
// Stripe's library lets a stamp from the future pass.
const Tolerance = 5 * time.Minute

// ErrWebhook means that a notice can't be trusted or read. Nothing was noted.
var ErrWebhook = errors.New("stripe: this is no webhook of this endpoint; answer 400")

// Notice is a verified webhook.
type Notice struct {
	Event         string
	Type          string
	Object        string // id of what it is about
	PaymentIntent string // to be read again; "" where it names none
	Again         bool   // this event was taken before
}

// Accept verifies a notice with Stripe's library and says what to read. Two
// events for one change are two notices: reading twice does no harm.
func (w *Webhooks) Accept(payload []byte, signature string) (Notice, error) {
	// The library would measure the stamp's age by the machine's clock.
	event, err := webhook.ConstructEventWithOptions(payload, signature, w.Secret, webhook.ConstructEventOptions{IgnoreTolerance: true})
	if err != nil {
		return Notice{}, fmt.Errorf("%w: %w", ErrWebhook, err)
	}
	now := clock.System
	if w.Clock != nil {
		now = w.Clock
	}
	if age := now.Now().Sub(stamp(signature)); age > Tolerance || age < -Tolerance {
		return Notice{}, fmt.Errorf("%w: it is stamped %v from now", ErrWebhook, age)
	}
	if event.Livemode || event.Data == nil {
		return Notice{}, fmt.Errorf("%w: it is live, or empty", ErrWebhook)
	}
	var about struct {
		ID            string `json:"id"`
		Object        string `json:"object"`
		PaymentIntent string `json:"payment_intent"`
	}
	if err := json.Unmarshal(event.Data.Raw, &about); err != nil {
		return Notice{}, fmt.Errorf("%w: %w", ErrWebhook, err)
	}
	n := Notice{Event: event.ID, Type: string(event.Type), Object: about.ID, PaymentIntent: about.PaymentIntent}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	n.Again = w.seen[event.ID]
	w.seen[event.ID] = true
	return n, nil
}

// stamp is the time in a signature header that the library has accepted. Of
// several it is the last, which is the one that the library signs with.
func stamp(signature string) (last time.Time) {
	for pair := range strings.SplitSeq(signature, ",") {
		if text, ok := strings.CutPrefix(pair, "t="); ok {
			if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
				last = time.Unix(seconds, 0)
			}
		}
	}
	return last
}
