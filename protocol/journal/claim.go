package journal

import (
	"context"
	"fmt"
	"sync"
)

// Claim is held from Store.Claim to Release, or to the death of its process.
type Claim struct {
	Effect ID
	// Proven says that whoever held the claim before is known to be dead or to
	// have released it. False after a takeover without proof of death.
	Proven  bool
	release func()
}

// NewClaim is for stores: release is called once, by the first Release.
func NewClaim(effect ID, proven bool, release func()) *Claim {
	return &Claim{Effect: effect, Proven: proven, release: sync.OnceFunc(release)}
}

// Release gives the claim up. It is called after the outcome was appended, or
// after that failed; calling it again does nothing.
func (c *Claim) Release() {
	if c != nil && c.release != nil {
		c.release()
	}
}

// Claim is the claim of a caller in this process: the log has one owner, so
// every earlier one is dead or has released it, and Proven is true. Only an
// owner's log gives claims, others return ErrMode.
func (l *Log) Claim(ctx context.Context, effect ID) (*Claim, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	if l.o.Mode != Owner {
		return nil, fmt.Errorf("%w: claims need the log's owner", ErrMode)
	}
	if since, ok := l.claims[effect]; ok {
		return nil, &HeldError{What: "effect " + effect.String(), Owner: l.me.String(), Since: since}
	}
	l.claims[effect] = l.now()
	return NewClaim(effect, true, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.claims, effect)
	}), nil
}
