package journal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// TestInspect reads copies: a whole one that anybody may read, one with a damaged
// tail, and one that is damaged before it. None is changed.
func TestInspect(t *testing.T) {
	whole, entries, starts := killed(t, one(journal.Proposed, e1), one(journal.Proposed, e2), one(journal.Dispatched, e1))
	last := entries[len(entries)-1]
	for _, c := range []struct {
		why      string
		spoil    func(path string)
		seq      journal.Seq
		damaged  int64 // -1: nothing is
		suspects []journal.ID
	}{
		{"nothing is damaged", func(string) {}, last.Seq, -1, nil},
		{"the last body", func(p string) { flip(t, p, first, starts[3]+180) }, last.Seq - 1, -1, []journal.ID{e1}},
		{"the last header", func(p string) { flip(t, p, first, starts[3]+40) }, last.Seq - 1, -1, []journal.ID{e1, e2}},
		{"a body before", func(p string) { flip(t, p, first, starts[1]+180) }, 1, int64(starts[1]), nil},
		{"the segment's header", func(p string) { flip(t, p, first, 20) }, 0, 0, nil},
	} {
		path := copyLog(t, whole)
		c.spoil(path)
		before := snapshot(t, path)
		if err := errors.Join(os.Chmod(path, 0o755), os.Chmod(filepath.Join(path, first), 0o444)); err != nil {
			t.Fatal(err)
		}
		n := journal.Seq(0)
		in, err := journal.Inspect(path, func(e journal.Entry) error { n = e.Seq; return nil })
		if err != nil || in.Seq != c.seq || n != c.seq {
			t.Errorf("%s: up to %d, fed %d, %v; want %d", c.why, in.Seq, n, err, c.seq)
		}
		if c.seq > 0 && in.Byte != int64(append(starts, int(in.Byte))[c.seq]) {
			t.Errorf("%s: consistent up to byte %d", c.why, in.Byte)
		}
		if in.Damage == nil != (c.damaged < 0) || in.Damage != nil && in.Damage.Offset != c.damaged {
			t.Errorf("%s: damage %v, want it at %d", c.why, in.Damage, c.damaged)
		}
		var suspects []journal.ID
		for _, tail := range in.Tails {
			suspects = append(suspects, tail.Suspects...)
		}
		if !sameIDs(suspects, c.suspects) {
			t.Errorf("%s: suspect are %v, want %v", c.why, suspects, c.suspects)
		}
		if after := snapshot(t, path); after[first] != before[first] || len(after) != len(before) {
			t.Errorf("%s: it was changed", c.why)
		}
	}
	if _, err := journal.Inspect(t.TempDir(), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty directory: %v", err)
	}
}

// TestInspectNeedsLittleMemory reads a log that is larger than what it may use.
// With JOURNAL_LONG set the log has a gigabyte.
func TestInspectNeedsLittleMemory(t *testing.T) {
	size := 48 << 20
	if os.Getenv("JOURNAL_LONG") != "" {
		size = 1 << 30
	}
	path := newPath(t)
	l, _ := mustOpen(t, path, fast(path))
	body := []byte(`"` + strings.Repeat("x", 256<<10) + `"`)
	for n := 0; n < size; n += len(body) {
		if _, err := l.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) {
			return []journal.Entry{{Kind: journal.Granted, Body: body}}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, uint64(0)
	in, err := journal.Inspect(path, func(e journal.Entry) error {
		if e.Seq%16 == 0 {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
		return nil
	})
	if err != nil || in.Damage != nil || in.Byte < int64(size) {
		t.Fatalf("%+v, %v", in, err)
	}
	used := int64(most) - int64(before)
	t.Logf("%d bytes were read with %d on the heap at most", in.Byte, used)
	if used > 24<<20 {
		t.Errorf("it took %d bytes of memory", used)
	}
}
