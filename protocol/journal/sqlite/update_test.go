package sqlite_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/journaltest"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// TestCallersShareACommit: what waits while one transaction commits goes into the
// next, all of it, and none is told before that.
func TestCallersShareACommit(t *testing.T) {
	const callers = 8
	first, goOn := make(chan struct{}), make(chan struct{})
	commits := 0
	s, _ := mustOpen(t, newPath(t), sqlite.Options{Trace: func(p trace.Point, _ string) {
		if p == sqlite.Inserted {
			if commits++; commits == 1 {
				close(first)
				<-goOn
			}
		}
	}})
	var all sync.WaitGroup
	all.Go(func() { add(t, s, journal.Entry{Kind: journal.Granted}) })
	<-first
	ready := make(chan struct{}, callers)
	for range callers {
		all.Go(func() {
			ready <- struct{}{}
			add(t, s, journal.Entry{Kind: journal.Granted})
		})
	}
	for range callers {
		<-ready
	}
	// A look doesn't wait for the commit; whether what it saw is durable is asked
	// for apart.
	var head journal.Head
	if err := s.View(t.Context(), func(h journal.Head) { head = h }); err != nil || head.Seq != 2 || head.Durable != 1 {
		t.Errorf("during the commit: %+v, %v", head, err)
	}
	close(goOn)
	if err := s.Durable(t.Context(), head.Seq); err != nil {
		t.Error(err)
	}
	all.Wait()
	if commits > callers { // some may not have been waiting yet
		t.Errorf("%d commits for %d callers", commits, callers+1)
	}
}

