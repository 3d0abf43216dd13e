// Package emulator is a local server that behaves as Stripe documents its
// refunds, idempotency keys and webhooks to behave. It is not Stripe: it holds
// no money, knows one account, and takes test keys only.
//
// It speaks API version 2023-10-16, of which it has what a refund needs:
// payment intents, charges, refunds, disputes and events. Every rule names the
// page of Stripe's documentation that it comes from; a rule that no page states
// says so. The parameters and fields are those of an OpenAPI description
// (openapi.json names its source).
package emulator

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
)

// Version is the API version that the emulator speaks.
const Version = "2023-10-16"

// Options say how the emulated account is set up. The zero value takes every
// test key, sets no rate limit and shows a refund in lists at once.
type Options struct {
	Keys []string // that are valid; none: every key that begins with sk_test_ or rk_test_
	// Restricted says what restricted keys may do, as "refund_write" or
	// "charge_read". A key that isn't named may do everything.
	Restricted map[string][]string
	Secret     string        // that webhooks are signed with; "" is whsec_emulated
	RateLimit  int           // requests a second; 0 sets no limit
	ListLag    time.Duration // how long a refund stays invisible in lists
	Settles    time.Duration // until a pending refund settles, or one that is to fail fails; 0 is four seconds
	// Notify is told of every event as a webhook, each in a goroutine of its own:
	// Stripe promises no order. Nil tells nobody.
	Notify func(Delivery)
	// NewerEvents sends refund.created, refund.updated and refund.failed beside the
	// events of 2023-10-16.
	NewerEvents bool
	// ForgetMissing keeps a 404 out of the stored answers. Stripe's pages don't say
	// which it is.
	ForgetMissing bool
	// Effect, Case and Anchor are the metadata fields that the history reads a
	// refund's origin from.
	Effect, Case, Anchor string
}

const (
	maxBody   = 64 << 10
	account   = "acct_emulated"
	keyWindow = 24 * time.Hour
)

// Server is one emulated account. It is an http.Handler; Start gives it a
// listener of its own. Methods may be called by several goroutines.
type Server struct {
	host    Host
	options Options
	mux     *http.ServeMux

	mu       sync.Mutex
	payments []*payment // in the order of creation, as the three below
	refunds  []*refund
	disputes []*dispute
	events   []*event
	keys     map[string]*stored
	queue    []*attempt // accepted, not applied
	conns    int
	visits   []Visit
	seconds  map[time.Duration]int // requests in each second, for the limiter
	number   int                   // of requests for a refund
	ids      int
	faults   map[Fault]int
	delay    time.Duration

	serve  *http.Server
	served chan struct{}
}

// Visit is one line of the access log.
type Visit struct {
	Method, Path string // with its query
	Key          string // idempotency key
	Conn         int    // number of the connection it came on, from 1; 0 behind another server than Start's
	Number       int    // of a request for a refund, from 1; 0 for others
}

// New is an account without payments, not listening.
func New(h Host, o Options) *Server {
	if o.Secret == "" {
		o.Secret = "whsec_emulated"
	}
	if o.Settles == 0 {
		o.Settles = 4 * time.Second
	}
	s := &Server{
		host: h, options: o, mux: http.NewServeMux(),
		keys: map[string]*stored{}, seconds: map[time.Duration]int{}, faults: map[Fault]int{},
	}
	s.mux.HandleFunc("POST /v1/refunds", s.handleRefund)
	for pattern, e := range map[string]endpoint{
		"POST /v1/payment_intents":                  {"charge_write", "POST /v1/payment_intents", s.createPayment},
		"GET /v1/payment_intents/{id}":              {"charge_read", "GET /v1/payment_intents/{intent}", s.getPayment},
		"GET /v1/charges/{id}":                      {"charge_read", "GET /v1/charges/{charge}", s.getCharge},
		"GET /v1/refunds":                           {"refund_read", "GET /v1/refunds", s.listRefunds},
		"GET /v1/refunds/{id}":                      {"refund_read", "GET /v1/refunds/{refund}", s.getRefund},
		"POST /v1/refunds/{id}":                     {"refund_write", "POST /v1/refunds/{refund}", s.updateRefund},
		"POST /v1/refunds/{id}/cancel":              {"refund_write", "POST /v1/refunds/{refund}/cancel", s.cancelRefund},
		"POST /v1/test_helpers/refunds/{id}/expire": {"refund_write", "POST /v1/test_helpers/refunds/{refund}/expire", s.expireRefund},
		"GET /v1/disputes":                          {"dispute_read", "GET /v1/disputes", s.listDisputes},
		"GET /v1/disputes/{id}":                     {"dispute_read", "GET /v1/disputes/{dispute}", s.getDispute},
		"GET /v1/events":                            {"event_read", "GET /v1/events", s.listEvents},
		"GET /v1/events/{id}":                       {"event_read", "GET /v1/events/{id}", s.getEvent},
	} {
		s.mux.HandleFunc(pattern, s.handle(e))
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		c := s.enter(req)
		s.write(w, c, &answer{code: http.StatusNotFound, body: invalid("", "", "Unrecognized request URL (%s: %s).", req.Method, req.URL.Path).body})
	})
	return s
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Start serves on l, which the server closes. Nil means that it is listening.
func (s *Server) Start(l net.Listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serve != nil {
		return fmt.Errorf("%w: the emulator listens already", ErrWorld)
	}
	s.serve, s.served = &http.Server{Handler: s, ConnContext: s.accepted}, make(chan struct{})
	go func(h *http.Server, served chan struct{}) {
		defer close(served)
		h.Serve(l)
	}(s.serve, s.served)
	return nil
}

