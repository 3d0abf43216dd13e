package experiments_test

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/sim"
	"github.com/interlock-bench/interlock-bench/targets/stripe"
	"github.com/interlock-bench/interlock-bench/targets/stripe/emulator"
)

// canary is a key that must be seen nowhere.
const canary = "sk_test_canary4471canary"

// watched is real time, and somebody who is told of points.
type watched struct {
	sim.RealHost
	at func(trace.Point)
}

func (w watched) Pass(p trace.Point, _ string) bool {
	if w.at != nil {
		w.at(p)
	}
	return true
}

// serveStripe serves an emulator on TCP.
func serveStripe(t *testing.T, o emulator.Options, at func(trace.Point)) (*emulator.Server, string) {
	t.Helper()
	o.Effect, o.Case = stripe.MetaEffect, stripe.MetaCase
	s := emulator.New(watched{sim.RealHost{Started: time.Now()}, at}, o)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, "http://" + l.Addr().String()
}

// TestStripeLive takes the path of a live run, at an emulator: nobody here has a
// key of Stripe's. What it can show is that the path works, not what Stripe does.
func TestStripeLive(t *testing.T) {
	server, base := serveStripe(t, emulator.Options{Keys: []string{canary}}, nil)
	r, err := experiments.StripeLive(t.Context(), experiments.LiveOptions{Key: canary, Base: base, Bound: time.Second, Limit: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, trial := range r.Trials {
		got[trial.Row+"/"+trial.Column] = trial.Money
		if trial.Payment == "" || len(trial.Refunds) == 0 {
			t.Errorf("%s of %s has no ids: %+v", trial.Row, trial.Column, trial)
		}
	}
	want := map[string]int64{
		"crash_before_ack/naive": 4000, "crash_before_ack/idempotency-key": 2000, "crash_before_ack/hand-check": 2000, "crash_before_ack/gate": 2000,
		"duplicate_submit/naive": 4000, "duplicate_submit/idempotency-key": 2000, "duplicate_submit/hand-check": 2000, "duplicate_submit/gate": 2000,
		"refund_during_outage/naive": 4000, "refund_during_outage/idempotency-key": 4000, "refund_during_outage/hand-check": 2000, "refund_during_outage/gate": 2000,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("money (-want +got):\n%s", d)
	}
	if !r.Whole || !r.Held() || r.Stripe() {
		t.Errorf("whole %t, held %t, Stripe %t", r.Whole, r.Held(), r.Stripe())
	}
	connections := map[int]int{}
	for _, v := range server.Visits() {
		connections[v.Conn]++
	}
	for conn, n := range connections {
		if n != 1 {
			t.Errorf("%d requests on connection %d, want one each (I14)", n, conn)
		}
	}
	path := filepath.Join(t.TempDir(), experiments.LiveFile)
	if err := experiments.SaveLive(path, r, "a test"); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range r.Trials {
		if !strings.Contains(string(page), trial.Payment) || !strings.Contains(string(page), trial.Refunds[0].ID) {
			t.Errorf("the page lacks the ids of %s of %s", trial.Row, trial.Column)
		}
	}
	if strings.Contains(string(page), canary) {
		t.Error("the page holds the key")
	}
}

// A key that can't be used ends a run before anything is refunded, and stands in
// no message.
func TestStripeLiveRefusesKeys(t *testing.T) {
	live := "sk_live_" + strings.TrimPrefix(canary, "sk_test_")
	for _, tc := range []struct {
		why  string
		key  string
		o    emulator.Options
		set  func(*emulator.Server)
		want error
		sent int
	}{
		{"a live key is refused before anything is sent", live, emulator.Options{}, nil, stripe.ErrLiveKey, 0},
		{"as is what is no key", "canary4471canary", emulator.Options{}, nil, stripe.ErrKey, 0},
		{"a wrong key", canary, emulator.Options{Keys: []string{"sk_test_other"}}, nil, stripe.ErrUnauthorized, 1},
		{"a wrong key that the service prints", canary, emulator.Options{Keys: []string{"sk_test_other"}}, func(s *emulator.Server) { s.Next(emulator.EchoesKey, -1) }, stripe.ErrUnauthorized, 1},
		{"a restricted key without refunds", canary, emulator.Options{Restricted: map[string][]string{canary: {"charge_write", "refund_read"}}}, nil, stripe.ErrForbidden, 1},
	} {
		server, base := serveStripe(t, tc.o, nil)
		if tc.set != nil {
			tc.set(server)
		}
		r, err := experiments.StripeLive(t.Context(), experiments.LiveOptions{Key: tc.key, Base: base})
		if !errors.Is(err, tc.want) || !errors.Is(err, experiments.ErrLive) {
			t.Errorf("%s: %v", tc.why, err)
		}
		if err != nil && strings.Contains(err.Error(), "canary4471canary") {
			t.Errorf("%s: the message holds the key", tc.why)
		}
		if n := len(server.Visits()); n != tc.sent || len(r.Trials) != 0 {
			t.Errorf("%s: %d requests and %d trials, want %d and none", tc.why, n, len(r.Trials), tc.sent)
		}
	}
}

// relay passes TCP on until it is cut.
type relay struct {
	listener net.Listener
	mu       sync.Mutex
	conns    []net.Conn
	cut      bool
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l}
	t.Cleanup(r.drop)
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil || !r.keep(in, out) {
				in.Close()
				continue
			}
			go pipe(out, in)
			go pipe(in, out)
		}
	}()
	return r
}

