package emulator

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// dispute is a cardholder's objection to a payment.
type dispute struct {
	id      string
	payment *payment
	status  string
	created int64
}

// disputeObject is a Dispute ("The Dispute object").
type disputeObject struct {
	ID                  string            `json:"id"`
	Object              string            `json:"object"`
	Amount              int64             `json:"amount"`
	BalanceTransactions []any             `json:"balance_transactions"`
	Charge              string            `json:"charge"`
	Created             int64             `json:"created"`
	Currency            string            `json:"currency"`
	Evidence            map[string]any    `json:"evidence"`
	EvidenceDetails     map[string]any    `json:"evidence_details"`
	IsChargeRefundable  bool              `json:"is_charge_refundable"`
	Livemode            bool              `json:"livemode"`
	Metadata            map[string]string `json:"metadata"`
	PaymentIntent       string            `json:"payment_intent"`
	Reason              string            `json:"reason"`
	Status              string            `json:"status"`
}

func (d *dispute) object() *disputeObject {
	return &disputeObject{
		ID: d.id, Object: "dispute", Amount: d.payment.amount, BalanceTransactions: []any{}, Charge: d.payment.charge, Created: d.created,
		Currency: d.payment.currency, Evidence: map[string]any{}, EvidenceDetails: map[string]any{},
		IsChargeRefundable: !d.payment.chargedBack(), Metadata: map[string]string{}, PaymentIntent: d.payment.intent,
		Reason: "fraudulent", Status: d.status,
	}
}

// dispute opens one over the whole charge, also after a partial refund ("Dispute
// for full charge amount after a partial refund was issued"). Refunds that are
// pending fail ("The Refund object", failure_reason). The lock is held.
func (s *Server) dispute(p *payment, status string) {
	d := &dispute{id: s.newID("dp"), payment: p, status: status, created: s.host.Now().Unix()}
	s.disputes, p.disputed = append(s.disputes, d), d
	s.emit("charge.dispute.created", d.object(), nil, nil)
	if !p.chargedBack() {
		return
	}
	s.emit("charge.dispute.funds_withdrawn", d.object(), nil, nil)
	for _, r := range p.refunds {
		if r.status == "pending" {
			s.turn(r, "failed", "charge_for_pending_refund_disputed", nil)
		}
	}
	s.changed(p)
}

func (s *Server) getDispute(c *call) *answer {
	id := c.request.PathValue("id")
	for _, d := range s.disputes {
		if d.id == id {
			return ok(d.object())
		}
	}
	return missing("id", "dispute", id)
}

// event is an Event ("The Event object").
type event struct {
	ID              string       `json:"id"`
	Object          string       `json:"object"`
	APIVersion      string       `json:"api_version"`
	Created         int64        `json:"created"`
	Data            eventData    `json:"data"`
	Livemode        bool         `json:"livemode"`
	PendingWebhooks int          `json:"pending_webhooks"`
	Request         eventRequest `json:"request"`
	Type            string       `json:"type"`
}

type eventData struct {
	Object   json.RawMessage `json:"object"` // as it was then
	Previous map[string]any  `json:"previous_attributes,omitempty"`
}

// eventRequest names the request that caused the event, where one did.
type eventRequest struct {
	ID  *string `json:"id"`
	Key *string `json:"idempotency_key"`
}

// emit adds an event, with the request that caused it; nil where nobody asked.
// The lock is held.
func (s *Server) emit(kind string, object any, before map[string]any, by *call) {
	then, err := json.Marshal(object)
	if err != nil {
		panic(err) // every object is a type of this package
	}
	e := &event{
		ID: s.newID("evt"), Object: "event", APIVersion: Version, Created: s.host.Now().Unix(),
		Data: eventData{then, before}, PendingWebhooks: 1, Type: kind,
	}
	if by != nil {
		e.Request.ID = &by.id
		if by.key != "" {
			e.Request.Key = &by.key
		}
	}
	s.events = append(s.events, e)
	if s.options.Notify != nil {
		go s.options.Notify(s.deliver(e))
	}
}

func (s *Server) getEvent(c *call) *answer {
	id := c.request.PathValue("id")
	i := slices.IndexFunc(s.events, func(e *event) bool { return e.ID == id })
	if i < 0 {
		return missing("id", "event", id)
	}
	return ok(s.events[i])
}

// Delivery is one webhook as it would be posted.
type Delivery struct {
	Type    string
	Payload []byte
	Header  string // Stripe-Signature
}

// Deliveries are the webhooks of all events so far, in their order, signed now.
// Stripe promises neither that order nor that each comes once ("Receive Stripe
// events in your webhook endpoint"): whoever delivers them shuffles and repeats.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Delivery
	for _, e := range s.events {
		all = append(all, s.deliver(e))
	}
	return all
}

func (s *Server) deliver(e *event) Delivery {
	payload, err := json.Marshal(e)
	if err != nil {
		panic(err) // it is a type of this package
	}
	return Delivery{e.Type, payload, s.sign(payload)}
}

// sign is the Stripe-Signature header: HMAC-SHA256 over the time, a dot and the
// raw body ("Verify webhook signatures manually").
func (s *Server) sign(payload []byte) string {
	stamp := s.host.Now().Unix()
	mac := hmac.New(sha256.New, []byte(s.options.Secret))
	fmt.Fprintf(mac, "%d.%s", stamp, payload)
	return fmt.Sprintf("t=%d,v1=%s", stamp, hex.EncodeToString(mac.Sum(nil)))
}
