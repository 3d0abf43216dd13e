package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// suspects are the effects with a SUSPECT entry, in order.
func suspects(entries []journal.Entry) (ids []journal.ID) {
	for _, e := range entries {
		if e.Kind == journal.Suspect {
			ids = append(ids, e.Effect)
		}
	}
	return ids
}

// flip flips a bit of one byte of a file.
func flip(t *testing.T, path, name string, at int) {
	b := read(t, path, name)
	b[at] ^= 4
	write(t, path, name, b)
}

// TestC15 lets a revocation rot: unproven it is taken for a tear, proven by a
// SEAL it is found.
func TestC15RottenRevocation(t *testing.T) {
	for _, prove := range []bool{false, true} {
		path := newPath(t)
		o := fast(path)
		o.Mode = journal.Appender
		l, _ := mustOpen(t, path, o)
		e := add(t, l, journal.Entry{Kind: journal.Revoked, Body: []byte(`{"lease":"L1"}`)})[0]
		if prove {
			if err := journal.Prove(t.Context(), l, e.Seq); err != nil {
				t.Fatal(err)
			}
		}
		path = copyLog(t, path)
		flip(t, path, first, int(e.Seq)*512+180) // OPENED is the first frame, the revocation the second
		for _, mode := range []journal.Mode{journal.Reader, journal.Appender, journal.Owner} {
			o := fast(path)
			o.Mode = mode
			l, err := journal.OpenFile(path, o, nil)
			if got := errors.Is(err, journal.ErrCorrupt); got != prove {
				t.Errorf("proven %v, as %v: %v", prove, mode, err)
			}
			if err == nil {
				l.Close()
			}
		}
	}
}

// TestC27 damages a frame beside a DISPATCHED in the batch that no later record
// proves durable.
func TestC27SuspectsOfACut(t *testing.T) {
	for _, c := range []struct {
		why     string
		at, off int // entry of the batch, byte in its frame
		want    []journal.ID
	}{
		{"the frame before it, in its body: the intact DISPATCHED is cut with it", 0, 180, []journal.ID{e1}},
		{"its own body: its header still says whose it was", 1, 180, []journal.ID{e1}},
		{"the frame behind it: it stays, and nothing is suspect", 2, 180, nil},
		{"the header of the frame before it: whatever is unsettled may have been there", 0, 20, []journal.ID{e1, e2}},
		{"its own header: nobody knows whose it was", 1, 40, []journal.ID{e1, e2}},
		{"the header of the frame behind it", 2, 40, []journal.ID{e1, e2}},
	} {
		path, _, starts := killed(t,
			one(journal.Proposed, e3), one(journal.Committed, e3), // settled: never suspect
			one(journal.Proposed, e1), one(journal.Proposed, e2),
			[]journal.Entry{
				{Kind: journal.Authorized, Effect: e1, Body: long},
				{Kind: journal.Dispatched, Effect: e1, Body: long},
				{Kind: journal.Authorized, Effect: e2, Body: long},
			})
		flip(t, path, first, starts[len(starts)-3+c.at]+c.off)
		l, entries := mustOpen(t, path, fast(path))
		if got := suspects(*entries); !sameIDs(got, c.want) {
			t.Errorf("%s: suspect are %v, want %v", c.why, got, c.want)
		}
		cuts := l.Cuts()
		if len(cuts) != 1 || !sameIDs(cuts[0].Suspects, c.want) {
			t.Errorf("%s: Cuts says %+v", c.why, cuts)
		}
	}
}

func sameIDs(a, b []journal.ID) bool {
	less := func(x, y journal.ID) int { return slices.Compare(x[:], y[:]) }
	a, b = slices.Clone(a), slices.Clone(b)
	slices.SortFunc(a, less)
	slices.SortFunc(b, less)
	return slices.Equal(a, b)
}

