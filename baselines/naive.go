package baselines

import "context"

// NewNaive returns the plain retry: it runs the step, and after a restart runs
// it again. Every call carries a fresh id, as a framework's tool call does.
func NewNaive(e Env) (Column, error) { return &naive{Env: e}, nil }

type naive struct {
	Env
	calls int
}

func (n *naive) Recover(context.Context) (Told, bool, error) { return Told{}, false, nil }

func (n *naive) Submit(ctx context.Context, d Decision) (Told, error) {
	n.calls++
	status := "APPLIED"
	if d.Repeat {
		status = "RETRIED"
	}
	return said(d, status, n.send(ctx, d, n.callID(n.calls))), nil
}

func (n *naive) Close() error { return nil }
