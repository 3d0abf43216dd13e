// Package wire sends one HTTP request per attempt and tells the truth about
// what may have left (I14).
//
// A Conn is one fresh HTTP/1.1 connection for one request. There is no
// transport underneath: nothing is repeated, redirected or sent through a proxy
// that the environment names. The caller connects, journals its intent, peeks
// again and sends:
//
//	conn, err := endpoint.Connect(ctx) // an error: certainly nothing sent
//	err = conn.Peek()                  // the peer is still there and has said nothing
//	answer, err := conn.Do(ctx, request)
//
// An error of Do is an *Error, and its Outcome says which of two things is
// known. NotSent means that no write was attempted, read after the connection
// was sealed against writes. Everything else that is not a whole answer to a
// wholly written request is Unknown: resets, timeouts, broken, oversized or
// unframed answers, and 408, which a server also sends to connections on which
// it read nothing.
package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"syscall"
	"time"
)

// Outcome is what is known about one request.
type Outcome int

const (
	Unknown  Outcome = iota // it may have arrived, and may still
	Answered                // written whole, and answered whole
	NotSent                 // no write was attempted, and none can be any more
)

// String is the outcome in words.
func (o Outcome) String() string {
	return [...]string{"unknown", "answered", "not sent"}[o]
}

// Classes of failure; errors.Is finds them in what this package returns.
var (
	ErrNotSent = errors.New("wire: not sent")
	ErrUnknown = errors.New("wire: outcome unknown")

	ErrPeerClosed = errors.New("wire: the peer closed the connection before the request")
	ErrUnasked    = errors.New("wire: the peer sent bytes before the request")
	ErrUsed       = errors.New("wire: this connection has had its one request")
	ErrSealed     = errors.New("wire: the connection is sealed against writes")
	ErrScheme     = errors.New("wire: the URL's scheme is not the connection's")
	ErrTooLarge   = errors.New("wire: the answer is larger than allowed")
	ErrUnframed   = errors.New("wire: the answer doesn't say where it ends")
	ErrStatus     = errors.New("wire: the answer's status code is none of HTTP's")
	ErrTimeout408 = errors.New("wire: the server answered 408 Request Timeout")
)

// Error is why there is no answer. It is ErrNotSent or ErrUnknown for
// errors.Is, and wraps the cause.
type Error struct {
	Outcome Outcome // NotSent or Unknown
	Err     error
}

func (e *Error) Error() string {
	if e.Outcome == NotSent {
		return fmt.Sprintf("wire: nothing was sent, it may be tried again: %v", e.Err)
	}
	return fmt.Sprintf("wire: the request may have arrived, look before sending again: %v", e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

func (e *Error) Is(target error) bool {
	return target == ErrNotSent && e.Outcome == NotSent || target == ErrUnknown && e.Outcome == Unknown
}

// Endpoint is where requests go. It is a value; its methods may be called by
// several goroutines.
type Endpoint struct {
	Network string      // "tcp" or "unix"
	Address string      // host:port, or the socket's path
	TLS     *tls.Config // nil speaks plain HTTP; without a ServerName it is taken from Host
	Host    string      // Host header of requests that name none; "" is Address on TCP and "localhost" elsewhere

	// MaxAnswer is the largest body of an answer in bytes; 0 is one MiB. A larger
	// one leaves the outcome unknown.
	MaxAnswer int64
	// UserTimeout is how long the kernel goes on delivering bytes that the peer
	// doesn't acknowledge (TCP_USER_TIMEOUT, Linux); 0 is ten seconds.
	UserTimeout time.Duration
}

const (
	defaultMaxAnswer   = 1 << 20
	defaultUserTimeout = 10 * time.Second
)

// Connect dials and, with TLS, shakes hands. It writes no byte of a request: an
// error is an *Error with the outcome NotSent. The Conn must be closed.
//
// A TCP connection lingers for nothing: when it is closed, or its process dies,
// the kernel forgets what it has not delivered instead of delivering it later.
func (e Endpoint) Connect(ctx context.Context) (*Conn, error) {
	conn, err := e.connect(ctx)
	if err != nil {
		return nil, &Error{NotSent, err}
	}
	return conn, nil
}

func (e Endpoint) connect(ctx context.Context) (_ *Conn, err error) {
	if e.MaxAnswer <= 0 {
		e.MaxAnswer = defaultMaxAnswer
	}
	if e.Host == "" {
		e.Host = "localhost"
		if _, _, err := net.SplitHostPort(e.Address); err == nil {
			e.Host = e.Address
		}
	}
	var dialer net.Dialer
	bare, err := dialer.DialContext(ctx, e.Network, e.Address)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			bare.Close()
		}
	}()
	sc, ok := bare.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("wire: a connection on network %q can't be peeked, use tcp or unix", e.Network)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, err
	}
	if t, ok := bare.(*net.TCPConn); ok {
		if err := e.tune(t, raw); err != nil {
			return nil, err
		}
	}
	c := &Conn{host: e.Host, max: e.MaxAnswer, socket: &socket{Conn: bare, raw: raw}}
	c.out.Conn = c.socket
	if e.TLS != nil {
		config := e.TLS.Clone()
		config.NextProtos = []string{"http/1.1"}
		if config.ServerName == "" {
			config.ServerName = e.Host
			if name, _, err := net.SplitHostPort(e.Host); err == nil {
				config.ServerName = name
			}
		}
		c.tls = tls.Client(c.socket, config)
		if err := c.tls.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		c.out.Conn = c.tls
	}
	return c, nil
}

func (e Endpoint) tune(t *net.TCPConn, raw syscall.RawConn) error {
	if err := t.SetLinger(0); err != nil {
		return err
	}
	if runtime.GOOS != "linux" {
		return nil
	}
	const tcpUserTimeout = 0x12 // not in package syscall
	if e.UserTimeout <= 0 {
		e.UserTimeout = defaultUserTimeout
	}
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(e.UserTimeout.Milliseconds()))
	})
	return errors.Join(err, failed)
}

// Client is this connection for a library that wants an *http.Client of its
// own. Its first request is sent by Do; every later one fails with ErrUsed. It
// follows no redirect. Where the library hides the outcome, Seal tells it.
func (c *Conn) Client() *http.Client {
	return &http.Client{
		Transport:     roundTripper{c},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
