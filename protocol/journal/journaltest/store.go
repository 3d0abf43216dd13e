// Package journaltest is the suite that every store passes.
package journaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Store runs the suite. fresh is called once per test and returns an opener of
// an empty log that can be opened again after Close.
func Store(t *testing.T, fresh func(t *testing.T) journal.Opener) {
	for _, c := range []struct {
		name string
		why  string
		run  func(*testing.T, journal.Opener)
	}{
		{"stamps", "entries come back as they are stored: positions without gaps, chained hashes", stamps},
		{"reopen", "what Update returned is fed to the next opening, in order and byte for byte", reopen},
		{"refused", "fn's error comes back as it is and nothing is appended", refused},
		{"unwritable", "an entry that can't be stored appends nothing and doesn't poison", unwritable},
		{"visible", "fn and View see what was appended before them", visible},
		{"together", "concurrent updates are atomic against each other", together},
		{"since", "Since yields the rest in order, from wherever it is asked", since},
		{"claims", "one claim per effect, free again after Release", claims},
		{"prove", "Prove appends a SEAL where nothing else proves the entry, once", prove},
		{"cancelled", "a context that has ended appends nothing", cancelled},
		{"closed", "a closed store says so", closed},
		{"apply", "an error from apply stops the opening and is wrapped", applyError},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Log(c.why)
			c.run(t, fresh(t))
		})
	}
}

// Effect is a distinct id for each n.
func Effect(n int) journal.ID { return journal.ID{0xef, byte(n >> 8), byte(n), byte(n >> 16)} }

func open(t *testing.T, o journal.Opener, apply func(journal.Entry) error) journal.Store {
	t.Helper()
	if apply == nil {
		apply = func(journal.Entry) error { return nil }
	}
	s, err := o(apply)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func add(t *testing.T, s journal.Store, entries ...journal.Entry) []journal.Entry {
	t.Helper()
	got, err := s.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) { return entries, nil })
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func body(format string, a ...any) []byte { return fmt.Appendf(nil, format, a...) }

func stamps(t *testing.T, o journal.Opener) {
	s := open(t, o, nil)
	var head journal.Head
	if err := s.View(t.Context(), func(h journal.Head) { head = h }); err != nil {
		t.Fatal(err)
	}
	a, b := Effect(1), Effect(2)
	got := add(t, s,
		journal.Entry{Kind: journal.Proposed, Effect: a, Body: body(`{"n": 1}`)},
		journal.Entry{Kind: journal.Proposed, Effect: b},
		journal.Entry{Kind: journal.Dispatched, Effect: a, Body: body(`{}`)})
	prev := map[journal.ID]journal.Hash{}
	before, seq := head.Hash, head.Seq
	for i, e := range got {
		seq++
		if e.Seq != seq || e.Segment == 0 || e.Time.IsZero() {
			t.Errorf("entry %d is at %v, %v; want sequence %d, a segment and a time", i, e.Token(), e.Time, seq)
		}
		if e.Prev != prev[e.Effect] || e.Before != before || e.Hash != e.Sum() {
			t.Errorf("entry %d isn't chained: %+v", i, e)
		}
		prev[e.Effect], before = e.Hash, e.Hash
	}
	if err := s.View(t.Context(), func(h journal.Head) { head = h }); err != nil {
		t.Fatal(err)
	}
	if head.Seq != seq || head.Hash != before || head.Durable < seq {
		t.Errorf("after the update the head is %+v; want sequence %d, all durable", head, seq)
	}
}

