package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// TestOrderOfAnOpening pins what an opening does to the disk, and when: each
// line rests on the ones above it being durable.
func TestOrderOfAnOpening(t *testing.T) {
	var ops []string
	open := func(path string) {
		ops = nil
		d := &testDir{Dir: journal.RealDir(path), noSync: true}
		d.done = func(op, name string) { ops = append(ops, op+" "+name) }
		l, _ := mustOpen(t, path, journal.Options{Namespace: "test", Dir: d})
		l.Close()
	}
	check := func(why string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, ops); diff != "" {
			t.Errorf("%s (-want +got):\n%s", why, diff)
		}
	}
	path := newPath(t)
	open(path)
	check("a new log",
		"sync ",
		"create 0000000001.seg", "write 0000000001.seg", "sync 0000000001.seg", "sync ", // the header
		"write 0000000001.seg", "sync 0000000001.seg") // OPENED

	path, _, starts := killed(t, one(journal.Proposed, e1), one(journal.Dispatched, e1))
	flip(t, path, first, starts[2]+180)
	open(path)
	check("a damaged tail",
		"sync ", "sync 0000000001.seg", // then everything is read
		"create 0000000002.seg", "write 0000000002.seg", "sync 0000000002.seg", "sync ",
		"write 0000000002.seg", "sync 0000000002.seg", // SUSPECT
		"truncate 0000000001.seg", "sync 0000000001.seg",
		"truncate 0000000001.seg") // blocks behind its end

	open(path)
	open(path)
	check("an empty segment",
		"sync ", "sync 0000000003.seg", "sync 0000000002.seg",
		"sync 0000000001.seg", // it was cut when the second was begun, which may have died before its sync
		"create 0000000004.seg", "write 0000000004.seg", "sync 0000000004.seg", "sync ",
		"truncate 0000000002.seg",
		"remove 0000000003.seg")
}

// forgetful is a directory whose disk loses what a failed sync was to write,
// while the page cache goes on showing it, as Linux file systems do.
func forgetful(path string) (d *testDir, fail *bool) {
	fail = new(bool)
	d = &testDir{Dir: journal.RealDir(path), noSync: true}
	type piece struct {
		name string
		off  int64
		n    int
	}
	var cached, lost []piece
	d.wrote = func(name string, off int64, n int) { cached = append(cached, piece{name, off, n}) }
	d.onSync = func() error {
		if *fail {
			lost, cached = append(lost, cached...), nil
			return syscall.EIO
		}
		cached = nil
		return nil
	}
	d.drop = func(name string) error {
		for _, p := range lost {
			if p.name != name {
				continue
			}
			f, err := os.OpenFile(filepath.Join(path, name), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			if _, err := f.WriteAt(make([]byte, p.n), p.off); err != nil {
				return err
			}
			f.Close()
		}
		lost = slices.DeleteFunc(lost, func(p piece) bool { return p.name == name })
		return nil
	}
	return d, fail
}

// TestCacheIsNotTrusted: after a failed sync the next opening looks at the disk.
func TestCacheIsNotTrusted(t *testing.T) {
	for _, mode := range []journal.Mode{journal.Owner, journal.Appender} {
		path := newPath(t)
		d, fail := forgetful(path)
		o := journal.Options{Namespace: "test", Mode: mode, Dir: d}
		l, _ := mustOpen(t, path, o)
		add(t, l, journal.Entry{Kind: journal.Granted})
		*fail = true
		if err := try(t, l, journal.Revoked); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		*fail = false
		l.Close()
		r := o
		r.Mode = journal.Reader
		_, cached := mustOpen(t, path, r)
		if got := kinds(*cached); len(got) != 3 {
			t.Fatalf("the cache shows %v, this test needs the lost entry in it", got)
		}
		l, entries := mustOpen(t, path, o)
		if got := kinds(*entries); len(got) != 2 {
			t.Errorf("as %v, opened with %v", mode, got)
		}
		if cuts := l.Cuts(); len(cuts) != 1 {
			t.Errorf("as %v, cut %+v", mode, cuts)
		}
		add(t, l, journal.Entry{Kind: journal.Seal})
	}
}

// TestOthersSyncsAreNotTrusted: what another appender has written counts, for an
// update and for Durable, only once this process has synced it and read it from
// the disk.
func TestOthersSyncsAreNotTrusted(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for _, mode := range []journal.Mode{journal.Appender, journal.Reader} {
			path := newPath(t)
			d, fail := forgetful(path)
			o := journal.Options{Namespace: "test", Mode: journal.Appender, Dir: d}
			a, _ := mustOpen(t, path, o)
			o.Mode = mode
			b, _ := mustOpen(t, path, o)
			*fail = lost
			if err := try(t, a, journal.Granted); (err != nil) != lost {
				t.Fatal(err)
			}
			*fail = false
			if err := b.View(t.Context(), func(h journal.Head) {
				if h.Seq != 2 || h.Durable != 1 || h.Proven > 1 {
					t.Errorf("as %v, the head is %+v: nothing says that entry 2 is durable", mode, h)
				}
			}); err != nil {
				t.Fatal(err)
			}
			d.syncs.Store(0)
			var err error
			if mode == journal.Reader {
				err = b.Durable(t.Context(), 2)
			} else {
				_, err = b.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) { return nil, nil })
			}
			if errors.Is(err, journal.ErrPoisoned) != lost || (err != nil) != lost || d.syncs.Load() != 1 {
				t.Errorf("as %v, lost %v: %v, %d syncs", mode, lost, err, d.syncs.Load())
			}
			if lost {
				continue
			}
			if err := b.View(t.Context(), func(h journal.Head) {
				if h.Durable != 2 {
					t.Errorf("as %v, then the head is %+v", mode, h)
				}
			}); err != nil {
				t.Fatal(err)
			}
			d.syncs.Store(0)
			if err := b.Durable(t.Context(), 2); err != nil || d.syncs.Load() != 0 {
				t.Errorf("as %v, again: %v, %d syncs", mode, err, d.syncs.Load())
			}
		}
	}
}

// TestAppenderKnowsWhatItRead: what an appender's opening synced and read needs
// no other sync.
func TestAppenderKnowsWhatItRead(t *testing.T) {
	path := newPath(t)
	o := fast(path)
	o.Mode = journal.Appender
	l, _ := mustOpen(t, path, o)
	add(t, l, journal.Entry{Kind: journal.Granted})
	l.Close()
	l, _ = mustOpen(t, path, o)
	d := o.Dir.(*testDir)
	d.syncs.Store(0)
	if _, err := l.Update(t.Context(), func(h journal.Head) ([]journal.Entry, error) {
		if h.Durable != h.Seq {
			t.Errorf("head %+v", h)
		}
		return nil, nil
	}); err != nil || d.syncs.Load() != 0 {
		t.Errorf("an empty update: %v, %d syncs", err, d.syncs.Load())
	}
}
