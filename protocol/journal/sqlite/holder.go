package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Holder is who opened a log. It is for people: a process id is used again, and
// nothing is decided on it.
type Holder struct {
	What string `json:"what"` // Options.Identity
	Host string `json:"host"`
	PID  int    `json:"pid"`
}

func newHolder(identity string) Holder {
	h := Holder{What: identity, PID: os.Getpid()}
	if h.What == "" {
		h.What = filepath.Base(os.Args[0])
	}
	h.Host, _ = os.Hostname()
	return h
}

// String is "what (process N on host)".
func (h Holder) String() string { return fmt.Sprintf("%s (process %d on %s)", h.What, h.PID, h.Host) }

// Holder says who holds the claim on an effect right now. It reports false where
// nobody does, or where the holder's name can't be made out.
func (s *Store) Holder(effect journal.ID) (Holder, bool) {
	n := s.claims.holding(effect)
	if n == nil {
		return Holder{}, false
	}
	h, err := s.holder(n.opening)
	return h, err == nil
}

// holder reads who an opening was.
func (s *Store) holder(opening uint64) (h Holder, err error) {
	if s.db == nil {
		return h, sql.ErrConnDone
	}
	var text string
	row := s.db.QueryRowContext(context.Background(), "SELECT who FROM opening WHERE number = ?", int64(opening))
	if err := row.Scan(&text); err != nil {
		return h, err
	}
	return h, json.Unmarshal([]byte(text), &h)
}

// OwnerOf says who holds the claim on an effect in the log at path.
func OwnerOf(path string, effect journal.ID) (journal.Holder, error) {
	s, err := Open(path, Options{Reader: true}, func(journal.Entry) error { return nil })
	if err != nil {
		return journal.Holder{}, err
	}
	defer s.Close()
	return journal.HolderOf("effect "+effect.String(), s.claimsPath(), byteOf(effect), func() (string, time.Time) {
		if s.claims == nil {
			return "an unknown process", time.Time{}
		}
		if n := s.claims.holding(effect); n != nil {
			if h, err := s.holder(n.opening); err == nil {
				return h.String(), n.since
			}
		}
		return "an unknown process", time.Time{}
	})
}
