package wire_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/wire"
)

// script is what a server does with one connection: it waits for after, then for
// read, writes answer and leaves by end.
type script struct {
	after  <-chan struct{}     // nil waits for nothing
	read   func(*bufio.Reader) // nil reads nothing
	answer string
	end    func(net.Conn) // nil closes in order
}

// listen runs s on the first connection and says, when it has acted, what it did.
func listen(t *testing.T, network string, s script) (address string, acted <-chan struct{}) {
	t.Helper()
	address = "127.0.0.1:0"
	if network == "unix" {
		address = socketPath(t)
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	done := make(chan struct{})
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if s.after != nil {
			<-s.after
		}
		if s.read != nil {
			s.read(bufio.NewReader(conn))
		}
		io.WriteString(conn, s.answer)
		if s.end == nil {
			s.end = func(c net.Conn) { c.Close() }
		}
		s.end(conn)
		close(done)
	}()
	return l.Addr().String(), done
}

// socketPath is short: socket paths end at about a hundred bytes.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "w")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func whole(r *bufio.Reader) {
	if req, err := http.ReadRequest(r); err == nil {
		io.Copy(io.Discard, req.Body)
	}
}

func headOnly(r *bufio.Reader) { http.ReadRequest(r) }

func reset(c net.Conn) { c.(*net.TCPConn).SetLinger(0); c.Close() }

// stay keeps the connection open until the client leaves.
func stay(c net.Conn) { io.Copy(io.Discard, c); c.Close() }

func post(t *testing.T, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, "/refunds", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "k1")
	return req
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

