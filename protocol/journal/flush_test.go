package journal_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// TestSharedSync holds one caller in its sync until seven others have enqueued:
// the next sync is for all of them.
func TestSharedSync(t *testing.T) {
	path := newPath(t)
	const others = 7
	var enqueued sync.WaitGroup
	enqueued.Add(others)
	syncing, hold := make(chan struct{}), false
	var once sync.Once
	d := &testDir{Dir: journal.RealDir(path), noSync: true}
	d.onSync = func() error {
		if hold {
			once.Do(func() { close(syncing); enqueued.Wait() })
		}
		return nil
	}
	o := fast(path)
	o.Dir = d
	l, _ := mustOpen(t, path, o)
	hold = true
	d.syncs.Store(0)
	update := func(done func()) {
		if _, err := l.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) {
			done()
			return []journal.Entry{{Kind: journal.Granted}}, nil
		}); err != nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { update(func() {}) })
	<-syncing
	for range others {
		wg.Go(func() { update(enqueued.Done) })
	}
	wg.Wait()
	// The last may still have been in fn when the first sync ended.
	if n := d.syncs.Load(); n < 2 || n > 3 {
		t.Errorf("%d syncs for %d callers, want one for the first and one for the rest", n, 1+others)
	}
	n := d.syncs.Load()
	if _, err := l.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	if err := l.Durable(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if d.syncs.Load() != n {
		t.Error("a sync with nothing to sync")
	}
}

