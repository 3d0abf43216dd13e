package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/wire"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// capable is what both services declare.
var capable = protocol.Capabilities{ClientTimeout: 10 * time.Second, DedupWindow: 24 * time.Hour, DedupMargin: time.Hour, Lookup: true, LandingBound: time.Minute}

const landed = `{"id":"re_1","status":"succeeded"}`

// memory is a target that does its work at once, in this process: what is left is
// what the gate costs.
type memory struct {
	send func() // before the answer; nil for nothing
}

func (memory) Capabilities() protocol.Capabilities { return capable }

func (m memory) Prepare(context.Context, protocol.Request) (protocol.Attempt, error) {
	return memoryAttempt(m), nil
}

func (memory) Lookup(context.Context, protocol.Request) (protocol.Finding, error) {
	return protocol.Finding{Landed: true, Same: true, Result: json.RawMessage(landed)}, nil
}

func (memory) Observe(context.Context, protocol.Premise, protocol.Request) (json.RawMessage, error) {
	return json.RawMessage(`true`), nil
}

type memoryAttempt memory

func (a memoryAttempt) Send(context.Context, protocol.Envelope) protocol.Answer {
	if a.send != nil {
		a.send()
	}
	return protocol.Answer{Outcome: protocol.Done, Result: json.RawMessage(landed)}
}

func (memoryAttempt) Close() error { return nil }

// web is a service behind HTTP on the loopback that does nothing but answer: GET
// tells the fact, POST does the work. Each request has a connection of its own.
type web struct {
	endpoint wire.Endpoint
	server   *http.Server
}

func newWeb() (*web, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &web{endpoint: wire.Endpoint{Network: "tcp", Address: l.Addr().String(), Host: "bench"}}
	w.server = &http.Server{Handler: http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		answer := []byte(`true`)
		if r.Method == http.MethodPost {
			answer = []byte(landed)
		}
		out.Header().Set("Content-Type", "application/json")
		out.Write(answer)
	})}
	go w.server.Serve(l)
	return w, nil
}

func (w *web) close() error { return w.server.Close() }

func (*web) Capabilities() protocol.Capabilities { return capable }

func (w *web) Prepare(ctx context.Context, r protocol.Request) (protocol.Attempt, error) {
	c, err := w.endpoint.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return webAttempt{c, r}, nil
}

func (*web) Lookup(context.Context, protocol.Request) (protocol.Finding, error) {
	return protocol.Finding{}, errors.New("bench: nobody asks")
}

func (w *web) Observe(ctx context.Context, _ protocol.Premise, _ protocol.Request) (json.RawMessage, error) {
	c, err := w.endpoint.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return ask(ctx, c, http.MethodGet, nil)
}

func ask(ctx context.Context, c *wire.Conn, method string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://bench/", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := c.Do(ctx, req)
	if err == nil && answer.Status != http.StatusOK {
		err = fmt.Errorf("bench: status %d", answer.Status)
	}
	return answer.Body, err
}

type webAttempt struct {
	c *wire.Conn
	r protocol.Request
}

func (a webAttempt) Close() error { return a.c.Close() }

func (a webAttempt) Send(ctx context.Context, _ protocol.Envelope) protocol.Answer {
	body, err := ask(ctx, a.c, http.MethodPost, a.r.Payload)
	if err != nil {
		return protocol.Answer{Reason: err.Error()}
	}
	return protocol.Answer{Outcome: protocol.Done, Result: body}
}

// handService is what the hand check meets: the same work, in memory or behind
// HTTP, with a lease and an order to be read and a lookup that finds nothing.
type handService struct{ web *web }

func (s handService) call(ctx context.Context, method string, body []byte) error {
	if s.web == nil {
		return nil
	}
	c, err := s.web.endpoint.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = ask(ctx, c, method, body)
	return err
}

func (s handService) Refund(ctx context.Context, r sim.Refund) sim.Reply {
	body, err := json.Marshal(r)
	if err == nil {
		err = s.call(ctx, http.MethodPost, body)
	}
	if err != nil {
		return sim.Reply{Outcome: wire.Unknown}
	}
	return sim.Reply{Outcome: wire.Answered, Code: http.StatusOK, Word: sim.WordOK}
}

func (s handService) Find(ctx context.Context, _ string) (sim.Found, error) {
	return sim.Found{}, s.call(ctx, http.MethodGet, nil)
}

func (s handService) Order(ctx context.Context, order, _, _ string) (sim.Order, error) {
	return sim.Order{Order: order, Eligible: true, Paid: 100_00}, s.call(ctx, http.MethodGet, nil)
}

func (s handService) Lease(ctx context.Context, id string) (sim.Lease, error) {
	return sim.Lease{Lease: id, Holder: agent, Case: "case", Max: 20_00, Live: true}, s.call(ctx, http.MethodGet, nil)
}
