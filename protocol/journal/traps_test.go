package journal_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// TestLockOutlivesAnotherClose opens and closes the lock file once more in the
// owner's process: a POSIX lock would be lost by that.
func TestLockOutlivesAnotherClose(t *testing.T) {
	path := newPath(t)
	l, _ := mustOpen(t, path, fast(path))
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := journal.OpenFile(path, fast(path), nil); !errors.Is(err, journal.ErrHeld) {
		t.Errorf("opened beside a live owner: %v", err)
	}
	add(t, l, journal.Entry{Kind: journal.Granted})
}

// TestProcessIDsDecideNothing: the lock file may name a process that lives, for
// instance because its number was given to another one, and one that doesn't.
func TestProcessIDsDecideNothing(t *testing.T) {
	path := newPath(t)
	l, _ := mustOpen(t, path, fast(path))
	lock := filepath.Join(path, "lock")
	say := func(pid int) {
		var holder map[string]any
		b, err := os.ReadFile(lock)
		if err == nil {
			err = json.Unmarshal(b, &holder)
		}
		if err != nil {
			t.Fatal(err)
		}
		holder["pid"] = pid
		if b, err = json.Marshal(holder); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(lock, os.O_WRONLY|os.O_TRUNC, 0)
		if err == nil {
			_, err = f.Write(b)
			f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	say(1 << 30) // no process has this number
	if _, err := journal.OpenFile(path, fast(path), nil); !errors.Is(err, journal.ErrHeld) {
		t.Errorf("the owner lives, and the file names a dead process: %v", err)
	}
	l.Close()
	say(os.Getpid())
	mustOpen(t, path, fast(path)) // nobody holds it, and the file names a live process
}

// TestStoppedOwner: a process that stands still keeps its log; once it is killed
// the log is free.
func TestStoppedOwner(t *testing.T) {
	path := newPath(t)
	p := start(t, "own", path)
	p.ready(t)
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var held *journal.HeldError
	if _, err := journal.OpenFile(path, journal.Options{}, nil); !errors.As(err, &held) || !strings.Contains(held.Owner, "the child") {
		t.Errorf("beside a stopped owner: %v, want ErrHeld with its name", err)
	}
	p.kill(t)
	mustOpen(t, path, journal.Options{})
}
