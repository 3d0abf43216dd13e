package journal_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// TestHolderIsTheKernelsWord has this process own a log whose lock file names
// another one: the holder is who has the lock, and nobody is killed for a name.
func TestHolderIsTheKernelsWord(t *testing.T) {
	dir := newPath(t)
	l, err := journal.OpenFile(dir, journal.Options{Namespace: "desk", Identity: "desk"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	lock := filepath.Join(dir, "lock")
	text, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(string(text), `"what":"desk"`, `"what":"somebody else"`, 1)
	if err := os.WriteFile(lock, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}

	h, err := journal.OwnerOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !h.Held() || !strings.HasPrefix(h.Who, "somebody else") || !slices.Equal(h.Processes, []int{os.Getpid()}) {
		t.Errorf("held by %q, processes %v; want the forged name and process %d", h.Who, h.Processes, os.Getpid())
	}
	if err := h.Kill(context.Background()); !errors.Is(err, journal.ErrNotProven) {
		t.Errorf("killing oneself: %v", err)
	}

	// Who had it when it was looked at is not killed once somebody else has it, or
	// nobody.
	was := h
	was.Processes = []int{os.Getppid()}
	if err := was.Kill(context.Background()); !errors.Is(err, journal.ErrNotProven) {
		t.Errorf("a process that doesn't hold it: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if h, err = journal.OwnerOf(dir); err != nil || h.Held() {
		t.Errorf("afterwards held by %q, %v", h.Who, err)
	}
	if err := h.Kill(context.Background()); !errors.Is(err, journal.ErrNotProven) {
		t.Errorf("nobody has it: %v", err)
	}
}
