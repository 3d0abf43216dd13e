// Package clock is the time the gate lives by, passed in so that a caller can
// own it.
package clock

import (
	"context"
	"time"
)

// Clock tells time and waits for it. Implementations are safe for use by
// several goroutines.
type Clock interface {
	// Now is the wall clock. It may be wrong and may jump; leases expire and
	// key windows end by it.
	Now() time.Time

	// Mono counts up from an arbitrary start and is never set. It says nothing
	// across processes. Landing bounds are waited out on it (I10).
	Mono() time.Duration

	// Wait returns nil when d has passed on the monotonic clock, or ctx's error
	// when that ends first. A d of zero or less returns at once.
	Wait(ctx context.Context, d time.Duration) error

	// Timeout returns a context that ends with context.DeadlineExceeded as its
	// cause when d has passed on the monotonic clock. The timer is armed when
	// Timeout returns and disarmed when cancel does; cancel must be called.
	// A d of zero or less sets no limit.
	Timeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// System is the machine's clock.
var System Clock = system{start: time.Now()}

type system struct{ start time.Time }

func (system) Now() time.Time        { return time.Now() }
func (s system) Mono() time.Duration { return time.Since(s.start) }

func (system) Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (system) Timeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, context.DeadlineExceeded)
}
