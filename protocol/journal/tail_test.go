package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/journaltest"
)

// killed is a log whose owner was killed: entries appended one update each, and
// the offset at which each begins.
func killed(t *testing.T, updates ...[]journal.Entry) (path string, entries []journal.Entry, starts []int) {
	path = newPath(t)
	l, all := mustOpen(t, path, fast(path))
	for _, u := range updates {
		add(t, l, u...)
	}
	path = copyLog(t, path)
	at := 512
	for _, e := range *all {
		starts = append(starts, at)
		at += (176 + len(e.Body) + 511) / 512 * 512
	}
	return path, slices.Clone(*all), starts
}

var (
	e1, e2, e3 = journaltest.Effect(1), journaltest.Effect(2), journaltest.Effect(3)
	long       = fmt.Appendf(nil, "%q", strings.Repeat("x", 400)) // a frame of two sectors
)

func one(k journal.Kind, id journal.ID) []journal.Entry {
	return []journal.Entry{{Kind: k, Effect: id, Body: long}}
}

const first = "0000000001.seg"

// TestTornTail leaves the last frame torn at every byte: what was durable before
// it stays, what is left of it is cut and said, and the log goes on behind.
func TestTornTail(t *testing.T) {
	path, entries, starts := killed(t, one(journal.Proposed, e1), one(journal.Granted, journal.ID{}))
	whole := read(t, path, first)
	last := starts[len(starts)-1]
	kept := kinds(entries[:len(entries)-1])
	check := func(why string, b []byte) {
		t.Helper()
		for _, name := range segments(t, path) {
			os.Remove(filepath.Join(path, name))
		}
		write(t, path, first, b)
		l, fed := mustOpen(t, path, fast(path))
		if got := kinds((*fed)[:min(len(*fed), len(kept))]); !slices.Equal(got, kept) {
			t.Fatalf("%s: fed %v, want %v", why, got, kept)
		}
		cuts := l.Cuts()
		if torn := int64(len(b) - last); torn == 0 && len(cuts) != 0 ||
			torn > 0 && (len(cuts) != 1 || cuts[0].Offset != int64(last) || cuts[0].Bytes != torn || filepath.Base(cuts[0].File) != first) {
			t.Fatalf("%s: cut %+v; want %d bytes at %d of %s", why, cuts, torn, last, first)
		}
		add(t, l, journal.Entry{Kind: journal.Revoked})
		l.Close()
		l, again := mustOpen(t, path, fast(path))
		if len(*again) != len(*fed) || (*again)[len(*again)-1].Kind != journal.Revoked || len(l.Cuts()) != 0 {
			t.Fatalf("%s: the next opening was fed %v, cut %v", why, kinds(*again), l.Cuts())
		}
		l.Close()
	}
	for size := last; size < len(whole); size++ {
		check(fmt.Sprintf("%d bytes of the frame", size-last), whole[:size])
	}
	for _, c := range []struct {
		why  string
		tail []byte
	}{
		{"zeros: the size reached the disk before the data", make([]byte, 1024)},
		{"garbage", []byte(strings.Repeat("garbage!", 100))},
		{"its second sector only", append(make([]byte, 512), whole[last+512:]...)},
		{"its first sector, then zeros", append(slices.Clone(whole[last:last+512]), make([]byte, 512)...)},
		{"an old frame of the log", whole[starts[0]:starts[1]]},
		{"a segment header", whole[:512]},
	} {
		check(c.why, append(slices.Clone(whole[:last]), c.tail...))
	}
}

// TestFlippedBits flips a bit of every byte: in what is proven durable it is
// refused with the offset of the entry, in the tail the entry is cut.
func TestFlippedBits(t *testing.T) {
	path, entries, starts := killed(t, one(journal.Proposed, e1), []journal.Entry{{Kind: journal.Granted}, {Kind: journal.Revoked, Body: []byte(`{}`)}}, one(journal.Seal, journal.ID{}))
	whole := read(t, path, first)
	for at := range whole {
		bad := slices.Clone(whole)
		bad[at] ^= 1 << (at % 8)
		write(t, path, first, bad)
		hit, _ := slices.BinarySearch(starts, at+1) // entry that was hit, from 1; 0 is the header
		for _, mode := range []journal.Mode{journal.Reader, journal.Owner} {
			o := fast(path)
			o.Mode = mode
			n := 0
			l, err := journal.OpenFile(path, o, func(journal.Entry) error { n++; return nil })
			if hit == len(entries) { // nothing proves the last
				if err != nil || n < len(entries)-1 || mode == journal.Owner && len(l.Cuts()) != 1 {
					t.Fatalf("byte %d, as %v: %v, %d entries; want the last cut", at, mode, err, n)
				}
				l.Close()
				for _, name := range segments(t, path)[1:] {
					os.Remove(filepath.Join(path, name))
				}
				continue
			}
			var c *journal.CorruptError
			if !errors.As(err, &c) || !errors.Is(err, journal.ErrCorrupt) {
				t.Fatalf("byte %d, as %v: %v, want a CorruptError", at, mode, err)
			}
			want := int64(0)
			if hit > 0 {
				want = int64(starts[hit-1])
			}
			if c.Offset != want || filepath.Base(c.File) != first {
				t.Fatalf("byte %d, as %v: damage said at %s:%d, want %d", at, mode, c.File, c.Offset, want)
			}
			if got := read(t, path, first); string(got) != string(bad) || len(segments(t, path)) != 1 {
				t.Fatalf("byte %d: the refusal changed the log", at)
			}
		}
	}
}

