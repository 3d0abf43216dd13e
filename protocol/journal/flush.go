package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// await returns nil when every entry up to upTo is durable. The first caller to
// wait writes and syncs for all that have enqueued by then; ctx lets the others
// leave, and their entries stay in line.
func (l *Log) await(ctx context.Context, upTo Seq) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.awaitLocked(ctx, upTo)
}

// awaitLocked is await for callers that hold l.mu; it is let go meanwhile.
func (l *Log) awaitLocked(ctx context.Context, upTo Seq) error {
	for yielded := false; ; {
		if l.durable >= upTo {
			return nil
		}
		if l.err != nil {
			return l.err
		}
		done := l.flushing
		if done == nil {
			if yielded {
				l.flush()
				continue
			}
			// Callers that the last sync has just woken enqueue first: with eight of
			// them this saves every third sync.
			yielded = true
			l.mu.Unlock()
			runtime.Gosched()
			l.mu.Lock()
			continue
		}
		var left error
		l.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			left = ctx.Err()
		}
		l.mu.Lock()
		if left != nil && l.durable < upTo && l.err == nil {
			return fmt.Errorf("journal: left before the sync, entry %d may become durable: %w", upTo, left)
		}
	}
}

var errNoReturn = errors.New("journal: the write did not return")

// flush writes and syncs what is pending. l.mu is let go for as long as it takes.
func (l *Log) flush() {
	buf, at, upTo := l.takePending()
	done := make(chan struct{})
	l.flushing = done
	l.mu.Unlock()
	err := errNoReturn
	defer func() { // also where an observer panics
		l.mu.Lock()
		l.flushed(buf, upTo, err)
		l.flushing = nil
		close(done)
	}()
	err = l.writeOut(buf, at)
}

// flushAlone is flush with l.mu held throughout, for a caller with the append
// lock.
func (l *Log) flushAlone() error {
	if len(l.pending) == 0 {
		return nil
	}
	buf, at, upTo := l.takePending()
	l.flushed(buf, upTo, l.writeOut(buf, at))
	if l.err == nil {
		l.safe = l.cur.off
	}
	return l.err
}

func (l *Log) takePending() (buf []byte, at int64, upTo Seq) {
	buf, at = l.pending, l.pendingAt
	l.pending, l.spare = l.spare[:0], nil
	l.pendingAt += int64(len(buf))
	return buf, at, l.seq
}

func (l *Log) flushed(buf []byte, upTo Seq, err error) {
	if cap(buf) <= 1<<20 {
		l.spare = buf
	}
	if err != nil {
		l.poison(err)
		return
	}
	l.durable = max(l.durable, upTo)
}

// writeOut writes b to the segment and syncs it.
func (l *Log) writeOut(b []byte, at int64) error {
	if err := writeAll(l.cur.f, b, at); err != nil {
		return fmt.Errorf("journal: write %s: %w", segmentName(l.cur.segment), err)
	}
	l.o.Trace.At(Written, "")
	if err := l.cur.f.Sync(); err != nil {
		return full(fmt.Errorf("journal: sync %s: %w", segmentName(l.cur.segment), err))
	}
	l.o.Trace.At(Synced, "")
	// While the lock file is the one we hold, every later owner reads what was
	// just synced.
	return l.lock.check()
}

func writeAll(f File, b []byte, at int64) error {
	n, err := f.WriteAt(b, at)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return full(err)
}

// poison ends the life of the log: after a failed write or sync nobody knows
// what the disk holds (I11).
func (l *Log) poison(err error) error {
	if l.err == nil {
		l.err = fmt.Errorf("%w: %w", ErrPoisoned, err)
	}
	return l.err
}

// The steps of a log, passed by the caller that does them.
const (
	Locked         trace.Point = "journal/locked"           // the owner has the log to itself
	Verified       trace.Point = "journal/verified"         // everything is read; nothing was changed
	SegmentStarted trace.Point = "journal/segment-started"  // header and directory are synced
	SuspectsMarked trace.Point = "journal/suspects-durable" // what a cut may hide is known from now on
	TailCut        trace.Point = "journal/tail-cut"         //
	Written        trace.Point = "journal/written"          // entries may survive from now on
	Synced         trace.Point = "journal/synced"           // they will
)

// Points lists them.
func Points() []trace.Point {
	return []trace.Point{Locked, Verified, SegmentStarted, SuspectsMarked, TailCut, Written, Synced}
}
