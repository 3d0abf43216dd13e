package faults_test

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// TestLossyDir: what this process sees, and what the disk has, step by step.
func TestLossyDir(t *testing.T) {
	write := func(name, text string, off int64) func(*testing.T, journal.Dir) {
		return func(t *testing.T, d journal.Dir) {
			f := open(t, d, name, false)
			if n, err := f.WriteAt([]byte(text), off); n != len(text) || err != nil {
				t.Fatalf("WriteAt = %d, %v", n, err)
			}
			f.Close()
		}
	}
	syncFile := func(name string) func(*testing.T, journal.Dir) {
		return func(t *testing.T, d journal.Dir) {
			f := open(t, d, name, false)
			if err := f.Sync(); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
	}
	syncDir := func(t *testing.T, d journal.Dir) {
		if err := d.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	create := func(name string) func(*testing.T, journal.Dir) {
		return func(t *testing.T, d journal.Dir) { open(t, d, name, true).Close() }
	}
	remove := func(name string) func(*testing.T, journal.Dir) {
		return func(t *testing.T, d journal.Dir) {
			if err := d.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	truncate := func(name string, size int64) func(*testing.T, journal.Dir) {
		return func(t *testing.T, d journal.Dir) {
			f := open(t, d, name, false)
			if err := f.Truncate(size); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
	}
	type files = map[string]string
	tests := []struct {
		why   string
		steps []func(*testing.T, journal.Dir)
		seen  files
		disk  files
	}{
		{"an unsynced write is in memory alone", []func(*testing.T, journal.Dir){write("old", "NEW", 0)},
			files{"old": "NEWtents"}, files{"old": "contents"}},
		{"a synced write is on disk", []func(*testing.T, journal.Dir){write("old", "NEW", 0), syncFile("old"), write("old", "er", 8)},
			files{"old": "NEWtentser"}, files{"old": "NEWtents"}},
		{"a write behind the end leaves zeros", []func(*testing.T, journal.Dir){write("old", "x", 9), syncFile("old")},
			files{"old": "contents\x00x"}, files{"old": "contents\x00x"}},
		{"a new file has no name on disk", []func(*testing.T, journal.Dir){create("new"), write("new", "text", 0), syncFile("new")},
			files{"old": "contents", "new": "text"}, files{"old": "contents"}},
		{"its name comes with what was synced", []func(*testing.T, journal.Dir){create("new"), write("new", "text", 0), syncFile("new"), write("new", " more", 4), syncDir},
			files{"old": "contents", "new": "text more"}, files{"old": "contents", "new": "text"}},
		{"a name can be durable before its contents", []func(*testing.T, journal.Dir){create("new"), write("new", "text", 0), syncDir},
			files{"old": "contents", "new": "text"}, files{"old": "contents", "new": ""}},
		{"a removal is not durable by itself", []func(*testing.T, journal.Dir){remove("old")},
			files{}, files{"old": "contents"}},
		{"a removal is durable with the directory", []func(*testing.T, journal.Dir){remove("old"), syncDir},
			files{}, files{}},
		{"a name can be used again", []func(*testing.T, journal.Dir){remove("old"), create("old"), write("old", "second", 0), syncFile("old")},
			files{"old": "second"}, files{"old": "contents"}},
		{"the second use of a name replaces the first", []func(*testing.T, journal.Dir){remove("old"), create("old"), write("old", "second", 0), syncFile("old"), syncDir},
			files{"old": "second"}, files{"old": "second"}},
		{"a file that came and went was never there", []func(*testing.T, journal.Dir){create("new"), remove("new"), syncDir},
			files{"old": "contents"}, files{"old": "contents"}},
		{"a cut is not durable by itself", []func(*testing.T, journal.Dir){truncate("old", 3)},
			files{"old": "con"}, files{"old": "contents"}},
		{"a cut and what follows it keep their order", []func(*testing.T, journal.Dir){truncate("old", 3), write("old", "!", 3), syncFile("old")},
			files{"old": "con!"}, files{"old": "con!"}},
		{"a file can be cut to nothing", []func(*testing.T, journal.Dir){truncate("old", 0), syncFile("old")},
			files{"old": ""}, files{"old": ""}},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			path := t.TempDir()
			if err := os.WriteFile(filepath.Join(path, "old"), []byte("contents"), 0o600); err != nil {
				t.Fatal(err)
			}
			d := faults.LossyDir(path)
			for _, step := range test.steps {
				step(t, d)
			}
			if diff := cmp.Diff(test.seen, contents(t, d)); diff != "" {
				t.Errorf("this process sees (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.disk, contents(t, faults.LossyDir(path))); diff != "" {
				t.Errorf("the disk has (-want +got):\n%s", diff)
			}
		})
	}
}

func open(t *testing.T, d journal.Dir, name string, create bool) journal.File {
	t.Helper()
	f, err := d.Open(name, create)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// contents reads every file that d lists, and holds the sizes it says against
// them.
func contents(t *testing.T, d journal.Dir) map[string]string {
	t.Helper()
	sizes, err := d.List()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		f := open(t, d, name, false)
		text := make([]byte, sizes[name]+1)
		n, err := f.ReadAt(text, 0)
		if int64(n) != sizes[name] || err != io.EOF {
			t.Errorf("%s has %d bytes (%v), listed with %d", name, n, err, sizes[name])
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		files[name] = string(text[:n])
	}
	return files
}

func TestLossyDirRefuses(t *testing.T) {
	path := t.TempDir()
	d := faults.LossyDir(path)
	if err := os.Symlink("elsewhere", filepath.Join(path, "link")); err != nil {
		t.Fatal(err)
	}
	f := open(t, d, "there", true)
	if _, err := d.Open("there", true); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file was made twice: %v", err)
	}
	for _, name := range []string{"absent", "link"} {
		if _, err := d.Open(name, false); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
	if err := d.Remove("absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that isn't there was removed: %v", err)
	}
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/x"} {
		if _, err := d.Open(name, true); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q was taken for the name of a file: %v", name, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a closed file was written to: %v", err)
	}
}

// TestLossyDirShares: another process appends to a file that this one follows.
func TestLossyDirShares(t *testing.T) {
	path := t.TempDir()
	theirs, ours := faults.LossyDir(path), faults.LossyDir(path)
	writer := open(t, theirs, "log", true)
	if err := theirs.Sync(); err != nil {
		t.Fatal(err)
	}
	reader := open(t, ours, "log", false)
	text := make([]byte, 8)
	for _, step := range []struct {
		synced bool
		want   int
	}{{false, 0}, {true, 4}} {
		if step.synced {
			if err := writer.Sync(); err != nil {
				t.Fatal(err)
			}
		} else if _, err := writer.WriteAt([]byte("text"), 0); err != nil {
			t.Fatal(err)
		}
		if n, _ := reader.ReadAt(text, 0); n != step.want {
			t.Errorf("synced %v: the other sees %d bytes, want %d", step.synced, n, step.want)
		}
	}
}

// TestLossyDirCarriesAJournal: an entry is on disk when Update has returned, and
// a journal that would forget to sync would have nothing there.
func TestLossyDirCarriesAJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	ignore := func(journal.Entry) error { return nil }
	log, err := journal.OpenFile(path, journal.Options{Namespace: "n", Dir: faults.LossyDir(path)}, ignore)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	const updates = 5
	for range updates {
		_, err := log.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) {
			return []journal.Entry{{Kind: journal.Proposed, Effect: journal.ID{1}, Body: []byte(`{}`)}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var seen int
	reader, err := journal.OpenFile(path, journal.Options{Mode: journal.Reader, Namespace: "n"}, func(e journal.Entry) error {
		if e.Kind == journal.Proposed {
			seen++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if seen != updates {
		t.Errorf("another process sees %d entries, want %d", seen, updates)
	}
}
