package sim

import "time"

// Fault is a way in which the service lets its client down.
type Fault string

const (
	LoseRequest       Fault = "lose-request"        // read and forgotten: nothing is done, no answer comes
	DropAnswer        Fault = "drop-answer"         // done, no answer comes
	ErrorAfterApply   Fault = "error-after-apply"   // done, answered with 500, which is stored under the key
	ServerError       Fault = "server-error"        // 500, nothing done
	Unavailable       Fault = "unavailable"         // 503, nothing done
	Unauthorized      Fault = "unauthorized"        // 401, nothing done
	RateLimited       Fault = "rate-limited"        // 429 with Retry-After, nothing done
	ClaimInProgress   Fault = "claim-in-progress"   // 409, nothing done by this request
	LookupFails       Fault = "lookup-fails"        // 500
	LookupMalformed   Fault = "lookup-malformed"    // 200 with half a document
	LookupOtherAmount Fault = "lookup-other-amount" // shows a dollar more than was refunded
)

// Faults are those that Next takes.
func Faults() []Fault {
	return []Fault{
		LoseRequest, DropAnswer, ErrorAfterApply, ServerError, Unavailable, Unauthorized, RateLimited,
		ClaimInProgress, LookupFails, LookupMalformed, LookupOtherAmount,
	}
}

// Next lets the next n requests that come to the fault's place meet it; n below
// zero means all of them, 0 none. The place is as late as it can be, so a fault
// set while a request stands at a point can still meet that request.
func (s *Server) Next(f Fault, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[f] = n
}

// DelayNext lets the next n accepted requests be applied after d instead of the
// profile's landing delay.
func (s *Server) DelayNext(d time.Duration, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
	s.faults[delayed] = n
}

const delayed Fault = "delayed"

// meets uses a fault up. The lock is held.
func (s *Server) meets(f Fault) bool {
	n := s.faults[f]
	if n > 0 {
		s.faults[f]--
	}
	return n != 0
}
