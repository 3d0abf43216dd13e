package emulator

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// refund is one refund of a payment.
type refund struct {
	id       string
	payment  *payment
	amount   int64
	reason   string
	metadata map[string]string
	status   string // "pending", "succeeded", "failed", "requires_action" or "canceled"
	failure  string // why it failed
	created  int64
	at       time.Duration
}

// refundObject is a Refund ("The Refund object").
type refundObject struct {
	ID                        string            `json:"id"`
	Object                    string            `json:"object"`
	Amount                    int64             `json:"amount"`
	BalanceTransaction        *string           `json:"balance_transaction"`
	Charge                    string            `json:"charge"`
	Created                   int64             `json:"created"`
	Currency                  string            `json:"currency"`
	FailureBalanceTransaction string            `json:"failure_balance_transaction,omitempty"`
	FailureReason             string            `json:"failure_reason,omitempty"`
	Metadata                  map[string]string `json:"metadata"`
	PaymentIntent             string            `json:"payment_intent"`
	Reason                    *string           `json:"reason"`
	ReceiptNumber             *string           `json:"receipt_number"`
	SourceTransferReversal    *string           `json:"source_transfer_reversal"`
	Status                    string            `json:"status"`
	TransferReversal          *string           `json:"transfer_reversal"`
}

func (r *refund) object() *refundObject {
	transaction := "txn_" + strings.TrimPrefix(r.id, "re_")
	o := &refundObject{
		ID: r.id, Object: "refund", Amount: r.amount, BalanceTransaction: &transaction, Charge: r.payment.charge, Created: r.created,
		Currency: r.payment.currency, FailureReason: r.failure, Metadata: r.metadata, PaymentIntent: r.payment.intent, Status: r.status,
	}
	if r.reason != "" {
		o.Reason = &r.reason
	}
	if r.status == "failed" {
		o.FailureBalanceTransaction = transaction + "_returned" // the money is back in the balance ("Refund and cancel payments")
	}
	return o
}

// attempt is one request for a refund on its way through the service.
type attempt struct {
	*call
	history.Request
	due    time.Duration
	stop   func()        // of the timer that applies it
	gone   bool          // its client died at a point of this request
	silent bool          // its answer never leaves
	answer *answer       // once there is one
	wake   func()        // ends the wait of its handler
	left   chan struct{} // closed when the handler has left its wait
}

// handleRefund reads, accepts, applies and answers. A client that dies before
// its request is accepted takes it along; later its death changes nothing of
// what becomes of it.
//
// Events are recorded before Pass, before the answer is written, or by a timer
// of the host's, and never after the client can go on: their order doesn't
// depend on luck.
func (s *Server) handleRefund(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler) // half a request is none
	}
	s.mu.Lock()
	s.number++
	a := &attempt{call: s.enter(req), stop: func() {}}
	a.number = s.number
	s.visits[len(s.visits)-1].Number = s.number
	unreadable := a.read(body)
	a.Request = history.Request{
		Order: a.form.Get("payment_intent"), Key: a.key, Number: s.number, Case: a.form.Get("metadata[" + s.options.Case + "]"),
		Effect: a.form.Get("metadata[" + s.options.Effect + "]"), Anchor: a.form.Get("metadata[" + s.options.Anchor + "]"),
	}
	if p := s.payment(a.form.Get("charge")); p != nil {
		a.Request.Order = p.intent
	}
	a.Request.Amount, _, _ = a.whole("amount")
	s.host.Record(history.Requested, a.subject(), a.Request)
	s.mu.Unlock()
	if !s.pass(RequestRead, a) {
		panic(http.ErrAbortHandler)
	}

	s.mu.Lock()
	lost := s.meets(LoseRequest)
	var no *answer
	if !lost {
		no = s.admitRefund(a, unreadable)
	}
	s.mu.Unlock()
	switch {
	case lost:
	case no != nil:
		s.settle(a, no)
	default:
		s.accept(a)
	}
	s.await(req.Context(), a)

	s.mu.Lock()
	defer s.mu.Unlock()
	if a.answer == nil || a.silent {
		panic(http.ErrAbortHandler)
	}
	s.write(w, a.call, a.answer)
}

// subject is what events about the request are filed under.
func (a *attempt) subject() string {
	if a.Effect != "" {
		return a.Effect
	}
	return a.Order
}

// neitherGiven is said where a refund names no payment ("Create a refund").
const neitherGiven = "One of the following params should be provided for this request: payment_intent or charge."

