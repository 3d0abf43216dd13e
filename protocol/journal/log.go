package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"sync"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// Mode is how a log is opened.
type Mode int

const (
	Owner    Mode = iota // exclusive for life; cuts a torn tail; a segment per start
	Appender             // an append lock per update; cuts only under it; no segment per start
	Reader               // no lock, cuts nothing; an incomplete frame is not yet there
)

// String is the mode's word.
func (m Mode) String() string { return [...]string{"owner", "appender", "reader"}[m] }

// Options are how a file log is opened. The zero value opens an owner on the
// real file system for namespace "".
type Options struct {
	Mode      Mode
	Namespace string           // written in a new log; another one found is ErrNamespace. "" means whatever is there, and can't create
	Now       func() time.Time // stamps entries; nil is time.Now
	Dir       Dir              // nil is the real directory
	Trace     trace.Func
	// Restored says that the log comes from a backup, so that entries may be
	// missing at its end (C22): segment numbers go on far above every one that may
	// have been used, an OPENED with a raised epoch is appended, and every effect
	// without an outcome is SUSPECT. Only an Owner, and only a log that is there.
	Restored bool
	Identity string // for people, in the lock file: what this owner is; "" is the command's name
}

// Log is the file store. An Owner and any number of Readers use one log at the
// same time, or any number of Appenders and Readers; the authority log is one
// that principals open as Appender and the gate as Reader.
type Log struct {
	path  string
	dir   Dir
	o     Options
	me    holder
	lock  *lockFile // nil: a reader that has not found it yet
	apply func(Entry) error

	mu     sync.Mutex
	err    error // why nothing more is done: ErrPoisoned or ErrClosed
	claims map[ID]time.Time
	cuts   []Cut

	// Where the log stands: the last entry read or enqueued.
	seq     Seq
	hash    Hash
	durable Seq
	proven  Seq
	trails  map[ID]trail

	// Where that is on the disk.
	chain   []segment // linked segments, oldest first
	loose   []uint64  // segments that hold nothing
	marked  []uint64  // segments that hold a SUSPECT: an opening began them, to cut what is before
	highest uint64    // greatest number there is
	epoch   uint64    // greatest in a segment's header
	opened  uint64    // that of the last OPENED entry
	cur     *cursor   // in the last segment read; off is the end of what is read or enqueued
	last    int64     // offset of the last frame before cur.off in this segment; 0 for none
	marks   marks     // where some of the entries begin
	safe    int64     // offset in this segment up to which a sync and a look behind it reached

	allocated int64 // offset in this segment up to which writes find their blocks

	// Frames on their way. The first waiting caller writes and syncs for all.
	pending   []byte
	pendingAt int64
	spare     []byte
	flushing  chan struct{} // closed when the flush under way is over; nil for none
}

// trail is what the log keeps of one effect.
type trail struct {
	hash   Hash // of its last entry
	kind   Kind // of its last entry
	opened Seq  // its last proposal, while no outcome followed; 0 for none
}

// FileOpener returns an Opener for OpenFile, for callers that choose the store.
func FileOpener(dir string, o Options) Opener {
	return func(apply func(Entry) error) (Store, error) {
		l, err := OpenFile(dir, o, apply)
		if err != nil {
			return nil, err // not a nil *Log in a Store
		}
		return l, nil
	}
}

// OpenFile opens the log in dir and feeds its entries to apply. An Owner or
// Appender with a namespace makes directory and log where they are missing; a
// Reader of an existing directory waits for the log that isn't there yet.
//
// Errors: *HeldError where another process has the log, *CorruptError for damage
// before the tail, ErrFormat, ErrNamespace, ErrUnsafe for a directory that isn't
// 0700 or a file that isn't a plain 0600 one of this user, ErrFull,
// fs.ErrNotExist, and apply's own, wrapped. After an error nothing is held, and
// apart from the lock file nothing that was there has been changed, unless the
// error is one of writing.
func OpenFile(dir string, o Options, apply func(Entry) error) (*Log, error) {
	l := &Log{
		path: filepath.Clean(dir), dir: o.Dir, o: o, apply: apply,
		claims: map[ID]time.Time{}, trails: map[ID]trail{},
	}
	if l.dir == nil {
		l.dir = RealDir(l.path)
	}
	if l.o.Now == nil {
		l.o.Now = time.Now
	}
	l.me = newHolder(o, l.now())
	if err := l.open(); err != nil {
		l.shut()
		return nil, err
	}
	return l, nil
}

