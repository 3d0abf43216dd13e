package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const lockName = "lock"

// Cut is a damaged tail that was taken off a segment.
type Cut struct {
	File     string
	Offset   int64 // where the segment ends now
	Bytes    int64 // what was behind that
	Why      string
	Suspects []ID // effects marked SUSPECT for it
}

func (l *Log) open() error {
	if len(l.o.Namespace) > maxNamespace {
		return fmt.Errorf("%w: a namespace has at most %d bytes, this one has %d", ErrNamespace, maxNamespace, len(l.o.Namespace))
	}
	if l.o.Restored && l.o.Mode != Owner {
		return fmt.Errorf("%w: a restored log is opened by its owner", ErrMode)
	}
	if err := checkDir(l.path, l.o.Mode != Reader && l.o.Namespace != ""); err != nil {
		return err
	}
	switch l.o.Mode {
	case Reader:
		return l.lookOn()
	case Appender:
		return l.openAppender()
	}
	return l.openOwner()
}

// openOwner is the opening that the package comment describes. Its order is what
// makes it repeatable: read and refuse before anything is changed; begin the new
// segment before an empty one goes, so that its number is not used again (C29);
// suspects durable before their evidence is cut (C28).
func (l *Log) openOwner() error {
	if err := l.takeLock(syscall.F_WRLCK); err != nil {
		return err
	}
	if err := l.lock.write(l.me); err != nil {
		return err
	}
	l.o.Trace.At(Locked, "")
	if err := l.dir.Sync(); err != nil {
		return fmt.Errorf("journal: sync %s: %w", l.path, err)
	}
	if err := l.list(true); err != nil {
		return err
	}
	l.dropEmpty()
	d, err := l.follow()
	if err != nil {
		return err
	}
	tails, err := l.tails(d)
	if err != nil {
		return err
	}
	if err := l.syncCuts(); err != nil {
		return err
	}
	// An opening as restored that died before its OPENED was durable goes on.
	if l.epoch > l.opened {
		l.o.Restored = true
	} else if l.o.Restored {
		l.epoch++
	}
	l.o.Trace.At(Verified, "")

	if err := l.startSegment(); err != nil {
		return err
	}
	if err := l.markSuspects(tails); err != nil {
		return err
	}
	for _, t := range tails {
		if err := l.cut(t); err != nil {
			return err
		}
	}
	if n := len(l.chain); n > 1 {
		if err := l.giveUp(l.chain[n-2].number, l.chain[n-1].prevEnd); err != nil {
			return err
		}
	}
	for _, n := range l.loose {
		if err := l.dir.Remove(segmentName(n)); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	l.me.Segment = l.cur.segment
	return l.lock.write(l.me)
}

// openAppender opens under the append lock, like an update.
func (l *Log) openAppender() error {
	if err := l.takeLock(syscall.F_RDLCK); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := l.lock.wait(ctx, appendByte); err != nil {
		return fmt.Errorf("%w: %w", l.lock.held(), err)
	}
	defer l.lock.release(appendByte)
	if err := l.dir.Sync(); err != nil {
		return fmt.Errorf("journal: sync %s: %w", l.path, err)
	}
	if err := l.list(true); err != nil {
		return err
	}
	if err := l.followAndCut(); err != nil {
		return err
	}
	if l.cur == nil {
		if err := l.startSegment(); err != nil {
			return err
		}
	}
	l.durable, l.safe = l.seq, l.cur.off // list synced it, and it was read from the disk
	if l.seq == 0 {
		if err := l.appendNow(l.openedEntry()); err != nil {
			return err
		}
	}
	l.me.Segment = l.cur.segment
	if err := l.lock.write(l.me); err != nil {
		return err
	}
	l.lock.info = l.lock.read()
	return nil
}

// takeLock opens the lock file and locks it for life.
func (l *Log) takeLock(typ int16) error {
	var err error
	if l.lock, err = openLockFile(filepath.Join(l.path, lockName), true); err != nil {
		return err
	}
	ok, err := l.lock.try(lifeByte, typ)
	if err != nil {
		return err
	}
	if !ok {
		return l.lock.held()
	}
	return l.lock.check()
}

// dropEmpty takes segments that hold nothing off the end of the chain.
func (l *Log) dropEmpty() {
	for n := len(l.chain); n > 0 && l.chain[n-1].size <= sector; n-- {
		l.loose = append(l.loose, l.chain[n-1].number)
		l.chain = l.chain[:n-1]
	}
}

// tail is what is to be cut off a segment.
type tail struct {
	segment uint64
	off     int64
	why     string
	survey
	suspects []ID
}

// tails are what has to be cut: the damaged end d of the last segment, and what
// an opening that died left behind the good end of one before. It refuses damage
// to what is proven durable.
func (l *Log) tails(d *damage) ([]tail, error) {
	var tails []tail
	for i := 0; i+1 < len(l.chain); i++ {
		end := l.chain[i+1].prevEnd
		if l.chain[i].size <= end {
			continue
		}
		f, err := l.dir.Open(segmentName(l.chain[i].number), false)
		if err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
		s, err := newCursor(f, l.chain[i].number).survey(end)
		f.Close()
		if err != nil {
			return nil, err
		}
		tails = append(tails, tail{segment: l.chain[i].number, off: end, why: "an earlier opening left it", survey: s})
	}
	if d != nil {
		s, err := l.cur.survey(d.off)
		if err != nil {
			return nil, err
		}
		if s.proves(l.seq + 1) {
			return nil, l.corrupt(l.cur.segment, d.off, d.why)
		}
		tails = append(tails, tail{segment: l.cur.segment, off: d.off, why: d.why, survey: s})
	}
	return tails, nil
}

// syncCuts syncs what an opening has cut that may have died before its sync: the
// cache shows a segment that ends well, and the disk still has the tail. It would
// come back after outcomes of its effects, and make them suspect again.
func (l *Log) syncCuts() error {
	for i, s := range l.chain {
		if !slices.Contains(l.marked, s.number) {
			continue
		}
		for j := i - 1; j >= 0; j-- {
			f, err := l.dir.Open(segmentName(l.chain[j].number), false)
			if err != nil {
				return fmt.Errorf("journal: %w", err)
			}
			if err := errors.Join(f.Sync(), f.Close()); err != nil {
				return fmt.Errorf("journal: sync %s: %w", segmentName(l.chain[j].number), err)
			}
			if l.chain[j].first < s.first {
				break // what is before was synced before this one got an entry
			}
		}
	}
	return nil
}

// startSegment begins a new segment behind everything that was read, and the
// log itself where there is none. The header is durable before a frame is
// written.
func (l *Log) startSegment() error {
	if l.seq == 0 && (l.o.Namespace == "" || l.o.Restored) {
		return fmt.Errorf("journal: no log is in %s, and none is made without a namespace or as restored: %w", l.path, fs.ErrNotExist)
	}
	s := segment{number: l.highest + 1, epoch: l.epoch, first: l.seq + 1, before: l.hash, created: l.now(), namespace: l.o.Namespace}
	if l.o.Restored {
		// What was lost began fewer segments than a million, and one a second.
		s.number = max(l.highest+1_000_000, uint64(max(s.created.Unix(), 0)))
	}
	var last segment
	if n := len(l.chain); n > 0 {
		last = l.chain[n-1]
		s.prev, s.prevEnd = last.number, l.cur.off
	}
	f, err := l.dir.Open(segmentName(s.number), true)
	if err != nil {
		return full(fmt.Errorf("journal: %w", err))
	}
	room, err := l.allocateFirst(f, last)
	err = errors.Join(err, writeAll(f, s.encode(), 0), f.Sync(), l.dir.Sync())
	if s.prev == 0 {
		err = errors.Join(err, realDir(filepath.Dir(l.path)).Sync()) // the directory may be new, too
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("journal: begin %s: %w", segmentName(s.number), err)
	}
	l.use(f, s.number)
	l.allocated = room
	l.chain, l.highest = append(l.chain, s), s.number
	l.o.Trace.At(SegmentStarted, "")
	if l.seq == 0 {
		return l.appendNow(l.openedEntry())
	}
	return nil
}

func (l *Log) openedEntry() Entry {
	return own(Opened, ID{}, opened{l.o.Namespace, Format, l.epoch})
}

// opened is the body of an OPENED entry.
type opened struct {
	Namespace string `json:"namespace"`
	Format    int    `json:"format"`
	Epoch     uint64 `json:"epoch"`
}

// appendNow appends entries during an opening.
func (l *Log) appendNow(entries ...Entry) error {
	if err := l.append(entries, l.now()); err != nil {
		return err
	}
	return l.flushAlone()
}

// own is an entry of the log's own.
func own(k Kind, effect ID, body any) Entry {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // opened and suspicion always can be
	}
	return Entry{Kind: k, Effect: effect, Body: b}
}

