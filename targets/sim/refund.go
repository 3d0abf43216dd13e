package sim

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
)

// Words of the service's answers.
const (
	WordOK           = "ok"
	WordRepeated     = "already_processed"
	WordKeyReused    = "key_reused_with_different_params"
	WordInProgress   = "in_progress"
	WordPremise      = "premise_failed"
	WordFenced       = "fenced"
	WordOverRefund   = "over_refund"
	WordUnknownOrder = "unknown_order"
	WordBadRequest   = "bad_request"
	WordUnauthorized = "unauthorized"
	WordRateLimited  = "rate_limited"
	WordServerError  = "server_error"
	WordUnavailable  = "unavailable"
	WordNoFacility   = "no_such_facility"
)

// answer is what the service says to one request.
type answer struct {
	Word    string `json:"word"`
	ID      string `json:"id,omitempty"`
	Order   string `json:"order,omitempty"`
	Case    string `json:"case,omitempty"`
	Amount  int64  `json:"amount,omitempty"` // cents
	Premise string `json:"premise,omitempty"`

	code       int
	retryAfter time.Duration
	replayed   bool
}

func no(code int, word string) *answer { return &answer{code: code, Word: word} }

// refund is one request for money on its way through the service.
type refund struct {
	history.Request
	premises map[string]json.RawMessage
	bad      bool // can't be read as a refund
	life     int  // of the service, that read it

	accepted time.Duration
	due      time.Duration
	stop     func()  // of the timer that lands it
	gone     bool    // its client died at a point of this request
	withheld bool    // its answer never leaves
	answer   *answer // once there is one
	held     *hold   // its handler, while that waits
}

// subject is what events about the refund are filed under.
func (r *refund) subject() string {
	if r.Effect != "" {
		return r.Effect
	}
	return r.Order
}

// key is an idempotency key and the answer stored under it.
type key struct {
	order, caseID string
	amount        int64
	taken         time.Duration
	request       int     // that took it
	stored        *answer // nil while that request is in progress
}

// admit decides whether a request is accepted: nil, or the answer it gets
// instead. The lock is held.
func (s *Server) admit(r *refund) *answer {
	switch {
	case s.meets(Unauthorized):
		return no(http.StatusUnauthorized, WordUnauthorized)
	case s.meets(RateLimited):
		a := no(http.StatusTooManyRequests, WordRateLimited)
		a.retryAfter = 5 * time.Second
		return a
	case s.meets(ServerError):
		return no(http.StatusInternalServerError, WordServerError)
	case s.meets(Unavailable):
		return no(http.StatusServiceUnavailable, WordUnavailable)
	case r.bad || r.Amount <= 0:
		return no(http.StatusBadRequest, WordBadRequest)
	}
	if k := s.key(r.Key); k != nil {
		return k.repeat(r)
	}
	if s.meets(ClaimInProgress) {
		return inProgress()
	}
	r.accepted = s.host.Mono()
	r.due = r.accepted + s.profile.LandingDelay
	if s.profile.KeyOnAcceptance {
		s.take(r, nil)
	}
	s.queue = append(s.queue, r)
	return nil
}

// apply moves the money or says why not, in one step: the key, the fence, the
// premises and what is left of the payment are judged as they are now, however
// long ago the request was accepted. Nil means discarded. The lock is held.
func (s *Server) apply(r *refund) (a *answer, landed bool) {
	now := s.host.Mono()
	k := s.key(r.Key)
	mine := k != nil && k.request == r.Number
	if bound := s.profile.LandingBound; bound > 0 && now-r.accepted > bound {
		if mine {
			delete(s.keys, r.Key)
		}
		s.host.Record(history.Discarded, r.subject(), r.Request)
		return nil, false
	}
	if k != nil && !mine {
		return k.repeat(r), false
	}
	if a := s.refuse(r); a != nil {
		if mine {
			delete(s.keys, r.Key)
		}
		if s.profile.KeepErrors {
			s.take(r, a)
		}
		return a, false
	}
	if r.Effect != "" && r.Token > s.fences[r.Effect] {
		s.fences[r.Effect] = r.Token
	}
	l := s.enter(history.Landing{Order: r.Order, Case: r.Case, Amount: r.Amount, Effect: r.Effect, Request: r.Number})
	a = &answer{code: http.StatusOK, Word: WordOK, ID: l.ID, Order: l.Order, Case: l.Case, Amount: l.Amount}
	if s.meets(ErrorAfterApply) {
		a = no(http.StatusInternalServerError, WordServerError)
	}
	s.take(r, a)
	return a, true
}

// refuse is the service's final no, or nil. The lock is held.
func (s *Server) refuse(r *refund) *answer {
	if s.profile.Fencing && r.Token < s.fences[r.Effect] {
		return no(http.StatusPreconditionFailed, WordFenced)
	}
	if s.orders[r.Order] == nil {
		return no(http.StatusNotFound, WordUnknownOrder)
	}
	if s.profile.Conditional {
		have := s.facts(r.Order, r.Case, r.Effect).premises()
		for _, name := range slices.Sorted(maps.Keys(r.premises)) {
			if value, known := have[name]; !known || !same(r.premises[name], value) {
				a := no(http.StatusPreconditionFailed, WordPremise)
				a.Premise = name
				return a
			}
		}
	}
	if r.Amount > s.orders[r.Order].Paid-s.refunded(r.Order) {
		return no(http.StatusUnprocessableEntity, WordOverRefund)
	}
	return nil
}

// key finds a key that the service still knows. The lock is held.
func (s *Server) key(name string) *key {
	k := s.keys[name]
	if k != nil && s.host.Mono()-k.taken > s.profile.DedupWindow {
		delete(s.keys, name)
		return nil
	}
	return k
}

// take takes r's key, or stores the answer under it. The lock is held.
func (s *Server) take(r *refund, stored *answer) {
	if s.profile.DedupWindow == 0 || r.Key == "" {
		return
	}
	taken := s.host.Mono()
	if k := s.keys[r.Key]; k != nil {
		taken = k.taken
	}
	s.keys[r.Key] = &key{order: r.Order, caseID: r.Case, amount: r.Amount, taken: taken, request: r.Number, stored: stored}
}

// repeat is the answer to a request whose key is known.
func (k *key) repeat(r *refund) *answer {
	switch {
	case k.order != r.Order || k.caseID != r.Case || k.amount != r.Amount:
		return no(http.StatusUnprocessableEntity, WordKeyReused)
	case k.stored == nil:
		return inProgress()
	}
	again := *k.stored
	again.replayed = true
	if again.Word == WordOK {
		again.Word = WordRepeated
	}
	return &again
}

// same reports whether two documents are one JSON value, however it is spelled.
func same(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func inProgress() *answer {
	a := no(http.StatusConflict, WordInProgress)
	a.retryAfter = time.Second
	return a
}
