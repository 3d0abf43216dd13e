package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sort"
)

// list reads the segments' headers and links them; afresh says to sync the last
// ones first and to read them from the disk.
func (l *Log) list(afresh bool) error {
	files, err := l.dir.List()
	if err != nil {
		return fmt.Errorf("journal: list %s: %w", l.path, err)
	}
	var numbers []uint64
	for name := range files {
		if n, ok := segmentNumber(name); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	if afresh {
		if err := l.refresh(numbers, files); err != nil {
			return err
		}
	}
	found := map[uint64]segment{}
	var top uint64
	for _, n := range numbers {
		s, ok, err := l.readSegmentHeader(n)
		if errors.Is(err, fs.ErrNotExist) {
			continue // empty, and removed since
		}
		if err != nil {
			return err
		}
		l.highest = n
		l.epoch = max(l.epoch, s.epoch)
		s.size = files[segmentName(n)]
		if !ok && s.size > sector {
			return l.corrupt(n, 0, "the segment's header can't be read")
		}
		if ok {
			found[n], top = s, n
		}
	}
	return l.link(numbers, found, top)
}

// link follows the headers back from the segment top. What they don't name must
// be empty.
func (l *Log) link(numbers []uint64, found map[uint64]segment, top uint64) error {
	var chain []segment
	for n, by := top, uint64(0); n != 0; {
		s, ok := found[n]
		if !ok || s.prev >= n {
			return l.corrupt(n, 0, fmt.Sprintf("the segment is missing, segment %d follows it", by))
		}
		chain = append(chain, s)
		delete(found, n)
		n, by = s.prev, n
	}
	slices.Reverse(chain)
	l.chain, l.loose = chain, nil
	for _, n := range numbers {
		if s, ok := found[n]; ok && s.size > sector {
			return l.corrupt(n, sector, "no segment follows this one, and there are later ones")
		}
		if !slices.ContainsFunc(chain, func(s segment) bool { return s.number == n }) {
			l.loose = append(l.loose, n)
		}
	}
	return nil
}

// refresh syncs the segments that may not be synced, and drops them from the
// page cache: those from the last that holds anything.
func (l *Log) refresh(numbers []uint64, files map[string]int64) error {
	for _, n := range slices.Backward(numbers) {
		f, err := l.dir.Open(segmentName(n), false)
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		err = errors.Join(f.Sync(), dropCache(f), f.Close())
		if err != nil {
			return fmt.Errorf("journal: sync %s: %w", segmentName(n), err)
		}
		if files[segmentName(n)] > sector {
			break
		}
	}
	return nil
}

// readSegmentHeader reads a header and checks that it is this log's.
func (l *Log) readSegmentHeader(n uint64) (segment, bool, error) {
	f, err := l.dir.Open(segmentName(n), false)
	if err != nil {
		return segment{}, false, fmt.Errorf("journal: %w", err)
	}
	defer f.Close()
	var b [sector]byte
	m, err := f.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return segment{}, false, fmt.Errorf("journal: read %s: %w", segmentName(n), err)
	}
	s, ok, err := parseSegment(b[:m])
	if err != nil {
		return segment{}, false, fmt.Errorf("%s: %w", filepath.Join(l.path, segmentName(n)), err)
	}
	if !ok {
		return segment{}, false, nil
	}
	if s.number != n {
		return segment{}, false, l.corrupt(n, 16, fmt.Sprintf("the header is that of segment %d", s.number))
	}
	if l.o.Namespace == "" {
		l.o.Namespace = s.namespace
	}
	if s.namespace != l.o.Namespace {
		return segment{}, false, fmt.Errorf("%w: %s is the journal of %q, not of %q; open the right directory", ErrNamespace, l.path, s.namespace, l.o.Namespace)
	}
	return s, true, nil
}

// follow reads on from where the log stands and applies what it finds. It
// returns the damage at which it had to stop in the last segment, nil where that
// ends cleanly.
func (l *Log) follow() (*damage, error) {
	for {
		next, limit := l.ahead()
		if l.cur != nil {
			if l.cur.off > limit {
				return nil, l.gone()
			}
			l.cur.limit = limit
			d, err := l.readOn()
			if err != nil || next == nil {
				return d, err
			}
			if d == nil && l.cur.off != limit {
				d = &damage{l.cur.off, fmt.Sprintf("the segment ends too early, segment %d says that it ended at %d", next.number, limit)}
			}
			if d != nil {
				return nil, l.corrupt(l.cur.segment, d.off, d.why)
			}
		}
		if next == nil {
			return nil, nil
		}
		if err := l.enter(*next); err != nil {
			return nil, err
		}
	}
}

// ahead is the segment after the present one, nil for none, and the offset at
// which the present one ends.
func (l *Log) ahead() (*segment, int64) {
	at := l.cur.number()
	i := sort.Search(len(l.chain), func(i int) bool { return l.chain[i].number > at })
	if i == len(l.chain) {
		return nil, noLimit
	}
	if l.chain[i].prev == at {
		return &l.chain[i], l.chain[i].prevEnd
	}
	return &l.chain[i], sector // the present one was empty, and dropped
}