// suspicion is the body of a SUSPECT entry.
type suspicion struct {
	Segment uint64 `json:"segment"` // the cut: where it was, and why
	Offset  int64  `json:"offset"`
	Why     string `json:"why"`
	Token   *Token `json:"token,omitempty"` // of the attempt, where its header was readable
}

// markSuspects appends a SUSPECT entry for each effect that may have had an
// attempt in a tail. In a restored log that is every effect without an outcome,
// and the OPENED behind them says that they are complete.
func (l *Log) markSuspects(tails []tail) error {
	entries, mark := l.suspects(tails)
	if l.o.Restored {
		at := l.chain[len(l.chain)-1]
		for _, id := range l.unsettled() {
			mark(id, suspicion{at.prev, at.prevEnd, "restored from a backup: entries may be missing", nil})
		}
		*entries = append(*entries, l.openedEntry())
	}
	if len(*entries) == 0 {
		return nil
	}
	if err := l.appendNow(*entries...); err != nil {
		return err
	}
	l.o.Trace.At(SuspectsMarked, "")
	return nil
}

// suspects are the SUSPECT entries of effects that may have had an attempt in a
// tail: those with a readable header of one, or, where some header can't be read,
// every effect without an outcome. They are noted in the tails. mark adds another
// one, unless it is there.
func (l *Log) suspects(tails []tail) (entries *[]Entry, mark func(ID, suspicion) bool) {
	entries = new([]Entry)
	marked := map[ID]bool{}
	mark = func(id ID, s suspicion) bool {
		if id.IsZero() || marked[id] || l.trails[id].kind == Suspect {
			return false // by the opening that left this tail, perhaps
		}
		marked[id] = true
		*entries = append(*entries, own(Suspect, id, s))
		return true
	}
	for i, t := range tails {
		mark := func(id ID, token *Token) {
			if mark(id, suspicion{t.segment, t.off, t.why, token}) {
				tails[i].suspects = append(tails[i].suspects, id)
			}
		}
		for _, h := range t.headers {
			if h.kind.Attempts() {
				mark(h.effect, &Token{h.segment, h.seq})
			}
		}
		if t.unreadable {
			for _, h := range t.headers {
				if h.kind.Proposes() {
					mark(h.effect, nil)
				}
			}
			for _, id := range l.unsettled() {
				mark(id, nil)
			}
		}
	}
	return entries, mark
}