func TestAnswers(t *testing.T) {
	small := func() io.Reader { return strings.NewReader(`{"amount":2000}`) }
	huge := func() io.Reader { return strings.NewReader(strings.Repeat("x", 64<<20)) }
	for _, tc := range []struct {
		name   string
		script script
		body   func() io.Reader
		want   error // nil: answered
		cause  error
		why    string
	}{
		{name: "answered", script: script{read: whole, answer: ok}, why: "written whole, answered whole"},
		{name: "interim answers", script: script{read: whole, answer: "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok}, why: "1xx is no answer"},
		{name: "chunked", script: script{read: whole, answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"}, why: "says where it ends"},
		{name: "server error", script: script{read: whole, answer: "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"}, why: "a 500 is a whole answer; what it means is the caller's to say"},
		{name: "redirect", script: script{read: whole, answer: "HTTP/1.1 307 Go\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n"}, why: "is an answer, and not followed"},
		{name: "408", script: script{read: whole, answer: "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"}, want: wire.ErrUnknown, cause: wire.ErrTimeout408, why: "may not be an answer to this request"},
		{name: "closed after reading", script: script{read: whole}, want: wire.ErrUnknown, why: "the effect may have happened"},
		{name: "reset after reading", script: script{read: whole, end: reset}, want: wire.ErrUnknown, why: "the same error as before delivery"},
		{name: "half a status line", script: script{read: whole, answer: "HTTP/1.1 20"}, want: wire.ErrUnknown, why: "broken"},
		{name: "half a head", script: script{read: whole, answer: "HTTP/1.1 200 OK\r\nContent-Le"}, want: wire.ErrUnknown, why: "broken"},
		{name: "half a body", script: script{read: whole, answer: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}"}, want: wire.ErrUnknown, why: "broken"},
		{name: "half the chunks", script: script{read: whole, answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"}, want: wire.ErrUnknown, why: "broken"},
		{name: "interim only", script: script{read: whole, answer: "HTTP/1.1 102 Processing\r\n\r\n"}, want: wire.ErrUnknown, why: "no answer came"},
		{name: "unframed", script: script{read: whole, answer: "HTTP/1.1 200 OK\r\n\r\n{}"}, want: wire.ErrUnknown, cause: wire.ErrUnframed, why: "half of it would look the same"},
		{name: "not HTTP", script: script{read: whole, answer: "SSH-2.0-OpenSSH\r\n"}, want: wire.ErrUnknown, why: "broken"},
		{name: "odd status", script: script{read: whole, answer: "HTTP/1.1 999 Eh\r\nContent-Length: 0\r\n\r\n"}, want: wire.ErrUnknown, cause: wire.ErrStatus, why: "nobody knows what it says"},
		{name: "declared too large", script: script{read: whole, answer: "HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n"}, want: wire.ErrUnknown, cause: wire.ErrTooLarge, why: "not read, so not known"},
		{name: "too large in chunks", script: script{read: whole, answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100001\r\n" + strings.Repeat("x", 0x100001) + "\r\n0\r\n\r\n"}, want: wire.ErrUnknown, why: "not read, so not known"},
		{name: "answered early, then gone", body: huge, script: script{read: headOnly, answer: ok, end: reset}, want: wire.ErrUnknown, why: "an answer to a request that was not written whole"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			address, _ := listen(t, "tcp", tc.script)
			conn, err := wire.Endpoint{Network: "tcp", Address: address}.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if tc.body == nil {
				tc.body = small
			}
			answer, err := conn.Do(t.Context(), post(t, tc.body()))
			if !errors.Is(err, tc.want) || (tc.want == nil) != (err == nil) {
				t.Fatalf("got %v, want %v: %s", err, tc.want, tc.why)
			}
			if tc.cause != nil && !errors.Is(err, tc.cause) {
				t.Errorf("got %v, want it to wrap %v", err, tc.cause)
			}
			if err != nil && errors.Is(err, wire.ErrNotSent) {
				t.Errorf("an outcome can't be both unknown and not sent: %v", err)
			}
			if err == nil && answer.Status < 200 {
				t.Errorf("an interim answer was taken: %d", answer.Status)
			}
			if !conn.Seal() {
				t.Error("a request was written, and Seal says that none was")
			}
		})
	}
}

// The peer leaves or speaks after the connection stands and before the request:
// certainly nothing was sent (I14).
func TestBeforeTheFirstByte(t *testing.T) {
	for _, tc := range []struct {
		name    string
		network string
		script  script
		stays   bool
		cause   error
	}{
		{"closed", "tcp", script{}, false, wire.ErrPeerClosed},
		{"closed, unix", "unix", script{}, false, wire.ErrPeerClosed},
		{"reset", "tcp", script{end: reset}, false, nil},
		{"408 and closed", "tcp", script{answer: "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"}, false, wire.ErrUnasked},
		{"an answer to nothing", "unix", script{answer: ok, end: stay}, true, wire.ErrUnasked},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, how := range []string{"peek", "do"} {
				connected := make(chan struct{})
				tc.script.after = connected
				address, acted := listen(t, tc.network, tc.script)
				conn, err := wire.Endpoint{Network: tc.network, Address: address}.Connect(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				close(connected)
				if !tc.stays {
					<-acted
				}
				for conn.Peek() == nil { // what it did is on its way
				}
				if how == "peek" {
					err = conn.Peek()
				} else {
					_, err = conn.Do(t.Context(), post(t, strings.NewReader("{}")))
				}
				if !errors.Is(err, wire.ErrNotSent) {
					t.Errorf("%s: got %v, want not sent", how, err)
				}
				if tc.cause != nil && !errors.Is(err, tc.cause) {
					t.Errorf("%s: got %v, want it to wrap %v", how, err, tc.cause)
				}
				if conn.Seal() {
					t.Errorf("%s: something was written", how)
				}
				conn.Close()
			}
		})
	}
}

func TestConnectFails(t *testing.T) {
	_, err := wire.Endpoint{Network: "unix", Address: socketPath(t)}.Connect(t.Context())
	if !errors.Is(err, wire.ErrNotSent) {
		t.Errorf("nobody listens: got %v, want not sent", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	address, _ := listen(t, "tcp", script{end: stay})
	if _, err := (wire.Endpoint{Network: "tcp", Address: address}).Connect(ended); !errors.Is(err, wire.ErrNotSent) {
		t.Errorf("the context had ended: got %v, want not sent", err)
	}
}

func connect(t *testing.T, address string) *wire.Conn {
	t.Helper()
	conn, err := wire.Endpoint{Network: "tcp", Address: address}.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestTimeoutIsUnknown(t *testing.T) {
	for _, tc := range []struct {
		name string
		read func(*bufio.Reader)
		body io.Reader
	}{
		{"while reading", whole, strings.NewReader("{}")},
		{"while writing", func(r *bufio.Reader) { r.Peek(1) }, strings.NewReader(strings.Repeat("x", 64<<20))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			gone := make(chan struct{})
			address, _ := listen(t, "tcp", script{
				read: func(r *bufio.Reader) { tc.read(r); cancel(context.DeadlineExceeded); <-gone },
			})
			_, err := connect(t, address).Do(ctx, post(t, tc.body))
			close(gone)
			if !errors.Is(err, wire.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want an unknown outcome because of the deadline", err)
			}
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	address, _ := listen(t, "tcp", script{end: stay})
	if _, err := connect(t, address).Do(ended, post(t, nil)); !errors.Is(err, wire.ErrNotSent) {
		t.Errorf("ended before the first byte: got %v, want not sent", err)
	}
}

func TestSeal(t *testing.T) {
	address, _ := listen(t, "tcp", script{end: stay})
	conn := connect(t, address)
	if conn.Seal() {
		t.Error("nothing was written, and Seal says that something was")
	}
	if _, err := conn.Do(t.Context(), post(t, nil)); !errors.Is(err, wire.ErrNotSent) || !errors.Is(err, wire.ErrSealed) {
		t.Errorf("sealed: got %v, want not sent", err)
	}

	// A caller that has given up asks while the request is still being written.
	begun, gone := make(chan struct{}), make(chan struct{})
	address, _ = listen(t, "tcp", script{read: func(r *bufio.Reader) { r.Peek(1); close(begun); <-gone }})
	conn = connect(t, address)
	outcome := make(chan error, 1)
	go func() {
		_, err := conn.Do(context.Background(), post(t, strings.NewReader(strings.Repeat("x", 64<<20))))
		outcome <- err
	}()
	<-begun
	if !conn.Seal() {
		t.Error("bytes had arrived, and Seal says that none were written")
	}
	conn.Close()
	close(gone)
	if err := <-outcome; !errors.Is(err, wire.ErrUnknown) {
		t.Errorf("closed while writing: got %v, want unknown", err)
	}
}

func TestOneRequestPerConnection(t *testing.T) {
	address, _ := listen(t, "tcp", script{read: whole, answer: ok, end: stay})
	conn := connect(t, address)
	if _, err := conn.Do(t.Context(), post(t, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Do(t.Context(), post(t, nil)); !errors.Is(err, wire.ErrUsed) || !errors.Is(err, wire.ErrUnknown) {
		t.Errorf("got %v, want used, with the outcome of the connection", err)
	}
}

// brokenBody fails before it gives a byte.
type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestRequestsThatCannotBeWritten(t *testing.T) {
	address, _ := listen(t, "tcp", script{end: stay})
	req := post(t, nil)
	req.URL.RawQuery = "\n"
	if _, err := connect(t, address).Do(t.Context(), req); !errors.Is(err, wire.ErrNotSent) {
		t.Errorf("a line break in the URL: got %v, want not sent", err)
	}
	address, _ = listen(t, "tcp", script{end: stay})
	req = post(t, brokenBody{})
	req.ContentLength = 10
	if _, err := connect(t, address).Do(t.Context(), req); !errors.Is(err, wire.ErrUnknown) {
		t.Errorf("the body broke after the head had left: got %v, want unknown", err)
	}
}

// counting is a server that counts requests and hangs up on the first without
// an answer, as one that dies does.
func counting(t *testing.T, handle http.HandlerFunc) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		handle(w, r)
	}))
	t.Cleanup(s.Close)
	return s, &n
}

// net/http repeats a request with an Idempotency-Key by itself when a reused
// connection dies. The first half shows that this server provokes it, the second
// that nothing here does (C26).
func TestC26NoHiddenRetry(t *testing.T) {
	die := func(requests *atomic.Int64) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if requests.Add(1) == 2 {
				panic(http.ErrAbortHandler)
			}
		}
	}
	var seen atomic.Int64
	server, n := counting(t, die(&seen))
	client := &http.Client{Transport: &http.Transport{}}
	for range 2 {
		req, _ := http.NewRequest(http.MethodPost, server.URL, strings.NewReader("{}"))
		req.Header.Set("Idempotency-Key", "k1")
		if resp, err := client.Do(req); err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	if n.Load() != 3 {
		t.Errorf("net/http: the server read %d requests for 2 calls, expected its hidden third", n.Load())
	}

	seen.Store(0)
	server, n = counting(t, die(&seen))
	address := server.Listener.Addr().String()
	for i, send := range []func(c *wire.Conn) error{
		func(c *wire.Conn) error { _, err := c.Do(t.Context(), post(t, strings.NewReader("{}"))); return err },
		func(c *wire.Conn) error { _, err := c.Do(t.Context(), post(t, strings.NewReader("{}"))); return err },
		func(c *wire.Conn) error {
			req, _ := http.NewRequest(http.MethodPost, server.URL, strings.NewReader("{}"))
			req.Header.Set("Idempotency-Key", "k1")
			resp, err := c.Client().Do(req)
			if err == nil {
				resp.Body.Close()
			}
			return err
		},
	} {
		err := send(connect(t, address))
		if wantErr := i == 1; (err != nil) != wantErr {
			t.Errorf("call %d: %v", i+1, err)
		}
		if got := n.Load(); got != int64(i+1) {
			t.Errorf("the server read %d requests for %d calls", got, i+1)
		}
	}
}

func TestClient(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // nobody is there: a request through it fails
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	server, n := counting(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "refunds.example" || !r.Close {
			t.Errorf("host %q, close %t", r.Host, r.Close)
		}
		http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
	})
	address := server.Listener.Addr().String()
	conn := connect(t, address)
	client := conn.Client()
	resp, err := client.Post("http://refunds.example/", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect {
		t.Errorf("status %d, want the redirect itself", resp.StatusCode)
	}
	if _, err := client.Get("http://refunds.example/"); !errors.Is(err, wire.ErrUsed) {
		t.Errorf("second request: got %v, want used", err)
	}
	if n.Load() != 1 {
		t.Errorf("the server read %d requests", n.Load())
	}
	if !conn.Seal() {
		t.Error("a request was written, and Seal says that none was")
	}

	_, err = connect(t, address).Client().Get("https://refunds.example/")
	if !errors.Is(err, wire.ErrScheme) || !errors.Is(err, wire.ErrNotSent) {
		t.Errorf("https over a plain connection: got %v, want not sent", err)
	}
	var outer *url.Error
	if !errors.As(err, &outer) {
		t.Errorf("got %T, want what libraries expect", err)
	}
}

func TestTLS(t *testing.T) {
	var n atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		io.WriteString(w, r.Host)
	}))
	server.EnableHTTP2 = true // offered, not wanted
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	endpoint := wire.Endpoint{
		Network: "tcp", Address: server.Listener.Addr().String(), Host: "example.com", TLS: &tls.Config{RootCAs: roots},
	}
	for range 20 { // the server's session tickets come at any time
		conn, err := endpoint.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Peek(); err != nil {
			t.Fatalf("session tickets were taken for an answer: %v", err)
		}
		answer, err := conn.Do(t.Context(), post(t, strings.NewReader("{}")))
		if err != nil || string(answer.Body) != "example.com" {
			t.Fatalf("got %q, %v", answer.Body, err)
		}
		conn.Close()
	}
	if n.Load() != 20 {
		t.Errorf("the server read %d requests for 20 calls", n.Load())
	}

	endpoint.TLS = nil
	endpoint.Host = "other.example"
	endpoint.TLS = &tls.Config{RootCAs: roots}
	if _, err := endpoint.Connect(t.Context()); !errors.Is(err, wire.ErrNotSent) {
		t.Errorf("wrong name on the certificate: got %v, want not sent", err)
	}
}

func TestTLSPeek(t *testing.T) {
	certificates := httptest.NewUnstartedServer(nil)
	certificates.StartTLS()
	config := certificates.TLS.Clone()
	roots := x509.NewCertPool()
	roots.AddCert(certificates.Certificate())
	certificates.Close()
	for _, tc := range []struct {
		name   string
		answer string
		cause  error
	}{
		{"closed", "", wire.ErrPeerClosed},
		{"unasked", "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n", wire.ErrUnasked},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, err := tls.Listen("tcp", "127.0.0.1:0", config)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				if conn.(*tls.Conn).Handshake() == nil {
					io.WriteString(conn, tc.answer)
				}
				conn.Close()
			}()
			conn, err := wire.Endpoint{
				Network: "tcp", Address: l.Addr().String(), Host: "example.com", TLS: &tls.Config{RootCAs: roots},
			}.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for err == nil { // it is on its way
				err = conn.Peek()
			}
			if !errors.Is(err, wire.ErrNotSent) || !errors.Is(err, tc.cause) {
				t.Errorf("got %v, want not sent because of %v", err, tc.cause)
			}
			if _, err := conn.Do(t.Context(), post(t, nil)); !errors.Is(err, wire.ErrNotSent) {
				t.Errorf("got %v, want not sent", err)
			}
		})
	}
}

// TestTLSTickets has the server's session tickets there before anything is asked:
// they are bytes, and nobody's answer.
func TestTLSTickets(t *testing.T) {
	certificates := httptest.NewUnstartedServer(nil)
	certificates.StartTLS()
	config := certificates.TLS.Clone()
	config.ClientAuth = tls.RequestClientCert // then the tickets come behind the handshake and not with it
	roots := x509.NewCertPool()
	roots.AddCert(certificates.Certificate())
	certificates.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sent := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			sent <- err
			return
		}
		defer conn.Close()
		sent <- conn.(*tls.Conn).Handshake() // the tickets are its last message
		whole(bufio.NewReader(conn))
		io.WriteString(conn, ok)
	}()
	conn, err := wire.Endpoint{
		Network: "tcp", Address: l.Addr().String(), Host: "example.com",
		TLS: &tls.Config{RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(1)},
	}.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if err := conn.Peek(); err != nil {
		t.Fatalf("session tickets were taken for an answer: %v", err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the server answers when the client waits for it, not before
	if answer, err := conn.Do(t.Context(), post(t, strings.NewReader("{}"))); err != nil || answer.Status != 200 {
		t.Errorf("%+v, %v", answer, err)
	}
}

// ending is a context that ends between its first and its second look.
type ending struct {
	context.Context
	looks atomic.Int64
}

func (e *ending) Err() error {
	if e.looks.Add(1) > 1 {
		return context.Canceled
	}
	return nil
}

func TestAWholeAnswerOutlivesItsContext(t *testing.T) {
	address, _ := listen(t, "tcp", script{read: whole, answer: ok})
	conn := connect(t, address)
	if answer, err := conn.Do(&ending{Context: t.Context()}, post(t, strings.NewReader("{}"))); err != nil || string(answer.Body) != "{}" {
		t.Errorf("%+v, %v", answer, err)
	}
}

func TestAClosedConnectionSentNothing(t *testing.T) {
	address, _ := listen(t, "tcp", script{end: stay})
	conn := connect(t, address)
	conn.Close()
	if _, err := conn.Do(t.Context(), post(t, nil)); !errors.Is(err, wire.ErrNotSent) || conn.Seal() {
		t.Errorf("got %v, want not sent", err)
	}
}
