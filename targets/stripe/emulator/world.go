package emulator

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
)

// Fault is a way in which the service lets its client down.
type Fault string

const (
	LoseRequest     Fault = "lose-request"      // read and forgotten: no answer comes
	DropAnswer      Fault = "drop-answer"       // done, no answer comes
	ErrorAfterApply Fault = "error-after-apply" // done, answered with 500, which is stored
	ServerError     Fault = "server-error"      // nothing done, answered with 500, which is stored
	RateLimited     Fault = "rate-limited"      // 429 with Stripe-Rate-Limited-Reason
	LockTimeout     Fault = "lock-timeout"      // 429: somebody else holds the object
	Unauthorized    Fault = "unauthorized"      // 401
	EchoesKey       Fault = "echoes-key"        // a 401 prints the key, as Stripe never does
	Declined        Fault = "declined"          // the refund fails at once
	ListFails       Fault = "list-fails"        // 500 on a list of refunds
	SecondPageFails Fault = "second-page-fails" // 500 on a list that begins after an id
	delayed         Fault = "delayed"
)

// ErrWorld is an act of the world that the emulator can't do.
var ErrWorld = errors.New("emulator: no such act")

// Next lets the next n requests that come to the fault's place meet it; n below
// zero means all of them, 0 none.
func (s *Server) Next(f Fault, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[f] = n
}

// DelayNext lets the next n accepted refunds be made after d.
func (s *Server) DelayNext(d time.Duration, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
	s.faults[delayed] = n
}

// meets uses a fault up. The lock is held.
func (s *Server) meets(f Fault) bool {
	n := s.faults[f]
	if n > 0 {
		s.faults[f]--
	}
	return n != 0
}

// Pay makes a payment that succeeded, with a payment method of Stripe's test
// data, under a payment intent of the given id.
func (s *Server) Pay(intent string, amount int64, currency, method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.newPayment(amount, currency, method, nil)
	p.intent = intent
	s.charge(p, nil)
	s.changed(p)
}

// RefundByHand is a person's refund in the dashboard, which carries no metadata;
// caseID is what the person had in mind, for the history alone.
func (s *Server) RefundByHand(intent, caseID string, amount int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.payment(intent)
	switch {
	case p == nil:
		return fmt.Errorf("%w: there is no payment %q, make one first", ErrWorld, intent)
	case amount < 1 || amount > p.rest():
		return fmt.Errorf("%w: payment %q has %d left to refund, not %d", ErrWorld, intent, p.rest(), amount)
	}
	r := s.newRefund(p, amount, "", map[string]string{}, nil)
	s.host.Record(history.Applied, intent, history.Landing{ID: r.id, Order: intent, Case: caseID, Amount: amount})
	s.changed(p)
	return nil
}

// Chargeback is the cardholder's bank taking the whole charge back.
func (s *Server) Chargeback(intent string) error { return s.open(intent, "needs_response") }

// Inquiry is the bank asking first: the charge can still be refunded.
func (s *Server) Inquiry(intent string) error { return s.open(intent, "warning_needs_response") }

func (s *Server) open(intent, status string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.payment(intent)
	if p == nil {
		return fmt.Errorf("%w: there is no payment %q, make one first", ErrWorld, intent)
	}
	s.dispute(p, status)
	return nil
}

// CloseDispute ends the dispute of a payment with a status: "won", "lost" or
// "warning_closed".
func (s *Server) CloseDispute(intent, status string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.disputes, func(d *dispute) bool { return d.payment.intent == intent })
	if i < 0 {
		return fmt.Errorf("%w: payment %q is not disputed", ErrWorld, intent)
	}
	d := s.disputes[i]
	before := map[string]any{"status": d.status}
	d.status = status
	s.emit("charge.dispute.closed", d.object(), before, nil)
	if status == "won" {
		s.emit("charge.dispute.funds_reinstated", d.object(), nil, nil)
	}
	return nil
}

// ForgetKeys prunes every idempotency key, as if its day had passed.
func (s *Server) ForgetKeys() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.keys)
	s.host.Record(history.Forgot, "", nil)
}

// Visits is a copy of the access log.
func (s *Server) Visits() []Visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.visits)
}

// changed records the facts of a payment. A chargeback ends its eligibility. The
// lock is held.
func (s *Server) changed(p *payment) {
	s.host.Record(history.Changed, p.intent, history.Order{
		Order: p.intent, Eligible: !p.chargedBack(), Paid: p.amount, Refunded: p.refunded(),
	})
}