// now is the wall time as entries carry it.
func (l *Log) now() time.Time { return time.Unix(0, l.o.Now().UnixNano()).UTC() }

// Cuts are the damaged tails that this opening cut, or that an appender has cut
// since.
func (l *Log) Cuts() []Cut {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Cut(nil), l.cuts...)
}

// Update is Store.Update. An Owner's callers share syncs; an Appender holds the
// append lock from the catching up to the sync; a Reader gets ErrMode.
func (l *Log) Update(ctx context.Context, fn func(Head) ([]Entry, error)) ([]Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch l.o.Mode {
	case Reader:
		return nil, fmt.Errorf("%w: a reader can't append", ErrMode)
	case Appender:
		return l.updateAlone(ctx, fn)
	}
	entries, upTo, err := l.enqueue(fn)
	if err == nil {
		err = l.await(ctx, upTo)
	}
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// enqueue is step for an owner.
func (l *Log) enqueue(fn func(Head) ([]Entry, error)) ([]Entry, Seq, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, 0, l.err
	}
	entries, err := l.step(fn)
	return entries, l.seq, err
}

// updateAlone is Update under the append lock.
func (l *Log) updateAlone(ctx context.Context, fn func(Head) ([]Entry, error)) ([]Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	if err := l.lock.wait(ctx, appendByte); err != nil {
		return nil, fmt.Errorf("%w: %w", l.lock.held(), err)
	}
	defer l.lock.release(appendByte)
	if err := l.catchUp(); err != nil {
		return nil, err
	}
	entries, err := l.step(fn)
	if err != nil {
		return nil, err
	}
	if err := l.flushAlone(); err != nil {
		return nil, err
	}
	return entries, nil
}

// step calls fn and appends what it returns.
func (l *Log) step(fn func(Head) ([]Entry, error)) ([]Entry, error) {
	h := l.head()
	entries, err := fn(h)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if err := writable(e); err != nil {
			return nil, err
		}
	}
	return entries, l.append(entries, h.Now)
}

// append stamps entries in place and puts them in line for the next write.
func (l *Log) append(entries []Entry, now time.Time) error {
	if err := l.room(entries); err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		e.Segment, e.Seq, e.Time = l.cur.segment, l.seq+1, now
		e.Prev, e.Before = l.trails[e.Effect].hash, l.hash
		e.Hash = e.Sum()
		l.pending = appendFrame(l.pending, *e, l.durable)
		l.last = l.cur.off
		l.marks.note(e.Seq, e.Segment, l.cur.off)
		l.cur.off += frameSize(len(e.Body))
		if err := l.take(*e, l.durable); err != nil {
			return l.poison(err)
		}
	}
	return nil
}

func (l *Log) head() Head {
	return Head{Segment: l.cur.number(), Seq: l.seq, Hash: l.hash, Durable: l.durable, Proven: l.proven, Now: l.now()}
}

// take folds an entry that was read, or is being appended, into the state.
func (l *Log) take(e Entry, durable Seq) error {
	l.seq, l.hash = e.Seq, e.Hash
	l.proven = max(l.proven, durable)
	l.durable = max(l.durable, durable)
	if e.Kind == Opened {
		var o opened
		if err := json.Unmarshal(e.Body, &o); err != nil {
			return fmt.Errorf("journal: entry %d: %w: %w", e.Seq, ErrFormat, err)
		}
		l.opened = o.Epoch
	}
	if n := len(l.marked); e.Kind == Suspect && (n == 0 || l.marked[n-1] != e.Segment) {
		l.marked = append(l.marked, e.Segment)
	}
	if !e.Effect.IsZero() {
		t := l.trails[e.Effect]
		t.hash, t.kind = e.Hash, e.Kind
		if e.Kind.Proposes() {
			t.opened = e.Seq
		} else if e.Kind.Settles() {
			t.opened = 0
		}
		l.trails[e.Effect] = t
	}
	if l.apply != nil {
		if err := l.apply(e); err != nil {
			return fmt.Errorf("journal: entry %d can't be applied: %w", e.Seq, err)
		}
	}
	return nil
}