// enter goes on to segment s.
func (l *Log) enter(s segment) error {
	if s.first != l.seq+1 || s.before != l.hash {
		return l.corrupt(s.number, 32, fmt.Sprintf("the segment doesn't go on where entry %d ends", l.seq))
	}
	f, err := l.dir.Open(segmentName(s.number), false)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	l.use(f, s.number)
	return nil
}

// use makes f the present segment, with all before it proven durable.
func (l *Log) use(f File, number uint64) {
	if l.cur != nil {
		l.cur.f.Close()
	}
	l.cur = newCursor(f, number)
	l.last, l.safe, l.pendingAt, l.allocated = 0, sector, sector, 0
	l.durable, l.proven = l.seq, l.seq
}

// readOn reads and applies the frames up to the end of the present segment.
func (l *Log) readOn() (*damage, error) {
	for {
		at := l.cur.off
		e, durable, err := l.cur.next()
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			if d := (*damage)(nil); errors.As(err, &d) {
				return d, nil
			}
			return nil, err
		}
		if why := l.misfit(e, durable); why != "" {
			l.cur.off = at
			return &damage{at, why}, nil
		}
		l.last = at
		l.marks.note(e.Seq, e.Segment, at)
		l.pendingAt = l.cur.off
		if err := l.take(e, durable); err != nil {
			return nil, l.poison(err)
		}
	}
}

// misfit says why an intact entry can't be the next one, "" where it is.
func (l *Log) misfit(e Entry, durable Seq) string {
	switch {
	case e.Seq != l.seq+1:
		return fmt.Sprintf("entry %d follows entry %d", e.Seq, l.seq)
	case e.Before != l.hash || e.Prev != l.trails[e.Effect].hash:
		return fmt.Sprintf("entry %d doesn't continue the chain of hashes", e.Seq)
	case durable > l.seq:
		return fmt.Sprintf("entry %d says that entry %d was durable before it", e.Seq, durable)
	}
	return ""
}

// lookOn is follow for those that don't hold the log: what is damaged at its end
// is being written, unless something later proves that it was finished.
func (l *Log) lookOn() error {
	for again := false; ; again = true {
		if err := l.listIfChanged(); err != nil {
			return err
		}
		if err := l.checkLast(); err != nil {
			return err
		}
		d, err := l.follow()
		if d == nil || err != nil {
			return err
		}
		s, err := l.cur.survey(d.off)
		if err != nil {
			return err
		}
		if !s.proves(l.seq + 1) {
			return nil
		}
		if again { // it was finished before the bytes were read again
			return l.corrupt(l.cur.segment, d.off, d.why)
		}
	}
}

// listIfChanged lists the segments where the lock file says that somebody opened
// the log since.
func (l *Log) listIfChanged() error {
	if l.lock == nil {
		lock, err := openLockFile(filepath.Join(l.path, lockName), false)
		if errors.Is(err, fs.ErrNotExist) {
			return l.list(false)
		}
		if err != nil {
			return err
		}
		l.lock = lock
	} else if err := l.lock.check(); err != nil { // whoever opens the log now writes into another file
		return err
	}
	before := l.lock.info
	if l.lock.changed() {
		if err := l.list(false); err != nil {
			l.lock.info = before
			return err
		}
	}
	return nil
}

// checkLast reads again from the last frame on, and finds out whether it is
// still the one that was applied.
func (l *Log) checkLast() error {
	if l.cur == nil {
		return nil
	}
	l.cur.buf = l.cur.buf[:0]
	if l.last == 0 {
		return nil
	}
	b, err := l.cur.peek(l.last, frameBody)
	if err != nil {
		return err
	}
	if len(b) < frameBody || Hash(b[144:176]) != l.hash {
		return l.gone()
	}
	return nil
}

// gone poisons a log whose entries, already applied, were cut by another.
func (l *Log) gone() error {
	return l.poison(fmt.Errorf("journal: entries up to %d were read here and have since been cut, their sync must have failed; open %s again", l.seq, l.path))
}

// settle makes durable what was read in this segment, or finds that the disk
// doesn't hold it.
func (l *Log) settle() error {
	if l.cur == nil || l.durable == l.seq {
		return nil
	}
	if err := errors.Join(l.cur.f.Sync(), dropCache(l.cur.f)); err != nil {
		return l.poison(fmt.Errorf("journal: sync %s: %w", segmentName(l.cur.segment), err))
	}
	c := newCursor(l.cur.f, l.cur.segment)
	c.off, c.limit = l.safe, l.cur.off
	var hash Hash
	for {
		e, _, err := c.next()
		if err == io.EOF {
			break
		}
		if d := (*damage)(nil); errors.As(err, &d) {
			return l.gone()
		}
		if err != nil {
			return err
		}
		hash = e.Hash
	}
	if hash != l.hash {
		return l.gone()
	}
	l.durable, l.safe = l.seq, l.cur.off
	return nil
}
