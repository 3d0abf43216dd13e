package journal

import (
	"errors"
	"fmt"
	"time"
)

// Classes of failure; errors.Is finds them in what the stores return.
var (
	ErrHeld      = errors.New("journal: held by another owner")
	ErrPoisoned  = errors.New("journal: an earlier write or sync failed; restart this process to open the log again")
	ErrCorrupt   = errors.New("journal: damaged before its tail")
	ErrFormat    = errors.New("journal: written in a format this version doesn't read")
	ErrNamespace = errors.New("journal: belongs to another namespace")
	ErrUnsafe    = errors.New("journal: file, owner, mode or file system is not safe to use")
	ErrFull      = errors.New("journal: no room left")
	ErrMode      = errors.New("journal: opened in a mode that doesn't allow this")
	ErrClosed    = errors.New("journal: closed")
)

// HeldError says who holds a log or a claim. The owner is for people; it is
// never decided upon.
type HeldError struct {
	What  string    // "journal /path" or "effect 3f…"
	Owner string    // host, process id and command, as the owner wrote them
	Since time.Time // zero where unknown
}

func (e *HeldError) Error() string {
	s := fmt.Sprintf("journal: %s is held by %s", e.What, e.Owner)
	if !e.Since.IsZero() {
		s += " since " + e.Since.UTC().Format(time.RFC3339)
	}
	return s + "; wait for it, or stop that process"
}

func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// CorruptError says where a log is damaged.
type CorruptError struct {
	File   string
	Offset int64 // first byte that can't be trusted
	Why    string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("journal: %s is damaged at byte %d: %s; nothing was changed, restore it from a copy", e.File, e.Offset, e.Why)
}

func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
