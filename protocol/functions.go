package protocol

import (
	"context"
	"encoding/json"
	"errors"
)

// Functions is a Target made of plain functions, for a service that is spoken to
// by somebody else's library, or called.
//
// Nothing connects before the dispatch, so a service that can't be reached is
// found out by Do alone. Premises are read before Do is called; how long that
// takes is in the window that I3 leaves.
type Functions struct {
	Can Capabilities

	// Do makes the request, once, and says what came of it. The Answer is what is
	// certain: where it isn't known whether the service did it, the zero Answer.
	Do func(ctx context.Context, r Request, e Envelope) Answer

	// Find is Target.Lookup; needed where Can.Lookup is declared.
	Find func(ctx context.Context, r Request) (Finding, error)

	// Read is Target.Observe; needed where proposals have premises that the gate
	// reads.
	Read func(ctx context.Context, p Premise, r Request) (json.RawMessage, error)
}

// Capabilities is Can.
func (f Functions) Capabilities() Capabilities { return f.Can }

// Prepare returns an Attempt whose Send is Do.
func (f Functions) Prepare(ctx context.Context, r Request) (Attempt, error) {
	return call{f, r}, ctx.Err()
}

// Lookup is Find.
func (f Functions) Lookup(ctx context.Context, r Request) (Finding, error) {
	return f.Find(ctx, r)
}

// Observe is Read.
func (f Functions) Observe(ctx context.Context, p Premise, r Request) (json.RawMessage, error) {
	if f.Read == nil {
		return nil, errors.New("protocol: this target has no function Read, so no premise can be read")
	}
	return f.Read(ctx, p, r)
}

// misfit says what is missing; "" is nothing.
func (f Functions) misfit() string {
	switch {
	case f.Do == nil:
		return "it has no function Do"
	case f.Can.Lookup && f.Find == nil:
		return "it declares a lookup and has no function Find"
	}
	return ""
}

// call is a prepared Do.
type call struct {
	of Functions
	r  Request
}

func (c call) Send(ctx context.Context, e Envelope) Answer { return c.of.Do(ctx, c.r, e) }
func (c call) Close() error                                { return nil }
