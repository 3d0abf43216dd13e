package sweep

import (
	"context"
	"errors"
	"slices"
	"time"
)

// clock stands still until somebody waits or the world moves it. What is due on
// the way happens then. A machine is one goroutine, and so is its clock.
type clock struct {
	mono time.Duration
	due  []appointment
}

type appointment struct {
	at time.Duration
	do func()
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (c *clock) Now() time.Time      { return epoch.Add(c.mono) }
func (c *clock) Mono() time.Duration { return c.mono }

func (c *clock) Wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.advance(d)
	return ctx.Err()
}

// Timeout never comes: what a target does takes no time, unless it says unknown.
func (c *clock) Timeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

func (c *clock) after(d time.Duration, do func()) {
	c.due = append(c.due, appointment{c.mono + d, do})
	slices.SortStableFunc(c.due, func(a, b appointment) int { return int(a.at - b.at) })
}

func (c *clock) advance(d time.Duration) {
	end := c.mono + max(d, 0)
	for len(c.due) > 0 && c.due[0].at <= end {
		next := c.due[0]
		c.due, c.mono = c.due[1:], next.at
		next.do()
	}
	c.mono = end
}

// impatient is a principal's clock: whoever holds a lease's byte holds it until
// the principal is through, since all is one goroutine, so waiting is over at
// once.
type impatient struct{ *clock }

var errImpatient = errors.New("sweep: nobody lets go while we wait")

func (c impatient) Timeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(errImpatient)
	return ctx, func() {}
}
