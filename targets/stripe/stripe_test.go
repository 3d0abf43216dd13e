package stripe_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/wire"
	"github.com/interlock-bench/interlock-bench/targets/sim"
	"github.com/interlock-bench/interlock-bench/targets/stripe"
	"github.com/interlock-bench/interlock-bench/targets/stripe/emulator"
)

const (
	key    = "sk_test_canary4471canary" // must be seen nowhere
	intent = "pi_881"
)

// seen is what a service read: one request a time.
type seen struct {
	mu       sync.Mutex
	requests []*http.Request
	handler  http.Handler
}

func (s *seen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	s.handler.ServeHTTP(w, r)
}

func (s *seen) all() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*http.Request(nil), s.requests...)
}

// connection is the key of a request's connection in its context.
type connection struct{}

// serve serves h on TCP and returns what arrived and a client for it.
func serve(t *testing.T, h http.Handler, timeout time.Duration) (*seen, *stripe.Client) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &seen{handler: h}
	server := &http.Server{Handler: s, ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connection{}, c)
	}}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	client, err := stripe.Open(stripe.Options{Key: key, Base: "http://" + l.Addr().String(), Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return s, client
}

func emulate(t *testing.T, o emulator.Options) *emulator.Server {
	t.Helper()
	o.Effect, o.Case = stripe.MetaEffect, stripe.MetaCase
	s := emulator.New(sim.RealHost{Started: time.Now()}, o)
	s.Pay(intent, 10000, "usd", "pm_card_visa")
	t.Cleanup(func() { s.Close() })
	return s
}

// request is the effect of a case: a $20 refund.
func request(caseID string) protocol.Request {
	payload, err := json.Marshal(stripe.Payload{Amount: 2000, Case: caseID, Currency: "usd", PaymentIntent: intent})
	if err != nil {
		panic(err)
	}
	return protocol.Request{Effect: protocol.EffectID("test", caseID, 0), Request: caseID, Action: "refund", Payload: payload}
}

func send(t *testing.T, target stripe.Target, r protocol.Request) protocol.Answer {
	t.Helper()
	a, err := target.Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	return a.Send(t.Context(), protocol.Envelope{Anchor: journal.Hash{1}})
}

// Keys are judged before anything is sent, and messages don't hold them: one of
// live mode is refused (B86).
func TestOpen(t *testing.T) {
	for _, tc := range []struct {
		key, base string
		want      error
	}{
		{"sk_test_x", "", nil},
		{"rk_test_x", "https://api.example.test", nil},
		{"sk_live_canary4471", "", stripe.ErrLiveKey},
		{"rk_live_canary4471", "", stripe.ErrLiveKey},
		{"pk_test_canary4471", "", stripe.ErrKey},
		{"SK_TEST_canary4471", "", stripe.ErrKey},
		{"sk_test_canary4471\r\nX: y", "", stripe.ErrKey},
		{"", "", stripe.ErrKey},
		{"sk_test_x", "ftp://x", stripe.ErrBase},
		{"sk_test_x", "http://x/v1", stripe.ErrBase},
		{"sk_test_x", "http://user@x", stripe.ErrBase},
		{"sk_test_x", "::", stripe.ErrBase},
	} {
		_, err := stripe.Open(stripe.Options{Key: tc.key, Base: tc.base})
		if !errors.Is(err, tc.want) {
			t.Errorf("%q at %q: %v, want %v", tc.key, tc.base, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), "canary4471") {
			t.Errorf("the message holds the key: %v", err)
		}
	}
}

// What Stripe is declared to be: of tier 1, with a lookup and an assumed landing
// bound that its receipts name.
func TestCapabilities(t *testing.T) {
	client, err := stripe.Open(stripe.Options{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	c := stripe.Target{Client: client}.Capabilities()
	if c.Tier() != 1 || !c.Lookup || c.DedupWindow != 24*time.Hour {
		t.Errorf("%+v", c)
	}
	if c.LandingBound == c.ClientTimeout || c.LandingBound < c.ClientTimeout || c.BoundAssumed == "" {
		t.Errorf("the landing bound of %v, assumed by %q, is the client's timeout of %v, or nobody's", c.LandingBound, c.BoundAssumed, c.ClientTimeout)
	}
	if c.DedupMargin <= c.LandingBound {
		t.Errorf("the margin of %v doesn't cover the bound of %v", c.DedupMargin, c.LandingBound)
	}
}

// Every answer by its row of the submit table.
func TestClassify(t *testing.T) {
	for _, tc := range []struct {
		why  string
		r    stripe.Reply
		want protocol.Outcome
	}{
		{"S15 done", stripe.Reply{Outcome: wire.Answered, Status: 200}, protocol.Done},
		{"S15 done, a replay", stripe.Reply{Outcome: wire.Answered, Status: 200, Replayed: true}, protocol.Done},
		{"S16 refused while executing", stripe.Reply{Outcome: wire.Answered, Status: 400, Code: "charge_already_refunded"}, protocol.Rejected},
		{"S16 the key was used with other parameters", stripe.Reply{Outcome: wire.Answered, Status: 400, Type: "idempotency_error"}, protocol.Rejected},
		{"S16 declined", stripe.Reply{Outcome: wire.Answered, Status: 402}, protocol.Rejected},
		{"S16 no such payment", stripe.Reply{Outcome: wire.Answered, Status: 404}, protocol.Rejected},
		{"S17 bad key", stripe.Reply{Outcome: wire.Answered, Status: 401}, protocol.NotExecuted},
		{"S17 key without the permission", stripe.Reply{Outcome: wire.Answered, Status: 403}, protocol.NotExecuted},
		{"S17 rate limit, or a lock", stripe.Reply{Outcome: wire.Answered, Status: 429}, protocol.NotExecuted},
		{"S17 certainly not sent", stripe.Reply{Outcome: wire.NotSent}, protocol.NotSent},
		{"S18 in progress, by its status whatever its type", stripe.Reply{Outcome: wire.Answered, Status: 409, Type: "idempotency_error"}, protocol.Unknown},
		{"S18 a 500", stripe.Reply{Outcome: wire.Answered, Status: 500}, protocol.Unknown},
		{"S18 a 503", stripe.Reply{Outcome: wire.Answered, Status: 503}, protocol.Unknown},
		{"S18 a redirect", stripe.Reply{Outcome: wire.Answered, Status: 302}, protocol.Unknown},
		{"S18 no answer", stripe.Reply{}, protocol.Unknown},
	} {
		if got := stripe.Classify(tc.r); got.Outcome != tc.want {
			t.Errorf("%s: %v, want %v", tc.why, got.Outcome, tc.want)
		}
	}
	for _, tc := range []struct {
		status int
		want   bool
	}{{200, false}, {500, true}, {402, true}} {
		r := stripe.Reply{Outcome: wire.Answered, Status: tc.status, Replayed: true}
		if got := stripe.Classify(r).Replayed; got != tc.want {
			t.Errorf("a replayed %d is a stored failure: %t, want %t", tc.status, got, tc.want)
		}
	}
}

// One attempt is one request on a connection of its own, whatever comes back
// (I14): the library would repeat several of these by itself, invent keys, and
// report how long the one before took.
func TestOneRequestPerAttempt(t *testing.T) {
	answer := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Stripe-Should-Retry", "true")
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	abort := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for _, tc := range []struct {
		why     string
		handler http.Handler
		want    protocol.Outcome
	}{
		{"done", emulate(t, emulator.Options{}), protocol.Done},
		{"a 500 of Stripe's", answer(500, `{"error":{"type":"api_error","message":"x"}}`), protocol.Unknown},
		{"a 503, which the library repeats", answer(503, `{"error":{"type":"api_error","message":"x"}}`), protocol.Unknown},
		{"a 409, which the library repeats", answer(409, `{"error":{"type":"idempotency_error","message":"x"}}`), protocol.Unknown},
		{"a 429 for a lock, which the library repeats", answer(429, `{"error":{"type":"invalid_request_error","code":"lock_timeout","message":"x"}}`), protocol.NotExecuted},
		{"a 502 that is no JSON, which the library repeats", answer(502, "<html>bad gateway</html>"), protocol.Unknown},
		{"a 200 that is no JSON", answer(200, "<html>"), protocol.Unknown},
		{"a 200 that is no refund", answer(200, `{"object":"charge","id":"ch_1"}`), protocol.Unknown},
		{"an error without an error", answer(500, "{}"), protocol.Unknown},
		{"a 408", answer(408, "{}"), protocol.Unknown},
		{"a redirect", http.RedirectHandler("/v1/charges", http.StatusTemporaryRedirect), protocol.Unknown},
		{"a reset after the request", abort, protocol.Unknown},
	} {
		seen, client := serve(t, tc.handler, time.Minute)
		target := stripe.Target{Client: client}
		for range 2 {
			if got := send(t, target, request("case-1")); got.Outcome != tc.want {
				t.Errorf("%s: %v (%s), want %v", tc.why, got.Outcome, got.Reason, tc.want)
			}
		}
		requests := seen.all()
		if len(requests) != 2 {
			t.Errorf("%s: %d requests for two attempts", tc.why, len(requests))
			continue
		}
		if requests[0].Context().Value(connection{}) == requests[1].Context().Value(connection{}) {
			t.Errorf("%s: both on one connection", tc.why)
		}
		for _, r := range requests {
			if got := r.Header.Get("Idempotency-Key"); got != request("case-1").Effect.String() {
				t.Errorf("%s: the key is %q, not the effect id", tc.why, got)
			}
			if r.Header.Get("X-Stripe-Client-Telemetry") != "" {
				t.Errorf("%s: telemetry was sent", tc.why)
			}
		}
	}
}

// A server that answers before it was asked, one that is gone before the first
// byte, and one that was never there: certainly nothing was sent.
func TestNotSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			conns <- c
		}
	}()
	client, err := stripe.Open(stripe.Options{Key: key, Base: "http://" + l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	target := stripe.Target{Client: client}
	a, err := target.Prepare(t.Context(), request("case-1"))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := a.Send(ctx, protocol.Envelope{}); got.Outcome != protocol.NotSent {
		t.Errorf("with a context that has ended: %v", got.Outcome)
	}
	conn := <-conns
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	a.Close()
	if n, _ := bufio.NewReader(conn).Read(make([]byte, 1)); n != 0 {
		t.Error("a byte arrived")
	}
	l.Close()
	if _, err := target.Prepare(t.Context(), request("case-1")); !errors.Is(err, wire.ErrNotSent) {
		t.Errorf("a refused connection: %v, want not sent", err)
	}
}

// What the gate asks for is the same in every attempt, metadata included, so the
// key absorbs it.
func TestSameParametersInEveryAttempt(t *testing.T) {
	e := emulate(t, emulator.Options{})
	_, client := serve(t, e, time.Minute)
	target := stripe.Target{Client: client}
	for try := range 3 {
		if got := send(t, target, request("case-1")); got.Outcome != protocol.Done || got.Replayed {
			t.Errorf("try %d: %+v", try, got)
		}
	}
	all, err := client.Refunds(t.Context(), intent)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d refunds, %v, want one", len(all), err)
	}
	want := map[string]string{
		stripe.MetaEffect: request("case-1").Effect.String(), stripe.MetaRequest: "case-1", stripe.MetaCase: "case-1", stripe.MetaAnchor: journal.Hash{1}.String(),
	}
	if d := cmp.Diff(want, all[0].Metadata); d != "" {
		t.Errorf("metadata (-want +got):\n%s", d)
	}
}

// A payload that is no refund is refused without a request.
func TestUnfitPayload(t *testing.T) {
	seen, client := serve(t, emulate(t, emulator.Options{}), time.Minute)
	for _, payload := range []string{`{}`, `{"amount":0,"case":"c","currency":"usd","payment_intent":"pi"}`, `{"amount":1,"case":"c","currency":"usd","payment_intent":"pi","tip":1}`, `[]`} {
		r := request("case-1")
		r.Payload = json.RawMessage(payload)
		if got := send(t, stripe.Target{Client: client}, r); got.Outcome != protocol.Rejected {
			t.Errorf("%s: %v", payload, got.Outcome)
		}
		if _, err := (stripe.Target{Client: client}).Lookup(t.Context(), r); err == nil {
			t.Errorf("%s: a lookup found nothing without an error", payload)
		}
	}
	if n := len(seen.all()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// A lookup reads every page and finds a refund in any state, one that failed too
// (B91); an error is no absence (I10).
func TestLookup(t *testing.T) {
	e := emulate(t, emulator.Options{})
	e.Pay("pi_big", 1_000_000, "usd", "pm_card_visa")
	seen, client := serve(t, e, time.Minute)
	target := stripe.Target{Client: client}
	big := func(caseID string) protocol.Request {
		r := request(caseID)
		r.Payload = json.RawMessage(`{"amount":2000,"case":"` + caseID + `","currency":"usd","payment_intent":"pi_big"}`)
		return r
	}
	e.Next(emulator.Declined, 1)
	if got := send(t, target, big("case-1")); got.Outcome != protocol.Done {
		t.Fatalf("a refund that fails at once: %+v", got)
	}
	for i := range 120 { // refunds by hand, newer than ours
		if err := e.RefundByHand("pi_big", "case-2", int64(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	before := len(seen.all())
	found, err := target.Lookup(t.Context(), big("case-1"))
	if err != nil || !found.Landed || !found.Same {
		t.Errorf("behind 120 others, failed: %+v, %v", found, err)
	}
	if n := len(seen.all()) - before; n != 2 {
		t.Errorf("%d pages, want 2", n)
	}
	if found, err := target.Lookup(t.Context(), big("case-9")); err != nil || found.Landed {
		t.Errorf("what never was: %+v, %v", found, err)
	}
	e.Next(emulator.SecondPageFails, 1)
	if found, err := target.Lookup(t.Context(), big("case-9")); err == nil {
		t.Errorf("a broken second page reads as an absence: %+v", found)
	}
	other := big("case-1")
	other.Payload = json.RawMessage(`{"amount":2001,"case":"case-1","currency":"usd","payment_intent":"pi_big"}`)
	if found, err := target.Lookup(t.Context(), other); err != nil || !found.Landed || found.Same {
		t.Errorf("another amount under our id: %+v, %v, want a mismatch (C24)", found, err)
	}
}

// Refunds by others count by their case; one that names none counts for every
// case.
func TestObserve(t *testing.T) {
	e := emulate(t, emulator.Options{})
	_, client := serve(t, e, time.Minute)
	target := stripe.Target{Client: client}
	observe := func(name, whose string) string {
		t.Helper()
		v, err := target.Observe(t.Context(), protocol.Premise{Name: name, Whose: whose}, request("case-1"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return string(v)
	}
	for _, step := range []struct {
		why              string
		do               func()
		under, everybody string
		disputed         string
	}{
		{"at first", func() {}, "0", "0", "false"},
		{"another case's refund is no reason", func() { send(t, target, request("case-2")) }, "0", "2000", "false"},
		{"nor our own", func() { send(t, target, request("case-1")) }, "0", "2000", "false"},
		{"one by hand may be for any case", func() { e.RefundByHand(intent, "case-1", 500) }, "500", "2500", "false"},
		{"one that failed gave its money back", func() { e.Next(emulator.Declined, 1); e.RefundByHand(intent, "case-1", 500) }, "500", "2500", "false"},
		{"a dispute", func() { e.Chargeback(intent) }, "500", "2500", "true"},
	} {
		step.do()
		got := []string{observe(stripe.PremiseRefunded, stripe.UnderThisCase), observe(stripe.PremiseRefunded, ""), observe(stripe.PremiseDisputed, "")}
		if d := cmp.Diff([]string{step.under, step.everybody, step.disputed}, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", step.why, d)
		}
	}
	if got := observe(stripe.PremiseStatus, "") + observe(stripe.PremisePaid, "") + observe(stripe.PremiseCurrency, ""); got != `"succeeded"10000"usd"` {
		t.Errorf("status, amount and currency: %s", got)
	}
	if _, err := target.Observe(t.Context(), protocol.Premise{Name: "weather"}, request("case-1")); err == nil {
		t.Error("a fact that a payment doesn't have was read")
	}
}

// The key stands in nothing that is shown or kept, even where a service answers
// with it.
func TestKeyIsNotShown(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code := map[string]int{"/v1/refunds": 400, "/v1/payment_intents/" + intent: 401}[r.URL.Path]
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"error":{"type":"invalid_request_error","message":"no: %s"}}`, r.Header.Get("Authorization"))
	})
	plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500)
		fmt.Fprint(w, r.Header.Get("Authorization"))
	})
	for _, h := range []http.Handler{echo, plain} {
		_, client := serve(t, h, time.Minute)
		target := stripe.Target{Client: client}
		a := send(t, target, request("case-1"))
		_, looked := target.Lookup(t.Context(), request("case-1"))
		_, observed := target.Observe(t.Context(), protocol.Premise{Name: stripe.PremisePaid}, request("case-1"))
		_, paid := client.Pay(t.Context(), 1, "usd", "pm_card_visa", "k")
		texts := []string{
			a.Reason, string(a.Result), fmt.Sprint(looked), fmt.Sprint(observed), fmt.Sprint(paid),
			fmt.Sprintf("%v %+v %#v %s", client, client, client, client), fmt.Sprintf("%v %+v", target, target),
		}
		for i, text := range texts {
			if strings.Contains(text, "canary4471") {
				t.Errorf("text %d holds the key: %s", i, text)
			}
		}
		if a.Reason == "" || looked == nil || observed == nil || paid == nil {
			t.Errorf("nothing was said: %q %v %v %v", a.Reason, looked, observed, paid)
		}
	}
}

// A payment in live mode is not touched.
func TestLivePayment(t *testing.T) {
	_, client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id":"pi_881","object":"payment_intent","livemode":true,"status":"succeeded"}`)
	}), time.Minute)
	if _, err := client.Payment(t.Context(), intent); !errors.Is(err, stripe.ErrLive) {
		t.Errorf("%v, want ErrLive", err)
	}
}
