package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// world is a service with one client on a virtual clock. It is the service's
// sim.Host and the client's clock.Clock. Time moves while an answer is withheld,
// to the next timer, and by pass.
type world struct {
	t *testing.T
	*sim.Server
	client sim.Client

	mu     sync.Mutex
	now    time.Duration
	timers []*timer
	events []string
	at     map[trace.Point]func() bool // what happens at a point; false kills the client
	points []trace.Point
	held   int  // answers
	late   bool // timers of the service can't be stopped any more
}

type timer struct {
	due    time.Duration
	client bool // it ends a request of the client
	fire   func()
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	order   = "881"
	caseID  = "case-4471"
	timeout = 2 * time.Second
)

// newWorld is a world in which $100 were paid for the order.
func newWorld(t *testing.T, p sim.Profile) *world {
	t.Helper()
	w := &world{t: t, at: map[trace.Point]func() bool{}}
	w.Server = sim.New(w, p)
	dir, err := os.MkdirTemp("", "s") // socket paths end at about a hundred bytes
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Server.Close(); os.RemoveAll(dir) })
	w.client = sim.Client{Network: "unix", Address: l.Addr().String(), Clock: w, Timeout: timeout,
		Trace: func(p trace.Point, _ string) { w.pass(p) }}
	w.SetOrder(order, true, 10000, "")
	return w
}

func (w *world) Now() time.Time { return epoch.Add(w.Mono()) }

func (w *world) Mono() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) arm(d time.Duration, client bool, fire func()) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &timer{w.now + d, client, fire}
	w.timers = append(w.timers, t)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.timers = slices.DeleteFunc(w.timers, func(u *timer) bool { return u == t })
	}
}

func (w *world) After(d time.Duration, _ string, fn func()) (stop func()) {
	stop = w.arm(d, false, fn)
	if w.late {
		return func() {}
	}
	return stop
}

// next moves time to the earliest timer that is due by then.
func (w *world) next(by time.Duration) *timer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.timers) == 0 {
		return nil
	}
	t := slices.MinFunc(w.timers, func(a, b *timer) int { return int(a.due - b.due) })
	if t.due > by {
		return nil
	}
	w.timers = slices.DeleteFunc(w.timers, func(u *timer) bool { return u == t })
	w.now = max(w.now, t.due)
	return t
}

func (w *world) Withhold(ctx context.Context) {
	w.hold(1)
	defer w.hold(-1)
	for ctx.Err() == nil {
		fired := make(chan struct{})
		t := w.next(1 << 62)
		if t == nil {
			<-ctx.Done()
			return
		}
		go func() { t.fire(); close(fired) }()
		if t.client {
			<-ctx.Done() // nothing moves before the client has left
		}
		select {
		case <-ctx.Done():
		case <-fired:
		}
	}
}

func (w *world) hold(n int) (held int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held += n
	return w.held
}

// sleep lets time pass.
func (w *world) sleep(d time.Duration) {
	end := w.Mono() + d
	for t := w.next(end); t != nil; t = w.next(end) {
		t.fire()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = end
}

func (w *world) Record(kind history.Kind, subject string, body any) int {
	text, err := json.Marshal(body)
	if err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprint(kind, " ", subject, " ", string(text)))
	return len(w.events)
}

func (w *world) Pass(p trace.Point, _ string) bool { return w.pass(p) }

func (w *world) pass(p trace.Point) bool {
	w.mu.Lock()
	w.points = append(w.points, p)
	do := w.at[p]
	delete(w.at, p)
	w.mu.Unlock()
	return do == nil || do()
}

// on has something happen the next time p is passed. False kills the client.
func (w *world) on(p trace.Point, do func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at[p] = do
}

// killAt kills the client the next time p is passed.
func (w *world) killAt(p trace.Point) { w.on(p, func() bool { return false }) }

func (w *world) Wait(ctx context.Context, d time.Duration) error { w.sleep(d); return ctx.Err() }

func (w *world) Timeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := w.arm(d, true, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() { stop(); cancel(nil) }
}

// refund asks for $20, changed by edit, and says what came back.
func (w *world) refund(edit func(*sim.Refund)) (said string) {
	return describe(w.reply(edit))
}

func (w *world) reply(edit func(*sim.Refund)) sim.Reply {
	r := sim.Refund{Order: order, Case: caseID, Amount: 2000, Effect: "e1", Key: "k1"}
	if edit != nil {
		edit(&r)
	}
	p, err := w.client.Prepare(w.t.Context())
	if err != nil {
		return sim.Reply{Outcome: 2}
	}
	defer p.Close()
	reply, _ := p.Refund(w.t.Context(), r)
	return reply
}

func describe(r sim.Reply) string {
	if r.Word == "" {
		return r.Outcome.String()
	}
	said := fmt.Sprint(r.Code, " ", r.Word)
	if r.Premise != "" {
		said += " " + r.Premise
	}
	if r.Replayed {
		said += " replayed"
	}
	if r.RetryAfter > 0 {
		said += fmt.Sprint(" after ", r.RetryAfter)
	}
	return said
}

// found says what a lookup of e1 finds.
func (w *world) found() string {
	f, err := w.client.Find(w.t.Context(), "e1")
	switch {
	case err != nil:
		return "error"
	case !f.Landed:
		return "absent"
	}
	said := "landed"
	for _, l := range f.Refunds {
		said += fmt.Sprint(" ", l.Amount)
	}
	return said
}

// money is what the ledger says was paid back.
func (w *world) money() (cents int64) {
	for _, l := range w.Ledger() {
		cents += l.Amount
	}
	return cents
}

// kinds are the kinds of what was recorded after the order was opened.
func (w *world) kinds() (kinds []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events[1:] {
		var kind string
		fmt.Sscan(e, &kind)
		kinds = append(kinds, kind)
	}
	return kinds
}
