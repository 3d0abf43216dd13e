package journal

import (
	"errors"
	"fmt"
	"syscall"
)

// Blocks are allocated ahead of the end of the segment, so that a full disk is
// found before an entry is appended, and so that outcomes of effects already
// sent can still be written when nothing else can: entries whose kind isn't
// Reserved leave the last reserve bytes alone.
const (
	reserve = 256 << 10
	ahead   = 256 << 10 // allocated at a time, beyond what is needed
)

// allocator is a File that can allocate blocks behind its end without growing.
type allocator interface {
	// Allocate makes sure that writes up to offset size find their blocks. A
	// file system that can't returns an error that is errors.ErrUnsupported.
	Allocate(size int64) error
}

// room makes sure that entries fit. Its error, ErrFull alone, means that nothing
// was appended.
func (l *Log) room(entries []Entry) error {
	need, extra := l.cur.off, int64(0)
	for _, e := range entries {
		need += frameSize(len(e.Body))
		if !e.Kind.Reserved() {
			extra = reserve
		}
	}
	if need += extra; len(entries) == 0 || need <= l.allocated {
		return nil
	}
	got, err := allocate(l.cur.f, need)
	switch {
	case errors.Is(err, ErrFull):
		return fmt.Errorf("journal: no room in %s for %d entries, nothing was appended; free some: %w", l.path, len(entries), err)
	case err != nil:
		return fmt.Errorf("journal: allocate %s: %w", segmentName(l.cur.segment), err)
	}
	l.allocated = got
	return nil
}

// allocate allocates the first size bytes of a file, and some more if it can. It
// returns how far writes find their blocks now.
func allocate(f File, size int64) (int64, error) {
	a, ok := f.(allocator)
	if !ok {
		return noLimit, nil
	}
	err := a.Allocate(size + ahead)
	if err == nil {
		return size + ahead, nil
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return noLimit, nil
	}
	return size, full(a.Allocate(size))
}

// allocateFirst is allocate for a new segment. On a full disk it gives up what
// the segment before still has allocated; where that isn't enough the new one
// goes without.
func (l *Log) allocateFirst(f File, before segment) (int64, error) {
	got, err := allocate(f, sector+reserve)
	if errors.Is(err, ErrFull) && before.number != 0 {
		if err := l.giveUp(before.number, before.size); err != nil {
			return 0, err
		}
		got, err = allocate(f, sector+reserve)
	}
	if errors.Is(err, ErrFull) {
		return 0, nil
	}
	return got, err
}

// giveUp frees the blocks behind the end of a segment.
func (l *Log) giveUp(number uint64, size int64) error {
	f, err := l.dir.Open(segmentName(number), false)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return fmt.Errorf("journal: truncate %s: %w", segmentName(number), err)
	}
	return nil
}

// full adds ErrFull to the errors of a disk, a quota or a size limit.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
