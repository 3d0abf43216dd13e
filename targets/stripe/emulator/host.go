package emulator

import (
	"context"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// Points that one request for money passes, in order. They lie on the wire, so
// they are passed whatever program the client is.
const (
	RequestRead trace.Point = "stripe/request-read" // a whole request for a refund was read
	Accepted    trace.Point = "stripe/accepted"     // its endpoint runs, and its key is in use
	Applied     trace.Point = "stripe/applied"      // the refund exists
	AnswerReady trace.Point = "stripe/answer-ready" // nothing of the answer was written yet
)

// Points are those above.
func Points() []trace.Point { return []trace.Point{RequestRead, Accepted, Applied, AnswerReady} }

// Host is the world that the emulator lives in: time, a recorder and somebody
// who watches. Its methods are called by several goroutines. None may call the
// server back, except from Pass and from functions given to After.
type Host interface {
	Now() time.Time      // wall clock: what "created" says, and what webhooks are stamped with
	Mono() time.Duration // everything else goes by it

	// After calls fn once when d has passed on Mono, unless stop is called before,
	// and returns only when the handler that fn woke has left Withhold.
	After(d time.Duration, what string, fn func()) (stop func())

	// Withhold blocks until ctx ends: a client waits for an answer that is not
	// coming for now.
	Withhold(ctx context.Context)

	// Record writes an event down and returns its number. The server may hold its
	// lock.
	Record(kind history.Kind, subject string, body any) int

	// Pass reports a point and may block. False says that the client is dead: the
	// server records nothing more of its request, but for what becomes of it once
	// it was accepted. The server holds no lock.
	Pass(p trace.Point, subject string) bool
}
