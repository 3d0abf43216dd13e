// Package stripe is Stripe's refunds as a target of the gate, on Stripe's own
// library for Go. It takes test keys only.
//
// The effect id is the idempotency key and stands in the refund's metadata,
// where a lookup finds it. Every request has a connection of its own, and the
// library's retries, telemetry and invented keys are off, so that one attempt is
// one request (I14).
package stripe

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	api "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/dispute"
	"github.com/stripe/stripe-go/v76/paymentintent"
	"github.com/stripe/stripe-go/v76/refund"

	"github.com/interlock-bench/interlock-bench/protocol/clock"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/protocol/wire"
)

// Points of the client; whatever uses it passes them.
const (
	BeforeSend    trace.Point = "before-send"    // connected, peeked, no byte written
	ReplyReceived trace.Point = "reply-received" // the answer was read whole
)

// Metadata fields of a refund.
const (
	MetaEffect  = "interlock_effect"  // the effect id
	MetaRequest = "interlock_request" // the request id of the system of record
	MetaCase    = "interlock_case"    // whose refund it is
	MetaAnchor  = "interlock_anchor"  // hash of the journal entry that sent it first
)

// Classes of failure; errors.Is finds them, beside those of package wire.
var (
	ErrLiveKey      = errors.New("stripe: this is a live key, and nothing was sent; use a test key (sk_test_ or rk_test_)")
	ErrKey          = errors.New("stripe: this is no test key, and nothing was sent; a test key begins with sk_test_ or rk_test_")
	ErrBase         = errors.New("stripe: the API's address can't be used; it is http:// or https:// and a host")
	ErrUnauthorized = errors.New("stripe: the key is not valid; take one from the dashboard, in test mode")
	ErrForbidden    = errors.New("stripe: the key may not do this; give the restricted key the permission that the message names")
	ErrLive         = errors.New("stripe: this payment is in live mode; nothing was refunded")
	ErrAnswer       = errors.New("stripe: no usable answer")
)

// Options are what a client is opened with.
type Options struct {
	Key     string        // sk_test_ or rk_test_
	Base    string        // of the API; "" is https://api.stripe.com
	Socket  string        // path of a unix socket to dial in place of Base's host; "" dials the host
	Timeout time.Duration // of connecting, and of each call; 0 is 80 seconds, as in Stripe's library
	Clock   clock.Clock   // nil is clock.System
	Trace   trace.Func    // told of BeforeSend and ReplyReceived of requests for a refund
}

// Client speaks to Stripe, one fresh connection per request. It is safe for use
// by several goroutines.
type Client struct {
	Options
	endpoint wire.Endpoint
}

// Open checks the key and the address, and sends nothing. Errors are ErrLiveKey,
// ErrKey and ErrBase; none of them holds the key.
func Open(o Options) (*Client, error) {
	switch {
	case strings.HasPrefix(o.Key, "sk_live_"), strings.HasPrefix(o.Key, "rk_live_"):
		return nil, ErrLiveKey
	case !strings.HasPrefix(o.Key, "sk_test_") && !strings.HasPrefix(o.Key, "rk_test_"), strings.ContainsAny(o.Key, " \t\r\n"):
		return nil, ErrKey
	}
	if o.Base == "" {
		o.Base = api.APIURL
	}
	o.Base = strings.TrimSuffix(o.Base, "/")
	if o.Timeout == 0 {
		o.Timeout = 80 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.System
	}
	u, err := url.Parse(o.Base)
	if err != nil || u.Host == "" || u.Path != "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, ErrBase
	}
	e := wire.Endpoint{Network: "tcp", Address: u.Host, Host: u.Host}
	if u.Port() == "" {
		e.Address = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	if u.Scheme == "https" {
		e.TLS = &tls.Config{}
	}
	if o.Socket != "" {
		e.Network, e.Address = "unix", o.Socket
	}
	return &Client{o, e}, nil
}

// String names the address and never the key.
func (c *Client) String() string { return "stripe client for " + c.Base }

// GoString is String, so that no format verb prints the key.
func (c *Client) GoString() string { return c.String() }

// Format is String for every verb.
func (c *Client) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// Error is an answer of Stripe's that says no to a read, or no answer.
type Error struct {
	Status  int    // HTTP; 0 where none came
	Code    string // Stripe's
	Message string // Stripe's words, or the network's, without the key
	class   error
}

func (e *Error) Error() string {
	if e.Status == 0 {
		if e.class == ErrAnswer {
			return fmt.Sprintf("%v: %s", e.class, e.Message)
		}
		return e.Message // the network's, which says it all
	}
	return fmt.Sprintf("%v: HTTP %d: %s", e.class, e.Status, e.Message)
}

func (e *Error) Unwrap() error { return e.class }