func reopen(t *testing.T, o journal.Opener) {
	var want []journal.Entry
	for round := range 4 {
		var got []journal.Entry
		s := open(t, o, func(e journal.Entry) error { got = append(got, e); return nil })
		if !equal(got[:min(len(want), len(got))], want) {
			t.Fatalf("round %d was fed\n%v\nwant\n%v", round, got, want)
		}
		add(t, s, journal.Entry{Kind: journal.Proposed, Effect: Effect(round), Body: body("{\"round\" :\t%d}", round)})
		add(t, s, journal.Entry{Kind: journal.Granted}, journal.Entry{Kind: journal.Committed, Effect: Effect(0), Body: body(`null`)})
		want = got
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func equal(a, b []journal.Entry) bool {
	return slices.EqualFunc(a, b, func(x, y journal.Entry) bool { return x.Hash == y.Hash && x.Hash == x.Sum() && y.Hash == y.Sum() })
}

func refused(t *testing.T, o journal.Opener) {
	s := open(t, o, nil)
	no := errors.New("no")
	var before, after journal.Head
	_, err := s.Update(t.Context(), func(h journal.Head) ([]journal.Entry, error) {
		before = h
		return []journal.Entry{{Kind: journal.Proposed}}, no
	})
	if err != no {
		t.Errorf("Update returned %v, want fn's own error", err)
	}
	if err := s.View(t.Context(), func(h journal.Head) { after = h }); err != nil {
		t.Fatal(err)
	}
	if after.Seq != before.Seq {
		t.Errorf("the log grew from %d to %d", before.Seq, after.Seq)
	}
}

func unwritable(t *testing.T, o journal.Opener) {
	s := open(t, o, nil)
	var before, after journal.Head
	if err := s.View(t.Context(), func(h journal.Head) { before = h }); err != nil {
		t.Fatal(err)
	}
	for _, e := range []journal.Entry{
		{},
		{Kind: journal.Opened},
		{Kind: journal.Proposed, Body: body(`{`)},
		{Kind: journal.Proposed, Body: body(`{} {}`)},
		{Kind: journal.Proposed, Body: make([]byte, journal.MaxBody+1)},
	} {
		if _, err := s.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) {
			return []journal.Entry{{Kind: journal.Granted}, e}, nil
		}); err == nil {
			t.Errorf("%v with a body of %d bytes was appended", e.Kind, len(e.Body))
		}
	}
	if err := s.View(t.Context(), func(h journal.Head) { after = h }); err != nil {
		t.Fatal(err)
	}
	if after.Seq != before.Seq {
		t.Errorf("the log grew from %d to %d", before.Seq, after.Seq)
	}
	add(t, s, journal.Entry{Kind: journal.Granted})
}