// Close closes the listener and every connection. What was accepted is not
// applied any more.
func (s *Server) Close() error {
	s.mu.Lock()
	serve, served := s.serve, s.served
	s.serve = nil
	for _, a := range s.queue {
		a.stop()
	}
	s.queue = nil
	s.mu.Unlock()
	if serve == nil {
		return nil
	}
	err := serve.Close()
	<-served
	return err
}

// call is one request on its way.
type call struct {
	request *http.Request
	id      string // Request-Id
	key     string // idempotency key
	form    url.Values
	number  int
}

// endpoint is a handler that runs under the server's lock.
type endpoint struct {
	permission string // what a restricted key needs
	shape      string // its parameters, in openapi.json
	do         func(*call) *answer
}

// handle runs an endpoint that moves no money: the limiter, the key, the
// idempotency layer, the parameters, and then what it is for.
func (s *Server) handle(e endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
		if err != nil {
			panic(http.ErrAbortHandler) // half a request is none
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		c := s.enter(req)
		a := s.admit(c, e.permission)
		if a == nil {
			a = c.read(body)
		}
		write := req.Method == http.MethodPost
		if a == nil && write {
			a = s.known(c)
		}
		if a == nil {
			a = c.check(e.shape)
		}
		if a == nil {
			a = e.do(c)
			if write {
				s.store(c, a)
			}
		}
		if !write {
			s.host.Record(history.Asked, req.PathValue("id"), history.Question{What: req.Method + " " + req.URL.Path, Answer: a.word()})
		}
		s.write(w, c, a)
	}
}

// numbered is the key of a connection's number in its requests' contexts.
type numbered struct{}

// accepted numbers a connection. An address would not do: a port is used again as
// soon as it is free.
func (s *Server) accepted(ctx context.Context, _ net.Conn) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns++
	return context.WithValue(ctx, numbered{}, s.conns)
}

func connection(req *http.Request) int {
	n, _ := req.Context().Value(numbered{}).(int)
	return n
}

// enter gives a request its id and its line in the access log. The lock is held.
func (s *Server) enter(req *http.Request) *call {
	s.ids++
	c := &call{request: req, id: fmt.Sprintf("req_%06d", s.ids), key: strings.TrimSpace(req.Header.Get("Idempotency-Key"))}
	s.visits = append(s.visits, Visit{Method: req.Method, Path: req.URL.RequestURI(), Key: c.key, Conn: connection(req)})
	return c
}

// admit is what stands before the endpoint and its idempotency layer. The lock
// is held.
func (s *Server) admit(c *call, permission string) *answer {
	if a := s.limit(); a != nil {
		return a
	}
	return s.authorize(c.request, permission)
}

// limit refuses what comes too fast, on a replay too ("Rate limits";
// "Advanced error handling": the limiter runs before the idempotency layer).
func (s *Server) limit() *answer {
	second := s.host.Mono().Truncate(time.Second)
	s.seconds[second]++
	if s.meets(RateLimited) || s.options.RateLimit > 0 && s.seconds[second] > s.options.RateLimit {
		a := invalid("rate_limit", "", "Request rate limit exceeded. Learn more about rate limits in the documentation.")
		a.code = http.StatusTooManyRequests
		a.header = http.Header{"Stripe-Rate-Limited-Reason": {"global-rate"}}
		return a
	}
	if s.meets(LockTimeout) {
		a := invalid("lock_timeout", "", "This object cannot be accessed right now because another API request or Stripe process is currently accessing it.")
		a.code = http.StatusTooManyRequests
		return a
	}
	return nil
}

