package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	driver "modernc.org/sqlite"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// Options are how a log is opened. The zero value opens what is there, to
// append.
type Options struct {
	Namespace string           // written in a new log; another one found is ErrNamespace. "" means whatever is there, and can't create
	Now       func() time.Time // stamps entries; nil is time.Now
	Trace     trace.Func
	// Reader appends nothing, claims nothing and makes nothing: Update and Claim
	// are ErrMode.
	Reader bool
	// Restored says that the database comes from a backup, so that entries may be
	// missing at its end (C22): segment numbers go on far above every one that may
	// have been used, an OPENED with a raised epoch is appended, and every effect
	// without an outcome is SUSPECT. It takes a log that nobody else has open.
	Restored bool
	Identity string // for people: what this process is; "" is the command's name
	// Patience is how long an update, or an opening, waits for another process's
	// turn to end before it is ErrHeld; 0 is ten seconds.
	Patience time.Duration
}

// Store is a log in a database. Any number of processes have it open at the same
// time, and a process may open it more than once.
type Store struct {
	path    string
	o       Options
	apply   func(journal.Entry) error
	opening uint64 // number of this opening; 0 for a reader
	id      journal.FileID
	db      *sql.DB
	claims  *claims
	wal     *room

	lead    chan struct{} // held by the caller who appends for all
	waiting queue

	// mu is the store's lock: it covers the fold and what follows. While
	// committing is set the connection is the leader's, and since the leader has
	// the database's write lock there is nothing to catch up with.
	mu         sync.Mutex
	conn       *sql.Conn
	stmts      statements
	err        error // why nothing more is done: ErrPoisoned or ErrClosed
	committing chan struct{}
	version    int64 // of the database when it was last caught up with
	at         position
	segment    uint64 // raised last, by whomever
	durable    journal.Seq
	proven     journal.Seq
	trails     map[journal.ID]trail
	epoch      uint64
	expect     []head // what the claims file says must come by, while opening
}

// position is an entry's place in the log.
type position struct {
	seq  journal.Seq
	hash journal.Hash
}

// trail is what the store keeps of one effect.
type trail struct {
	hash journal.Hash // of its last entry
	kind journal.Kind // of its last entry
	open journal.Seq  // its last proposal, while no outcome followed; 0 for none
}

type statements struct {
	version, segment, entries, insert *sql.Stmt
}

// Opener returns an Opener for Open, for callers that choose the store.
func Opener(path string, o Options) journal.Opener {
	return func(apply func(journal.Entry) error) (journal.Store, error) {
		s, err := Open(path, o, apply)
		if err != nil {
			return nil, err // not a nil *Store in a journal.Store
		}
		return s, nil
	}
}

// now is the wall time as entries carry it.
func (s *Store) now() time.Time { return time.Unix(0, s.o.Now().UnixNano()).UTC() }

func (s *Store) claimsPath() string { return s.path + "-claims" }

func (s *Store) broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *Store) head() journal.Head {
	return journal.Head{Segment: s.segment, Seq: s.at.seq, Hash: s.at.hash, Durable: s.durable, Proven: s.proven, Now: s.now()}
}

// View is Store.View. Where nothing is new it costs one statement.
func (s *Store) View(ctx context.Context, fn func(journal.Head)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.patiently(ctx, s.look); err != nil {
		return err
	}
	fn(s.head())
	return nil
}

// look is catchUp where that is called for.
func (s *Store) look() error {
	if s.err != nil || s.committing != nil {
		return s.err
	}
	return s.catchUp()
}

// Durable is Store.Durable. What other processes appended is durable when it can
// be read.
func (s *Store) Durable(ctx context.Context, upTo journal.Seq) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.err != nil {
			return s.err
		}
		if s.durable >= upTo {
			return nil
		}
		if upTo > s.at.seq {
			return fmt.Errorf("journal: there is no entry %d to wait for, the last is %d", upTo, s.at.seq)
		}
		done := s.committing
		s.mu.Unlock()
		var left error
		select {
		case <-done:
		case <-ctx.Done():
			left = ctx.Err()
		}
		s.mu.Lock()
		if left != nil {
			return left
		}
	}
}