// unsettled are the effects that were proposed and have no outcome, in the order
// of their proposals.
func (l *Log) unsettled() []ID {
	var ids []ID
	for id, t := range l.trails {
		if t.opened != 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b ID) int { return cmp.Compare(l.trails[a].opened, l.trails[b].opened) })
	return ids
}

// cut takes a tail off its segment.
func (l *Log) cut(t tail) error {
	f, err := l.dir.Open(segmentName(t.segment), false)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if err := errors.Join(f.Truncate(t.off), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("journal: cut %s: %w", segmentName(t.segment), err)
	}
	l.cuts = append(l.cuts, Cut{filepath.Join(l.path, segmentName(t.segment)), t.off, t.bytes, t.why, t.suspects})
	l.o.Trace.At(TailCut, "")
	return nil
}

// catchUp brings an appender that holds the append lock to the end of the log,
// with everything in it durable.
func (l *Log) catchUp() error {
	if err := l.listIfChanged(); err != nil {
		return err
	}
	if err := l.checkLast(); err != nil {
		return err
	}
	if err := l.followAndCut(); err != nil {
		return err
	}
	return l.settle()
}

// followAndCut reads to the end of the log and cuts a damaged tail in place. It
// is called with the append lock held. A tail that may hide an attempt is left
// to an owner.
func (l *Log) followAndCut() error {
	d, err := l.follow()
	if d == nil || err != nil {
		return err
	}
	s, err := l.cur.survey(d.off)
	if err != nil {
		return err
	}
	if s.proves(l.seq + 1) {
		return l.corrupt(l.cur.segment, d.off, d.why)
	}
	attempt := slices.ContainsFunc(s.headers, func(h header) bool { return h.kind.Attempts() })
	if attempt || s.unreadable && len(l.unsettled()) > 0 {
		return fmt.Errorf("%w: %s has a damaged tail that may hide an attempt; open it as its owner first", ErrMode, l.path)
	}
	l.cur.buf = l.cur.buf[:0]
	if err := l.cut(tail{segment: l.cur.segment, off: d.off, why: d.why, survey: s}); err != nil {
		return l.poison(err)
	}
	return nil
}