// admitRefund decides whether a request is accepted: nil, or the answer it gets
// instead. The lock is held.
func (s *Server) admitRefund(a *attempt, unreadable *answer) *answer {
	if no := s.admit(a.call, "refund_write"); no != nil {
		return no
	}
	if unreadable != nil {
		return unreadable
	}
	if no := s.known(a.call); no != nil {
		return no
	}
	if no := a.check("POST /v1/refunds"); no != nil {
		return no
	}
	if _, _, bad := a.whole("amount"); bad != nil {
		return bad
	}
	if a.form.Get("payment_intent") == "" && a.form.Get("charge") == "" {
		return invalid("", "", "%s", neitherGiven)
	}
	if a.key != "" {
		s.take(a.call)
	}
	a.due = s.host.Mono()
	s.queue = append(s.queue, a)
	return nil
}

// accept lets a request that stands in the queue be applied. The timer is armed
// before the point is passed: where the client dies at it, the refund is made
// when the clock moves next.
func (s *Server) accept(a *attempt) {
	s.mu.Lock()
	late := s.postpone(a)
	s.arm(a)
	s.mu.Unlock()
	alive := s.pass(Accepted, a)

	s.mu.Lock()
	if !late && s.postpone(a) {
		late = true
		s.arm(a)
	}
	now := alive && !late
	if now {
		a.stop()
	}
	s.mu.Unlock()
	if now {
		s.land(a)
	}
}

// postpone gives a the delay that is planned for the next refund. The lock is
// held.
func (s *Server) postpone(a *attempt) bool {
	if !s.meets(delayed) {
		return false
	}
	a.due = s.host.Mono() + s.delay
	return true
}

// arm schedules a queued request. The lock is held.
func (s *Server) arm(a *attempt) {
	a.stop()
	a.stop = s.host.After(max(0, a.due-s.host.Mono()), fmt.Sprintf("landing of request %06d", a.Number), func() { s.land(a) })
}

// land applies a request that is still in the queue and settles its answer.
func (s *Server) land(a *attempt) {
	s.mu.Lock()
	i := slices.Index(s.queue, a)
	if i < 0 || s.host.Mono() < a.due {
		s.mu.Unlock()
		return
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	said, landed := s.apply(a)
	s.store(a.call, said)
	s.mu.Unlock()
	if landed {
		s.pass(Applied, a)
	}
	s.settle(a, said)
}

// apply makes the refund or says why not, judged as things are now. The lock is
// held.
func (s *Server) apply(a *attempt) (said *answer, landed bool) {
	if s.meets(ServerError) {
		return broken(), false
	}
	p, no := s.refundable(a)
	if no != nil {
		return no, false
	}
	amount, given, _ := a.whole("amount")
	if !given {
		amount = p.rest() // "Create a refund": the default is what remains
	}
	r := s.newRefund(p, amount, a.form.Get("reason"), a.metadata(nil), a.call)
	s.host.Record(history.Applied, a.subject(), history.Landing{
		ID: r.id, Order: p.intent, Case: a.Case, Amount: amount, Effect: a.Effect, Request: a.Number,
	})
	if s.meets(ErrorAfterApply) {
		return broken(), true // a 500 says nothing of what happened ("Advanced error handling")
	}
	return ok(r.object()), true
}

// refundable finds the payment and says why it can't be refunded by so much.
// What has been refunded whole is said before the amount is looked at. The lock
// is held.
func (s *Server) refundable(a *attempt) (*payment, *answer) {
	id := a.form.Get("charge")
	if id != "" {
		if p := s.payment(id); p == nil || p.charge != id || !p.paid {
			return nil, missing("id", "charge", id)
		}
	} else {
		id = a.form.Get("payment_intent")
		p := s.payment(id)
		if p == nil || p.intent != id {
			return nil, missing("payment_intent", "payment_intent", id)
		}
		if !p.paid {
			return nil, invalid("", "", "This PaymentIntent (%s) does not have a successful charge to refund.", id)
		}
	}
	p := s.payment(id)
	amount, _, _ := a.whole("amount")
	switch {
	case p.chargedBack(): // "Error codes", charge_disputed; an inquiry can be refunded ("The Dispute object", is_charge_refundable)
		return nil, invalid("charge_disputed", "", "Charge %s has been charged back; cannot issue a refund.", p.charge)
	case p.rest() == 0: // "Error codes", charge_already_refunded
		return nil, invalid("charge_already_refunded", "", "Charge %s has already been refunded.", p.charge)
	case amount > p.amount && p.rest() == p.amount:
		return nil, invalid("", "amount", "Refund amount (%s) is greater than charge amount (%s)", money(amount), money(p.amount))
	case amount > p.rest(): // "Create a refund": errors when more is asked than is left
		return nil, invalid("", "amount", "Refund amount (%s) is greater than unrefunded amount on charge (%s)", money(amount), money(p.rest()))
	}
	return p, nil
}

func money(cents int64) string { return fmt.Sprintf("$%d.%02d", cents/100, cents%100) }

// newRefund makes a refund. What becomes of it is the test card's ("Testing",
// refunds). The lock is held.
func (s *Server) newRefund(p *payment, amount int64, reason string, metadata map[string]string, by *call) *refund {
	r := &refund{
		id: s.newID("re"), payment: p, amount: amount, reason: reason, metadata: metadata, status: "succeeded",
		created: s.host.Now().Unix(), at: s.host.Mono(),
	}
	s.refunds, p.refunds = append(s.refunds, r), append(p.refunds, r)
	switch {
	case s.meets(Declined):
		r.status, r.failure = "failed", "declined"
	case p.method == "pm_card_pendingRefund":
		r.status = "pending"
		s.later(r, "succeeded", "")
	case p.method == "pm_card_refundFail":
		s.later(r, "failed", "expired_or_canceled_card")
	}
	if r.status == "succeeded" {
		s.emit("charge.refunded", p.chargeObject(), nil, by)
	}
	if s.options.NewerEvents {
		s.emit("refund.created", r.object(), nil, by)
	}
	return r
}

// later changes a refund's status when its time has come. The lock is held.
func (s *Server) later(r *refund, status, why string) {
	s.host.After(s.options.Settles, "settlement of "+r.id, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.status == "succeeded" || r.status == "pending" {
			s.turn(r, status, why, nil)
		}
	})
}