// authorize takes test keys only ("API keys"). A live key is refused as if it
// were no key at all, and is not looked at further.
func (s *Server) authorize(req *http.Request, permission string) *answer {
	key, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	if !ok {
		key, _, _ = req.BasicAuth()
	}
	test := strings.HasPrefix(key, "sk_test_") || strings.HasPrefix(key, "rk_test_")
	if s.meets(Unauthorized) || !test || len(s.options.Keys) > 0 && !slices.Contains(s.options.Keys, key) {
		a := invalid("", "", "Invalid API Key provided: %s", masked(key))
		if s.meets(EchoesKey) {
			a = invalid("", "", "Invalid API Key provided: %s", key)
		}
		a.code = http.StatusUnauthorized
		return a
	}
	granted, restricted := s.options.Restricted[key]
	reads := strings.TrimSuffix(permission, "_read") + "_write" // write implies read ("API keys")
	if restricted && !slices.Contains(granted, permission) && !slices.Contains(granted, reads) {
		a := invalid("", "", "The provided key '%s' does not have the required permissions for this endpoint on account '%s'. Having the 'rak_%s' permission would allow this request to continue.", masked(key), account, permission)
		a.code = http.StatusForbidden
		return a
	}
	return nil
}

// masked is a key as Stripe prints it.
func masked(key string) string {
	if len(key) < 12 {
		return "***"
	}
	return key[:8] + "***" + key[len(key)-4:]
}

// read decodes the parameters. Stripe takes forms, not JSON ("API reference").
func (c *call) read(body []byte) *answer {
	text := string(body)
	if c.request.Method == http.MethodGet {
		text = c.request.URL.RawQuery
	}
	form, err := url.ParseQuery(text)
	if err != nil {
		return invalid("", "", "Invalid request (check that your parameters are form-encoded).")
	}
	c.form = form
	return nil
}

//go:embed openapi.json
var openapi []byte

// parameters are those of each request, by its line in openapi.json.
var parameters = func() map[string][]string {
	var doc struct {
		Requests map[string][]string `json:"requests"`
	}
	if err := json.Unmarshal(openapi, &doc); err != nil {
		panic(err) // the file is embedded in this package
	}
	return doc.Requests
}()

// check refuses parameters that the endpoint doesn't have ("Error codes",
// parameter_unknown), and metadata beyond its limits ("Metadata").
func (c *call) check(shape string) *answer {
	names := make([]string, 0, len(c.form))
	for name := range c.form {
		names = append(names, name)
	}
	slices.Sort(names)
	pairs := 0
	for _, name := range names {
		field, inner, nested := strings.Cut(name, "[")
		if !slices.Contains(parameters[shape], field) {
			return invalid("parameter_unknown", name, "Received unknown parameter: %s", name)
		}
		if field != "metadata" || !nested {
			continue
		}
		inner = strings.TrimSuffix(inner, "]")
		pairs++
		switch {
		case pairs > 50:
			return invalid("", "metadata", "You can have at most 50 metadata keys.")
		case len(inner) > 40 || strings.ContainsAny(inner, "[]"):
			return invalid("", name, "Metadata keys can be up to 40 characters long and hold no brackets.")
		case len(c.form.Get(name)) > 500:
			return invalid("", name, "Metadata values can be up to 500 characters, but you passed in a value of %d characters.", len(c.form.Get(name)))
		}
	}
	return nil
}

// metadata reads metadata[name]=value over what there was: an empty value unsets
// one ("Metadata").
func (c *call) metadata(of map[string]string) map[string]string {
	merged := map[string]string{}
	for k, v := range of {
		merged[k] = v
	}
	if v, ok := c.form["metadata"]; ok && v[0] == "" {
		clear(merged)
	}
	for name := range c.form {
		inner, ok := strings.CutPrefix(name, "metadata[")
		if !ok {
			continue
		}
		inner = strings.TrimSuffix(inner, "]")
		if value := c.form.Get(name); value != "" {
			merged[inner] = value
		} else {
			delete(merged, inner)
		}
	}
	return merged
}

// expands says whether the client asked for an object in place of its id.
func (c *call) expands(field string) bool {
	for name, values := range c.form {
		if strings.HasPrefix(name, "expand") && slices.Contains(values, field) {
			return true
		}
	}
	return false
}

// whole reads an integer of at least one ("Error codes",
// parameter_invalid_integer). ok is false where the parameter is missing.
func (c *call) whole(name string) (n int64, ok bool, bad *answer) {
	text := c.form.Get(name)
	if text == "" {
		return 0, false, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return 0, true, invalid("parameter_invalid_integer", name, "Invalid integer: %s", text)
	case n < 1:
		return 0, true, invalid("parameter_invalid_integer", name, "This value must be greater than or equal to 1.")
	}
	return n, true, nil
}

// newID makes ids that say what they are of, and where. The lock is held.
func (s *Server) newID(prefix string) string {
	s.ids++
	return fmt.Sprintf("%s_emulated%06d", prefix, s.ids)
}
