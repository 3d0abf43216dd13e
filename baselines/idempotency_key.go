package baselines

import "context"

// NewIdempotencyKey returns the column that sends a stable idempotency key, the
// request id, and remembers nothing.
func NewIdempotencyKey(e Env) (Column, error) { return idempotencyKey{e}, nil }

type idempotencyKey struct{ Env }

func (k idempotencyKey) Recover(context.Context) (Told, bool, error) { return Told{}, false, nil }

func (k idempotencyKey) Submit(ctx context.Context, d Decision) (Told, error) {
	r := k.send(ctx, d, d.Request)
	status := "APPLIED:" + r.Word
	if d.Repeat {
		status = "RETRIED"
	}
	return said(d, status, r), nil
}

func (k idempotencyKey) Close() error { return nil }