// turn changes a refund's status and sends what belongs to it ("Types of
// events"). The lock is held.
func (s *Server) turn(r *refund, status, why string, by *call) {
	before := map[string]any{"status": r.status}
	r.status, r.failure = status, why
	s.emit("charge.refund.updated", r.object(), before, by)
	if status == "succeeded" {
		s.emit("charge.refunded", r.payment.chargeObject(), nil, by)
	}
	if s.options.NewerEvents {
		s.emit("refund.updated", r.object(), before, by)
		if status == "failed" {
			s.emit("refund.failed", r.object(), before, by)
		}
	}
}

// pass passes a point and notices whether the client is dead.
func (s *Server) pass(p trace.Point, a *attempt) (alive bool) {
	alive = s.host.Pass(p, a.subject())
	s.mu.Lock()
	defer s.mu.Unlock()
	a.gone = a.gone || !alive
	return !a.gone
}

// settle records the answer and wakes the handler. To a dead client there is
// none, and no point is passed.
func (s *Server) settle(a *attempt, said *answer) {
	s.mu.Lock()
	gone := a.gone
	s.mu.Unlock()
	if gone || !s.pass(AnswerReady, a) {
		return
	}
	s.mu.Lock()
	a.answer, a.silent = said, s.meets(DropAnswer)
	s.host.Record(history.Answered, a.subject(), history.Reply{Request: a.Number, Code: said.code, Word: said.word(), Withheld: a.silent})
	wake, left := a.wake, a.left
	silent := a.silent
	s.mu.Unlock()
	if wake != nil && !silent {
		wake()
		<-left
	}
}

// await lets a client wait until its answer is there or ctx ends. It returns at
// once where there is nothing to wait for.
func (s *Server) await(ctx context.Context, a *attempt) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left := make(chan struct{})
	defer close(left)
	s.mu.Lock()
	if a.answer != nil && !a.silent || a.gone {
		s.mu.Unlock()
		return
	}
	a.wake, a.left = cancel, left
	s.mu.Unlock()
	s.host.Withhold(ctx)
}

// updateRefund changes metadata, which is all of a refund that can be changed
// ("Update a refund"). Anybody with the key can do it.
func (s *Server) updateRefund(c *call) *answer {
	r := s.refund(c.request.PathValue("id"))
	if r == nil {
		return missing("id", "refund", c.request.PathValue("id"))
	}
	before := map[string]any{"metadata": r.metadata}
	r.metadata = c.metadata(r.metadata)
	s.emit("charge.refund.updated", r.object(), before, c)
	return ok(r.object())
}

// cancelRefund cancels what waits for the customer ("Cancel a refund").
func (s *Server) cancelRefund(c *call) *answer { return s.end(c, "canceled", "") }

// expireRefund lets such a refund fail, for tests ("Expire a pending refund").
func (s *Server) expireRefund(c *call) *answer { return s.end(c, "failed", "expired_or_canceled_card") }

func (s *Server) end(c *call, status, why string) *answer {
	r := s.refund(c.request.PathValue("id"))
	switch {
	case r == nil:
		return missing("id", "refund", c.request.PathValue("id"))
	case r.status != "requires_action":
		return invalid("", "", "Canceling this refund is unsupported.")
	}
	s.turn(r, status, why, c)
	return ok(r.object())
}

// refund finds one. The lock is held.
func (s *Server) refund(id string) *refund {
	i := slices.IndexFunc(s.refunds, func(r *refund) bool { return r.id == id })
	if i < 0 {
		return nil
	}
	return s.refunds[i]
}

func (s *Server) getRefund(c *call) *answer {
	r := s.refund(c.request.PathValue("id"))
	if r == nil {
		return missing("id", "refund", c.request.PathValue("id"))
	}
	return ok(r.object())
}
