package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// TestAppenders lets several processes append at once: the sequence has no gaps,
// each saw the head that it appended to, and a reader follows.
func TestAppenders(t *testing.T) {
	path := newPath(t)
	const each = 25
	seed, _ := mustOpen(t, path, journal.Options{Mode: journal.Appender, Namespace: "test"})
	r, entries := mustOpen(t, path, journal.Options{Mode: journal.Reader})
	var ps []*process
	for range 3 {
		ps = append(ps, start(t, "append", path, each))
	}
	for range each {
		if _, err := seed.Update(t.Context(), func(h journal.Head) ([]journal.Entry, error) {
			return []journal.Entry{{Kind: journal.Granted, Body: fmt.Appendf(nil, "[0,0,%d]", h.Seq)}}, nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := r.View(t.Context(), func(journal.Head) {}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range ps {
		p.ready(t)
		p.end(t)
	}
	if err := r.View(t.Context(), func(h journal.Head) {
		if h.Durable < h.Seq-1 {
			t.Errorf("the reader knows %d of %d entries durable; each proves the one before it", h.Durable, h.Seq)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if len(*entries) != 1+4*each {
		t.Fatalf("the reader was fed %d entries, want %d", len(*entries), 1+4*each)
	}
	for i, e := range *entries {
		var at [3]int
		if i > 0 {
			if _, err := fmt.Sscanf(string(e.Body), "[%d,%d,%d]", &at[0], &at[1], &at[2]); err != nil || at[2] != i {
				t.Errorf("entry %d is %s", e.Seq, e.Body)
			}
		}
	}
	if n := len(segments(t, path)); n != 1 {
		t.Errorf("%d segments, appenders start none", n)
	}
	if err := r.Durable(t.Context(), journal.Seq(len(*entries))); err != nil {
		t.Error(err)
	}
	if err := r.Durable(t.Context(), journal.Seq(len(*entries))+1); err == nil {
		t.Error("durable beyond the end")
	}
}

// TestReaderFollowsOwners goes on from owner to owner, over empty segments and a
// cut, with a reader that was there before the log and one that starts late.
func TestReaderFollowsOwners(t *testing.T) {
	path := newPath(t)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	r, entries := mustOpen(t, path, journal.Options{Mode: journal.Reader})
	look := func(want int, why string) {
		t.Helper()
		if err := r.View(t.Context(), func(journal.Head) {}); err != nil {
			t.Fatalf("%s: %v", why, err)
		}
		if len(*entries) != want {
			t.Fatalf("%s: the reader was fed %v, want %d entries", why, kinds(*entries), want)
		}
	}
	look(0, "before the log is there")
	l, _ := mustOpen(t, path, fast(path))
	look(1, "a new log")
	add(t, l, journal.Entry{Kind: journal.Granted})
	look(2, "an entry")
	l.Close()
	for range 3 {
		l, _ = mustOpen(t, path, fast(path))
		look(2, "an owner that appended nothing")
		l.Close()
	}
	l, _ = mustOpen(t, path, fast(path))
	add(t, l, journal.Entry{Kind: journal.Revoked})
	l.Close()
	look(3, "the next owner's entry, over removed segments")
	name := segments(t, path)[len(segments(t, path))-1]
	write(t, path, name, append(read(t, path, name), "torn"...))
	look(3, "a torn frame is not yet there")
	l, _ = mustOpen(t, path, fast(path))
	add(t, l, journal.Entry{Kind: journal.Seal})
	look(4, "behind a cut")
	_, late := mustOpen(t, path, journal.Options{Mode: journal.Reader})
	if fmt.Sprint(kinds(*late)) != fmt.Sprint(kinds(*entries)) {
		t.Errorf("a late reader was fed %v, want %v", kinds(*late), kinds(*entries))
	}
	n := 0
	for e, err := range r.Since(2) {
		if err != nil || e.Seq != journal.Seq(3+n) {
			t.Fatal(e, err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("Since gave %d entries, want 2", n)
	}
}

// TestLostEntries takes away entries that a reader has applied, as a failed sync
// does that another process finds out about: whatever stands there now, the
// reader must not go on as if nothing had happened.
func TestLostEntries(t *testing.T) {
	for _, c := range []struct {
		why  string
		then func(t *testing.T, path string)
	}{
		{"cut, and nothing in their place", func(*testing.T, string) {}},
		{"another entry of the same size", func(t *testing.T, path string) {
			o := fast(path)
			o.Mode = journal.Appender
			l, _ := mustOpen(t, path, o)
			add(t, l, journal.Entry{Kind: journal.Revoked})
		}},
		{"a longer one", func(t *testing.T, path string) {
			o := fast(path)
			o.Mode = journal.Appender
			l, _ := mustOpen(t, path, o)
			add(t, l, journal.Entry{Kind: journal.Revoked, Body: long}, journal.Entry{Kind: journal.Seal})
		}},
		{"a new owner", func(t *testing.T, path string) {
			l, _ := mustOpen(t, path, fast(path))
			add(t, l, journal.Entry{Kind: journal.Revoked})
		}},
	} {
		path := newPath(t)
		o := fast(path)
		o.Mode = journal.Appender
		l, _ := mustOpen(t, path, o)
		r, entries := mustOpen(t, path, journal.Options{Mode: journal.Reader})
		asking, _ := mustOpen(t, path, journal.Options{Mode: journal.Reader})
		add(t, l, journal.Entry{Kind: journal.Granted})
		if err := errors.Join(r.View(t.Context(), func(journal.Head) {}), asking.View(t.Context(), func(journal.Head) {})); err != nil || len(*entries) != 2 {
			t.Fatal(err)
		}
		l.Close()
		if err := os.Truncate(filepath.Join(path, first), 1024); err != nil {
			t.Fatal(err)
		}
		c.then(t, path)
		if err := r.View(t.Context(), func(journal.Head) {}); !errors.Is(err, journal.ErrPoisoned) {
			t.Errorf("%s: %v, want ErrPoisoned", c.why, err)
		}
		if err := asking.Durable(t.Context(), 2); !errors.Is(err, journal.ErrPoisoned) {
			t.Errorf("%s: Durable: %v, want ErrPoisoned", c.why, err)
		}
	}
}

// TestAppenderCuts: a torn tail of the authority log is cut by the next append,
// in place; one that may hide an attempt is left to an owner.
func TestAppenderCuts(t *testing.T) {
	path := newPath(t)
	o := fast(path)
	o.Mode = journal.Appender
	l, _ := mustOpen(t, path, o)
	add(t, l, journal.Entry{Kind: journal.Granted})
	write(t, path, first, append(read(t, path, first), "torn"...))
	if err := l.View(t.Context(), func(journal.Head) {}); err != nil || len(l.Cuts()) != 0 {
		t.Errorf("a view cuts nothing: %v, %v", err, l.Cuts())
	}
	add(t, l, journal.Entry{Kind: journal.Revoked})
	if cuts := l.Cuts(); len(cuts) != 1 || cuts[0].Bytes != 4 {
		t.Errorf("Cuts is %+v", cuts)
	}
	l.Close()
	l, entries := mustOpen(t, path, o)
	if got := fmt.Sprint(kinds(*entries)); got != "[OPENED GRANTED REVOKED]" {
		t.Errorf("the log holds %s", got)
	}
	add(t, l, journal.Entry{Kind: journal.Proposed, Effect: e1})
	whole := read(t, path, first)
	l.Close()
	write(t, path, first, append(whole, "torn"...))
	if _, err := journal.OpenFile(path, o, nil); !errors.Is(err, journal.ErrMode) {
		t.Errorf("an appender on a torn journal of effects: %v, want ErrMode", err)
	}
	if got := read(t, path, first); len(got) != len(whole)+4 {
		t.Error("it was cut")
	}
	l, entries = mustOpen(t, path, fast(path))
	if got := suspects(*entries); !sameIDs(got, []journal.ID{e1}) {
		t.Errorf("suspect are %v", got)
	}
	l.Close()
}

// TestAnAppenderLeavesATailWithAReadableAttempt has the body of a DISPATCHED
// damaged, while its header reads.
func TestAnAppenderLeavesATailWithAReadableAttempt(t *testing.T) {
	path, _, starts := killed(t, one(journal.Proposed, e1), one(journal.Committed, e1), one(journal.Dispatched, e2))
	whole := read(t, path, first)
	whole[starts[len(starts)-1]+180] ^= 1
	write(t, path, first, whole)
	o := fast(path)
	o.Mode = journal.Appender
	if _, err := journal.OpenFile(path, o, nil); !errors.Is(err, journal.ErrMode) {
		t.Errorf("got %v, want ErrMode", err)
	}
	l, entries := mustOpen(t, path, fast(path))
	defer l.Close()
	if got := suspects(*entries); !sameIDs(got, []journal.ID{e2}) {
		t.Errorf("suspect are %v", got)
	}
}

// TestAnAppenderNamesALogOfWhichOnlyTheHeaderIsThere goes on where one died behind
// the header of the first segment.
func TestAnAppenderNamesALogOfWhichOnlyTheHeaderIsThere(t *testing.T) {
	path := newPath(t)
	appender := journal.Options{Mode: journal.Appender, Namespace: "test"}
	l, _ := mustOpen(t, path, appender)
	l.Close()
	if err := os.Truncate(filepath.Join(path, first), 512); err != nil {
		t.Fatal(err)
	}
	l, entries := mustOpen(t, path, appender)
	defer l.Close()
	if len(*entries) != 1 || (*entries)[0].Kind != journal.Opened {
		t.Errorf("the log begins with %v", kinds(*entries))
	}
}
