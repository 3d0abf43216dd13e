package journal_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// TestOneOwner: the second owner, of this process or another, gets ErrHeld with
// the first one's name; a dead owner's log is free at once. B68: other processes are kept out,
// not only other callers.
func TestOneOwner(t *testing.T) {
	path := newPath(t)
	p := start(t, "own", path)
	p.ready(t)
	refused := func(mode journal.Mode) {
		t.Helper()
		_, err := journal.OpenFile(path, journal.Options{Mode: mode, Namespace: "test"}, nil)
		var held *journal.HeldError
		if !errors.As(err, &held) || !errors.Is(err, journal.ErrHeld) || held.Since.IsZero() ||
			!strings.Contains(held.Owner, "the child") || !strings.Contains(held.Owner, strconv.Itoa(p.cmd.Process.Pid)) {
			t.Errorf("as %v: %v, want ErrHeld naming the child and its process id", mode, err)
		}
	}
	refused(journal.Owner)
	refused(journal.Appender)
	r, entries := mustOpen(t, path, journal.Options{Mode: journal.Reader})
	if len(*entries) != 1 {
		t.Errorf("a reader beside the owner was fed %v", kinds(*entries))
	}
	p.kill(t)
	l, _ := mustOpen(t, path, journal.Options{})
	add(t, l, journal.Entry{Kind: journal.Granted})
	if err := r.View(t.Context(), func(journal.Head) {}); err != nil || len(*entries) != 2 {
		t.Errorf("the reader follows the next owner: %v, %v", kinds(*entries), err)
	}
	if _, err := journal.OpenFile(path, journal.Options{}, nil); !errors.Is(err, journal.ErrHeld) {
		t.Errorf("a second owner in this process: %v", err)
	}
}

// TestLockOutlivesCollection drops the log without closing it: the collector
// must not give the lock away.
func TestLockOutlivesCollection(t *testing.T) {
	path := newPath(t)
	if _, err := journal.OpenFile(path, fast(path), nil); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		runtime.GC()
	}
	if _, err := journal.OpenFile(path, fast(path), nil); !errors.Is(err, journal.ErrHeld) {
		t.Errorf("opened beside a live owner: %v", err)
	}
}

// TestInheritedLock: a child of the owner has no share in the lock.
func TestInheritedLock(t *testing.T) {
	path := newPath(t)
	l, _ := mustOpen(t, path, fast(path))
	p := start(t, "own", newPath(t)) // forked while the lock was held
	p.ready(t)
	l.Close()
	mustOpen(t, path, fast(path))
}

func TestModes(t *testing.T) {
	path := newPath(t)
	l, _ := mustOpen(t, path, fast(path))
	l.Close()
	for _, mode := range []journal.Mode{journal.Appender, journal.Reader} {
		o := fast(path)
		o.Mode = mode
		l, _ := mustOpen(t, path, o)
		if _, err := l.Claim(t.Context(), e1); !errors.Is(err, journal.ErrMode) {
			t.Errorf("%v: Claim: %v", mode, err)
		}
		_, err := l.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) { return nil, nil })
		if got := errors.Is(err, journal.ErrMode); got != (mode == journal.Reader) {
			t.Errorf("%v: Update: %v", mode, err)
		}
	}
}

// TestUnsafe puts in the place of a log's files what somebody else could swap,
// read or hang us with. Each is refused, in every mode that gets there, and
// nothing hangs.
func TestUnsafe(t *testing.T) {
	lock, seg := "lock", first
	for _, c := range []struct {
		why   string
		name  string // "" is the directory
		place func(p string) error
	}{
		{"a symbolic link", lock, func(p string) error { return errors.Join(os.Rename(p, p+"-"), os.Symlink(p+"-", p)) }},
		{"a symbolic link", seg, func(p string) error { return errors.Join(os.Rename(p, p+"-"), os.Symlink(p+"-", p)) }},
		{"a second link", lock, func(p string) error { return os.Link(p, p+"-") }},
		{"a second link", seg, func(p string) error { return os.Link(p, p+"-") }},
		{"a FIFO", lock, func(p string) error { return errors.Join(os.Remove(p), syscall.Mkfifo(p, 0o600)) }},
		{"a FIFO", seg, func(p string) error { return errors.Join(os.Remove(p), syscall.Mkfifo(p, 0o600)) }},
		{"a directory", lock, func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) }},
		{"a directory", seg, func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) }},
		{"readable by the group", lock, func(p string) error { return os.Chmod(p, 0o640) }},
		{"writable by all", seg, func(p string) error { return os.Chmod(p, 0o602) }},
		{"of another user", lock, func(p string) error { return os.Chown(p, 12345, -1) }},
		{"of another user", seg, func(p string) error { return os.Chown(p, 12345, -1) }},
		{"readable by all", "", func(p string) error { return os.Chmod(p, 0o755) }},
		{"a symbolic link", "", func(p string) error { return errors.Join(os.Rename(p, p+"-"), os.Symlink(p+"-", p)) }},
		{"a file", "", func(p string) error { return errors.Join(os.RemoveAll(p), os.WriteFile(p, nil, 0o600)) }},
		{"of another user", "", func(p string) error { return os.Chown(p, 12345, -1) }},
	} {
		for _, mode := range []journal.Mode{journal.Owner, journal.Appender, journal.Reader} {
			path := newPath(t)
			l, _ := mustOpen(t, path, fast(path))
			l.Close()
			if err := c.place(filepath.Join(path, c.name)); err != nil {
				t.Logf("%s for %q can't be tried: %v", c.why, c.name, err)
				continue
			}
			o := fast(path)
			o.Mode = mode
			if _, err := journal.OpenFile(path, o, nil); !errors.Is(err, journal.ErrUnsafe) {
				t.Errorf("%s for %q, as %v: %v, want ErrUnsafe", c.why, c.name, mode, err)
			}
		}
	}
}