// TestAPanicIsItsCallersOwn: what one caller's fn panics with comes out of its
// Update, and the others' entries are there.
func TestAPanicIsItsCallersOwn(t *testing.T) {
	s, entries := mustOpen(t, newPath(t), sqlite.Options{})
	const callers = 8
	var all sync.WaitGroup
	var panics [callers]any
	for n := range callers {
		all.Go(func() {
			defer func() { panics[n] = recover() }()
			if _, err := s.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) {
				if n == 3 {
					panic("three")
				}
				return []journal.Entry{{Kind: journal.Granted}}, nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for n, v := range panics {
		if (v != nil) != (n == 3) {
			t.Errorf("caller %d: %v", n, v)
		}
	}
	if got := count(*entries, journal.Granted, journal.ID{}); got != callers-1 {
		t.Errorf("%d entries, want %d", got, callers-1)
	}
}

// TestAnObserverThatPanics ends the store, at whichever step, and nobody waits
// for ever.
func TestAnObserverThatPanics(t *testing.T) {
	for _, at := range sqlite.Points() {
		path := newPath(t)
		armed := false
		s, _ := mustOpen(t, path, sqlite.Options{Trace: func(p trace.Point, _ string) {
			if armed && p == at {
				panic(at)
			}
		}})
		armed = true
		func() {
			defer func() {
				if recover() != at {
					t.Errorf("%s was not passed", at)
				}
			}()
			s.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) {
				return []journal.Entry{{Kind: journal.Granted}}, nil
			})
		}()
		if err := s.View(t.Context(), func(journal.Head) {}); !errors.Is(err, journal.ErrPoisoned) {
			t.Errorf("%s: afterwards %v, want ErrPoisoned", at, err)
		}
		s.Close()
		s, entries := mustOpen(t, path, sqlite.Options{})
		add(t, s, journal.Entry{Kind: journal.Granted})
		want := 1
		if at == sqlite.Committed {
			want = 2
		}
		if got := count(*entries, journal.Granted, journal.ID{}); got != want {
			t.Errorf("%s: %d entries survive, want %d", at, got, want)
		}
	}
}

// TestPoints: every declared point is passed, in order.
func TestPoints(t *testing.T) {
	var passed []trace.Point
	s, _ := mustOpen(t, newPath(t), sqlite.Options{Trace: func(p trace.Point, _ string) { passed = append(passed, p) }})
	add(t, s, journal.Entry{Kind: journal.Granted})
	if want := sqlite.Points(); len(passed) != len(want) || passed[0] != want[0] || passed[1] != want[1] || passed[2] != want[2] {
		t.Errorf("passed %v, declared %v", passed, want)
	}
}

// TestAFailedCommitPoisons (I11): the room that was allocated is taken away in
// the last moment, so that the commit fails. The store answers nothing any more,
// and another that has the log open goes on without what was lost.
func TestAFailedCommitPoisons(t *testing.T) {
	disk := journaltest.SmallDisk(t, "4m")
	path := filepath.Join(disk, "log", "journal.db")
	filler := filepath.Join(disk, "filler")
	armed := false
	s, _ := mustOpen(t, path, sqlite.Options{Trace: func(p trace.Point, _ string) {
		if !armed || p != sqlite.Inserted {
			return
		}
		wal, err := os.Stat(path + "-wal")
		if err != nil {
			t.Error(err)
			return
		}
		os.Truncate(path+"-wal", wal.Size()) // what is allocated behind its end goes
		os.WriteFile(filler, make([]byte, 8<<20), 0o600)
	}})
	other, entries := mustOpen(t, path, sqlite.Options{})
	add(t, s, journal.Entry{Kind: journal.Granted})
	armed = true
	_, err := s.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) {
		return []journal.Entry{{Kind: journal.Dispatched, Effect: e1, Body: []byte(`"` + strings.Repeat("x", 10_000) + `"`)}}, nil
	})
	if !errors.Is(err, journal.ErrPoisoned) || !errors.Is(err, journal.ErrFull) {
		t.Fatalf("the update: %v, want ErrPoisoned for ErrFull", err)
	}
	_, claim := s.Claim(t.Context(), e1)
	_, update := s.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) { t.Error("fn was called"); return nil, nil })
	for what, err := range map[string]error{
		"View": s.View(t.Context(), func(journal.Head) { t.Error("fn was called") }), "Claim": claim, "Update": update,
		"Durable": s.Durable(t.Context(), 1),
	} {
		if !errors.Is(err, journal.ErrPoisoned) {
			t.Errorf("%s: %v, want ErrPoisoned", what, err)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	add(t, other, journal.Entry{Kind: journal.Granted})
	if count(*entries, journal.Dispatched, e1) != 0 || count(*entries, journal.Granted, journal.ID{}) != 2 {
		t.Errorf("the other store holds %v", kinds(*entries))
	}
}

// TestAHungWriterIsNamed: an update that waits in vain for another's turn says
// whose, appends nothing, and goes on when the turn has ended.
func TestAHungWriterIsNamed(t *testing.T) {
	path := newPath(t)
	slow, _ := mustOpen(t, path, sqlite.Options{Identity: "the slow one"})
	s, _ := mustOpen(t, path, sqlite.Options{Patience: 5 * time.Millisecond})
	inside, goOn := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		slow.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) {
			close(inside)
			<-goOn
			return nil, nil
		})
	})
	<-inside
	_, err := s.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) { t.Error("fn was called"); return nil, nil })
	var held *journal.HeldError
	if !errors.As(err, &held) || !strings.Contains(held.Owner, "the slow one") || held.Since.IsZero() {
		t.Errorf("%v, want ErrHeld with the slow one's name", err)
	}
	close(goOn)
	all.Wait()
	add(t, s, journal.Entry{Kind: journal.Granted})
}

// TestNothingIsToldBeforeItsSync looks at the system calls of a process: between
// deciding and telling there is a sync, each time, and it succeeds.
func TestNothingIsToldBeforeItsSync(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not here")
	}
	path, calls := newPath(t), filepath.Join(t.TempDir(), "calls")
	cmd := exec.Command(strace, "-f", "-qq", "-e", "trace=write,fsync,fdatasync", "-o", calls, os.Args[0])
	cmd.Env = append(os.Environ(), "SQLITE_CHILD=updates "+path, "GORACE=atexit_sleep_ms=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("strace can't trace here: %v: %s", err, out)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	told, synced := 0, false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.Contains(line, `"decides`):
			synced = false
		case strings.Contains(line, "sync") && strings.HasSuffix(line, "= 0\n"):
			synced = true
		case strings.Contains(line, `"told`):
			if told++; !synced {
				t.Errorf("update %d was told before its sync", told)
			}
		}
	}
	if told != 10 {
		t.Errorf("%d updates were seen, want 10", told)
	}
}