// TestC27Lost is a cut in which the decision itself was lost, and one that looks
// like frames and isn't any of this segment's.
func TestC27LostProposal(t *testing.T) {
	e4 := journal.ID{4}
	path, _, starts := killed(t, one(journal.Proposed, e1), []journal.Entry{
		{Kind: journal.Granted}, {Kind: journal.Proposed, Effect: e4}, {Kind: journal.Granted},
	})
	flip(t, path, first, starts[2]+20)
	_, entries := mustOpen(t, path, fast(path))
	if got := suspects(*entries); !sameIDs(got, []journal.ID{e1, e4}) {
		t.Errorf("suspect are %v, want the one whose proposal was cut, too", got)
	}

	path, _, starts = killed(t, one(journal.Proposed, e3), one(journal.Dispatched, e3), one(journal.Committed, e3), one(journal.Proposed, e1))
	old := read(t, path, first)[starts[2]:starts[3]]
	l, _ := mustOpen(t, path, fast(path))
	add(t, l, journal.Entry{Kind: journal.Granted})
	l.Close()
	second := segments(t, path)[1]
	write(t, path, second, append(read(t, path, second), old...))
	_, entries = mustOpen(t, path, fast(path))
	if got := suspects(*entries); !sameIDs(got, []journal.ID{e1}) {
		t.Errorf("suspect are %v: a frame of another segment counted", got)
	}
}

// TestC28 kills an opening that marks suspects after each change it makes to the
// disk, also the opening after that, and cuts its unsynced entries at every
// sector: in the end the effect is suspect, and the tail is cut.
func TestC28KilledOpenings(t *testing.T) {
	path, _, starts := killed(t, one(journal.Proposed, e1), one(journal.Proposed, e2), one(journal.Dispatched, e1))
	flip(t, path, first, starts[3]+180)

	var states int
	var explore func(path, how string, depth int)
	explore = func(path, how string, depth int) {
		states++
		var left []string // the log as each change left it
		var hows []string
		d := &testDir{Dir: journal.RealDir(path), noSync: true}
		if depth > 0 {
			d.done = func(op, name string) {
				left = append(left, copyLog(t, path))
				hows = append(hows, fmt.Sprintf("%s, killed after %s %s (change %d)", how, op, name, len(left)))
				if op == "write" { // not synced: it may be torn
					b := read(t, path, name)
					for size := 512; size < len(b); size += 512 {
						torn := copyLog(t, path)
						write(t, torn, name, b[:size])
						left = append(left, torn)
						hows = append(hows, fmt.Sprintf("%s, %s torn at %d", how, name, size))
					}
				}
			}
		}
		l, entries := mustOpen(t, path, journal.Options{Dir: d})
		defer l.Close()
		got := suspects(*entries)
		if !slices.Contains(got, e1) {
			t.Fatalf("%s: suspect are %v, without the one that was sent", how, got)
		}
		if b := read(t, path, first); len(b) != starts[3] {
			t.Fatalf("%s: the first segment ends at %d, want %d", how, len(b), starts[3])
		}
		for i := range left {
			explore(left[i], hows[i], depth-1)
		}
	}
	explore(path, "torn", 2)
	if states < 50 {
		t.Errorf("only %d states were tried", states)
	}
}

// TestC29 cuts a DISPATCHED that may be on the wire: what is appended in its
// place has a greater token, and so has everything after an opening in between.
func TestC29TokensOfACut(t *testing.T) {
	path, entries, starts := killed(t, one(journal.Proposed, e1), one(journal.Dispatched, e1))
	lost := entries[2].Token()
	flip(t, path, first, starts[2]+180)
	last := lost
	for range 3 {
		l, _ := mustOpen(t, path, fast(path))
		var next journal.Token
		if err := l.View(t.Context(), func(h journal.Head) { next = journal.Token{Segment: h.Segment, Seq: h.Seq + 1} }); err != nil {
			t.Fatal(err)
		}
		if !last.Less(next) || last.Segment == next.Segment || last.String() >= next.String() {
			t.Errorf("after %v comes %v", last, next)
		}
		last = next
		l.Close()
	}
	// A lone torn entry, then nothing: its segment holds no entry any more.
	path, entries, _ = killed(t)
	lost = entries[0].Token()
	if err := os.Truncate(filepath.Join(path, first), 600); err != nil {
		t.Fatal(err)
	}
	l, _ := mustOpen(t, path, fast(path))
	if e := add(t, l, journal.Entry{Kind: journal.Fenced, Effect: e1})[0]; !lost.Less(e.Token()) || e.Segment == lost.Segment {
		t.Errorf("after %v comes %v", lost, e.Token())
	}
}