// TestNothingIsToldBeforeItsSync: while an entry is not synced, an update that
// only saw it waits as well, and View says what is durable.
func TestNothingIsToldBeforeItsSync(t *testing.T) {
	path := newPath(t)
	var syncs atomic.Int64
	var l *journal.Log
	d := &testDir{Dir: journal.RealDir(path), noSync: true}
	var opened journal.Head
	d.onSync = func() error {
		if l != nil && syncs.Add(1) == 1 {
			var h journal.Head
			if err := l.View(context.Background(), func(now journal.Head) { h = now }); err != nil {
				t.Error(err)
			}
			if h.Seq != opened.Seq+1 || h.Durable != opened.Seq {
				t.Errorf("in the middle of a sync the head is %+v", h)
			}
		}
		return nil
	}
	o := fast(path)
	o.Dir = d
	opening, _ := mustOpen(t, path, o)
	if err := opening.View(t.Context(), func(h journal.Head) { opened = h }); err != nil {
		t.Fatal(err)
	}
	l = opening
	ctx, cancel := context.WithCancel(t.Context())
	// A caller that leaves: its entry is in line, and the next caller's sync takes it.
	_, err := l.Update(ctx, func(journal.Head) ([]journal.Entry, error) {
		cancel()
		return []journal.Entry{{Kind: journal.Granted}}, nil
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := l.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	var h journal.Head
	if err := l.View(t.Context(), func(now journal.Head) { h = now }); err != nil {
		t.Fatal(err)
	}
	if h.Durable != h.Seq || h.Seq != opened.Seq+1 {
		t.Errorf("after an empty update the head is %+v", h)
	}
}

// TestLeaving leaves while another caller is in its sync.
func TestLeaving(t *testing.T) {
	path := newPath(t)
	syncing, gone := make(chan struct{}), make(chan struct{})
	armed := false
	d := &testDir{Dir: journal.RealDir(path), noSync: true}
	var once sync.Once
	d.onSync = func() error {
		if armed {
			once.Do(func() { close(syncing); <-gone })
		}
		return nil
	}
	o := fast(path)
	o.Dir = d
	l, entries := mustOpen(t, path, o)
	armed = true
	var wg sync.WaitGroup
	wg.Go(func() { add(t, l, journal.Entry{Kind: journal.Granted}) })
	<-syncing
	ctx, cancel := context.WithCancel(t.Context())
	_, err := l.Update(ctx, func(journal.Head) ([]journal.Entry, error) {
		cancel()
		return []journal.Entry{{Kind: journal.Revoked}}, nil
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, journal.ErrPoisoned) {
		t.Errorf("leaving: %v", err)
	}
	close(gone)
	wg.Wait()
	add(t, l, journal.Entry{Kind: journal.Seal}) // its sync takes the abandoned entry along
	want := kinds(*entries)
	l.Close()
	_, again := mustOpen(t, path, fast(path))
	if got := kinds(*again); len(got) != len(want) || got[len(got)-2] != journal.Revoked {
		t.Errorf("the log holds %v, want %v", got, want)
	}
}

// TestPoison (I11): after a failed or short write or a failed sync the log
// answers nothing but ErrPoisoned, also when the disk is well again; another
// opening is.
func TestPoison(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		why  string
		fail func(d *testDir)
		want error
	}{
		{"a failed sync", func(d *testDir) { d.onSync = func() error { return syscall.EIO } }, syscall.EIO},
		{"a failed write", func(d *testDir) {
			d.write = func(journal.File, []byte, int64) (int, error) { return 0, broken }
		}, broken},
		{"a short write", func(d *testDir) {
			d.write = func(f journal.File, b []byte, off int64) (int, error) { return f.WriteAt(b[:100], off) }
		}, nil},
		{"a full disk", func(d *testDir) {
			d.write = func(f journal.File, b []byte, off int64) (int, error) {
				n, _ := f.WriteAt(b[:10], off)
				return n, syscall.ENOSPC
			}
		}, journal.ErrFull},
		{"a quota, found by the sync", func(d *testDir) { d.onSync = func() error { return syscall.EDQUOT } }, journal.ErrFull},
	} {
		t.Run(c.why, func(t *testing.T) {
			path := newPath(t)
			o := fast(path)
			d := o.Dir.(*testDir)
			l, _ := mustOpen(t, path, o)
			granted := add(t, l, journal.Entry{Kind: journal.Granted})[0]
			c.fail(d)
			ctx := t.Context()
			fn := func(journal.Head) ([]journal.Entry, error) { return []journal.Entry{{Kind: journal.Revoked}}, nil }
			_, err := l.Update(ctx, fn)
			if !errors.Is(err, journal.ErrPoisoned) || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("Update: %v, want ErrPoisoned and %v", err, c.want)
			}
			d.onSync, d.write = nil, nil
			called := false
			_, update := l.Update(ctx, func(journal.Head) ([]journal.Entry, error) { called = true; return nil, nil })
			_, claim := l.Claim(ctx, e1)
			for name, err := range map[string]error{
				"Update": update, "Claim": claim, "Durable": l.Durable(ctx, granted.Seq),
				"View": l.View(ctx, func(journal.Head) { called = true }),
			} {
				if !errors.Is(err, journal.ErrPoisoned) {
					t.Errorf("%s: %v, want ErrPoisoned", name, err)
				}
			}
			for _, err := range l.Since(0) {
				if !errors.Is(err, journal.ErrPoisoned) {
					t.Errorf("Since: %v, want ErrPoisoned", err)
				}
			}
			if called {
				t.Error("fn was called by a poisoned log")
			}
			l.Close()
			l, entries := mustOpen(t, path, fast(path))
			if got := kinds(*entries); got[1] != journal.Granted {
				t.Errorf("opened again it holds %v", got)
			}
			add(t, l, journal.Entry{Kind: journal.Granted})
		})
	}
}

// TestApplyCanRefuse: a fold that doesn't take its own log's entry poisons.
func TestApplyCanRefuse(t *testing.T) {
	no := errors.New("no")
	path := newPath(t)
	l, err := journal.OpenFile(path, fast(path), func(e journal.Entry) error {
		if e.Kind == journal.Granted {
			return no
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) {
		return []journal.Entry{{Kind: journal.Granted}}, nil
	}); !errors.Is(err, no) || !errors.Is(err, journal.ErrPoisoned) {
		t.Errorf("Update: %v", err)
	}
}

// TestPoints: what is declared is passed, in the order of Points, and nothing
// else.
func TestPoints(t *testing.T) {
	path, _, starts := killed(t, one(journal.Proposed, e1), one(journal.Dispatched, e1))
	flip(t, path, first, starts[2]+180)
	var passed []trace.Point
	o := fast(path)
	o.Trace = func(p trace.Point, subject string) {
		if n := len(passed); n == 0 || passed[n-1] != p {
			passed = append(passed, p)
		}
	}
	l, _ := mustOpen(t, path, o)
	add(t, l, journal.Entry{Kind: journal.Granted})
	want := []trace.Point{
		journal.Locked, journal.Verified, journal.SegmentStarted,
		journal.Written, journal.Synced, journal.SuspectsMarked, journal.TailCut,
		journal.Written, journal.Synced,
	}
	if !slices.Equal(passed, want) {
		t.Errorf("passed %v, want %v", passed, want)
	}
	less := func(a, b trace.Point) int { return cmp.Compare(a, b) }
	slices.SortFunc(passed, less)
	declared := slices.SortedFunc(slices.Values(journal.Points()), less)
	if got := slices.Compact(passed); !slices.Equal(got, declared) {
		t.Errorf("passed are %v, declared %v", got, declared)
	}
}
