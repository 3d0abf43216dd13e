package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// call is one caller's update.
type call struct {
	ctx      context.Context
	begun    time.Time
	fn       func(journal.Head) ([]journal.Entry, error)
	entries  []journal.Entry
	err      error
	panicked any
	done     chan struct{}
}

// queue is the callers that wait for a transaction.
type queue struct {
	mu    sync.Mutex
	calls []*call
}

func (q *queue) add(c *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls = append(q.calls, c)
}

// remove reports false where somebody took c already.
func (q *queue) remove(c *call) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.calls, c)
	if i >= 0 {
		q.calls = slices.Delete(q.calls, i, i+1)
	}
	return i >= 0
}

func (q *queue) take() []*call {
	q.mu.Lock()
	defer q.mu.Unlock()
	calls := q.calls
	q.calls = nil
	return calls
}

// Update is Store.Update. Callers share a transaction, in which the fn of one may
// run on the goroutine of another; what it panics with comes out of its own
// Update. ctx bounds the wait for a turn. *HeldError says that another process
// has kept its turn for longer than Options.Patience: nothing was appended.
func (s *Store) Update(ctx context.Context, fn func(journal.Head) ([]journal.Entry, error)) ([]journal.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.o.Reader {
		return nil, fmt.Errorf("%w: a reader can't append", journal.ErrMode)
	}
	c := &call{ctx: ctx, begun: time.Now(), fn: fn, done: make(chan struct{})}
	s.waiting.add(c)
	left := ctx.Done()
	for waiting := true; waiting; {
		select {
		case <-c.done:
			waiting = false
		case s.lead <- struct{}{}:
			s.appendForAll(c)
			waiting = false
		case <-left:
			if s.waiting.remove(c) {
				return nil, ctx.Err()
			}
			left = nil // its transaction is under way: that doesn't take long
		}
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.entries, c.err
}

// appendForAll is one transaction for everybody who waits for one. The leader's
// own call is among them, or done already.
func (s *Store) appendForAll(own *call) {
	defer func() { <-s.lead }()
	select {
	case <-own.done:
		return
	default:
	}
	runtime.Gosched() // callers that the last commit has just woken come along
	s.mu.Lock()
	defer s.mu.Unlock()
	var calls []*call
	returned := false
	defer func() {
		if !returned { // an observer, or a caller's fn, ended this goroutine
			s.poison(errors.New("journal: the update did not return"))
			s.rollback()
			s.waiting.remove(own)
		}
		for _, c := range calls {
			if s.err != nil {
				c.err, c.entries = s.err, nil
			}
			close(c.done)
		}
	}()
	if err := s.begin(own); err != nil {
		if s.waiting.remove(own) {
			own.err = err
			close(own.done)
		}
	} else {
		calls = s.waiting.take()
		s.run(calls)
	}
	returned = true
}

// begin takes the database's write lock and catches up.
func (s *Store) begin(own *call) error {
	if s.err != nil {
		return s.err
	}
	wait, cancel := context.WithDeadline(own.ctx, own.begun.Add(s.o.Patience))
	defer cancel()
	if err := s.patiently(wait, s.beginImmediate); err != nil {
		if own.ctx.Err() != nil {
			return own.ctx.Err()
		}
		return err
	}
	if err := s.catchUp(); err != nil {
		return errors.Join(err, s.rollback())
	}
	// For people, should this process stop here and keep everybody waiting.
	s.claims.file.WriteAt(note{opening: s.opening, since: s.now()}.encode(), writerNote)
	s.o.Trace.At(Begun, "")
	return nil
}

func (s *Store) beginImmediate() error {
	_, err := s.conn.ExecContext(context.Background(), "BEGIN IMMEDIATE")
	if err != nil {
		return s.failed("begin a transaction in", err)
	}
	return nil
}

func (s *Store) rollback() error {
	if _, err := s.conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
		return s.poison(s.failed("roll back", err))
	}
	return nil
}

// patiently tries again while another process has its turn, with s.mu held but
// for the pauses. ctx and the store's patience bound it. SQLite's own wait could
// not be called off, and its steps are milliseconds.
func (s *Store) patiently(ctx context.Context, try func() error) error {
	var until time.Time
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 2*time.Millisecond) {
		err := try()
		if r := result(err); r != resultBusy && r != resultProtocol {
			return err
		}
		if until.IsZero() {
			until = time.Now().Add(s.o.Patience)
		}
		s.mu.Unlock()
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
		s.mu.Lock()
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		if ctx.Err() != nil || !time.Now().Before(until) {
			return s.heldBy("journal "+s.path, s.writer())
		}
	}
}

