package sim

import (
	"context"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// Points of the service. They lie on the wire, so they are passed whatever
// program the client is.
const (
	RequestRead trace.Point = "sim/request-read" // a whole request for a refund was read
	Accepted    trace.Point = "sim/accepted"     // it will be applied, though its client may die
	Applied     trace.Point = "sim/applied"      // money moved
	AnswerReady trace.Point = "sim/answer-ready" // nothing of the answer was written yet
)

// Points of the client; every column passes them.
const (
	BeforeSend    trace.Point = "before-send"    // connected, peeked, no byte written
	ReplyReceived trace.Point = "reply-received" // the answer was read whole
)

// Points are the service's, in the order one request passes them.
func Points() []trace.Point { return []trace.Point{RequestRead, Accepted, Applied, AnswerReady} }

// ClientPoints are the client's, in the order one request passes them.
func ClientPoints() []trace.Point { return []trace.Point{BeforeSend, ReplyReceived} }

// Host is the world that a service lives in: time, a recorder and somebody who
// watches. Its methods are called by several goroutines. None may call the
// server back, except from Pass and from functions given to After.
type Host interface {
	Now() time.Time      // wall clock; leases expire by it
	Mono() time.Duration // everything else goes by it

	// After calls fn once when d has passed on Mono, unless stop is called
	// before. fn is called without locks of the host's held: it records, passes
	// points, and returns only when the handler that it woke has left Withhold.
	After(d time.Duration, what string, fn func()) (stop func())

	// Withhold blocks until ctx ends. While it does, one client waits for an
	// answer that is not coming for now.
	Withhold(ctx context.Context)

	// Record writes an event down and returns its number. The server may hold
	// its lock.
	Record(kind history.Kind, subject string, body any) int

	// Pass reports a point and may block. False says that the client is dead: the
	// server records nothing more of its request, but for what a timer of After's
	// does with one that was accepted. The server holds no lock.
	Pass(p trace.Point, subject string) bool
}

// RealHost is the machine's time and nobody watching.
type RealHost struct {
	Started time.Time // where Mono counts from
	// OnRecord is told of every event, numbered by nobody. Nil tells nobody.
	OnRecord func(kind history.Kind, subject string, body any)
}

func (h RealHost) Now() time.Time               { return time.Now() }
func (h RealHost) Mono() time.Duration          { return time.Since(h.Started) }
func (h RealHost) Withhold(ctx context.Context) { <-ctx.Done() }

func (h RealHost) After(d time.Duration, _ string, fn func()) (stop func()) {
	t := time.AfterFunc(d, fn)
	return func() { t.Stop() }
}

func (h RealHost) Record(kind history.Kind, subject string, body any) int {
	if h.OnRecord != nil {
		h.OnRecord(kind, subject, body)
	}
	return 0
}

func (h RealHost) Pass(trace.Point, string) bool { return true }