// Since is Store.Since. It yields what is in the log when it is called, all of
// it durable. It holds no lock and no transaction while the caller has an entry.
func (s *Store) Since(after journal.Seq) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		var upTo journal.Seq
		err := s.View(context.Background(), func(h journal.Head) { upTo = h.Seq })
		if err == nil {
			err = s.Durable(context.Background(), upTo)
		}
		if err != nil {
			yield(journal.Entry{}, err)
			return
		}
		for n := 1; after < upTo; n = min(4*n, 1024) {
			entries, err := s.read(after, min(upTo, after+journal.Seq(n)))
			if err != nil {
				yield(journal.Entry{}, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
		}
	}
}

const columns = "seq, segment, time, kind, effect, prev, before, hash, durable, body"

// read reads entries behind after up to upTo, at least one and at most a few
// megabytes of them.
func (s *Store) read(after, upTo journal.Seq) (entries []journal.Entry, err error) {
	rows, err := s.db.QueryContext(context.Background(), "SELECT "+columns+" FROM entry WHERE seq > ? AND seq <= ? ORDER BY seq", int64(after), int64(upTo))
	if err != nil {
		return nil, s.failed("read", err)
	}
	defer rows.Close()
	for size := 0; size < 4<<20 && rows.Next(); {
		e, _, err := scan(rows)
		if err != nil {
			return nil, s.failed("read", err)
		}
		if e.Seq != after+1 || e.Sum() != e.Hash {
			return nil, s.corrupt(after+1, "it is missing, or doesn't match its hash")
		}
		entries, after, size = append(entries, e), e.Seq, size+len(e.Body)
	}
	if err := rows.Err(); err != nil {
		return nil, s.failed("read", err)
	}
	if len(entries) == 0 {
		return nil, s.corrupt(after+1, "it is missing")
	}
	return entries, nil
}

// scan reads one row of entry, with its durable column.
func scan(rows *sql.Rows) (e journal.Entry, durable journal.Seq, err error) {
	var seq, segment, at, kind, synced int64
	var effect, prev, before, hash, body sql.RawBytes
	if err := rows.Scan(&seq, &segment, &at, &kind, &effect, &prev, &before, &hash, &synced, &body); err != nil {
		return e, 0, err
	}
	e = journal.Entry{Seq: journal.Seq(seq), Segment: uint64(segment), Time: time.Unix(0, at).UTC(), Kind: journal.Kind(kind)}
	copy(e.Effect[:], effect)
	copy(e.Prev[:], prev)
	copy(e.Before[:], before)
	copy(e.Hash[:], hash)
	if len(body) > 0 {
		e.Body = append([]byte(nil), body...)
	}
	return e, journal.Seq(synced), nil
}

// catchUp applies what other processes appended. Reading the version first means
// that what comes after it is seen the next time.
func (s *Store) catchUp() error {
	var version int64
	if err := s.stmts.version.QueryRowContext(context.Background()).Scan(&version); err != nil {
		return s.failed("read", err)
	}
	if version == s.version {
		return nil
	}
	var segment sql.NullInt64
	if err := s.stmts.segment.QueryRowContext(context.Background()).Scan(&segment); err != nil {
		return s.failed("read", err)
	}
	s.segment = max(s.segment, uint64(segment.Int64))
	rows, err := s.stmts.entries.QueryContext(context.Background(), int64(s.at.seq))
	if err != nil {
		return s.failed("read", err)
	}
	defer rows.Close()
	for rows.Next() {
		e, durable, err := scan(rows)
		if err != nil {
			return s.failed("read", err)
		}
		if why := s.misfit(e, durable); why != "" {
			return s.corrupt(s.at.seq+1, why)
		}
		if err := s.take(e, durable); err != nil {
			return s.poison(err)
		}
		s.durable = s.at.seq
	}
	if err := rows.Err(); err != nil {
		return s.failed("read", err)
	}
	s.version = version
	return nil
}

