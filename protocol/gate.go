// Package protocol is the gate: it makes an agent's effect happen at most once,
// under live authority, on premises that still hold, and proves it with a
// receipt.
package protocol

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/clock"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// Config is what a gate is opened with.
type Config struct {
	Namespace   string
	Journal     journal.Opener // the decisions; this process appends
	Authority   journal.Opener // the grants; opened to read, followed by View
	Drain       *journal.Drain // nil where Journal and Authority are one database
	Clock       clock.Clock    // nil is clock.System
	ClockMargin time.Duration  // by how much clocks may differ, declared once for all; 0 is one second
	Trace       trace.Func
	People      map[string]ed25519.PublicKey // who may settle an ambiguous effect
}

// Gate submits and recovers effects. It is safe for use by several goroutines
// and starts none of its own.
type Gate struct{}

// Result is what a caller is told.
type Result struct {
	Effect     journal.ID
	Status     Status
	Payload    json.RawMessage // as journaled; nil where nothing is
	RetryAfter time.Duration // 0: now, or never, by Status
	Owner      string        // IN_FLIGHT: who holds the claim, where somebody does
	Receipt    Receipt
	Recovered  Status // what an inline recovery did before this call was judged; zero where none ran
}

// Open opens the journal, reads the authority and reports what is open through
// Report. It sends nothing and starts no goroutine.
func Open(ctx context.Context, c Config) (*Gate, error) { panic("being written") }

// Register names the target for an action. Capabilities that don't fit together
// are refused as a *MisfitError, and nothing is registered.
func (g *Gate) Register(action string, t Target) error { panic("being written") }

// Submit decides and sends.
func (g *Gate) Submit(ctx context.Context, p Proposal) (Result, error) { panic("being written") }

// RecoverOptions say how Recover goes about it. The zero value works and returns.
type RecoverOptions struct {
	Wait bool // wait for bounds, lags and retry times, until nothing open can be settled by waiting
}

// Recover takes every open effect as far as it can.
func (g *Gate) Recover(ctx context.Context, o RecoverOptions) ([]Result, error) {
	panic("being written")
}

// Close releases the journal. Effects in flight stay open in it.
func (g *Gate) Close() error { panic("being written") }

// Receipt is what the journal proves about one effect.
type Receipt struct{}
