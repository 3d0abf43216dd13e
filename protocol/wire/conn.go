package wire

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"
)

// Conn is one connection for one request. Peek and Do are for one goroutine;
// Seal and Close may be called by any, also while Do runs.
type Conn struct {
	host   string
	max    int64
	socket *socket
	tls    *tls.Conn // nil on plain connections
	out    guarded   // the TLS connection, or the socket
}

// Answer is a whole answer to a wholly written request.
type Answer struct {
	Status int // 200 to 599, never 408
	Header http.Header
	Body   []byte // whole
}

// Peek looks at what the peer has sent without waiting. Nil means that the
// connection stands and nothing unasked has come; it says nothing about the
// next instant, so Do looks once more. An error is an *Error that wraps
// ErrPeerClosed, ErrUnasked or what the kernel said; unless a request was
// begun, its outcome is NotSent and the connection can't be written to any more.
func (c *Conn) Peek() error {
	if err := c.peek(); err != nil {
		return c.failed(err)
	}
	return nil
}

func (c *Conn) peek() error {
	err := c.socket.peek()
	if c.tls == nil || !errors.Is(err, ErrUnasked) {
		return err
	}
	// Session tickets are bytes too. What came is decrypted without waiting: a
	// timeout means that none of it was meant for us.
	c.socket.noWait = true
	defer func() { c.socket.noWait = false }()
	switch n, err := c.tls.Read(make([]byte, 1)); {
	case n > 0:
		return ErrUnasked
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	case err == io.EOF:
		return ErrPeerClosed
	default:
		return err
	}
}

// Do peeks, writes the request once and whole, and reads its answer. A nil
// error means Answered; any other is an *Error (see the package comment). The
// end of ctx interrupts writing and reading. The request's URL need not name a
// host; its body is closed.
//
// A Conn has one request: a second Do writes nothing and fails with ErrUsed,
// with the outcome of the connection so far.
func (c *Conn) Do(ctx context.Context, req *http.Request) (Answer, error) {
	answer, err := c.do(ctx, req)
	if err != nil {
		return Answer{}, c.failed(err)
	}
	return answer, nil
}

func (c *Conn) do(ctx context.Context, req *http.Request) (Answer, error) {
	if err := ctx.Err(); err != nil {
		return Answer{}, errors.Join(err, closeBody(req))
	}
	if !c.out.begin() {
		return Answer{}, errors.Join(ErrUsed, closeBody(req))
	}
	past := time.Unix(1, 0)
	stop := context.AfterFunc(ctx, func() { c.socket.SetDeadline(past) })
	defer stop()

	if err := c.peek(); err != nil {
		return Answer{}, errors.Join(err, closeBody(req))
	}
	once := *req
	once.Close = true // asks the server not to wait for a second request
	if once.Host == "" && (once.URL == nil || once.URL.Host == "") {
		once.Host = c.host
	}
	if err := once.Write(&c.out); err != nil {
		return Answer{}, cause(ctx, err)
	}
	answer, err := readAnswer(bufio.NewReader(io.LimitReader(c.out.Conn, c.max+maxHead)), &once, c.max)
	return answer, cause(ctx, err)
}

// maxHead bounds status lines and headers, of skipped 1xx answers too.
const maxHead = 64 << 10

// readAnswer reads one answer and takes it only if nothing of it can be missing.
func readAnswer(r *bufio.Reader, req *http.Request, max int64) (Answer, error) {
	resp, err := http.ReadResponse(r, req)
	for err == nil && resp.StatusCode/100 == 1 {
		resp, err = http.ReadResponse(r, req)
	}
	if err != nil {
		return Answer{}, err
	}
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 599:
		return Answer{}, ErrStatus
	case resp.StatusCode == http.StatusRequestTimeout:
		return Answer{}, ErrTimeout408
	case resp.ContentLength < 0 && len(resp.TransferEncoding) == 0:
		// Ends where the connection does: half of it looks like the whole.
		return Answer{}, ErrUnframed
	case resp.ContentLength > max:
		return Answer{}, ErrTooLarge
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, max+1))
	if err != nil {
		return Answer{}, err
	}
	if int64(len(body)) > max {
		return Answer{}, ErrTooLarge
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

// Seal makes every later write fail and says whether one was attempted before.
// False: certainly nothing was sent, and nothing will be.
func (c *Conn) Seal() (attempted bool) { return c.out.seal() }

// Close seals the connection and drops it. What the kernel had not delivered on
// TCP is forgotten.
func (c *Conn) Close() error {
	c.Seal()
	return c.socket.Close() // not the TLS layer's farewell, which could block
}

func (c *Conn) failed(err error) error {
	if c.Seal() {
		return &Error{Unknown, err}
	}
	return &Error{NotSent, err}
}

// cause adds why ctx ended to an error that its end may have brought about.
func cause(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return errors.Join(context.Cause(ctx), err)
}

func closeBody(req *http.Request) error {
	if req.Body == nil {
		return nil
	}
	return req.Body.Close()
}

// guarded counts write attempts before they happen, so that whoever seals it
// knows whether any byte can have left.
type guarded struct {
	net.Conn
	mu                     sync.Mutex
	used, wrote, forbidden bool
}

func (g *guarded) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := !g.used
	g.used = true
	return first
}

func (g *guarded) seal() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forbidden = true
	return g.wrote
}

func (g *guarded) Write(p []byte) (int, error) {
	g.mu.Lock()
	if g.forbidden {
		g.mu.Unlock()
		return 0, ErrSealed
	}
	g.wrote = true
	g.mu.Unlock() // a write may block; sealing must not
	return g.Conn.Write(p)
}

// socket is the bare connection. With noWait its reads return at once.
type socket struct {
	net.Conn
	raw    syscall.RawConn
	noWait bool
}

func (s *socket) peek() error {
	switch n, err := s.recv(make([]byte, 1), syscall.MSG_PEEK); {
	case n > 0:
		return ErrUnasked
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	case err == io.EOF:
		return ErrPeerClosed
	default:
		return err
	}
}

func (s *socket) Read(p []byte) (int, error) {
	if s.noWait {
		return s.recv(p, 0)
	}
	return s.Conn.Read(p)
}

// recv receives what is there already; a timeout says that nothing is.
func (s *socket) recv(p []byte, flags int) (n int, err error) {
	failed := s.raw.Control(func(fd uintptr) {
		for {
			n, _, err = syscall.Recvfrom(int(fd), p, flags|syscall.MSG_DONTWAIT)
			if err != syscall.EINTR {
				return
			}
		}
	})
	switch {
	case failed != nil:
		return 0, failed
	case err == syscall.EAGAIN:
		return 0, os.ErrDeadlineExceeded
	case err != nil:
		return 0, os.NewSyscallError("recvfrom", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

type roundTripper struct{ c *Conn }

func (rt roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if want := map[bool]string{true: "https", false: "http"}[rt.c.tls != nil]; req.URL.Scheme != want {
		return nil, errors.Join(rt.c.failed(ErrScheme), closeBody(req))
	}
	answer, err := rt.c.Do(req.Context(), req)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", answer.Status, http.StatusText(answer.Status)),
		StatusCode: answer.Status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.Header, Body: io.NopCloser(bytes.NewReader(answer.Body)), ContentLength: int64(len(answer.Body)),
		Close: true, Request: req,
	}, nil
}
