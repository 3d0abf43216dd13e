// Package proxy is a middle between a client and its service that misbehaves on
// purpose. It reads a whole request and, where it delivers it, the whole answer,
// before it does what it was told to: so the service certainly did it, or
// certainly not, and the client can't know which. It knows HTTP and nothing of
// what is sent.
package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// RequestRead is passed when a request that may be met was read whole, and not
// delivered yet.
const RequestRead trace.Point = "wire/request-read"

// Mode is how the middle treats one request.
type Mode string

const (
	ResetBefore Mode = "reset-before-commit" // not delivered; the client's connection is reset
	ResetAfter  Mode = "reset-after-commit"  // delivered; the connection is reset
	CloseBefore Mode = "close-before-commit" // not delivered; the connection is closed in order
	CloseAfter  Mode = "close-after-commit"  // delivered; the connection is closed in order
	BlackHole   Mode = "black-hole"          // delivered; no answer comes
	LostBefore  Mode = "lost-before-commit"  // not delivered; no answer comes
	HalfAnswer  Mode = "half-answer"         // delivered; half of the answer's body comes
	BadGateway  Mode = "bad-gateway"         // delivered; the middle answers 502 itself
	Late        Mode = "late"                // the connection is reset; delivered Delay later
	Doubled     Mode = "doubled"             // delivered twice; the first answer comes
)

// Modes are all of them.
func Modes() []Mode {
	return []Mode{ResetBefore, ResetAfter, CloseBefore, CloseAfter, BlackHole, LostBefore, HalfAnswer, BadGateway, Late, Doubled}
}

// Delay is how much later a late request is delivered.
const Delay = 20 * time.Second

// Host is the world that a proxy lives in; a part of a trial's stage is one.
type Host interface {
	After(d time.Duration, what string, fn func()) (stop func())
	Withhold(ctx context.Context)
	Pass(p trace.Point, subject string) bool
}

// Proxy is one middle. Its methods may be called by several goroutines.
type Proxy struct {
	host   Host
	to     func() (net.Conn, error)
	meets  func(*http.Request) bool
	listen net.Listener
	served sync.WaitGroup

	mu     sync.Mutex
	next   Mode
	count  int
	late   bool
	closed bool
	conns  map[net.Conn]bool
}

// New is a proxy in front of the service that to dials, on l, which it closes.
// Only requests that meets accepts are counted and misused; all others are
// delivered. The caller closes the proxy.
func New(h Host, l net.Listener, to func() (net.Conn, error), meets func(*http.Request) bool) *Proxy {
	p := &Proxy{host: h, to: to, meets: meets, listen: l, conns: map[net.Conn]bool{}}
	p.served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if !p.keep(conn) {
				return
			}
			p.served.Go(func() {
				defer p.drop(conn)
				p.serve(conn)
			})
		}
	})
	return p
}

// Next lets the next request be treated so; one that stands at RequestRead is
// the next.
func (p *Proxy) Next(m Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = m
}

// Count is how many requests that may be met were read whole from a client.
func (p *Proxy) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// Delivering says whether a late request is being delivered right now: then the
// service's client is this middle, whatever became of the one who sent it.
func (p *Proxy) Delivering() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.late
}

// Close ends the proxy with all its connections, and returns when it is at rest.
func (p *Proxy) Close() error {
	err := p.listen.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.served.Wait()
	return err
}

func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	c.Close()
}

// serve is one connection: one request and what becomes of it.
func (p *Proxy) serve(client net.Conn) {
	var raw bytes.Buffer
	in := bufio.NewReader(io.TeeReader(client, &raw))
	req, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.served.Go(func() { // the client gives up by closing
		io.Copy(io.Discard, client)
		cancel()
	})

	mode := Mode("")
	if p.meets(req) {
		p.mu.Lock()
		p.count++
		p.mu.Unlock()
		p.host.Pass(RequestRead, "")
		p.mu.Lock()
		mode, p.next = p.next, ""
		p.mu.Unlock()
	}
	p.treat(ctx, mode, client, raw.Bytes())
}

func (p *Proxy) treat(ctx context.Context, mode Mode, client net.Conn, request []byte) {
	deliver := func() []byte {
		answer, _ := p.deliver(ctx, request) // a service that gives none has its client see none
		return answer
	}
	switch mode {
	case ResetBefore:
		reset(client)
	case CloseBefore:
	case LostBefore:
		p.host.Withhold(ctx)
	case Late:
		p.host.After(Delay, "a late request is delivered", func() { p.deliverLate(request) })
		reset(client)
	case ResetAfter:
		deliver()
		reset(client)
	case CloseAfter:
		deliver()
	case BlackHole:
		deliver()
		p.host.Withhold(ctx)
	case HalfAnswer:
		answer := deliver()
		_, body, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
		client.Write(answer[:len(answer)-(len(body)+1)/2])
	case BadGateway:
		deliver()
		io.WriteString(client, "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 12\r\nConnection: close\r\n\r\nbad gateway\n")
	case Doubled:
		answer := deliver()
		deliver()
		client.Write(answer)
	default:
		client.Write(deliver())
	}
}

// deliver sends a request to the service and reads its answer whole, until ctx
// ends.
func (p *Proxy) deliver(ctx context.Context, request []byte) ([]byte, error) {
	service, err := p.to()
	if err != nil {
		return nil, err
	}
	if !p.keep(service) {
		return nil, net.ErrClosed
	}
	defer p.drop(service)
	defer context.AfterFunc(ctx, func() { service.Close() })()
	if _, err := service.Write(request); err != nil {
		return nil, err
	}
	var raw bytes.Buffer
	answer, err := http.ReadResponse(bufio.NewReader(io.TeeReader(service, &raw)), nil)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return raw.Bytes(), errors.Join(err, answer.Body.Close())
}

// deliverLate delivers for a client that is gone.
func (p *Proxy) deliverLate(request []byte) {
	set := func(late bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.late = late
	}
	set(true)
	defer set(false)
	p.deliver(context.Background(), request) // nobody waits for the answer
}

// reset closes a TCP connection so that the other end sees a reset.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}
