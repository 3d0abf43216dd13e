package emulator

import (
	"net/http"
	"time"
)

// stored is an idempotency key and what is kept under it.
type stored struct {
	method, path string
	params       string // decoded and sorted: the spelling doesn't count, which no page says
	taken        time.Duration
	number       int     // of the request for a refund that took it
	answer       *answer // nil while that request runs
}

// known is the idempotency layer: the answer that a key has already, or nil for
// a key that is new. The lock is held.
//
//   - The same parameters get the same answer, whatever it was, a 500 included,
//     with Idempotent-Replayed ("Idempotent requests", "Advanced error handling").
//   - Other parameters, or another endpoint, are a 400 of type idempotency_error
//     ("Idempotent requests"; "Errors").
//   - While the first request runs, a repeat is a 409 ("Advanced error handling").
//   - A key that is 24 hours old is gone, and nothing says so ("Idempotent
//     requests").
func (s *Server) known(c *call) *answer {
	k := s.keys[c.key]
	if c.key == "" || k == nil {
		return nil
	}
	if s.host.Mono()-k.taken >= keyWindow {
		delete(s.keys, c.key)
		return nil
	}
	switch {
	case k.method != c.request.Method || k.path != c.request.URL.Path:
		return mismatch("Keys for idempotent requests can only be used for the same endpoint they were first used for ('%s' vs '%s'). Try using a key other than '%s' if you meant to execute a different request.", c.request.URL.Path, k.path, c.key)
	case k.params != c.form.Encode():
		return mismatch("Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '%s' if you meant to execute a different request.", c.key)
	case k.answer == nil:
		return inUse(c.key)
	}
	again := *k.answer
	again.replayed = true
	return &again
}

func mismatch(format string, args ...any) *answer {
	a := invalid("", "", format, args...)
	f := a.body.(fault)
	f.Error.Type = "idempotency_error"
	a.body = f
	return a
}

func inUse(key string) *answer {
	a := mismatch("There is currently another in-progress request using this Idempotent Key (that probably means you submitted twice, and the other request is still going through): %s. Please try again later.", key)
	f := a.body.(fault)
	f.Error.Code = "idempotency_key_in_use" // "Error codes"
	a.body, a.code = f, http.StatusConflict
	return a
}

// store keeps the answer of a request whose endpoint ran. One that failed
// before that is not kept ("Idempotent requests": results are only saved if an
// endpoint began to execute). The lock is held.
func (s *Server) store(c *call, a *answer) {
	f, failed := a.body.(fault)
	switch {
	case c.key == "":
		return
	case failed && beforeExecution(f.Error), a.code == http.StatusNotFound && s.options.ForgetMissing:
		delete(s.keys, c.key)
		return
	}
	k := s.keys[c.key]
	if k == nil {
		k = s.take(c)
	}
	k.answer = a
}

// beforeExecution says whether an error comes from looking at the parameters
// alone. That a refusal found while executing is kept is inferred: the page says
// only what is not kept.
func beforeExecution(f failure) bool {
	switch f.Code {
	case "parameter_unknown", "parameter_invalid_integer", "parameter_missing", "rate_limit", "lock_timeout":
		return true
	}
	return f.Message == neitherGiven
}

// take begins a key. The lock is held.
func (s *Server) take(c *call) *stored {
	k := &stored{method: c.request.Method, path: c.request.URL.Path, params: c.form.Encode(), taken: s.host.Mono(), number: c.number}
	s.keys[c.key] = k
	return k
}
