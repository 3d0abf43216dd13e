package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// The claims file, integers big-endian:
//
//	0     512  the head, synced: see head
//	512   512  the head, not synced
//	1024   64  who appends right now, a note
//	4096   64  notes on claims, noteSlots of them
//
// Its locks reach far beyond its bytes.
const (
	syncedHead = 0
	looseHead  = 512
	writerNote = 1024
	firstNote  = 4096
	noteSize   = 64
	noteSlots  = 1 << 16
	noteTries  = 16

	claimBits = 62
	lifeByte  = 1 << claimBits // an opening shares it from begin to end, and begins alone where it is the only one
	// The byte behind it that has an opening's number is locked while that lives.
)

// claims are the claims of one opening.
type claims struct {
	file *journal.LockFile

	mu     sync.Mutex
	mine   map[journal.ID]*note
	held   map[int64]int // claims of mine on one byte
	closed bool          // the descriptor may be another file's by now
}

func (c *claims) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.file.Close()
	}
}

// note says who holds a claim, or the turn to append.
type note struct {
	effect  journal.ID
	opening uint64
	since   time.Time
	at      int64 // its place in the file; 0 for none
}

func (n note) encode() []byte {
	b := make([]byte, 0, noteSize)
	b = append(b, n.effect[:]...)
	b = binary.BigEndian.AppendUint64(b, n.opening)
	b = binary.BigEndian.AppendUint64(b, uint64(n.since.UnixNano()))
	sum := sha256.Sum256(b)
	return append(b, sum[:noteSize-len(b)]...)
}

// parseNote reports false where b is no note, or one half written.
func parseNote(b []byte) (note, bool) {
	n := note{opening: binary.BigEndian.Uint64(b[32:]), since: time.Unix(0, int64(binary.BigEndian.Uint64(b[40:]))).UTC()}
	copy(n.effect[:], b)
	sum := sha256.Sum256(b[:48])
	return n, slices.Equal(sum[:noteSize-48], b[48:noteSize])
}

// byteOf is the byte whose lock is the effect's claim.
func byteOf(effect journal.ID) int64 {
	return int64(binary.BigEndian.Uint64(effect[:8]) >> (64 - claimBits))
}

// slotOf is the effect's place among the notes.
func slotOf(effect journal.ID) int64 { return int64(binary.BigEndian.Uint16(effect[8:10])) }

// take takes the claim of n.effect. Where somebody has it, it returns what is
// known of them.
func (c *claims) take(n note) (other *note, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, journal.ErrClosed
	}
	if err := c.file.Check(); err != nil {
		return nil, err
	}
	if mine := c.mine[n.effect]; mine != nil {
		return mine, nil
	}
	at := byteOf(n.effect)
	if c.held[at] == 0 {
		if other, err := c.lock(at, n.effect); other != nil || err != nil {
			return other, err
		}
	}
	c.held[at]++
	c.write(&n)
	c.mine[n.effect] = &n
	return nil, nil
}

// lock locks the effect's byte, or returns the note of whoever has. A holder who
// has just locked it, or is about to free it, has no note: that is looked at for
// some milliseconds.
func (c *claims) lock(at int64, effect journal.ID) (other *note, err error) {
	for range 100 {
		if ok, err := c.file.Lock(at, false); ok || err != nil {
			return nil, err
		}
		if other = c.find(effect); other.opening != 0 {
			return other, nil
		}
		time.Sleep(50 * time.Microsecond)
	}
	return other, nil
}

func (c *claims) release(effect journal.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.mine[effect]
	if n == nil || c.closed {
		return
	}
	delete(c.mine, effect)
	if n.at != 0 {
		c.file.WriteAt(make([]byte, noteSize), n.at) // for people: a note left behind says nothing once the byte is free
	}
	at := byteOf(effect)
	if c.held[at]--; c.held[at] == 0 {
		delete(c.held, at)
		c.file.Unlock(at)
	}
}

// write leaves a note where none is, or one of a claim that nobody has any more.
// Where it can't, a holder without a name is what others see.
func (c *claims) write(n *note) {
	for try := range int64(noteTries) {
		at := firstNote + (slotOf(n.effect)+try)%noteSlots*noteSize
		var b [noteSize]byte
		if c.file.ReadAt(b[:], at) != nil {
			return
		}
		if old, ok := parseNote(b[:]); ok && old.effect != n.effect {
			if c.held[byteOf(old.effect)] > 0 {
				continue
			}
			if locked, err := c.file.Locked(byteOf(old.effect)); locked || err != nil {
				continue
			}
		}
		if c.file.WriteAt(n.encode(), at) == nil {
			n.at = at
		}
		return
	}
}

// find looks for the note of whoever holds the effect's byte.
func (c *claims) find(effect journal.ID) *note {
	for try := range int64(noteTries) {
		var b [noteSize]byte
		if c.file.ReadAt(b[:], firstNote+(slotOf(effect)+try)%noteSlots*noteSize) != nil {
			break
		}
		if n, ok := parseNote(b[:]); ok && byteOf(n.effect) == byteOf(effect) {
			return &n
		}
	}
	return &note{effect: effect}
}

// holding is the note of whoever has the effect's claim, nil where nobody does.
func (c *claims) holding(effect journal.ID) *note {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	if n := c.mine[effect]; n != nil {
		return n
	}
	if locked, err := c.file.Locked(byteOf(effect)); !locked || err != nil {
		return nil
	}
	return c.find(effect)
}

// Claim is Store.Claim. The claim is the process's until Release, and the
// kernel's word that it is free means that whoever had it is dead or released
// it: Proven is true. Two openings in one process exclude each other like two
// processes. ErrUnsafe says that the claims file was removed or replaced, so
// that a claim in it would keep nobody out.
func (s *Store) Claim(ctx context.Context, effect journal.ID) (*journal.Claim, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.broken(); err != nil {
		return nil, err
	}
	if s.o.Reader {
		return nil, fmt.Errorf("%w: a reader can't claim", journal.ErrMode)
	}
	other, err := s.claims.take(note{effect: effect, opening: s.opening, since: s.now()})
	if err != nil {
		return nil, err
	}
	if other != nil {
		return nil, s.heldBy("effect "+effect.String(), other)
	}
	return journal.NewClaim(effect, true, func() { s.claims.release(effect) }), nil
}

// heldBy is the error of what the writer of n holds. A note that a dead process
// left names nobody.
func (s *Store) heldBy(what string, n *note) error {
	e := &journal.HeldError{What: what, Owner: "an unknown process"}
	if n.opening != 0 && (n.opening == s.opening || s.lives(n.opening)) {
		e.Since = n.since
		if h, err := s.holder(n.opening); err == nil {
			e.Owner = h.String()
		}
	}
	return e
}

func (s *Store) lives(opening uint64) bool {
	locked, err := s.claims.file.Locked(lifeByte + int64(opening))
	return locked && err == nil
}