// writer is the note of whoever has the turn to append.
func (s *Store) writer() *note {
	var b [noteSize]byte
	if s.claims.file.ReadAt(b[:], writerNote) == nil {
		if n, ok := parseNote(b[:]); ok {
			return &n
		}
	}
	return &note{}
}

// run calls what the callers want to decide, one after another, and commits what
// they append. s.mu is held, but for the commit.
func (s *Store) run(calls []*call) {
	base, appended := s.at, 0
	s.wal.begin()
	for _, c := range calls {
		n, err := s.step(c, base)
		appended += n
		if err != nil {
			s.poison(err)
			s.rollback()
			return
		}
	}
	if appended == 0 {
		s.rollback()
		return
	}
	if err := s.claims.file.WriteAt(head{seq: base.seq, hash: base.hash, segment: s.segment}.encode(), looseHead); err != nil {
		s.poison(err)
		s.rollback()
		return
	}
	s.commitAll()
}

// commitAll commits with s.mu let go for as long as it takes.
func (s *Store) commitAll() {
	done := make(chan struct{})
	s.committing = done
	s.mu.Unlock()
	err := errors.New("journal: the commit did not return")
	defer func() {
		s.mu.Lock()
		if err != nil {
			s.poison(err)
		} else {
			s.durable = max(s.durable, s.at.seq)
		}
		s.committing = nil
		close(done)
	}()
	err = s.commit()
}

func (s *Store) commit() error {
	s.o.Trace.At(Inserted, "")
	if _, err := s.conn.ExecContext(context.Background(), "COMMIT"); err != nil {
		err = s.failed("commit to", err)
		s.conn.ExecContext(context.Background(), "ROLLBACK") // nothing rests on it any more
		return err
	}
	s.o.Trace.At(Committed, "")
	// While these are the files that we hold, everybody else reads what was just
	// committed.
	return s.check()
}

// step calls c's fn and inserts what it returns. Its own error is c's alone; the
// one that is returned ends the store.
func (s *Store) step(c *call, base position) (appended int, err error) {
	h := s.head()
	if c.err = c.ctx.Err(); c.err != nil {
		return 0, nil
	}
	entries, err := c.decide(h)
	if err == nil {
		err = s.fits(entries)
	}
	if err != nil || c.panicked != nil {
		c.err = err
		return 0, nil
	}
	if err := s.append(entries, h.Now, base); err != nil {
		return 0, err
	}
	c.entries = entries
	return len(entries), nil
}

func (c *call) decide(h journal.Head) (entries []journal.Entry, err error) {
	defer func() { c.panicked = recover() }()
	return c.fn(h)
}

// fits refuses what can't be an entry, and what the disk has no room for.
func (s *Store) fits(entries []journal.Entry) error {
	for _, e := range entries {
		if err := journal.Writable(e); err != nil {
			return err
		}
	}
	return s.wal.fits(entries)
}

// append stamps entries in place and inserts them.
func (s *Store) append(entries []journal.Entry, now time.Time, base position) error {
	for i := range entries {
		e := &entries[i]
		e.Segment, e.Seq, e.Time = s.segment, s.at.seq+1, now
		e.Prev, e.Before = s.trails[e.Effect].hash, s.at.hash
		e.Hash = e.Sum()
		if e.Kind == journal.Seal {
			if err := s.writeSyncedHead(head{seq: base.seq, hash: base.hash, segment: s.segment}); err != nil {
				return err
			}
		}
		if _, err := s.stmts.insert.ExecContext(context.Background(), int64(e.Seq), int64(e.Segment), e.Time.UnixNano(), int64(e.Kind),
			e.Effect[:], e.Prev[:], e.Before[:], e.Hash[:], int64(base.seq), []byte(e.Body)); err != nil {
			return s.failed("insert into", err)
		}
		if err := s.take(*e, base.seq); err != nil {
			return err
		}
	}
	return nil
}

// check refuses to go on with files that are not those at their paths any more.
func (s *Store) check() error {
	if err := s.claims.file.Check(); err != nil {
		return err
	}
	id, err := journal.CheckFile(s.path)
	if err == nil && id != s.id {
		err = fmt.Errorf("%w: %s was removed or replaced; stop what did that, and every process that has the log open", journal.ErrUnsafe, s.path)
	}
	return err
}

// The steps of an update, passed by the caller that does them for all.
const (
	Begun     trace.Point = "sqlite/begun"     // the write lock is held, and everything is caught up with
	Inserted  trace.Point = "sqlite/inserted"  // entries may survive from now on
	Committed trace.Point = "sqlite/committed" // they will
)

// Points lists them.
func Points() []trace.Point { return []trace.Point{Begun, Inserted, Committed} }