// TestModesOfFiles: with no umask at all, what is made is 0700 and 0600.
func TestModesOfFiles(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := newPath(t)
	l, _ := mustOpen(t, path, fast(path))
	add(t, l, journal.Entry{Kind: journal.Granted})
	d, err := journal.OpenDrain(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := filepath.Walk(path, func(p string, info os.FileInfo, err error) error {
		want := os.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", p, info.Mode().Perm(), want)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestReplacedLock: a lock file that was removed and made again lets a second
// owner in. The first finds out before it tells anybody of another entry.
func TestReplacedLock(t *testing.T) {
	path := newPath(t)
	l, _ := mustOpen(t, path, fast(path))
	if err := os.Remove(filepath.Join(path, "lock")); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, path, fast(path))
	_, err := l.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) {
		return []journal.Entry{{Kind: journal.Dispatched, Effect: e1}}, nil
	})
	if !errors.Is(err, journal.ErrPoisoned) || !errors.Is(err, journal.ErrUnsafe) {
		t.Errorf("the first owner: %v, want ErrPoisoned for ErrUnsafe", err)
	}
	d := openDrain(t, path)
	if err := os.Remove(filepath.Join(path, "drain")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // gone, then made again by somebody else
		if _, ok, err := d.Share(1); ok || !errors.Is(err, journal.ErrUnsafe) {
			t.Errorf("Share of a replaced drain: %v, %v, want ErrUnsafe", ok, err)
		}
		if err := d.Exclude(t.Context(), 1); !errors.Is(err, journal.ErrUnsafe) {
			t.Errorf("Exclude of a replaced drain: %v, want ErrUnsafe", err)
		}
		openDrain(t, path)
	}
}

func TestAppendLockWaits(t *testing.T) {
	path := newPath(t)
	p := start(t, "update", path)
	p.ready(t)
	o := journal.Options{Mode: journal.Reader}
	r, entries := mustOpen(t, path, o)
	if err := r.View(t.Context(), func(journal.Head) {}); err != nil || len(*entries) != 1 {
		t.Errorf("a reader beside an update: %v, %v", kinds(*entries), err)
	}
	p.end(t)
	l, _ := mustOpen(t, path, journal.Options{Mode: journal.Appender, Namespace: "test"})
	hung := start(t, "update", path)
	hung.ready(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go cancel() // before it asks or while it waits
	_, err := l.Update(ctx, func(journal.Head) ([]journal.Entry, error) { t.Error("fn was called"); return nil, nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("beside a hung appender: %v", err)
	}
	hung.kill(t)
	if err := l.View(t.Context(), func(journal.Head) {}); err != nil {
		t.Fatal(err)
	}
	add(t, l, journal.Entry{Kind: journal.Granted})
}

// TestAReaderNoticesAReplacedLockFile: whoever opens the log after the file was
// removed tells it by another one, and the reader would go on as if nothing had
// been appended.
func TestAReaderNoticesAReplacedLockFile(t *testing.T) {
	path := newPath(t)
	owner, _ := mustOpen(t, path, journal.Options{Namespace: "n"})
	add(t, owner, journal.Entry{Kind: journal.Proposed})
	reader, _ := mustOpen(t, path, journal.Options{Mode: journal.Reader, Namespace: "n"})
	if err := reader.View(t.Context(), func(journal.Head) {}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(path, "lock")); err != nil {
		t.Fatal(err)
	}
	if err := reader.View(t.Context(), func(journal.Head) {}); !errors.Is(err, journal.ErrUnsafe) {
		t.Errorf("want ErrUnsafe, have %v", err)
	}
}

// TestCloseLetsGoWhileProcessesStart: a process that is being started holds a
// copy of every descriptor until it runs its program. The locks must not wait
// for it.
func TestCloseLetsGoWhileProcessesStart(t *testing.T) {
	path := newPath(t)
	stop := make(chan struct{})
	var starting sync.WaitGroup
	for range 4 {
		starting.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := exec.Command("true").Run(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 150 {
		l, err := journal.OpenFile(path, journal.Options{Namespace: "n"}, func(journal.Entry) error { return nil })
		if err != nil {
			t.Error(err)
			break
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	starting.Wait()
}

// TestWhatFailsToOpenKeepsNothing counts the files of this process.
func TestWhatFailsToOpenKeepsNothing(t *testing.T) {
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	path, linked := newPath(t), newPath(t)
	l, _ := mustOpen(t, path, fast(path))
	defer l.Close()
	other, _ := mustOpen(t, linked, fast(linked))
	other.Close()
	if err := os.Link(filepath.Join(linked, "lock"), filepath.Join(linked, "lock-")); err != nil {
		t.Fatal(err)
	}
	before := open()
	for range 20 {
		var held *journal.HeldError
		if _, err := journal.OpenFile(path, fast(path), nil); !errors.As(err, &held) || !strings.Contains(held.Owner, filepath.Base(os.Args[0])) {
			t.Fatalf("opened by a second owner: %v", err)
		}
		if _, err := journal.OpenFile(linked, fast(linked), nil); !errors.Is(err, journal.ErrUnsafe) {
			t.Fatalf("opened with a lock file of two links: %v", err)
		}
		d, err := journal.OpenDrain(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Exclude(t.Context(), 7), d.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if after := open(); after > before+10 { // other tests have files of their own
		t.Errorf("%d files were open, and %d are", before, after)
	}
}