func pipe(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (r *relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conns...)
	return !r.cut
}

// drop is the network going away, for good.
func (r *relay) drop() {
	r.listener.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = true
	for _, c := range r.conns {
		c.Close()
	}
}

// The network drops while a refund is under way, and doesn't come back: the run
// says so, names what it made, and nothing was sent twice.
func TestStripeLiveNetworkDrops(t *testing.T) {
	for _, at := range emulator.Points()[1:] {
		var network *relay
		var accepted atomic.Bool // the question whether the key may refund is not
		server, base := serveStripe(t, emulator.Options{}, func(p trace.Point) {
			if p == emulator.Accepted {
				accepted.Store(true)
			}
			if accepted.Load() && p == at {
				network.drop()
			}
		})
		network = newRelay(t, strings.TrimPrefix(base, "http://"))
		r, err := experiments.StripeLive(t.Context(), experiments.LiveOptions{
			Key: canary, Base: "http://" + network.listener.Addr().String(), Bound: time.Second, Limit: 2 * time.Second,
			Filter: experiments.Filter{Rows: []string{"duplicate_submit"}, Columns: []string{"gate"}},
		})
		if !errors.Is(err, experiments.ErrLive) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", at, err)
		}
		if len(r.Trials) != 1 || r.Trials[0].Payment == "" || r.Held() {
			t.Errorf("%s: the report has %+v", at, r.Trials)
		}
		asked := 0
		for _, v := range server.Visits() {
			if v.Number > 1 { // the first asks whether the key may refund
				asked++
			}
		}
		if asked != 1 {
			t.Errorf("%s: %d requests for the refund arrived, want one", at, asked)
		}
	}
}

// The committed page is that of a run, or says that there was none.
func TestStripeLivePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "results", experiments.LiveFile))
	if err != nil {
		t.Fatal(err)
	}
	if ran := strings.Contains(string(page), "Run against Stripe's test mode from "); !ran && string(page) != experiments.LiveNobody {
		t.Errorf("results/%s is neither the page of a run against Stripe nor the one that says that nobody has run it", experiments.LiveFile)
	}
}

// The key is in no history, no journal and no record of a trial.
func TestStripeKeyIsKeptNowhere(t *testing.T) {
	keep := t.TempDir()
	records, err := experiments.Run(t.Context(), experiments.Stripe(), experiments.Filter{Rows: []string{"crash_before_ack"}, Columns: []string{"gate", "hand-check"}}, experiments.Options{Keep: keep})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := experiments.EncodeRecords(records)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string][]byte{"the records": encoded}
	err = filepath.WalkDir(keep, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		texts[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	journals := 0
	for name, text := range texts {
		if bytes.Contains(text, []byte("sk_test_")) {
			t.Errorf("%s holds the key", name)
		}
		if bytes.Contains(text, []byte(stripe.MetaEffect)) {
			journals++ // Stripe's answer is in it
		}
	}
	if journals == 0 {
		t.Error("no journal was looked at")
	}
}
