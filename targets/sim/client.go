package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol/clock"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/protocol/wire"
)

// Client speaks to the service, one fresh connection per request. It is safe
// for use by several goroutines.
type Client struct {
	Network string // "unix" or "tcp"
	Address string
	Clock   clock.Clock   // nil is clock.System
	Timeout time.Duration // of connecting, and of each request; 0 sets no limit
	Trace   trace.Func    // told of BeforeSend and ReplyReceived of requests for money
}

// Classes of failure; errors.Is finds them in what the client returns, beside
// those of package wire.
var (
	ErrNoFacility = errors.New("sim: the service has no such facility")
	ErrFenced     = errors.New("sim: a greater token has fenced this one off")
	ErrAnswer     = errors.New("sim: the service gave no usable answer")
)

// Refund is a request for money.
type Refund struct {
	Order  string
	Case   string
	Amount int64 // cents

	Effect   string                     // reference that a lookup finds; "" sends none
	Key      string                     // idempotency key; "" sends none
	Anchor   string                     // kept by the service as it is; "" sends none
	Token    string                     // fencing token; tokens compare as strings; "" sends none
	Premises map[string]json.RawMessage // compact JSON values of "eligible", "paid", "refunded", "others", "version"; nil sends none
}

// Envelope is what travels beside the body.
type Envelope struct {
	Effect, Key, Anchor, Token string
	Premises                   map[string]json.RawMessage
}

// Reply is what came back from a request for money.
type Reply struct {
	Outcome    wire.Outcome
	Code       int    // HTTP status
	Word       string // one of the Word constants
	ID         string // of the refund, where there is one
	Premise    string // WordPremise: which
	Body       json.RawMessage
	Replayed   bool          // the answer was stored under the key before
	RetryAfter time.Duration // 0 where the service doesn't say
}

// Prepared is a connection that waits for its one request for money.
type Prepared struct {
	client Client
	conn   *wire.Conn
}

// Prepare connects. An error means that certainly nothing was sent. The
// Prepared must be closed.
func (c Client) Prepare(ctx context.Context) (*Prepared, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	conn, err := wire.Endpoint{Network: c.Network, Address: c.Address, Host: "sim"}.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &Prepared{client: c, conn: conn}, nil
}

// Peek says whether the service is still there and silent; see wire.Conn.Peek.
func (p *Prepared) Peek() error { return p.conn.Peek() }

// Close gives the connection up. Without a request before it, certainly nothing
// was sent.
func (p *Prepared) Close() error { return p.conn.Close() }

// Refund sends r; see Send.
func (p *Prepared) Refund(ctx context.Context, r Refund) (Reply, error) {
	body, err := json.Marshal(map[string]any{"order": r.Order, "case": r.Case, "amount": r.Amount, "currency": "usd"})
	if err != nil {
		return Reply{Outcome: wire.NotSent}, err
	}
	return p.Send(ctx, body, Envelope{Effect: r.Effect, Key: r.Key, Anchor: r.Anchor, Token: r.Token, Premises: r.Premises})
}

