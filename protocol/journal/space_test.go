package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

func try(t *testing.T, l *journal.Log, k journal.Kind) error {
	t.Helper()
	_, err := l.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) {
		return []journal.Entry{{Kind: k, Effect: e1, Body: long}}, nil
	})
	return err
}

// TestFullDisk: where no more blocks can be had, what leads to a new effect is
// refused before anything is appended, and outcomes go on from the reserve.
func TestFullDisk(t *testing.T) {
	path := newPath(t)
	o := fast(path)
	d := o.Dir.(*testDir)
	room := int64(1 << 20)
	d.alloc = func(size int64) error {
		if size > room {
			return syscall.ENOSPC
		}
		return nil
	}
	l, entries := mustOpen(t, path, o)
	n := 0
	var err error
	for ; err == nil && n < 10_000; n++ {
		err = try(t, l, journal.Proposed)
	}
	if !errors.Is(err, journal.ErrFull) || errors.Is(err, journal.ErrPoisoned) {
		t.Fatalf("after %d entries: %v, want ErrFull and a log that lives", n, err)
	}
	for _, k := range []journal.Kind{journal.Authorized, journal.Dispatched, journal.Granted, journal.Conflicted} {
		if err := try(t, l, k); !errors.Is(err, journal.ErrFull) {
			t.Errorf("%v: %v, want ErrFull", k, err)
		}
	}
	for range 20 {
		for _, k := range []journal.Kind{journal.NotSent, journal.Committed, journal.Refused, journal.Ambiguous, journal.Unresolved, journal.Fenced, journal.TakenOver, journal.Resolved, journal.Revoked, journal.Seal} {
			if err := try(t, l, k); err != nil {
				t.Fatalf("%v from the reserve: %v", k, err)
			}
		}
	}
	for ; err == nil || n < 20_000; n++ {
		if err = try(t, l, journal.Committed); err != nil {
			break
		}
	}
	if !errors.Is(err, journal.ErrFull) || errors.Is(err, journal.ErrPoisoned) {
		t.Errorf("the end of the reserve: %v", err)
	}
	room *= 2
	if err := try(t, l, journal.Proposed); err != nil {
		t.Errorf("with room again: %v", err)
	}
	for _, e := range *entries {
		if e.Kind == journal.Dispatched {
			t.Error("a refused entry was appended")
		}
	}
}

// TestFullFileSystem does the same on a file system that is really full, and
// opens the log again there.
func TestFullFileSystem(t *testing.T) {
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("needs to mount a file system: %v", err)
	}
	defer syscall.Unmount(mount, syscall.MNT_DETACH)
	path := filepath.Join(mount, "journal")
	l, _ := mustOpen(t, path, journal.Options{Namespace: "test"})
	filler, err := os.Create(filepath.Join(mount, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	n := 0
	for err = nil; err == nil && n < 10_000; n++ {
		err = try(t, l, journal.Proposed)
	}
	if !errors.Is(err, journal.ErrFull) || errors.Is(err, journal.ErrPoisoned) {
		t.Fatalf("after %d entries: %v", n, err)
	}
	if err := try(t, l, journal.Committed); err != nil {
		t.Errorf("an outcome from the reserve: %v", err)
	}
	l.Close()
	l, entries := mustOpen(t, path, journal.Options{})
	if err := try(t, l, journal.Committed); err != nil {
		t.Errorf("an outcome, after opening on the full disk: %v", err)
	}
	if err := try(t, l, journal.Proposed); !errors.Is(err, journal.ErrFull) || errors.Is(err, journal.ErrPoisoned) {
		t.Errorf("a proposal, after opening on the full disk: %v", err)
	}
	if got := len(*entries); got < n {
		t.Errorf("opened with %d entries, want %d", got, n)
	}
}

// TestNoBlocksAreLeftBehind: closed segments keep no more blocks than they need.
func TestNoBlocksAreLeftBehind(t *testing.T) {
	path := newPath(t)
	for range 3 {
		l, _ := mustOpen(t, path, journal.Options{Namespace: "test"})
		add(t, l, journal.Entry{Kind: journal.Granted})
		l.Close()
	}
	for _, name := range segments(t, path)[:2] {
		info, err := os.Stat(filepath.Join(path, name))
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); st.Blocks*512 > 16<<10 {
			t.Errorf("%s of %d bytes holds %d", name, info.Size(), st.Blocks*512)
		}
	}
}
