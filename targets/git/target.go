package git

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// Target is a repository as the gate sees it. The payload of an effect is a
// Change. It dedupes for as long as the branch keeps its history, can be asked
// what landed, checks premises itself when asked to, and fences.
type Target struct {
	Repo *Repo
	// Facts reads what a premise speaks of in a commit. A fact that is gone is a
	// value, too; an error is a commit that can't be read. Values are JSON objects.
	Facts   func(ctx context.Context, commit string, p protocol.Premise) (json.RawMessage, error)
	Timeout time.Duration // of each call; 0 sets no limit
	Trace   trace.Func
}

var _ protocol.Fencer = Target{}

// keeps is how long a branch is said to keep its history. Whoever rewrites a
// branch makes it forget, and a premise on its base sees that.
const keeps = 50 * 365 * 24 * time.Hour

// Capabilities of every repository. There is no landing bound: a landing is
// bounded by the lock that it holds, which Fence waits for.
func (t Target) Capabilities() protocol.Capabilities {
	return protocol.Capabilities{
		ClientTimeout: t.Timeout,
		DedupWindow:   keeps, DedupMargin: time.Hour,
		Lookup: true, Conditional: true, Fencing: true,
	}
}

// PayloadOf is c as the gate journals it.
func PayloadOf(c Change) (json.RawMessage, error) { return json.Marshal(c) }

func changeOf(r protocol.Request) (c Change, err error) {
	if err = json.Unmarshal(r.Payload, &c); err != nil {
		err = fmt.Errorf("%w: %w", ErrChange, err)
	}
	return c, err
}

// Prepare finds out whether the branch can be landed on.
func (t Target) Prepare(ctx context.Context, r protocol.Request) (protocol.Attempt, error) {
	c, err := changeOf(r)
	if err != nil {
		return nil, err
	}
	if err := t.Repo.Landable(ctx, c.Branch); err != nil {
		return nil, err
	}
	return &attempt{t, r, c}, nil
}

// Lookup searches the branch for the effect's trailer.
func (t Target) Lookup(ctx context.Context, r protocol.Request) (protocol.Finding, error) {
	c, err := changeOf(r)
	if err != nil {
		return protocol.Finding{}, err
	}
	found, ok, err := t.Repo.Find(ctx, c.Branch, c.Base, r.Effect.String())
	if err != nil {
		return protocol.Finding{}, err
	}
	t.Trace.At(PointAsked, r.Effect.String())
	if !ok {
		return protocol.Finding{}, nil
	}
	result, err := json.Marshal(found)
	return protocol.Finding{Landed: true, Same: found.Digest == c.Digest(), Result: result}, err
}

// Observe reads a premise where the branch stands, or where it stood before this
// effect landed: a change is no reason against itself.
func (t Target) Observe(ctx context.Context, p protocol.Premise, r protocol.Request) (json.RawMessage, error) {
	c, err := changeOf(r)
	if err != nil {
		return nil, err
	}
	tip, err := t.Repo.Tip(ctx, c.Branch)
	if err != nil {
		return nil, err
	}
	if found, ok, err := t.Repo.findFrom(ctx, c.Base, tip, r.Effect.String()); err != nil {
		return nil, err
	} else if ok {
		tip = found.Parent
	}
	return t.Facts(ctx, tip, p)
}

// Fence refuses older attempts.
func (t Target) Fence(_ context.Context, effect journal.ID, token journal.Token) error {
	return t.Repo.Fence(effect.String(), ordered(token))
}

func ordered(t journal.Token) [2]uint64 { return [2]uint64{uint64(t.Segment), uint64(t.Seq)} }

// attempt is one landing, prepared.
type attempt struct {
	target  Target
	request protocol.Request
	change  Change
}

// staleError is a premise that the target found changed.
type staleError struct{ name, why string }

func (e *staleError) Error() string { return fmt.Sprintf("premise %q %s", e.name, e.why) }

func (a *attempt) Send(ctx context.Context, e protocol.Envelope) protocol.Answer {
	landed, err := a.target.Repo.Land(ctx, Landing{
		Effect: a.request.Effect.String(), Request: a.request.Request, Anchor: e.Anchor.String(),
		Token: ordered(e.Token), Change: a.change, Holds: a.holds, Trace: a.target.Trace,
	})
	if err == nil {
		result, err := json.Marshal(landed)
		if err != nil {
			return protocol.Answer{Reason: err.Error()}
		}
		return protocol.Answer{Outcome: protocol.Done, Result: result}
	}
	answer := protocol.Answer{Reason: err.Error()}
	var stale *staleError
	switch {
	case errors.As(err, &stale):
		answer.Outcome, answer.Premise = protocol.PremiseFailed, stale.name
	case errors.Is(err, ErrConflict), errors.Is(err, ErrMoved): // what it was made on is gone
		answer.Outcome, answer.Premise = protocol.PremiseFailed, "base"
	case errors.Is(err, ErrChange):
		answer.Outcome = protocol.Rejected
	case errors.Is(err, ErrOther), errors.Is(err, ErrInDoubt): // unknown: a lookup tells
	default:
		answer.Outcome = protocol.NotExecuted
	}
	return answer
}

// holds evaluates the premises that the target is to check, on the commit that
// the change is about to be put on.
func (a *attempt) holds(ctx context.Context, commit string) error {
	for _, p := range a.request.Premises {
		value, err := a.target.Facts(ctx, commit, p)
		if err != nil {
			return fmt.Errorf("premise %q can't be read: %w", p.Name, err)
		}
		want := p.Want
		if len(want) == 0 {
			want = p.Seen
		}
		form, err := protocol.Canonical(value)
		if err != nil {
			return fmt.Errorf("premise %q has no value that can be compared: %w", p.Name, err)
		}
		if !bytes.Equal(form, want) { // which the gate has made canonical
			return &staleError{p.Name, fmt.Sprintf("is %s, not %s", form, want)}
		}
	}
	return nil
}

func (a *attempt) Close() error { return nil }
