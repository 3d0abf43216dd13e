package protocol

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/clock"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// AuthorityOptions are how a principal opens the authority. The zero value is
// ready to use.
type AuthorityOptions struct {
	Clock clock.Clock // nil is clock.System
	Trace trace.Func
}

// Authority is where principals grant and revoke, from processes of their own,
// also while the agent's process hangs or is dead. It is safe for use by several
// goroutines. An agent is never given one.
type Authority struct {
	store journal.Store
	drain *journal.Drain
	clock clock.Clock
	trace trace.Func
	state *authority
}

// OpenAuthority opens the authority log to append to it. The drain is the file
// of lease bytes beside it, nil where journal and authority are one database.
// The caller closes the drain.
func OpenAuthority(open journal.Opener, drain *journal.Drain, o AuthorityOptions) (*Authority, error) {
	a := &Authority{drain: drain, clock: o.Clock, trace: o.Trace, state: newAuthority()}
	if a.clock == nil {
		a.clock = clock.System
	}
	var err error
	a.store, err = open(a.state.apply)
	return a, err
}

// Close closes the log.
func (a *Authority) Close() error { return a.store.Close() }

// Grant records a lease. Nil means that it counts from now on: it is durable and
// a later record proves it. A *LeaseError means that nothing was recorded.
func (a *Authority) Grant(ctx context.Context, l Lease) error {
	if why := l.unfit(); why != "" {
		return &LeaseError{l.ID, why}
	}
	entry, err := record(journal.Granted, journal.ID{}, grantedBody{l})
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	entries, err := a.store.Update(ctx, func(journal.Head) ([]journal.Entry, error) {
		return []journal.Entry{entry}, a.state.admit(l)
	})
	if err != nil {
		return err
	}
	a.trace.At(PointGranted, "")
	return a.prove(ctx, entries[0].Seq)
}

// SetBudget records a budget, or another cap or other holders of one that the
// same principal set. Nil means that it counts from now on: it is durable, a later
// record proves it, and nothing is dispatched by what was set before. Effects that
// hold the budget keep what they hold. Setting it to what it is appends nothing
// and waits again.
//
// A *BudgetError means that nothing was recorded. ErrUndecided means that it is
// recorded and counts, and that the wait for dispatches under way ended with ctx.
func (a *Authority) SetBudget(ctx context.Context, b Budget) error {
	if why := b.unfit(); why != "" {
		return &BudgetError{b.Name, why}
	}
	entry, err := record(journal.Budgeted, journal.ID{}, budgetedBody{b})
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var set *budgeted
	_, err = a.store.Update(context.WithoutCancel(ctx), func(journal.Head) ([]journal.Entry, error) {
		if set = a.state.budgets[b.Name]; set != nil && set.same(b) {
			return nil, nil
		}
		return []journal.Entry{entry}, a.state.admitBudget(b)
	})
	if err != nil {
		return err
	}
	changed := set != nil
	err = a.store.View(ctx, func(journal.Head) { set = a.state.budgets[b.Name] })
	if err != nil {
		return err
	}
	a.trace.At(PointGranted, "")
	if err := a.prove(context.WithoutCancel(ctx), set.seq); err != nil {
		return err
	}
	if a.drain == nil || !changed {
		return nil
	}
	if err := a.drain.Exclude(ctx, set.first().seq); err != nil {
		return fmt.Errorf("%w: budget %q is set, and an effect may still go by what was set before; set it again to wait for that: %w", ErrUndecided, b.Name, err)
	}
	return nil
}

// prove makes sure that a later record proves entry n durable (C15).
func (a *Authority) prove(ctx context.Context, n journal.Seq) error {
	if err := journal.Prove(ctx, a.store, n); err != nil {
		return err
	}
	a.trace.At(PointSealed, "")
	return nil
}

// RevokeOptions say how Revoke goes about it.
type RevokeOptions struct {
	// Journal opens the gate's journal as a reader, to find the effects that are
	// in doubt under the lease. Nil, or a journal that doesn't exist yet, finds
	// none.
	Journal journal.Opener
	// Deadline limits the wait for dispatches under way; 0 sets no limit of its
	// own.
	Deadline time.Duration
}

// Revocation is what a revocation found.
type Revocation struct {
	Lease  string
	Holder string
	Doubt  []OpenEffect // in doubt or ambiguous under it: they may land or have landed
	// Undecided says that the drain passed its deadline: the revocation is
	// recorded and counts, and one dispatch of the holder may still be under way.
	Undecided bool
}

// Revoke ends a lease and every lease that replaces it. When it returns nil the
// revocation is durable and proved by a later record, and nothing is dispatched
// under the lease any more (I4); Doubt holds what was dispatched before and is
// not settled. Revoking again appends nothing, waits and reads again.
//
// *UndecidedError means that the revocation is recorded and that the wait for
// dispatches passed its deadline. *LeaseError means that nothing was recorded.
func (a *Authority) Revoke(ctx context.Context, lease string, o RevokeOptions) (Revocation, error) {
	r := Revocation{Lease: lease}
	entry, err := record(journal.Revoked, journal.ID{}, revokedBody{lease})
	if err != nil {
		return r, err
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	var of *grant
	_, err = a.store.Update(context.WithoutCancel(ctx), func(journal.Head) ([]journal.Entry, error) {
		if of = a.state.grants[lease]; of == nil {
			return nil, &LeaseError{lease, "was never granted"}
		}
		r.Holder = of.Holder
		if of.revoked != 0 {
			return nil, nil
		}
		return []journal.Entry{entry}, nil
	})
	if err != nil {
		return r, err
	}
	a.trace.At(PointRevoked, "")
	if err := a.prove(context.WithoutCancel(ctx), of.revoked); err != nil {
		return r, err
	}
	var undecided error
	if a.drain != nil {
		wait, cancel := a.clock.Timeout(ctx, o.Deadline)
		undecided = a.drain.Exclude(wait, of.first().seq)
		cancel()
		if undecided == nil {
			a.trace.At(PointDrained, "")
		}
	}
	if r.Doubt, err = a.doubt(ctx, o.Journal, lease); err != nil {
		return r, err
	}
	a.trace.At(PointJournalRead, "")
	if undecided != nil {
		r.Undecided = true
		return r, &UndecidedError{lease, r.Holder, undecided}
	}
	return r, nil
}

// doubt reads the journal for what is in doubt or ambiguous under the lease or
// one that replaces it.
func (a *Authority) doubt(ctx context.Context, open journal.Opener, lease string) (list []OpenEffect, err error) {
	if open == nil {
		return nil, nil
	}
	journaled := newState()
	store, err := open(journaled.apply)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	err = store.View(ctx, func(journal.Head) {
		for _, e := range journaled.liveInOrder() {
			if e.inDoubt() || e.final == Ambiguous {
				list = append(list, e.report())
			}
		}
	})
	if err != nil {
		return nil, err
	}
	within := list[:0]
	err = a.store.View(ctx, func(journal.Head) {
		for _, e := range list {
			if slices.ContainsFunc(e.leases, func(id string) bool { return a.state.under(id, lease) }) {
				within = append(within, e)
			}
		}
	})
	return within, err
}

// under reports whether id is the lease, or replaces it at some remove.
func (a *authority) under(id, lease string) bool {
	for g := a.grants[id]; g != nil; g = g.replaced {
		if g.ID == lease {
			return true
		}
	}
	return false
}