func visible(t *testing.T, o journal.Opener) {
	n := 0
	s := open(t, o, func(journal.Entry) error { n++; return nil })
	base := n
	for i := 1; i <= 3; i++ {
		add(t, s, journal.Entry{Kind: journal.Proposed, Effect: Effect(i)})
		if err := s.View(t.Context(), func(h journal.Head) {
			if n != base+i {
				t.Errorf("after %d updates apply had seen %d entries", i, n-base)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func together(t *testing.T, o journal.Opener) {
	count := 0
	s := open(t, o, func(e journal.Entry) error {
		if e.Kind == journal.Granted {
			count++
		}
		return nil
	})
	const callers, each = 8, 20
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				var seen int
				got, err := s.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) {
					seen = count
					return []journal.Entry{{Kind: journal.Granted, Body: body("%d", seen)}}, nil
				})
				if err != nil || string(got[0].Body) != fmt.Sprint(seen) {
					t.Errorf("Update: %v, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	next := 0
	for e, err := range s.Since(0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == journal.Granted {
			if string(e.Body) != fmt.Sprint(next) {
				t.Fatalf("entry %d saw %s entries before it, want %d", e.Seq, e.Body, next)
			}
			next++
		}
	}
	if next != callers*each {
		t.Errorf("%d entries are in the log, want %d", next, callers*each)
	}
}

func since(t *testing.T, o journal.Opener) {
	var all []journal.Entry
	for i := range 3 { // several openings: several segments, where a store has them
		all = nil
		s := open(t, o, func(e journal.Entry) error { all = append(all, e); return nil })
		for range i + 1 {
			add(t, s, journal.Entry{Kind: journal.Granted, Body: body(`[%d]`, i)}, journal.Entry{Kind: journal.Revoked})
		}
		if i < 2 {
			s.Close()
			continue
		}
		for after := range len(all) + 1 {
			var got []journal.Entry
			for e, err := range s.Since(journal.Seq(after)) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e)
			}
			if !equal(got, all[after:]) {
				t.Errorf("after %d: %v\nwant %v", after, got, all[after:])
			}
		}
		for e, err := range s.Since(0) { // leaving the loop, and using the store in it
			if err != nil || e.Seq != 1 {
				t.Errorf("first entry %v, %v", e, err)
			}
			add(t, s, journal.Entry{Kind: journal.Seal})
			break
		}
	}
}

func claims(t *testing.T, o journal.Opener) {
	s := open(t, o, nil)
	c, err := s.Claim(t.Context(), Effect(1))
	if err != nil || c.Effect != Effect(1) {
		t.Fatal(c, err)
	}
	_, err = s.Claim(t.Context(), Effect(1))
	var held *journal.HeldError
	if !errors.As(err, &held) || !errors.Is(err, journal.ErrHeld) || held.Owner == "" || held.Since.IsZero() {
		t.Errorf("a second claim: %v, want ErrHeld with owner and time", err)
	}
	other, err := s.Claim(t.Context(), Effect(2))
	if err != nil {
		t.Errorf("another effect: %v", err)
	}
	c.Release()
	again, err := s.Claim(t.Context(), Effect(1))
	if err != nil || !again.Proven {
		t.Fatalf("after Release: %+v, %v", again, err)
	}
	c.Release() // the first claim's: must not free the second
	if _, err := s.Claim(t.Context(), Effect(1)); !errors.Is(err, journal.ErrHeld) {
		t.Errorf("a claim released twice freed another: %v", err)
	}
	again.Release()
	other.Release()
}

func prove(t *testing.T, o journal.Opener) {
	seals := 0
	s := open(t, o, func(e journal.Entry) error {
		if e.Kind == journal.Seal {
			seals++
		}
		return nil
	})
	first := add(t, s, journal.Entry{Kind: journal.Revoked})[0]
	for range 2 {
		if err := journal.Prove(t.Context(), s, first.Seq); err != nil {
			t.Fatal(err)
		}
		if err := s.View(t.Context(), func(h journal.Head) {
			if h.Proven < first.Seq {
				t.Errorf("proven up to %d only, want %d", h.Proven, first.Seq)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if seals > 1 {
		t.Errorf("%d SEALs for one entry", seals)
	}
}

func cancelled(t *testing.T, o journal.Opener) {
	s := open(t, o, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Update(ctx, func(journal.Head) ([]journal.Entry, error) {
		t.Error("fn was called")
		return nil, nil
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("Update: %v", err)
	}
	if _, err := s.Claim(ctx, Effect(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("Claim: %v", err)
	}
	add(t, s, journal.Entry{Kind: journal.Granted})
}

func closed(t *testing.T, o journal.Opener) {
	s := open(t, o, nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	ctx := t.Context()
	fn := func(journal.Head) ([]journal.Entry, error) { t.Error("fn was called"); return nil, nil }
	_, update := s.Update(ctx, fn)
	_, claim := s.Claim(ctx, Effect(1))
	for name, err := range map[string]error{
		"Update": update, "Claim": claim, "Durable": s.Durable(ctx, 0),
		"View": s.View(ctx, func(journal.Head) { t.Error("fn was called") }),
	} {
		if !errors.Is(err, journal.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
	for _, err := range s.Since(0) {
		if !errors.Is(err, journal.ErrClosed) {
			t.Errorf("Since: %v, want ErrClosed", err)
		}
	}
}

func applyError(t *testing.T, o journal.Opener) {
	s := open(t, o, nil)
	add(t, s, journal.Entry{Kind: journal.Granted})
	s.Close()
	no := errors.New("no")
	if s, err := o(func(e journal.Entry) error {
		if e.Kind == journal.Granted {
			return no
		}
		return nil
	}); !errors.Is(err, no) {
		t.Errorf("opened %v with error %v, want apply's", s, err)
	}
	open(t, o, nil)
}
