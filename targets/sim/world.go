package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
)

// Order is what the service says of one order, as seen from one case and one
// effect.
type Order struct {
	Order    string `json:"order"`
	Eligible bool   `json:"eligible"`
	Paid     int64  `json:"paid"`     // cents
	Refunded int64  `json:"refunded"` // cents; at a service without references, by hand only
	Others   int64  `json:"others"`   // cents refunded under the case that was asked about, the effect's own left out
	Version  int    `json:"version"`  // raised by every change, also by one that changes back
	Note     string `json:"note,omitempty"`
}

// premises are the facts a conditional request can name, as JSON values.
func (o Order) premises() map[string]json.RawMessage {
	raw := func(v any) json.RawMessage { b, _ := json.Marshal(v); return b }
	return map[string]json.RawMessage{
		"eligible": raw(o.Eligible), "paid": raw(o.Paid), "refunded": raw(o.Refunded),
		"others": raw(o.Others), "version": raw(o.Version),
	}
}

// Lease is an entry of the lease desk.
type Lease struct {
	Lease   string    `json:"lease"`
	Holder  string    `json:"holder"`
	Order   string    `json:"order,omitempty"`   // "": any
	Case    string    `json:"case,omitempty"`    // "": any
	Max     int64     `json:"max"`               // cents
	Expires time.Time `json:"expires"`           // zero: never
	Renewed string    `json:"renewed,omitempty"` // the lease that replaced it; "": none did
	Revoked bool      `json:"revoked"`
	Live    bool      `json:"live"` // known, not revoked, not expired by the service's wall clock
}

// Entry is one line of the ledger.
type Entry struct {
	history.Landing
	At time.Duration `json:"at"`
}

// Access is one line of the access log.
type Access struct {
	At     time.Duration `json:"at"`
	Method string        `json:"method"`
	Path   string        `json:"path"` // with its query
	Effect string        `json:"effect,omitempty"`
	Key    string        `json:"key,omitempty"`
	Number int           `json:"number,omitempty"` // of a request for money
}

// ErrWorld is an act of the world that the service can't do.
var ErrWorld = errors.New("sim: no such act")

// SetOrder opens an order, or changes its facts; refunds stay.
func (s *Server) SetOrder(order string, eligible bool, paid int64, note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[order]
	if o == nil {
		o = &Order{Order: order}
		s.orders[order] = o
	}
	o.Eligible, o.Paid, o.Note = eligible, paid, note
	s.changed(o)
}

// SetEligible changes whether an order may be refunded. The service applies
// refunds of ineligible orders all the same: the fact is the client's to check.
func (s *Server) SetEligible(order string, eligible bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[order]
	if o == nil {
		return fmt.Errorf("%w: there is no order %q, open it first", ErrWorld, order)
	}
	o.Eligible = eligible
	s.changed(o)
	return nil
}

// RefundByHand is a person's refund in the service's own console, for this case
// or, as goodwill, for another.
func (s *Server) RefundByHand(order, caseID string, amount int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[order]
	if o == nil {
		return fmt.Errorf("%w: there is no order %q, open it first", ErrWorld, order)
	}
	if left := o.Paid - s.refunded(order); amount <= 0 || amount > left {
		return fmt.Errorf("%w: order %q has %d cents left to refund, not %d", ErrWorld, order, left, amount)
	}
	s.enter(history.Landing{Order: order, Case: caseID, Amount: amount})
	s.host.Record(history.Changed, order, s.state(o))
	return nil
}

// ForgetKeys drops every idempotency key, as if its window had passed.
func (s *Server) ForgetKeys() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.keys)
	s.host.Record(history.Forgot, "", nil)
}

// SetLease puts a lease on the desk, or replaces it.
func (s *Server) SetLease(l Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[l.Lease] = l
}

// RenewLease notes on the desk which lease replaced old; of one that isn't there
// it notes nothing.
func (s *Server) RenewLease(old, renewed string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.leases[old]; ok {
		l.Renewed = renewed
		s.leases[old] = l
	}
}

// RevokeLease marks a lease as revoked; one that isn't there is revoked too.
func (s *Server) RevokeLease(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[id]
	l.Lease, l.Revoked = id, true
	s.leases[id] = l
}

// Ledger is a copy of the service's ledger, in the order of landing. Nobody but
// the service and the person's hand writes it.
func (s *Server) Ledger() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ledger)
}

// AccessLog is a copy of the log of requests that were read whole.
func (s *Server) AccessLog() []Access {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.access)
}

// enter writes the ledger. The lock is held.
func (s *Server) enter(l history.Landing) history.Landing {
	l.ID = fmt.Sprintf("re_%d", len(s.ledger)+1)
	s.ledger = append(s.ledger, Entry{Landing: l, At: s.host.Mono()})
	s.orders[l.Order].Version++
	subject := l.Effect
	if subject == "" {
		subject = l.Order
	}
	s.host.Record(history.Applied, subject, l)
	return l
}

// changed counts and records a change of facts. The lock is held.
func (s *Server) changed(o *Order) {
	o.Version++
	s.host.Record(history.Changed, o.Order, s.state(o))
}

func (s *Server) state(o *Order) history.Order {
	return history.Order{Order: o.Order, Eligible: o.Eligible, Paid: o.Paid, Refunded: s.refunded(o.Order)}
}

// refunded is the money that left for an order, by whomever. The lock is held.
func (s *Server) refunded(order string) (sum int64) {
	for _, l := range s.ledger {
		if l.Order == order {
			sum += l.Amount
		}
	}
	return sum
}

// facts are an order as seen from a case and an effect. A service that can't be
// asked what landed doesn't show its clients' refunds in the order either, only
// those by hand: else the order would be a lookup under another name. The lock
// is held and the order exists.
func (s *Server) facts(order, caseID, effect string) Order {
	o := *s.orders[order]
	for _, l := range s.ledger {
		if l.Order != order {
			continue
		}
		if !s.profile.refers() && l.Request != 0 {
			o.Version--
			continue
		}
		o.Refunded += l.Amount
		own := effect != "" && l.Effect == effect
		if l.Case == caseID && !own {
			o.Others += l.Amount
		}
	}
	return o
}

// find is what a lookup sees: landings that are older than the lag and younger
// than the window. The lock is held.
func (s *Server) find(effect string) []history.Landing {
	found := []history.Landing{} // an absence is an empty list
	now := s.host.Mono()
	for _, l := range s.ledger {
		age := now - l.At
		forgotten := s.profile.LookupWindow > 0 && age > s.profile.LookupWindow
		if l.Effect == effect && age >= s.profile.LookupLag && !forgotten {
			found = append(found, l.Landing)
		}
	}
	return found
}