// failure turns an error of the library into one that can be shown. The
// library's own may hold an answer that echoes the key.
func (c *Client) failure(err error) error {
	var said *api.Error
	if errors.As(err, &said) {
		e := &Error{Status: said.HTTPStatusCode, Code: string(said.Code), Message: c.clean(said.Msg), class: ErrAnswer}
		switch said.HTTPStatusCode {
		case http.StatusUnauthorized:
			e.class = ErrUnauthorized
		case http.StatusForbidden:
			e.class = ErrForbidden
		}
		return e
	}
	class := ErrAnswer
	var w *wire.Error
	if errors.As(err, &w) {
		class = w
	}
	return &Error{Message: c.clean(err.Error()), class: class}
}

// clean takes the key out of somebody else's words.
func (c *Client) clean(words string) string { return strings.ReplaceAll(words, c.Key, "[the key]") }

// backend is the library's, over one http.Client. Retries, telemetry and logs
// are off: the gate decides what is sent.
func (c *Client) backend(over *http.Client) api.Backend {
	return api.GetBackendWithConfig(api.APIBackend, &api.BackendConfig{
		URL: api.String(c.Base), HTTPClient: over, MaxNetworkRetries: api.Int64(0), EnableTelemetry: api.Bool(false),
		LeveledLogger: &api.LeveledLogger{Level: api.LevelNull},
	})
}

// fresh gives every request a connection of its own: the pages of a list are a
// request each.
type fresh struct{ c *Client }

func (f fresh) RoundTrip(req *http.Request) (*http.Response, error) {
	conn, err := f.c.endpoint.Connect(req.Context())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Client().Transport.RoundTrip(req)
}

func (c *Client) reading() api.Backend { return c.backend(&http.Client{Transport: fresh{c}}) }

// Prepared is a connection that waits for its one request for a refund.
type Prepared struct {
	client *Client
	conn   *wire.Conn
}

// Prepare connects. An error means that certainly nothing was sent. The Prepared
// must be closed.
func (c *Client) Prepare(ctx context.Context) (*Prepared, error) {
	ctx, cancel := c.Clock.Timeout(ctx, c.Timeout)
	defer cancel()
	conn, err := c.endpoint.Connect(ctx)
	if err != nil {
		return nil, c.failure(err)
	}
	return &Prepared{c, conn}, nil
}

// Close gives the connection up. Without a request before it, certainly nothing
// was sent.
func (p *Prepared) Close() error { return p.conn.Close() }

// Refund is what is asked of Stripe. It holds every parameter, so equal values
// are equal requests.
type Refund struct {
	PaymentIntent string
	Amount        int64 // in the smallest unit of the payment's currency
	Metadata      map[string]string
}

// Reply is what came back from a request for a refund.
type Reply struct {
	Outcome  wire.Outcome
	Status   int             // HTTP; 0 without an answer
	Refund   *api.Refund     // nil where there is none
	Type     string          // of an error
	Code     string          // of an error; often empty
	Body     json.RawMessage // the answer, whole, without the key
	Reason   string          // Stripe's words, or why there are none, without the key
	Replayed bool            // the answer was stored under the key before
}

// Refund sends r once, under the given idempotency key, which must not be empty:
// the library would invent one. It passes BeforeSend and ReplyReceived.
func (p *Prepared) Refund(ctx context.Context, r Refund, key string) Reply {
	c := p.client
	ctx, cancel := c.Clock.Timeout(ctx, c.Timeout)
	defer cancel()
	if key == "" {
		return Reply{Outcome: wire.NotSent, Reason: "stripe: a refund needs an idempotency key"}
	}
	params := &api.RefundParams{
		Params:        api.Params{Context: ctx, IdempotencyKey: api.String(key)},
		PaymentIntent: api.String(r.PaymentIntent),
		Amount:        api.Int64(r.Amount),
		Metadata:      r.Metadata,
	}
	if err := p.conn.Peek(); err != nil {
		return p.unanswered(err)
	}
	c.Trace.At(BeforeSend, r.Metadata[MetaEffect])
	got, err := refund.Client{B: c.backend(p.conn.Client()), Key: c.Key}.New(params)
	var said *api.Error
	switch {
	case errors.As(err, &said) && said.LastResponse != nil:
		c.Trace.At(ReplyReceived, r.Metadata[MetaEffect])
		return Reply{
			Outcome: wire.Answered, Status: said.HTTPStatusCode, Type: string(said.Type), Code: string(said.Code),
			Body: c.body(said.LastResponse), Reason: c.clean(said.Msg), Replayed: replayed(said.LastResponse),
		}
	case err != nil:
		return p.unanswered(err)
	}
	c.Trace.At(ReplyReceived, r.Metadata[MetaEffect])
	if got.LastResponse == nil || got.LastResponse.StatusCode/100 != 2 || got.Object != "refund" || got.ID == "" {
		return Reply{Reason: "stripe: an answer that is neither a refund nor an error"}
	}
	return Reply{
		Outcome: wire.Answered, Status: got.LastResponse.StatusCode, Refund: got, Body: c.body(got.LastResponse),
		Reason: string(got.Status), Replayed: replayed(got.LastResponse),
	}
}

