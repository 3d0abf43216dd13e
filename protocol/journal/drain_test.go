package journal_test

import (
	"context"
	"errors"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// drained runs Exclude on byte n and returns its end.
func drained(d *journal.Drain, n journal.Seq) chan error {
	done := make(chan error, 1)
	go func() { done <- d.Exclude(context.Background(), n) }()
	return done
}

func openDrain(t *testing.T, path string) *journal.Drain {
	t.Helper()
	d, err := journal.OpenDrain(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func share(t *testing.T, d *journal.Drain, n journal.Seq) func() {
	t.Helper()
	release, ok, err := d.Share(n)
	if !ok || err != nil {
		t.Fatalf("Share(%d): %v, %v", n, ok, err)
	}
	return release
}

func logDir(t *testing.T) string {
	path := newPath(t)
	l, _ := mustOpen(t, path, fast(path))
	l.Close()
	return path
}

// expired is a context that allows one look.
func expired(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	t.Cleanup(cancel)
	<-ctx.Done()
	return ctx
}

// TestDrainWithin: in one process Exclude waits for the last of those who share
// the byte, and for no other byte.
func TestDrainWithin(t *testing.T) {
	d := openDrain(t, logDir(t))
	a, b := share(t, d, 7), share(t, d, 7)
	other := share(t, d, 8)
	defer other()
	if err := d.Exclude(expired(t), 7); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Exclude beside two shares: %v", err)
	}
	if err := d.Exclude(t.Context(), 9); err != nil {
		t.Errorf("a byte that nobody shares: %v", err)
	}
	a()
	a() // does nothing more
	if err := d.Exclude(expired(t), 7); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Exclude beside one share: %v", err)
	}
	done := drained(d, 7)
	b()
	if err := <-done; err != nil {
		t.Error(err)
	}
	share(t, d, 7)() // Exclude lets the byte go again
}

// TestDrainAcross: the same between processes, also when the sharer is killed.
func TestDrainAcross(t *testing.T) {
	path := logDir(t)
	d := openDrain(t, path)
	for _, kill := range []bool{false, true} {
		p := start(t, "share", path)
		p.ready(t)
		share(t, d, 7)() // shared is no obstacle to sharing
		if err := d.Exclude(expired(t), 7); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Exclude beside another process: %v", err)
		}
		done := drained(d, 7)
		if kill {
			p.kill(t)
		} else {
			p.end(t)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestDrainClosed(t *testing.T) {
	d := openDrain(t, logDir(t))
	release := share(t, d, 1)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	release()
	if _, _, err := d.Share(1); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Share: %v", err)
	}
	if err := d.Exclude(t.Context(), 1); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Exclude: %v", err)
	}
}

// TestAClosedDrainHoldsNothing shares a byte and closes the drain over it.
func TestAClosedDrainHoldsNothing(t *testing.T) {
	path := logDir(t)
	d := openDrain(t, path)
	share(t, d, 7)
	d.Close()
	if err := <-drained(openDrain(t, path), 7); err != nil {
		t.Error(err)
	}
}
