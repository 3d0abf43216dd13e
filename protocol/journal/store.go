package journal

import (
	"context"
	"iter"
	"time"
)

// Store is a totally ordered append-only log that feeds a fold.
//
// A store knows bytes, order, durability and claims; it knows nothing of
// leases, premises or budgets. Opening one takes an apply function, which is
// called once per entry in log order, entries of other processes included, with
// the store's lock held: it must be quick and must not call the store. State
// lives in whatever apply folds into, once, for every store.
//
// Stores are safe for use by several goroutines. A store whose write or sync
// has failed is poisoned (I11): every method but Close returns ErrPoisoned.
type Store interface {
	// Update is one atomic step against every other, of whatever process:
	// catch up (apply), call fn, append what it returns (apply again), and
	// return when those entries and everything fn could see are durable. Callers
	// at work at the same time share one sync.
	//
	// fn runs with the store's lock held and must not call the store. When fn
	// returns an error nothing is appended and Update returns that error as it
	// is; when it returns no entries Update still waits for what fn saw. The
	// entries come back stamped. A nil error means durable. Any error that is
	// not fn's own leaves open whether the entries survive: that of ctx, because
	// others sync what was appended after the caller has left; any other
	// poisons, unless it says that nothing was appended (ErrFull alone, ErrMode,
	// an entry that can't be written).
	Update(ctx context.Context, fn func(Head) ([]Entry, error)) ([]Entry, error)

	// View catches up and calls fn with the lock held. It takes no append lock
	// and waits for no sync: an answer given from what fn saw may rest on
	// entries that a crash still takes away; call Durable first.
	View(ctx context.Context, fn func(Head)) error

	// Durable returns nil when all entries up to and including upTo are durable.
	Durable(ctx context.Context, upTo Seq) error

	// Claim takes the exclusive right of one caller to send or recover one
	// effect. It does not wait: ErrHeld, as a *HeldError, names the holder. The
	// kernel frees the claim of a dead process.
	Claim(ctx context.Context, effect ID) (*Claim, error)

	// Since yields the entries after the given position in order, bodies
	// included, reading them from the log. It ends after the first error.
	Since(after Seq) iter.Seq2[Entry, error]

	// Close releases what the store holds. A nil error says nothing of
	// durability; Update and Durable do.
	Close() error
}

// Opener opens a store and feeds every entry in it to apply before it returns.
// An error from apply stops the open and is returned wrapped.
type Opener func(apply func(Entry) error) (Store, error)

// Head is where a log stands when fn is called.
type Head struct {
	Segment uint64    // segment that the next entry goes to
	Seq     Seq       // last entry applied; 0 in an empty log
	Hash    Hash      // its hash; zero in an empty log
	Durable Seq       // highest entry that this process synced, or that a later record proves durable
	Proven  Seq       // highest entry that a later record proves durable: no damage can have it taken for a tear
	Now     time.Time // wall time that appended entries will be stamped with
}
