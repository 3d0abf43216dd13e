package emulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// answer is what the service says to one request.
type answer struct {
	code     int
	body     any
	header   http.Header
	replayed bool
}

func ok(body any) *answer { return &answer{code: http.StatusOK, body: body} }

// fault is the body of an error ("Errors").
type fault struct {
	Error failure `json:"error"`
}

type failure struct {
	Type    string `json:"type"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Param   string `json:"param,omitempty"`
	DocURL  string `json:"doc_url,omitempty"`
	Charge  string `json:"charge,omitempty"`
}

// invalid is a 400 of type invalid_request_error.
func invalid(code, param, format string, args ...any) *answer {
	f := failure{Type: "invalid_request_error", Code: code, Param: param, Message: fmt.Sprintf(format, args...)}
	if code != "" {
		f.DocURL = "https://stripe.com/docs/error-codes/" + dashed(code)
	}
	return &answer{code: http.StatusBadRequest, body: fault{f}}
}

func dashed(code string) string {
	b := []byte(code)
	for i := range b {
		if b[i] == '_' {
			b[i] = '-'
		}
	}
	return string(b)
}

// missing is a 404 ("Error codes", resource_missing).
func missing(param, what, id string) *answer {
	a := invalid("resource_missing", param, "No such %s: '%s'", what, id)
	a.code = http.StatusNotFound
	return a
}

// broken is a 500 of Stripe's own.
func broken() *answer {
	return &answer{code: http.StatusInternalServerError, body: fault{failure{
		Type: "api_error", Message: "An unknown error occurred.",
	}}}
}

// word is the answer in a history.
func (a *answer) word() string {
	word := "ok"
	if f, is := a.body.(fault); is {
		word = f.Error.Code
		if word == "" {
			word = f.Error.Type
		}
	}
	if r, is := a.body.(*refundObject); is {
		word = r.Status
	}
	if a.replayed {
		word += " replayed"
	}
	return word
}

func (s *Server) write(w http.ResponseWriter, c *call, a *answer) {
	body, err := json.Marshal(a.body)
	if err != nil {
		panic(err) // every body is a type of this package
	}
	h := w.Header()
	for name, values := range a.header {
		h[name] = values
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Request-Id", c.id)
	h.Set("Stripe-Version", Version)
	if c.key != "" {
		h.Set("Idempotency-Key", c.key)
	}
	if a.replayed {
		h.Set("Idempotent-Replayed", "true") // "Advanced error handling"
	}
	w.WriteHeader(a.code)
	w.Write(body)
}