// TestFramesOutOfPlace takes frames that are intact to places where they don't
// belong: the chain finds it wherever a later record proves what was there.
func TestFramesOutOfPlace(t *testing.T) {
	var updates [][]journal.Entry
	for range 5 {
		updates = append(updates, []journal.Entry{{Kind: journal.Granted}})
	}
	path, _, _ := killed(t, updates...)
	whole := read(t, path, first)
	frame := func(n int) []byte { return whole[n*512 : (n+1)*512] } // 0 is the header
	for _, c := range []struct {
		why   string
		order []int
		at    int64
	}{
		{"two swapped", []int{0, 1, 3, 2, 4, 5, 6}, 2 * 512},
		{"one missing", []int{0, 1, 2, 4, 5, 6}, 3 * 512},
		{"one twice", []int{0, 1, 2, 2, 3, 4, 5, 6}, 3 * 512},
		{"the first missing", []int{0, 2, 3, 4, 5, 6}, 512},
	} {
		var b []byte
		for _, n := range c.order {
			b = append(b, frame(n)...)
		}
		write(t, path, first, b)
		_, err := journal.OpenFile(path, fast(path), nil)
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Offset != c.at {
			t.Errorf("%s: %v, want damage at %d", c.why, err, c.at)
		}
	}
}

// TestSegments removes and swaps whole segments.
func TestSegments(t *testing.T) {
	path := newPath(t)
	for range 4 {
		l, _ := mustOpen(t, path, fast(path))
		add(t, l, journal.Entry{Kind: journal.Granted})
		l.Close()
	}
	name := func(n int) string { return fmt.Sprintf("%010d.seg", n) }
	for _, c := range []struct {
		why    string
		change func(path string) error
		bad    bool
	}{
		{"the first is missing", func(p string) error { return os.Remove(filepath.Join(p, name(1))) }, true},
		{"one is missing", func(p string) error { return os.Remove(filepath.Join(p, name(2))) }, true},
		{"one was emptied", func(p string) error { return os.Truncate(filepath.Join(p, name(2)), 512) }, true},
		{"one was cut off in its header", func(p string) error { return os.Truncate(filepath.Join(p, name(2)), 100) }, true},
		{"one is there twice", func(p string) error {
			return os.WriteFile(filepath.Join(p, name(5)), read(t, p, name(4)), 0o600)
		}, true},
		{"one was begun as if the one before weren't there", func(p string) error {
			b := slices.Clone(read(t, p, name(4))[:512])
			b[23] = 5
			if err := os.WriteFile(filepath.Join(p, name(5)), b, 0o600); err != nil {
				return err
			}
			reseal(t, p, name(5), func([]byte) {})
			return nil
		}, true},
		{"two are swapped", func(p string) error {
			a, b := read(t, p, name(2)), read(t, p, name(3))
			return errors.Join(os.WriteFile(filepath.Join(p, name(2)), b, 0o600), os.WriteFile(filepath.Join(p, name(3)), a, 0o600))
		}, true},
		{"a file of another kind", func(p string) error { return os.WriteFile(filepath.Join(p, "notes.seg"), []byte("x"), 0o600) }, false},
		{"an opening died before its header was written", func(p string) error { return os.WriteFile(filepath.Join(p, name(5)), nil, 0o600) }, false},
		{"an opening died within its header", func(p string) error {
			return os.WriteFile(filepath.Join(p, name(5)), read(t, p, name(4))[:300], 0o600)
		}, false},
	} {
		p := copyLog(t, path)
		if err := c.change(p); err != nil {
			t.Fatal(err)
		}
		for _, mode := range []journal.Mode{journal.Reader, journal.Owner} {
			o := fast(p)
			o.Mode = mode
			l, err := journal.OpenFile(p, o, nil)
			if errors.Is(err, journal.ErrCorrupt) != c.bad || (err == nil) == c.bad {
				t.Errorf("%s, as %v: %v", c.why, mode, err)
			}
			if err == nil {
				l.Close()
			}
		}
	}
}

// TestEmptySegments opens again and again without an append: files don't pile
// up, and no number comes back, whatever is removed in between.
func TestEmptySegments(t *testing.T) {
	path := newPath(t)
	used := map[uint64]bool{}
	var at uint64
	for round := range 6 {
		l, _ := mustOpen(t, path, fast(path))
		if err := l.View(t.Context(), func(h journal.Head) { at = h.Segment }); err != nil {
			t.Fatal(err)
		}
		if used[at] {
			t.Fatalf("segment number %d was used before (C29)", at)
		}
		used[at] = true
		l.Close()
		if n := len(segments(t, path)); n > 2 {
			t.Fatalf("round %d left %d segments, want the first and an empty one", round, n)
		}
	}
}
