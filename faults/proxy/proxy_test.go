package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/proxy"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/protocol/wire"
)

// host is a world whose late deliveries happen when the test says so.
type host struct {
	withheld chan struct{}
	later    atomic.Pointer[func()]
}

func (h *host) Pass(trace.Point, string) bool { return true }

func (h *host) After(_ time.Duration, _ string, fn func()) func() {
	h.later.Store(&fn)
	return func() {}
}

func (h *host) Withhold(ctx context.Context) {
	close(h.withheld)
	<-ctx.Done()
}

// TestModes: what the client sees, and how often the service did it, when the
// client is told and in the end.
func TestModes(t *testing.T) {
	for _, c := range []struct {
		mode  proxy.Mode
		why   string
		saw   error // nil: the answer
		did   int32 // when the client knows what it will ever know
		final int32
	}{
		{"", "nothing goes wrong", nil, 1, 1},
		{proxy.ResetBefore, "a reset says nothing of what was done", syscall.ECONNRESET, 0, 0},
		{proxy.ResetAfter, "the same reset", syscall.ECONNRESET, 1, 1},
		{proxy.CloseBefore, "an end without an answer", io.ErrUnexpectedEOF, 0, 0},
		{proxy.CloseAfter, "the same end", io.ErrUnexpectedEOF, 1, 1},
		{proxy.LostBefore, "silence", context.Canceled, 0, 0},
		{proxy.BlackHole, "the same silence", context.Canceled, 1, 1},
		{proxy.HalfAnswer, "half an answer is none", io.ErrUnexpectedEOF, 1, 1},
		{proxy.BadGateway, "an answer of somebody else", nil, 1, 1},
		{proxy.Late, "done when the client has long given up", syscall.ECONNRESET, 0, 1},
		{proxy.Doubled, "what a middle repeats, the client can't see", nil, 1 + 1, 2},
	} {
		t.Run(string(c.mode), func(t *testing.T) {
			var did atomic.Int32
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					did.Add(1)
				}
				io.WriteString(w, strings.Repeat("done ", 20))
			}))
			defer service.Close()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			h := &host{withheld: make(chan struct{})}
			p := proxy.New(h, l,
				func() (net.Conn, error) { return net.Dial("tcp", service.Listener.Addr().String()) },
				func(r *http.Request) bool { return r.Method == http.MethodPost })
			defer p.Close()
			p.Next(c.mode)

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				select {
				case <-h.withheld:
					cancel()
				case <-ctx.Done():
				}
			}()
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				conn, err := wire.Endpoint{Network: "tcp", Address: l.Addr().String()}.Connect(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				req, err := http.NewRequestWithContext(ctx, method, "/", strings.NewReader("do it"))
				if err != nil {
					t.Fatal(err)
				}
				_, err = conn.Do(ctx, req)
				saw := c.saw
				if method == http.MethodGet {
					saw = nil // not of the kind that is met
				}
				if !errors.Is(err, saw) || (err == nil) != (saw == nil) {
					t.Errorf("%s %s: the client saw %v, not %v", c.why, method, err, saw)
				}
			}
			if n := did.Load(); n != c.did {
				t.Errorf("%s: done %d times when the client was told, not %d", c.why, n, c.did)
			}
			if later := h.later.Load(); later != nil {
				(*later)()
			}
			if n := did.Load(); n != c.final || p.Count() != 1 {
				t.Errorf("%s: done %d times in the end, not %d; %d requests counted", c.why, n, c.final, p.Count())
			}
		})
	}
}
