package sim

import (
	"fmt"
)

// Settlement is what became of the money of a case after it had left. A refund
// that a bank returned has landed all the same, and a lookup finds it.
type Settlement struct {
	Arrived     int64 `json:"arrived"`      // cents
	Returned    int64 `json:"returned"`     // cents, by the customer's bank
	ChargedBack int64 `json:"charged_back"` // cents, of the whole payment, by the cardholder's bank
}

// String is one line for people.
func (s Settlement) String() string {
	dollars := func(cents int64) string { return fmt.Sprintf("$%d.%02d", cents/100, cents%100) }
	line := dollars(s.Arrived) + " arrived"
	if s.Returned > 0 {
		line += ", " + dollars(s.Returned) + " came back"
	}
	if s.ChargedBack > 0 {
		line += ", " + dollars(s.ChargedBack) + " charged back"
	}
	return line
}

// Settlement reads what became of the refunds of a case.
func (s *Server) Settlement(order, caseID string) (of Settlement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.ledger {
		switch {
		case l.Order != order || l.Case != caseID:
		case s.returned[l.ID]:
			of.Returned += l.Amount
		default:
			of.Arrived += l.Amount
		}
	}
	of.ChargedBack = s.chargedBack[order]
	return of
}

// ReturnRefunds is the customer's bank returning every refund of a case made so
// far, days after the service said that it was done.
func (s *Server) ReturnRefunds(order, caseID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, l := range s.ledger {
		if l.Order == order && l.Case == caseID {
			s.returned[l.ID] = true
			n++
		}
	}
	if n == 0 {
		return fmt.Errorf("%w: nothing was refunded under case %q", ErrWorld, caseID)
	}
	return nil
}

// Chargeback is the cardholder's bank taking the whole payment back. The order is
// not eligible from then on.
func (s *Server) Chargeback(order string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[order]
	if o == nil {
		return fmt.Errorf("%w: there is no order %q, open it first", ErrWorld, order)
	}
	s.chargedBack[order] = o.Paid
	o.Eligible = false
	s.changed(o)
	return nil
}
