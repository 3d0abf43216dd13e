package protocol

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Target is the service that effects of one action land on. What the gate
// promises follows from what Capabilities declares. Methods may be called by
// several goroutines; each gets a context that ends with the client's timeout.
type Target interface {
	// Capabilities are constant for the life of the value.
	Capabilities() Capabilities

	// Prepare connects, handshake included, and writes no byte of the request.
	// An error means certainly nothing sent.
	Prepare(ctx context.Context, r Request) (Attempt, error)

	// Lookup asks whether the request's effect landed, and as what. An error is
	// not an absence (I10).
	Lookup(ctx context.Context, r Request) (Finding, error)

	// Observe reads the present value of a premise. An error is not a change.
	Observe(ctx context.Context, p Premise, r Request) (json.RawMessage, error)
}

// Fencer is a Target that can refuse older attempts of one effect, atomically
// with applying them (C17, C32). Nil means acknowledged: from now on no request
// with a lesser token for this effect is applied.
type Fencer interface {
	Fence(ctx context.Context, effect journal.ID, token journal.Token) error
}

// Request is what is sent: the same in every attempt of one effect.
type Request struct {
	Effect  journal.ID // also the idempotency key
	Request string     // request id
	Action  string
	Payload json.RawMessage // canonical; as journaled, but with the secrets where the caller brought them
	// Withheld are the fields of Payload that hold only the digest of a secret,
	// because the caller's payload is not at hand. Such a request is looked up, or
	// has its premises read, and is not sent: what the target holds is to be
	// compared in the other fields.
	Withheld []string
	// Premises are those that the target is to check itself, atomically with the
	// effect (ByTarget).
	Premises []Premise
}

// Attempt is a prepared connection for one request (I14).
type Attempt interface {
	// Send writes the request once and reads the answer. The zero Answer means
	// that nothing is known.
	Send(ctx context.Context, e Envelope) Answer
	// Close gives the connection up. After Close without Send certainly nothing
	// was sent.
	Close() error
}

// Envelope is what is known only once the attempt is journaled.
type Envelope struct {
	Anchor journal.Hash  // hash of the effect's first DISPATCHED, the same in every attempt
	Token  journal.Token // this attempt; travels only where the target doesn't compare it with the key
}

// Answer is what came back from one Send.
type Answer struct {
	Outcome    Outcome
	Result     json.RawMessage // Done: what the target returned, whole
	Premise    string          // PremiseFailed: which
	Reason     string          // the target's words, for people
	RetryAfter time.Duration   // NotExecuted: when to try again; 0 where the target doesn't say
	Replayed   bool            // the key replays a stored failure: repeating it can't succeed before the window ends
}

// Outcome classes an answer by the rows of the submit table.
type Outcome int

const (
	Unknown       Outcome = iota // S18: timeout, reset, 5xx, broken or "in progress"
	Done                         // S15
	PremiseFailed                // S15b: a premise the target checks itself failed; nothing done
	Rejected                     // S16: a no that the target declares final; nothing done
	NotExecuted                  // S17: declared not executed, but temporary (401, 429)
	NotSent                      // S17: no write was attempted
)

// Finding is what a lookup saw.
type Finding struct {
	Landed bool
	Same   bool            // Landed: with the content that the request has; false is UNRESOLVED:mismatch (C24)
	Result json.RawMessage // Landed: what the target holds, whole
}

// Capabilities are what a target declares. The zero value promises nothing:
// tier 3.
type Capabilities struct {
	ClientTimeout time.Duration // of each call; 0 sets no limit

	DedupWindow time.Duration // repeats of a key are absorbed this long after its first attempt; 0: doesn't dedupe
	DedupMargin time.Duration // taken off the window; covers landing bound and clocks

	Lookup       bool          // can be asked
	LookupLag    time.Duration // how stale its answer may be
	LookupWindow time.Duration // how long a landed effect can be found; 0: for ever

	LandingBound time.Duration // how long after a send ended it may still land; 0: unknown
	BoundAssumed string        // who assumed the bound, where the target doesn't promise it; printed on the receipt

	Conditional bool // evaluates ByTarget premises atomically with the effect
	Fencing     bool // implements Fencer
}

// Tier is what the capabilities amount to: 1 dedupes, 2 can be looked up, 3 does
// neither. It is derived and can't be set.
func (c Capabilities) Tier() int {
	switch {
	case c.DedupWindow > 0:
		return 1
	case c.Lookup:
		return 2
	}
	return 3
}

// misfit says in one sentence what contradicts itself in c; "" is nothing.
func (c Capabilities) misfit(fencer bool, clocks time.Duration) string {
	for _, d := range []time.Duration{c.ClientTimeout, c.DedupWindow, c.DedupMargin, c.LookupLag, c.LookupWindow, c.LandingBound} {
		if d < 0 {
			return fmt.Sprintf("a duration of %v is negative", d)
		}
	}
	usable := c.DedupWindow - c.DedupMargin
	switch {
	case c.DedupWindow == 0 && c.DedupMargin > 0:
		return fmt.Sprintf("a margin of %v needs a dedup window", c.DedupMargin)
	case c.DedupWindow > 0 && usable <= 0:
		return fmt.Sprintf("the dedup window of %v is not longer than its margin of %v", c.DedupWindow, c.DedupMargin)
	case c.DedupWindow > 0 && c.DedupMargin == 0:
		return "a dedup window needs a margin, which covers clocks and late landings"
	case c.DedupWindow > 0 && c.LandingBound > 0 && c.DedupMargin < c.LandingBound+clocks:
		return fmt.Sprintf("the dedup margin of %v doesn't cover the landing bound of %v and the clock margin of %v", c.DedupMargin, c.LandingBound, clocks)
	case c.DedupWindow > 0 && c.ClientTimeout >= usable:
		return fmt.Sprintf("the client timeout of %v is not shorter than the dedup window less its margin, %v", c.ClientTimeout, usable)
	case !c.Lookup && (c.LookupLag > 0 || c.LookupWindow > 0):
		return "a lookup lag or window needs a lookup"
	case c.LookupWindow > 0 && c.LookupWindow <= c.LookupLag+c.LandingBound+clocks:
		return fmt.Sprintf("the lookup window of %v is over before an absence can count, after lag %v, landing bound %v and clock margin %v", c.LookupWindow, c.LookupLag, c.LandingBound, clocks)
	case c.Fencing && !fencer:
		return "it declares fencing and has no Fence method"
	case c.BoundAssumed != "" && c.LandingBound == 0:
		return fmt.Sprintf("%s assumes a landing bound that is not given", c.BoundAssumed)
	}
	return ""
}