// misfit says why a row can't be the next entry, "" where it is.
func (s *Store) misfit(e journal.Entry, durable journal.Seq) string {
	switch {
	case e.Seq != s.at.seq+1:
		return fmt.Sprintf("entry %d follows entry %d", e.Seq, s.at.seq)
	case e.Sum() != e.Hash:
		return "it doesn't match its hash"
	case e.Before != s.at.hash || e.Prev != s.trails[e.Effect].hash:
		return "it doesn't continue the chain of hashes"
	case durable >= e.Seq:
		return fmt.Sprintf("it says that entry %d was durable before it", durable)
	}
	for _, h := range s.expect {
		if h.seq == e.Seq && h.hash != e.Hash {
			return "the claims file knows it as another one; database and claims file don't belong together"
		}
	}
	return ""
}

// take folds an entry that was read, or is being appended.
func (s *Store) take(e journal.Entry, durable journal.Seq) error {
	s.at = position{e.Seq, e.Hash}
	switch e.Kind {
	case journal.Opened:
		epoch, err := journal.EpochOf(e)
		if err != nil {
			return err
		}
		s.epoch = epoch
	case journal.Seal: // what it says is in the claims file, synced
		s.proven = max(s.proven, durable)
	}
	if !e.Effect.IsZero() {
		t := s.trails[e.Effect]
		t.hash, t.kind = e.Hash, e.Kind
		if e.Kind.Proposes() {
			t.open = e.Seq
		} else if e.Kind.Settles() {
			t.open = 0
		}
		s.trails[e.Effect] = t
	}
	if s.apply != nil {
		if err := s.apply(e); err != nil {
			return fmt.Errorf("journal: entry %d can't be applied: %w", e.Seq, err)
		}
	}
	return nil
}

// Close is Store.Close. It waits for a commit under way.
func (s *Store) Close() error {
	s.lead <- struct{}{}
	defer func() { <-s.lead }()
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.err, journal.ErrClosed) {
		return nil
	}
	s.err = journal.ErrClosed
	return s.shut()
}

// shut gives back what the store holds of the system: the database first, for
// the lock on life says that nobody has it open.
func (s *Store) shut() error {
	var err error
	for _, stmt := range []*sql.Stmt{s.stmts.version, s.stmts.segment, s.stmts.entries, s.stmts.insert} {
		if stmt != nil {
			err = errors.Join(err, stmt.Close()) // with one left the connection stays open
		}
	}
	if s.conn != nil {
		err = errors.Join(err, s.conn.Close())
	}
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	if s.wal != nil {
		s.wal.close()
	}
	if s.claims != nil {
		s.claims.close()
	}
	return err
}

// poison ends the life of the store: after a failed commit nobody knows what the
// disk holds (I11).
func (s *Store) poison(err error) error {
	if s.err == nil {
		s.err = fmt.Errorf("%w: %w", journal.ErrPoisoned, err)
	}
	return s.err
}

func (s *Store) corrupt(n journal.Seq, why string) error {
	return &journal.CorruptError{File: s.path, Why: fmt.Sprintf("entry %d: %s", n, why)}
}

// Results of SQLite, see sqlite3.h; the lowest byte of an extended one.
const (
	resultBusy     = 5
	resultFull     = 13
	resultCorrupt  = 11
	resultProtocol = 15
	resultNoDB     = 26
)

func result(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// failed is the error of something that SQLite couldn't do.
func (s *Store) failed(what string, err error) error {
	switch result(err) {
	case resultFull:
		err = fmt.Errorf("%w: %w", journal.ErrFull, err)
	case resultCorrupt:
		return &journal.CorruptError{File: s.path, Why: err.Error()}
	case resultNoDB:
		err = fmt.Errorf("%w: %w", journal.ErrFormat, err)
	}
	return fmt.Errorf("journal: %s %s: %w", what, s.path, err)
}
