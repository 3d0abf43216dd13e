package emulator

import (
	"slices"
	"strings"
)

// payment is a payment intent and its one charge.
type payment struct {
	intent, charge string
	amount         int64
	currency       string
	method         string
	metadata       map[string]string
	created        int64
	paid           bool // confirmed; the test cards here never decline a payment
	refunds        []*refund
	disputed       *dispute
}

// rest is what can still be refunded: what is pending is spoken for.
func (p *payment) rest() int64 {
	rest := p.amount
	for _, r := range p.refunds {
		if r.status != "failed" && r.status != "canceled" {
			rest -= r.amount
		}
	}
	return rest
}

// refunded is amount_refunded. That a pending refund isn't in it yet, and that a
// failed one falls out again, is not on any page.
func (p *payment) refunded() (sum int64) {
	for _, r := range p.refunds {
		if r.status == "succeeded" {
			sum += r.amount
		}
	}
	return sum
}

func (p *payment) chargedBack() bool {
	return p.disputed != nil && !strings.HasPrefix(p.disputed.status, "warning_") && p.disputed.status != "won"
}

// intentObject is a PaymentIntent ("The PaymentIntent object"), as far as a
// refund needs it.
type intentObject struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	Amount             int64             `json:"amount"`
	AmountReceived     int64             `json:"amount_received"`
	CaptureMethod      string            `json:"capture_method"`
	ConfirmationMethod string            `json:"confirmation_method"`
	Created            int64             `json:"created"`
	Currency           string            `json:"currency"`
	LatestCharge       any               `json:"latest_charge"` // id, or the charge where it is expanded
	Livemode           bool              `json:"livemode"`
	Metadata           map[string]string `json:"metadata"`
	PaymentMethod      *string           `json:"payment_method"`
	PaymentMethodTypes []string          `json:"payment_method_types"`
	Status             string            `json:"status"`
}

func (p *payment) intentObject(expanded bool) *intentObject {
	o := &intentObject{
		ID: p.intent, Object: "payment_intent", Amount: p.amount, CaptureMethod: "automatic", ConfirmationMethod: "automatic",
		Created: p.created, Currency: p.currency, Metadata: p.metadata, PaymentMethodTypes: []string{"card"}, Status: "requires_payment_method",
	}
	if p.method != "" {
		o.PaymentMethod, o.Status = &p.method, "requires_confirmation"
	}
	if p.paid {
		o.AmountReceived, o.Status, o.LatestCharge = p.amount, "succeeded", p.charge
		if expanded {
			o.LatestCharge = p.chargeObject()
		}
	}
	return o
}

// chargeObject is a Charge ("The Charge object"). Since 2022-11-15 it carries
// its refunds only where they are expanded, which the emulator doesn't do.
type chargeObject struct {
	ID             string            `json:"id"`
	Object         string            `json:"object"`
	Amount         int64             `json:"amount"`
	AmountCaptured int64             `json:"amount_captured"`
	AmountRefunded int64             `json:"amount_refunded"`
	BillingDetails map[string]any    `json:"billing_details"`
	Captured       bool              `json:"captured"`
	Created        int64             `json:"created"`
	Currency       string            `json:"currency"`
	Disputed       bool              `json:"disputed"`
	Livemode       bool              `json:"livemode"`
	Metadata       map[string]string `json:"metadata"`
	Paid           bool              `json:"paid"`
	PaymentIntent  string            `json:"payment_intent"`
	PaymentMethod  string            `json:"payment_method"`
	Refunded       bool              `json:"refunded"` // all of it
	Status         string            `json:"status"`
}

func (p *payment) chargeObject() *chargeObject {
	return &chargeObject{
		ID: p.charge, Object: "charge", Amount: p.amount, AmountCaptured: p.amount, AmountRefunded: p.refunded(),
		BillingDetails: map[string]any{}, Captured: true, Created: p.created, Currency: p.currency, Disputed: p.disputed != nil,
		Metadata: p.metadata, Paid: true, PaymentIntent: p.intent, PaymentMethod: p.method,
		Refunded: p.refunded() == p.amount, Status: "succeeded",
	}
}

// payment finds one by the id of its intent or of its charge. The lock is held.
func (s *Server) payment(id string) *payment {
	for _, p := range s.payments {
		if id != "" && (p.intent == id || p.charge == id) {
			return p
		}
	}
	return nil
}

func (s *Server) newPayment(amount int64, currency, method string, metadata map[string]string) *payment {
	if metadata == nil {
		metadata = map[string]string{}
	}
	p := &payment{
		intent: s.newID("pi"), charge: s.newID("ch"), amount: amount, currency: currency, method: method,
		metadata: metadata, created: s.host.Now().Unix(),
	}
	s.payments = append(s.payments, p)
	return p
}

// charge takes the money. Two of the test cards are disputed right away
// ("Testing"). The lock is held.
func (s *Server) charge(p *payment, by *call) {
	p.paid = true
	s.emit("charge.succeeded", p.chargeObject(), nil, by)
	later := map[string]string{"pm_card_createDispute": "needs_response", "pm_card_createDisputeInquiry": "warning_needs_response"}[p.method]
	if later != "" {
		s.host.After(s.options.Settles, "dispute of "+p.intent, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.dispute(p, later)
		})
	}
}

// methods are the payment methods of "Testing" that the emulator knows.
var methods = []string{
	"pm_card_visa", "pm_card_bypassPending", "pm_card_pendingRefund", "pm_card_refundFail",
	"pm_card_createDispute", "pm_card_createDisputeInquiry",
}

// createPayment makes a payment intent; with confirm it is paid at once.
func (s *Server) createPayment(c *call) *answer {
	amount, given, bad := c.whole("amount")
	currency, method := c.form.Get("currency"), c.form.Get("payment_method")
	switch {
	case bad != nil:
		return bad
	case !given:
		return invalid("parameter_missing", "amount", "Missing required param: amount.")
	case currency == "":
		return invalid("parameter_missing", "currency", "Missing required param: currency.")
	case method != "" && !slices.Contains(methods, method):
		return missing("payment_method", "PaymentMethod", method)
	case c.form.Get("confirm") == "true" && method == "":
		return invalid("parameter_missing", "payment_method", "You cannot confirm this PaymentIntent because it's missing a payment method.")
	}
	p := s.newPayment(amount, currency, method, c.metadata(nil))
	if c.form.Get("confirm") == "true" {
		s.charge(p, c)
	}
	s.changed(p)
	return ok(p.intentObject(c.expands("latest_charge")))
}

func (s *Server) getPayment(c *call) *answer {
	id := c.request.PathValue("id")
	p := s.payment(id)
	if p == nil || p.intent != id {
		return missing("intent", "payment_intent", id)
	}
	return ok(p.intentObject(c.expands("latest_charge")))
}

func (s *Server) getCharge(c *call) *answer {
	id := c.request.PathValue("id")
	p := s.payment(id)
	if p == nil || p.charge != id || !p.paid {
		return missing("id", "charge", id)
	}
	return ok(p.chargeObject())
}
