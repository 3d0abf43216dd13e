package emulator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/stripe/emulator"
)

// world is an emulator on a clock that a test moves. It is the emulator's Host.
type world struct {
	t *testing.T
	*emulator.Server

	mu       sync.Mutex
	now      time.Duration
	timers   []*timer
	kinds    []history.Kind
	passed   []trace.Point
	withheld chan struct{} // gets one for every answer that is withheld
}

type timer struct {
	due time.Duration
	fn  func()
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// intent is a payment of $100.
const intent = "pi_881"

func newWorld(t *testing.T, card string, o emulator.Options) *world {
	t.Helper()
	w := &world{t: t, withheld: make(chan struct{}, 8)}
	o.Effect, o.Case = "effect", "case"
	w.Server = emulator.New(w, o)
	w.Pay(intent, 10000, "usd", card)
	return w
}

func (w *world) Now() time.Time { return epoch.Add(w.Mono()) }

func (w *world) Mono() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) After(d time.Duration, _ string, fn func()) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &timer{w.now + d, fn}
	w.timers = append(w.timers, t)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.timers = slices.DeleteFunc(w.timers, func(o *timer) bool { return o == t })
	}
}

// pass lets time pass, and what is due on the way happen.
func (w *world) pass(d time.Duration) {
	end := w.Mono() + d
	for {
		w.mu.Lock()
		var next *timer
		for _, t := range w.timers {
			if t.due <= end && (next == nil || t.due < next.due) {
				next = t
			}
		}
		if next == nil {
			w.now = end
			w.mu.Unlock()
			return
		}
		w.timers = slices.DeleteFunc(w.timers, func(o *timer) bool { return o == next })
		w.now = next.due
		w.mu.Unlock()
		next.fn()
	}
}

func (w *world) Withhold(ctx context.Context) {
	w.withheld <- struct{}{}
	<-ctx.Done()
}

func (w *world) Record(kind history.Kind, _ string, body any) int {
	if _, err := json.Marshal(body); err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kinds = append(w.kinds, kind)
	return len(w.kinds)
}

func (w *world) Pass(p trace.Point, _ string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passed = append(w.passed, p)
	return true
}

// said is an answer.
type said struct {
	code     int
	body     map[string]any
	header   http.Header
	replayed bool
}

// word is the code or type of an error, or the status or object of what came.
func (s said) word() string {
	e, failed := s.body["error"].(map[string]any)
	for _, of := range []any{e["code"], e["type"], s.body["status"], s.body["object"]} {
		if word, ok := of.(string); ok {
			if !failed || of == e["code"] || of == e["type"] {
				return word
			}
		}
	}
	return ""
}

func (s said) String() string {
	text := fmt.Sprint(s.code, " ", s.word())
	if s.replayed {
		text += " replayed"
	}
	return text
}

// call makes one request. form is "a=1&b=2".
func (w *world) call(method, path, form, apiKey, key string) said {
	w.t.Helper()
	var r *http.Request
	if method == http.MethodGet {
		r = httptest.NewRequest(method, path+"?"+form, nil)
	} else {
		r = httptest.NewRequest(method, path, strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Header.Set("Authorization", "Bearer "+apiKey)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	s := said{code: rec.Code, header: rec.Header(), replayed: rec.Header().Get("Idempotent-Replayed") == "true"}
	if err := json.Unmarshal(rec.Body.Bytes(), &s.body); err != nil {
		w.t.Fatalf("%s %s: the answer is no JSON: %v", method, path, err)
	}
	return s
}

func (w *world) post(path, form, key string) said {
	w.t.Helper()
	return w.call(http.MethodPost, path, form, "sk_test_x", key)
}

func (w *world) get(path, form string) said {
	w.t.Helper()
	return w.call(http.MethodGet, path, form, "sk_test_x", "")
}

// refund asks for $20 of the payment, with more parameters.
func (w *world) refund(key, more string) said {
	w.t.Helper()
	return w.post("/v1/refunds", "payment_intent="+intent+"&amount=2000"+more, key)
}

// refunds are the statuses of all refunds, the newest first.
func (w *world) refunds() (statuses []string) {
	w.t.Helper()
	for _, r := range w.list("/v1/refunds", "limit=100") {
		statuses = append(statuses, r["status"].(string))
	}
	return statuses
}

func (w *world) list(path, form string) (items []map[string]any) {
	w.t.Helper()
	got := w.get(path, form)
	data, ok := got.body["data"].([]any)
	if !ok {
		w.t.Fatalf("GET %s %s: %v", path, form, got)
	}
	for _, d := range data {
		items = append(items, d.(map[string]any))
	}
	return items
}

// events are the types of all events in their order.
func (w *world) events() (types []string) {
	for _, d := range w.Deliveries() {
		types = append(types, d.Type)
	}
	return types
}
