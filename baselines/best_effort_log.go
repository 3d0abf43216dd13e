package baselines

import (
	"context"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// NewBestEffortLog returns the hand check whose log must never stop it: what can't
// be read counts as not there, and what can't be written is left out.
func NewBestEffortLog(e Env) (Column, error) {
	open := e.Journal
	e.Journal = func(mode journal.Mode, apply func(journal.Entry) error) (journal.Store, error) {
		store, err := open(mode, apply)
		if err != nil {
			store = nil
		}
		return &bestEffort{Store: store}, nil
	}
	return newHandCheck(e, true)
}

// bestEffort is a store that doesn't fail. Store is nil where it couldn't be
// opened.
type bestEffort struct {
	journal.Store
	off bool // from the first failure on
}

func (b *bestEffort) Update(ctx context.Context, fn func(journal.Head) ([]journal.Entry, error)) (entries []journal.Entry, err error) {
	if b.Store != nil && !b.off {
		entries, err = b.Store.Update(ctx, fn)
		b.off = err != nil
	}
	return entries, nil
}

func (b *bestEffort) View(ctx context.Context, fn func(journal.Head)) error {
	if b.Store == nil || b.off || b.Store.View(ctx, fn) != nil {
		b.off = true
		fn(journal.Head{}) // with what was read before
	}
	return nil
}

func (b *bestEffort) Close() error {
	if b.Store == nil {
		return nil
	}
	return b.Store.Close()
}
