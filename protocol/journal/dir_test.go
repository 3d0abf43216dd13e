package journal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// testDir is a real directory that counts what is done in it, fails what it is
// told to fail, and can leave out the syncs where a test reopens a thousand times
// and is not about them.
type testDir struct {
	journal.Dir
	noSync bool
	syncs  atomic.Int64
	onSync func() error // before a segment is synced
	write  func(f journal.File, b []byte, off int64) (int, error)
	done   func(op, name string) // after each change; name is "" for the directory
	alloc  func(size int64) error
	drop   func(name string) error
	wrote  func(name string, off int64, n int)
}

type testFile struct {
	journal.File
	d    *testDir
	name string
}

func (d *testDir) note(op, name string) {
	if d.done != nil {
		d.done(op, name)
	}
}

func (d *testDir) Open(name string, create bool) (journal.File, error) {
	f, err := d.Dir.Open(name, create)
	if err != nil {
		return nil, err
	}
	if create {
		d.note("create", name)
	}
	return testFile{f, d, name}, nil
}

func (d *testDir) Remove(name string) error {
	defer d.note("remove", name)
	return d.Dir.Remove(name)
}

func (d *testDir) Sync() error {
	defer d.note("sync", "")
	if d.noSync {
		return nil
	}
	return d.Dir.Sync()
}

func (f testFile) Sync() error {
	f.d.syncs.Add(1)
	if f.d.onSync != nil {
		if err := f.d.onSync(); err != nil {
			return err
		}
	}
	defer f.d.note("sync", f.name)
	if f.d.noSync {
		return nil
	}
	return f.File.Sync()
}

func (f testFile) WriteAt(b []byte, off int64) (int, error) {
	defer f.d.note("write", f.name)
	if f.d.wrote != nil {
		f.d.wrote(f.name, off, len(b))
	}
	if f.d.write != nil {
		return f.d.write(f.File, b, off)
	}
	return f.File.WriteAt(b, off)
}

func (f testFile) DropCache() error {
	if f.d.drop != nil {
		return f.d.drop(f.name)
	}
	return f.File.(interface{ DropCache() error }).DropCache()
}

func (f testFile) Allocate(size int64) error {
	if f.d.alloc == nil {
		return errors.ErrUnsupported
	}
	return f.d.alloc(size)
}

func (f testFile) Truncate(size int64) error {
	defer f.d.note("truncate", f.name)
	return f.File.Truncate(size)
}

// fast is options for a log in path without syncs.
func fast(path string) journal.Options {
	return journal.Options{Namespace: "test", Dir: &testDir{Dir: journal.RealDir(path), noSync: true}}
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "journal") }

// copyLog copies a log as it stands, as if its owner had been killed now.
func copyLog(t testing.TB, path string) string {
	t.Helper()
	to := newPath(t)
	if err := os.CopyFS(to, os.DirFS(path)); err != nil {
		t.Fatal(err)
	}
	restrict(t, to)
	return to
}

// restrict gives a copied log the modes it must have.
func restrict(t testing.TB, path string) {
	t.Helper()
	if err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(p, 0o700)
		}
		return os.Chmod(p, 0o600)
	}); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, path, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(path, name), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func segments(t testing.TB, path string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(path, "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	return names
}

// mustOpen opens a log and collects what it is fed.
func mustOpen(t testing.TB, path string, o journal.Options) (*journal.Log, *[]journal.Entry) {
	t.Helper()
	entries := &[]journal.Entry{}
	l, err := journal.OpenFile(path, o, func(e journal.Entry) error { *entries = append(*entries, e); return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, entries
}

func add(t testing.TB, l *journal.Log, entries ...journal.Entry) []journal.Entry {
	t.Helper()
	got, err := l.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) { return entries, nil })
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// kinds are the kinds of entries in order.
func kinds(entries []journal.Entry) (list []journal.Kind) {
	for _, e := range entries {
		list = append(list, e.Kind)
	}
	return list
}