// Send sends a body byte for byte, {"amount":2000,"case":"case-4471","currency":"usd","order":"881"},
// and reads the answer. It passes BeforeSend and ReplyReceived. The error is nil
// exactly where the outcome is Answered, whatever the answer says.
func (p *Prepared) Send(ctx context.Context, body []byte, e Envelope) (Reply, error) {
	ctx, cancel := p.client.limit(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "/refunds", bytes.NewReader(body))
	if err != nil {
		return Reply{Outcome: wire.NotSent}, err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range map[string]string{HeaderEffect: e.Effect, HeaderKey: e.Key, HeaderAnchor: e.Anchor, HeaderToken: e.Token} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if e.Premises != nil {
		premises, err := json.Marshal(e.Premises)
		if err != nil {
			return Reply{Outcome: wire.NotSent}, err
		}
		req.Header.Set(HeaderPremises, string(premises))
	}
	if err := p.conn.Peek(); err != nil {
		return Reply{Outcome: outcome(err)}, err
	}
	p.client.Trace.At(BeforeSend, e.Effect)
	got, err := p.conn.Do(ctx, req)
	if err != nil {
		return Reply{Outcome: outcome(err)}, err
	}
	p.client.Trace.At(ReplyReceived, e.Effect)
	var said answer
	if err := json.Unmarshal(got.Body, &said); err != nil || said.Word == "" {
		return Reply{Code: got.Status}, &wire.Error{Outcome: wire.Unknown, Err: errors.Join(ErrAnswer, err)}
	}
	reply := Reply{
		Outcome: wire.Answered, Code: got.Status, Word: said.Word, ID: said.ID, Premise: said.Premise, Body: got.Body,
		Replayed: got.Header.Get(HeaderReplayed) == "true",
	}
	if seconds, err := strconv.Atoi(got.Header.Get("Retry-After")); err == nil {
		reply.RetryAfter = time.Duration(seconds) * time.Second
	}
	return reply, nil
}

// outcome is what a wire error says of the request.
func outcome(err error) wire.Outcome {
	if errors.Is(err, wire.ErrNotSent) {
		return wire.NotSent
	}
	return wire.Unknown
}

// Found is what a lookup saw.
type Found struct {
	Landed  bool
	Refunds []history.Landing // all under the effect's reference, in the order of landing
	Body    json.RawMessage   // the answer as it came
}

// Find asks for the refunds of an effect. An error is not an absence:
// ErrNoFacility where the service can't be asked, else the answer didn't come or
// can't be used.
func (c Client) Find(ctx context.Context, effect string) (Found, error) {
	var f struct {
		Refunds *[]history.Landing `json:"refunds"`
	}
	body, err := c.call(ctx, http.MethodGet, "/refunds?effect="+url.QueryEscape(effect), nil, &f)
	if err != nil {
		return Found{}, err
	}
	if f.Refunds == nil {
		return Found{}, ErrAnswer
	}
	return Found{Landed: len(*f.Refunds) > 0, Refunds: *f.Refunds, Body: body}, nil
}

// Order reads the facts of an order, as seen from a case; refunds that carry the
// effect's own reference are no others. An empty effect leaves none out.
func (c Client) Order(ctx context.Context, order, caseID, effect string) (Order, error) {
	var o Order
	query := url.Values{"case": {caseID}, "effect": {effect}}
	_, err := c.call(ctx, http.MethodGet, "/orders/"+url.PathEscape(order)+"?"+query.Encode(), nil, &o)
	return o, err
}

// Lease reads a lease. One that the desk doesn't know is not live.
func (c Client) Lease(ctx context.Context, id string) (Lease, error) {
	var l Lease
	_, err := c.call(ctx, http.MethodGet, "/leases/"+url.PathEscape(id), nil, &l)
	return l, err
}

// Fence asks the service to apply no request for effect with a lesser token from
// now on. Nil means acknowledged.
func (c Client) Fence(ctx context.Context, effect, token string) error {
	body, err := json.Marshal(map[string]string{"effect": effect, "token": token})
	if err != nil {
		return err
	}
	_, err = c.call(ctx, http.MethodPost, "/fences", body, &struct{}{})
	return err
}

// call makes one request that moves no money.
func (c Client) call(ctx context.Context, method, path string, body []byte, into any) ([]byte, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	conn, err := wire.Endpoint{Network: c.Network, Address: c.Address, Host: "sim"}.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	req, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	got, err := conn.Do(ctx, req)
	if err != nil {
		return nil, err
	}
	if got.Status != http.StatusOK {
		var said answer
		if err := json.Unmarshal(got.Body, &said); err != nil {
			return nil, errors.Join(ErrAnswer, err)
		}
		switch said.Word {
		case WordNoFacility:
			return nil, ErrNoFacility
		case WordFenced:
			return nil, ErrFenced
		}
		return nil, fmt.Errorf("%w: %d %s", ErrAnswer, got.Status, said.Word)
	}
	if err := json.Unmarshal(got.Body, into); err != nil {
		return nil, errors.Join(ErrAnswer, err)
	}
	return got.Body, nil
}

func (c Client) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Clock == nil {
		return clock.System.Timeout(ctx, c.Timeout)
	}
	return c.Clock.Timeout(ctx, c.Timeout)
}
