package sqlite

import (
	"errors"
	"fmt"
	"math"
	"syscall"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Blocks are allocated ahead of the end of the WAL, so that a full disk is found
// before an entry is appended, and so that outcomes of effects already sent can
// still be written when nothing else can: entries whose kind isn't Reserved leave
// the last reserve bytes alone. The database itself grows when SQLite moves the
// WAL into it; where that finds no room the WAL goes on.
const (
	reserve = 512 << 10
	ahead   = 512 << 10 // allocated at a time, beyond what is needed
	page    = 4096
	frame   = page + 24 // of the WAL
)

// room is the WAL's file. There are no POSIX locks on it, so that closing this
// descriptor of it loses none.
type room struct {
	fd        int
	allocated int64
	pages     int64 // that the transaction under way may write
}

func openRoom(wal string) (*room, error) {
	fd, err := syscall.Open(wal, syscall.O_RDWR|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("journal: open %s: %w", wal, err)
	}
	return &room{fd: fd}, nil
}

func (r *room) close() { syscall.Close(r.fd) }

// begin begins a transaction: the path from the root, once split, and the first
// page are written by any.
func (r *room) begin() { r.pages = 8 }

// fits makes sure that entries find room. Its error, ErrFull alone, means that
// nothing was appended.
func (r *room) fits(entries []journal.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	pages, extra := r.pages, int64(0)
	for _, e := range entries {
		pages += int64(256+len(e.Body))/(page/2) + 1
		if !e.Kind.Reserved() {
			extra = reserve
		}
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(r.fd, &st); err != nil {
		return fmt.Errorf("journal: the WAL: %w", err)
	}
	need := st.Size + pages*frame + extra
	if need > r.allocated && r.allocate(need+ahead) != nil {
		if err := r.allocate(need); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("journal: no room for %d entries, nothing was appended; free some: %w", len(entries), journal.Full(err))
		}
	}
	r.pages = pages
	return nil
}

func (r *room) allocate(size int64) error {
	const keepSize = 1 // FALLOC_FL_KEEP_SIZE
	for {
		err := syscall.Fallocate(r.fd, keepSize, 0, size)
		switch {
		case err == syscall.EINTR:
			continue
		case errors.Is(err, errors.ErrUnsupported):
			r.allocated = math.MaxInt64
		case err == nil:
			r.allocated = size
		}
		return err
	}
}