// View is Store.View. For a Reader or an Appender with nothing new it costs two
// system calls. Where entries that it has applied are gone from the log, because
// a sync of theirs failed and another process cut them, the log is poisoned.
func (l *Log) View(ctx context.Context, fn func(Head)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if l.o.Mode != Owner {
		if err := l.lookOn(); err != nil {
			return err
		}
	}
	fn(l.head())
	return nil
}

// Durable is Store.Durable. A Reader or an Appender that has read entries which
// no later record proves durable syncs the segment itself and reads them again
// from the disk.
func (l *Log) Durable(ctx context.Context, upTo Seq) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if upTo > l.seq {
		return fmt.Errorf("journal: there is no entry %d to wait for, the last is %d", upTo, l.seq)
	}
	if l.o.Mode == Owner {
		return l.awaitLocked(ctx, upTo)
	}
	if l.durable >= upTo {
		return nil
	}
	return l.settle()
}

// Since is Store.Since. It yields what is in the log when it is called; an
// owner's is durable before the first is yielded. It reads a few entries before
// the first at most.
func (l *Log) Since(after Seq) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var chain []segment
		var upTo Seq
		var near mark
		err := l.View(context.Background(), func(h Head) {
			chain, upTo, near = append(chain, l.chain...), h.Seq, l.marks.before(after+1)
		})
		if err == nil && l.o.Mode == Owner {
			err = l.Durable(context.Background(), upTo)
		}
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for i, s := range chain {
			limit := int64(noLimit)
			if i+1 < len(chain) {
				limit = chain[i+1].prevEnd
				if chain[i+1].first <= after+1 {
					continue
				}
			}
			if s.first > upTo || after >= upTo {
				return
			}
			from := int64(sector)
			if near.segment == s.number {
				from = near.off
			}
			for e, err := range l.entries(s.number, from, limit) {
				if err != nil {
					yield(Entry{}, err)
					return
				}
				if e.Seq > after && !yield(e, nil) || e.Seq == upTo {
					return
				}
			}
		}
	}
}

// entries yields the entries of one segment from an offset on.
func (l *Log) entries(number uint64, from, limit int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		f, err := l.dir.Open(segmentName(number), false)
		if err != nil {
			yield(Entry{}, fmt.Errorf("journal: %w", err))
			return
		}
		defer f.Close()
		c := newCursor(f, number)
		c.off, c.limit = from, limit
		for {
			e, _, err := c.next()
			if d := (*damage)(nil); errors.As(err, &d) {
				err = l.corrupt(number, d.off, d.why)
			}
			if err == io.EOF || !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Close is Store.Close. It waits for a write under way and writes nothing more:
// callers still waiting get ErrClosed, and their entries may be lost.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.flushing != nil {
		done := l.flushing
		l.mu.Unlock()
		<-done
		l.mu.Lock()
	}
	if errors.Is(l.err, ErrClosed) {
		return nil
	}
	l.err = ErrClosed
	return l.shut()
}

// shut gives back what the log holds of the system.
func (l *Log) shut() error {
	var err error
	if l.cur != nil {
		err = l.cur.f.Close()
	}
	if l.lock != nil {
		l.lock.close()
	}
	return err
}

// corrupt is the error of damage in a segment.
func (l *Log) corrupt(number uint64, off int64, why string) error {
	return &CorruptError{File: filepath.Join(l.path, segmentName(number)), Offset: off, Why: why}
}
