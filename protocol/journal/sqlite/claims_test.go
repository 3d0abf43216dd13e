package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
)

var e1, e2, e3 = journal.ID{1}, journal.ID{2}, journal.ID{3}

func mustOpen(t testing.TB, path string, o sqlite.Options) (*sqlite.Store, *[]journal.Entry) {
	t.Helper()
	if o.Namespace == "" && !o.Reader {
		o.Namespace = "test"
	}
	var entries []journal.Entry
	s, err := sqlite.Open(path, o, func(e journal.Entry) error { entries = append(entries, e); return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, &entries
}

func add(t testing.TB, s journal.Store, entries ...journal.Entry) []journal.Entry {
	t.Helper()
	got, err := s.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) { return entries, nil })
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func mustClaim(t testing.TB, s journal.Store, effect journal.ID) *journal.Claim {
	t.Helper()
	c, err := s.Claim(t.Context(), effect)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func heldBy(t testing.TB, s journal.Store, effect journal.ID) *journal.HeldError {
	t.Helper()
	_, err := s.Claim(t.Context(), effect)
	var held *journal.HeldError
	if !errors.As(err, &held) || held.Since.IsZero() {
		t.Fatalf("%v, want ErrHeld with a time", err)
	}
	return held
}

// TestHeldNamesItsProcess: the owner is named, and its death frees the claim at
// once.
func TestHeldNamesItsProcess(t *testing.T) {
	path := newPath(t)
	s, _ := mustOpen(t, path, sqlite.Options{})
	p := start(t, "claim", path)
	p.want(t, "claimed")
	pid := p.cmd.Process.Pid
	if held := heldBy(t, s, e1); !strings.Contains(held.Owner, "the child") || !strings.Contains(held.Owner, strconv.Itoa(pid)) {
		t.Errorf("held by %q, want the child and its process id %d", held.Owner, pid)
	}
	if h, ok := s.Holder(e1); !ok || h.PID != pid || h.What != "the child" {
		t.Errorf("Holder: %+v, %v", h, ok)
	}
	p.kill()
	if h, ok := s.Holder(e1); ok {
		t.Errorf("a dead process holds it: %+v", h)
	}
	if c := mustClaim(t, s, e1); !c.Proven {
		t.Error("the kernel's word is a proof")
	}
	if h, ok := s.Holder(e1); !ok || h.PID != os.Getpid() {
		t.Errorf("Holder of one's own: %+v, %v", h, ok)
	}
}

// TestClaimOutlivesCollection drops the store and the claim without closing
// them: the collector must not give the lock away.
func TestClaimOutlivesCollection(t *testing.T) {
	path := newPath(t)
	func() {
		s, err := sqlite.Open(path, sqlite.Options{Namespace: "test"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		mustClaim(t, s, e1)
	}()
	other, _ := mustOpen(t, path, sqlite.Options{})
	for range 3 {
		runtime.GC()
		heldBy(t, other, e1)
	}
}

// TestNothingInheritsAClaim: a process that the holder started has no share in
// its claims, and outlives it without them.
func TestNothingInheritsAClaim(t *testing.T) {
	path := newPath(t)
	s, err := sqlite.Open(path, sqlite.Options{Namespace: "test"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustClaim(t, s, e1)
	cat := exec.Command("cat")
	in, err := cat.StdinPipe()
	if err := errors.Join(err, cat.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); cat.Wait() }()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", cat.Process.Pid))
	if err != nil || len(links) == 0 {
		t.Fatalf("its descriptors can't be seen: %v", err)
	}
	for _, l := range links {
		if to, _ := os.Readlink(l); strings.HasPrefix(to, path) {
			t.Errorf("the child inherits %s", to)
		}
	}
	s.Close()
	other, _ := mustOpen(t, path, sqlite.Options{})
	mustClaim(t, other, e1)
}

// TestAnotherCloseLosesNoLock: a POSIX lock would be lost when this process
// closes any other descriptor of the file. Claims are none; and nothing that an
// opening does, or its end, loses SQLite's own locks, which are.
func TestAnotherCloseLosesNoLock(t *testing.T) {
	path := newPath(t)
	s, _ := mustOpen(t, path, sqlite.Options{})
	mustClaim(t, s, e1)
	f, err := os.Open(path + "-claims")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	other, _ := mustOpen(t, path, sqlite.Options{})
	heldBy(t, other, e1)
	other.Close()
	if _, err := s.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) {
		r, err := sqlite.Open(path, sqlite.Options{Reader: true}, nil)
		if err != nil {
			t.Error(err)
			return nil, err
		}
		for _, err := range r.Since(0) {
			if err != nil {
				t.Error(err)
			}
		}
		r.Close()
		p := start(t, "turn", path)
		if line := p.line(); line != "held" {
			t.Errorf("another process in this one's turn: %s", line)
		}
		return []journal.Entry{{Kind: journal.Granted}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	p := start(t, "claim", path)
	if line := p.line(); !strings.HasPrefix(line, "failed:") {
		t.Errorf("another process that claims it: %s", line)
	}
}

// TestReplacedClaimsFile: where the claims file is removed and made again, claims
// keep nobody out. Whoever has the first one open finds out before it claims
// again, and before it tells anybody of another entry.
func TestReplacedClaimsFile(t *testing.T) {
	for _, again := range []bool{false, true} {
		path := newPath(t)
		s, _ := mustOpen(t, path, sqlite.Options{})
		c := mustClaim(t, s, e1)
		if err := os.Remove(path + "-claims"); err != nil {
			t.Fatal(err)
		}
		if again {
			f, err := os.OpenFile(path+"-claims", os.O_CREATE|os.O_RDWR, 0o600)
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Claim(t.Context(), e2); !errors.Is(err, journal.ErrUnsafe) {
			t.Errorf("made again %v: another claim: %v, want ErrUnsafe", again, err)
		}
		_, err := s.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) {
			return []journal.Entry{{Kind: journal.Dispatched, Effect: e1}}, nil
		})
		if !errors.Is(err, journal.ErrPoisoned) || !errors.Is(err, journal.ErrUnsafe) {
			t.Errorf("made again %v: an update: %v, want ErrPoisoned for ErrUnsafe", again, err)
		}
		c.Release()
	}
}

// TestReplacedDatabase: the same for the database.
func TestReplacedDatabase(t *testing.T) {
	path := newPath(t)
	s, _ := mustOpen(t, path, sqlite.Options{})
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) {
		return []journal.Entry{{Kind: journal.Dispatched, Effect: e1}}, nil
	})
	if !errors.Is(err, journal.ErrPoisoned) {
		t.Errorf("an update: %v, want ErrPoisoned", err)
	}
}

// TestProcessIDsDecideNothing: the note says that the holder is a process which
// lives, and it is dead; or one that is dead, and the holder lives. Its claim is
// as free as the kernel says.
func TestProcessIDsDecideNothing(t *testing.T) {
	path := newPath(t)
	s, _ := mustOpen(t, path, sqlite.Options{})
	pretend := func(pid int) {
		t.Helper()
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(`UPDATE opening SET who = json_set(who, '$.pid', ?)`, pid); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, "claim", path)
	p.want(t, "claimed")
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	pretend(dead.Process.Pid)
	heldBy(t, s, e1)
	pretend(os.Getpid())
	p.kill()
	mustClaim(t, s, e1)
}

// TestAReleaseAfterCloseTouchesNothing: by then the descriptor is another file's.
func TestAReleaseAfterCloseTouchesNothing(t *testing.T) {
	s, _ := mustOpen(t, newPath(t), sqlite.Options{})
	c := mustClaim(t, s, e1)
	s.Close()
	var others []*os.File
	for n := range 20 {
		f, err := os.Create(filepath.Join(t.TempDir(), fmt.Sprint(n)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		others = append(others, f)
	}
	c.Release()
	for _, f := range others {
		if info, err := f.Stat(); err != nil || info.Size() != 0 {
			t.Errorf("%s was written to (%v)", f.Name(), err)
		}
	}
	if _, ok := s.Holder(e1); ok {
		t.Error("a closed store knows a holder")
	}
}

// TestEffectsThatShareAByte: in one process both can be claimed; another process
// waits for both, and is told by whom.
func TestEffectsThatShareAByte(t *testing.T) {
	path := newPath(t)
	a, b := journal.ID{7, 7}, journal.ID{7, 7, 31: 9}
	s, _ := mustOpen(t, path, sqlite.Options{Identity: "the first"})
	other, _ := mustOpen(t, path, sqlite.Options{})
	first, second := mustClaim(t, s, a), mustClaim(t, s, b)
	heldBy(t, s, b)
	first.Release()
	for _, id := range []journal.ID{a, b} {
		if held := heldBy(t, other, id); !strings.Contains(held.Owner, "the first") {
			t.Errorf("held by %q", held.Owner)
		}
	}
	second.Release()
	mustClaim(t, other, a)
}

// TestNotesOfManyClaims: more claims than one place takes notes of are kept
// apart as well, whether or not each has a name.
func TestNotesOfManyClaims(t *testing.T) {
	path := newPath(t)
	s, _ := mustOpen(t, path, sqlite.Options{})
	other, _ := mustOpen(t, path, sqlite.Options{})
	var held []*journal.Claim
	for n := range 40 {
		held = append(held, mustClaim(t, s, journal.ID{byte(n)})) // all note themselves at one place
	}
	for n := range 40 {
		if _, err := other.Claim(t.Context(), journal.ID{byte(n)}); !errors.Is(err, journal.ErrHeld) {
			t.Errorf("claim %d: %v", n, err)
		}
		held[n].Release()
		mustClaim(t, other, journal.ID{byte(n)})
	}
}

// TestUnsafe puts in the place of a log's files what somebody else could swap,
// read or hang us with.
func TestUnsafe(t *testing.T) {
	for _, c := range []struct {
		why   string
		place func(p string) error
	}{
		{"a symbolic link", func(p string) error { return errors.Join(os.Rename(p, p+"-"), os.Symlink(p+"-", p)) }},
		{"a second link", func(p string) error { return os.Link(p, p+"-") }},
		{"a FIFO", func(p string) error { return errors.Join(os.Remove(p), syscall.Mkfifo(p, 0o600)) }},
		{"a directory", func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) }},
		{"readable by the group", func(p string) error { return os.Chmod(p, 0o640) }},
		{"writable by all", func(p string) error { return os.Chmod(p, 0o602) }},
		{"of another user", func(p string) error { return os.Chown(p, 12345, -1) }},
	} {
		for _, name := range []string{"", "-claims", "-wal", "-shm"} {
			path := newPath(t)
			s, _ := mustOpen(t, path, sqlite.Options{})
			if name == "-wal" || name == "-shm" {
				path = crashed(t, path) // they are gone after the last Close
				if name == "-shm" {
					os.WriteFile(path+name, nil, 0o600)
				}
			} else {
				s.Close()
			}
			if err := c.place(path + name); err != nil {
				t.Logf("%s for %q can't be tried: %v", c.why, name, err)
				continue
			}
			for _, reader := range []bool{false, true} {
				if _, err := sqlite.Open(path, sqlite.Options{Namespace: "test", Reader: reader}, nil); !errors.Is(err, journal.ErrUnsafe) {
					t.Errorf("%s for %q, reader %v: %v, want ErrUnsafe", c.why, name, reader, err)
				}
			}
		}
	}
	path := newPath(t)
	s, _ := mustOpen(t, path, sqlite.Options{})
	s.Close()
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(path, sqlite.Options{Namespace: "test"}, nil); !errors.Is(err, journal.ErrUnsafe) {
		t.Errorf("a directory that all may look into: %v", err)
	}
}

// TestModesOfFiles: with no umask at all, what is made is 0700 and 0600.
func TestModesOfFiles(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := newPath(t)
	s, _ := mustOpen(t, path, sqlite.Options{})
	add(t, s, journal.Entry{Kind: journal.Granted})
	mustClaim(t, s, e1)
	n := 0
	if err := filepath.Walk(filepath.Dir(path), func(p string, info os.FileInfo, err error) error {
		want := os.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		if n++; info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", p, info.Mode().Perm(), want)
		}
		return err
	}); err != nil || n != 5 {
		t.Errorf("%d files, %v", n, err)
	}
}