// unanswered tells certainly not sent from unknown, once the connection can't be
// written to any more. A refused connection or a broken answer is no error of
// Stripe's, so the library's types don't say.
func (p *Prepared) unanswered(err error) Reply {
	r := Reply{Outcome: wire.Unknown, Reason: p.client.clean(err.Error())}
	if !p.conn.Seal() {
		r.Outcome = wire.NotSent
	}
	return r
}

func (c *Client) body(r *api.APIResponse) json.RawMessage {
	return json.RawMessage(c.clean(string(r.RawJSON)))
}

func replayed(r *api.APIResponse) bool { return r.Header.Get("Idempotent-Replayed") == "true" }

// Refunds lists all refunds of a payment, in every state, the newest first. An
// error is not an empty list: the library's iterator just ends at a page that
// didn't come.
func (c *Client) Refunds(ctx context.Context, intent string) ([]*api.Refund, error) {
	ctx, cancel := c.Clock.Timeout(ctx, c.Timeout)
	defer cancel()
	params := &api.RefundListParams{PaymentIntent: api.String(intent)}
	params.Context, params.Limit = ctx, api.Int64(100)
	pages := refund.Client{B: c.reading(), Key: c.Key}.List(params)
	var all []*api.Refund
	for pages.Next() {
		all = append(all, pages.Refund())
	}
	if err := pages.Err(); err != nil {
		return nil, c.failure(err)
	}
	return all, nil
}

// Disputes lists the disputes of a payment.
func (c *Client) Disputes(ctx context.Context, intent string) ([]*api.Dispute, error) {
	ctx, cancel := c.Clock.Timeout(ctx, c.Timeout)
	defer cancel()
	params := &api.DisputeListParams{PaymentIntent: api.String(intent)}
	params.Context, params.Limit = ctx, api.Int64(100)
	pages := dispute.Client{B: c.reading(), Key: c.Key}.List(params)
	var all []*api.Dispute
	for pages.Next() {
		all = append(all, pages.Dispute())
	}
	if err := pages.Err(); err != nil {
		return nil, c.failure(err)
	}
	return all, nil
}

// Payment reads a payment intent with its charge. ErrLive where it is no test.
func (c *Client) Payment(ctx context.Context, intent string) (*api.PaymentIntent, error) {
	ctx, cancel := c.Clock.Timeout(ctx, c.Timeout)
	defer cancel()
	params := &api.PaymentIntentParams{}
	params.Context = ctx
	params.AddExpand("latest_charge")
	p, err := paymentintent.Client{B: c.reading(), Key: c.Key}.Get(intent, params)
	switch {
	case err != nil:
		return nil, c.failure(err)
	case p.Livemode:
		return nil, ErrLive
	}
	return p, nil
}

// Pay makes a payment of a test card and returns the id of its payment intent.
// It is for trying things out, so it is sent once, under a key of the caller's.
func (c *Client) Pay(ctx context.Context, amount int64, currency, method, key string) (string, error) {
	ctx, cancel := c.Clock.Timeout(ctx, c.Timeout)
	defer cancel()
	params := &api.PaymentIntentParams{
		Params: api.Params{Context: ctx, IdempotencyKey: api.String(key)},
		Amount: api.Int64(amount), Currency: api.String(currency), PaymentMethod: api.String(method),
		PaymentMethodTypes: []*string{api.String("card")}, Confirm: api.Bool(true),
	}
	params.AddMetadata("interlock_bench", key)
	p, err := paymentintent.Client{B: c.reading(), Key: c.Key}.New(params)
	switch {
	case err != nil:
		return "", c.failure(err)
	case p.Livemode:
		return "", ErrLive
	case p.Status != api.PaymentIntentStatusSucceeded:
		return "", &Error{Message: fmt.Sprintf("the payment is %s, not paid", p.Status), class: ErrAnswer}
	}
	return p.ID, nil
}

// MayRefund asks with a request that names no payment, which can't refund
// anything, whether the key may. Nil means that it may.
func (c *Client) MayRefund(ctx context.Context, key string) error {
	p, err := c.Prepare(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	params := &api.RefundParams{Params: api.Params{Context: ctx, IdempotencyKey: api.String(key)}}
	_, err = refund.Client{B: c.backend(p.conn.Client()), Key: c.Key}.New(params)
	var said *api.Error
	if errors.As(err, &said) && said.HTTPStatusCode == http.StatusBadRequest {
		return nil
	}
	if err == nil {
		return &Error{Message: "a refund of no payment was not refused", class: ErrAnswer}
	}
	return c.failure(err)
}
