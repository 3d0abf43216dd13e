package journaltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// all opens the log at place and returns what it holds.
func (s Suite) all(t *testing.T, place string) []journal.Entry {
	t.Helper()
	var entries []journal.Entry
	open(t, s.Open(place), func(e journal.Entry) error { entries = append(entries, e); return nil }).Close()
	return entries
}

func (s Suite) durability(t *testing.T) {
	r, place := chance(t), s.Place(t)
	type ack struct {
		seq journal.Seq
		who string
		n   int
	}
	var acks []ack
	for round := range 8 {
		who := fmt.Sprint(round)
		p := start(t, task{Do: "append", Place: place, Who: who})
		for range 1 + r.IntN(40) {
			a := ack{who: who}
			if _, err := fmt.Sscan(p.line(), &a.seq, &a.n); err != nil {
				t.Fatal(err)
			}
			acks = append(acks, a)
		}
		p.kill(t)
		entries := s.all(t, place)
		for i, e := range entries {
			if e.Seq != journal.Seq(i+1) {
				t.Fatalf("entry %d comes at place %d", e.Seq, i+1)
			}
		}
		for _, a := range acks {
			var b struct {
				Who string
				N   int
			}
			if int(a.seq) > len(entries) {
				t.Fatalf("entry %d was acknowledged, the log has %d", a.seq, len(entries))
			}
			if err := json.Unmarshal(entries[a.seq-1].Body, &b); err != nil || b.Who != a.who || b.N != a.n {
				t.Fatalf("entry %d was acknowledged as %v and is %s", a.seq, a, entries[a.seq-1].Body)
			}
		}
	}
}

// refusedBy checks that another process is named as the holder.
func refusedBy(t *testing.T, err error) {
	t.Helper()
	var held *journal.HeldError
	if !errors.As(err, &held) || !errors.Is(err, journal.ErrHeld) || held.Owner == "" || held.Since.IsZero() {
		t.Errorf("%v, want ErrHeld with owner and time", err)
	}
}

// beside opens the log beside another process, where the store can; else it
// checks that the log is refused.
func (s Suite) beside(t *testing.T, place string) journal.Store {
	t.Helper()
	if s.Shared {
		return open(t, s.Open(place), nil)
	}
	_, err := s.Open(place)(func(journal.Entry) error { return nil })
	refusedBy(t, err)
	return nil
}

func (s Suite) held(t *testing.T) {
	place := s.Place(t)
	p := start(t, task{Do: "claim", Place: place, N: 1})
	p.want(t, "claimed")
	if store := s.beside(t, place); store != nil {
		_, err := store.Claim(t.Context(), Effect(1))
		refusedBy(t, err)
		other, err := store.Claim(t.Context(), Effect(2))
		if err != nil {
			t.Fatalf("another effect: %v", err)
		}
		other.Release()
		p.say()
		p.want(t, "released")
		c, err := store.Claim(t.Context(), Effect(1))
		if err != nil || !c.Proven {
			t.Fatalf("after it was released: %+v, %v", c, err)
		}
		c.Release()
		store.Close()
		p = start(t, task{Do: "claim", Place: place, N: 1})
		p.want(t, "claimed")
	}
	p.kill(t)
	c, err := open(t, s.Open(place), nil).Claim(t.Context(), Effect(1))
	if err != nil || !c.Proven {
		t.Errorf("after the holder's death: %+v, %v", c, err)
	}
}

func (s Suite) hung(t *testing.T) {
	place := s.Place(t)
	p := start(t, task{Do: "claim", Place: place, N: 1})
	p.want(t, "claimed")
	p.stop(t)
	store := s.beside(t, place)
	if store != nil {
		for range 3 {
			_, err := store.Claim(t.Context(), Effect(1))
			refusedBy(t, err)
		}
		add(t, store, journal.Entry{Kind: journal.Granted}) // others go on
	}
	p.kill(t)
	if store == nil {
		store = open(t, s.Open(place), nil)
	}
	if c, err := store.Claim(t.Context(), Effect(1)); err != nil || !c.Proven {
		t.Errorf("after the hung holder's death: %+v, %v", c, err)
	}
}

func (s Suite) locked(t *testing.T) {
	place := s.Place(t)
	first := open(t, s.Open(place), nil)
	add(t, first, journal.Entry{Kind: journal.Granted})
	first.Close()
	var store journal.Store
	if s.Shared {
		store = open(t, s.Open(place), nil)
	}
	p := start(t, task{Do: "update", Place: place, Who: "slow"})
	p.want(t, "inside")
	if store == nil {
		s.beside(t, place)
	} else {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := store.Update(ctx, func(journal.Head) ([]journal.Entry, error) {
			t.Error("fn was called beside an update under way")
			return nil, nil
		})
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, journal.ErrHeld) {
			t.Errorf("beside an update under way: %v", err)
		}
		if err := store.View(t.Context(), func(h journal.Head) {}); err != nil {
			t.Errorf("View beside an update under way: %v", err)
		}
	}
	p.end(t)
	if store == nil {
		store = open(t, s.Open(place), nil)
	}
	e := add(t, store, journal.Entry{Kind: journal.Granted})[0]
	slow := 0
	for e, err := range store.Since(0) {
		if err != nil {
			t.Fatal(err)
		}
		if string(e.Body) == `{"who":"slow"}` {
			slow++
		}
	}
	if slow != 1 || e.Seq != 4 { // OPENED, the first one, the slow one, this one
		t.Errorf("the slow update is there %d times, the next entry is %d", slow, e.Seq)
	}
}

func (s Suite) order(t *testing.T) {
	place := s.Place(t)
	const processes, each = 3, 40
	var running []*process
	for i := range processes {
		p := start(t, task{Do: "append", Place: place, Who: fmt.Sprint(i), N: each})
		if !s.Shared {
			p.end(t)
			continue
		}
		running = append(running, p)
	}
	for _, p := range running {
		p.end(t)
	}
	next, saw := map[string]int{}, 0
	var last journal.Token
	for _, e := range s.all(t, place) {
		if !last.Less(e.Token()) {
			t.Errorf("token %v follows %v", e.Token(), last)
		}
		last = e.Token()
		if e.Kind != journal.Granted {
			continue
		}
		var b struct {
			Who    string
			N, Saw int
		}
		if err := json.Unmarshal(e.Body, &b); err != nil {
			t.Fatal(err)
		}
		if b.Saw != saw || b.N != next[b.Who] {
			t.Fatalf("entry %d of %s saw %d before it, want entry %d and %d", b.N, b.Who, b.Saw, next[b.Who], saw)
		}
		next[b.Who]++
		saw++
	}
	if saw != processes*each {
		t.Errorf("%d entries, want %d", saw, processes*each)
	}
}

func (s Suite) guards(t *testing.T) {
	place := s.Place(t)
	const effects = 40
	var running []*process
	for range 3 {
		p := start(t, task{Do: "propose", Place: place, N: effects})
		p.want(t, "ready")
		if !s.Shared {
			p.end(t)
			continue
		}
		running = append(running, p)
	}
	for _, p := range running {
		p.say()
	}
	for _, p := range running {
		p.end(t)
	}
	proposed := map[journal.ID]int{}
	for _, e := range s.all(t, place) {
		if e.Kind == journal.Proposed {
			proposed[e.Effect]++
		}
	}
	for n := range effects {
		if proposed[Effect(n)] != 1 {
			t.Errorf("effect %d was proposed %d times", n, proposed[Effect(n)])
		}
	}
}

// revocation has goroutines, and another process where there can be one,
// dispatch until they see the revocation.
func (s Suite) revocation(t *testing.T) {
	place := s.Place(t)
	f := newFold()
	store := open(t, s.Open(place), f.apply)
	var p *process
	if s.Shared {
		p = start(t, task{Do: "dispatch", Place: place})
		for range 5 {
			p.want(t, "dispatched")
		}
	}
	begun := make(chan struct{}, 3)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for n := 0; ; n++ {
				entries, err := store.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) { return f.dispatch(n) })
				if err != nil {
					t.Error(err)
				}
				if n == 2 {
					begun <- struct{}{}
				}
				if len(entries) == 0 || err != nil {
					return
				}
			}
		})
	}
	for range 3 {
		<-begun
	}
	revoked := add(t, store, journal.Entry{Kind: journal.Revoked})[0]
	if err := journal.Prove(t.Context(), store, revoked.Seq); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if p != nil {
		p.end(t)
	}
	before := 0
	for e, err := range store.Since(0) {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Kind == journal.Dispatched && e.Seq > revoked.Seq:
			t.Errorf("entry %d was dispatched after revocation %d", e.Seq, revoked.Seq)
		case e.Kind == journal.Dispatched:
			before++
		}
	}
	if before == 0 {
		t.Error("nothing was dispatched before it")
	}
}

func (s Suite) middle(t *testing.T) {
	place := s.Place(t)
	store := open(t, s.Open(place), nil)
	for n := range 50 {
		add(t, store, journal.Entry{Kind: journal.Proposed, Effect: Effect(n)})
	}
	store.Close()
	want := s.all(t, place)
	for _, k := range []task{{Do: "open", N: 1}, {Do: "open", N: 30}, {Do: "open", N: 51}, {Do: "update"}} {
		k.Place = place
		p := start(t, k)
		if line := p.line(); line != "opening" && line != "inside" {
			t.Fatalf("the other process says %q", line)
		}
		p.kill(t)
		if got := s.all(t, place); !equal(got, want) {
			t.Errorf("after a death in %s at %d: %d entries, want %d", k.Do, k.N, len(got), len(want))
		}
	}
	add(t, open(t, s.Open(place), nil), journal.Entry{Kind: journal.Granted})
}

// rounds has two processes bring effects to their end. One is killed after some
// step, wherever it has got to by then; the other, or where a log can't be
// shared the next, takes over.
func (s Suite) rounds(t *testing.T) {
	r, n := chance(t), 50
	if *long {
		n = 1000
	}
	const effects = 4
	inDoubt, began := 0, time.Now()
	for round := range n {
		place, ledger := s.Place(t), filepath.Join(t.TempDir(), "ledger")
		k := task{Do: "work", Place: place, N: effects, Ledger: ledger}
		dies := start(t, k)
		var lives *process
		if s.Shared {
			lives = start(t, k)
		}
		for range 1 + r.IntN(3*effects) {
			if dies.line() == "" {
				break
			}
		}
		dies.cmd.Process.Kill()
		dies.cmd.Wait() // it may have come to its end first
		if lives == nil {
			lives = start(t, k)
		}
		lives.end(t)

		text, err := os.ReadFile(ledger)
		if err != nil {
			t.Fatal(err)
		}
		f, dispatched := newFold(), map[journal.ID]int{}
		store := open(t, s.Open(place), func(e journal.Entry) error {
			if e.Kind == journal.Dispatched {
				dispatched[e.Effect]++
			}
			return f.apply(e)
		})
		store.Close()
		for i := range effects {
			landed := strings.Count(string(text), Effect(i).String()+"\n")
			if landed != 1 || f.done[Effect(i)] != 1 {
				t.Fatalf("round %d: effect %d landed %d times and was committed %d times", round, i, landed, f.done[Effect(i)])
			}
			inDoubt += dispatched[Effect(i)] - 1
		}
	}
	t.Logf("%d rounds of %d effects in %v; %d dispatches were made anew", n, effects, time.Since(began).Round(time.Millisecond), inDoubt)
}

func (s Suite) large(t *testing.T) {
	o := s.Open(s.Place(t))
	store := open(t, o, nil)
	text := func(n int) []byte { // a string of n bytes with its quotes
		b := bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n]
		b[0], b[n-1] = '"', '"'
		return b
	}
	var want []journal.Entry
	for _, n := range []int{2, 300, 4000, 4096, 65_000, 1 << 20, journal.MaxBody} {
		want = append(want, add(t, store, journal.Entry{Kind: journal.Proposed, Effect: Effect(n), Body: text(n)})...)
	}
	want = append(want, add(t, store, journal.Entry{Kind: journal.Granted, Body: text(1 << 20)}, journal.Entry{Kind: journal.Granted, Body: text(3)})...)
	store.Close()
	var got []journal.Entry
	store = open(t, o, func(e journal.Entry) error { got = append(got, e); return nil })
	check := func(got []journal.Entry) {
		t.Helper()
		if len(got) < len(want) {
			t.Fatalf("%d entries, want %d", len(got), len(want))
		}
		for i, e := range got[len(got)-len(want):] {
			if e.Hash != want[i].Hash || !bytes.Equal(e.Body, want[i].Body) {
				t.Errorf("entry %d came back with %d bytes, another one than was appended with %d", e.Seq, len(e.Body), len(want[i].Body))
			}
		}
	}
	check(got)
	got = nil
	for e, err := range store.Since(want[0].Seq - 1) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	check(got)
}

func (s Suite) many(t *testing.T) {
	n := 20_000
	if *long {
		n = 1_000_000
	}
	o := s.Open(s.Place(t))
	store := open(t, o, nil)
	began := time.Now()
	for i := 0; i < n; i += 100 {
		entries := make([]journal.Entry, 100)
		for j := range entries {
			entries[j] = journal.Entry{Kind: journal.Proposed, Effect: Effect(i + j), Body: body("%d", i+j)}
		}
		add(t, store, entries...)
	}
	appended := time.Since(began)
	store.Close()
	began = time.Now()
	next := 0
	store = open(t, o, func(e journal.Entry) error {
		if e.Kind == journal.Proposed {
			if string(e.Body) != fmt.Sprint(next) {
				return fmt.Errorf("entry %d is %s, want %d", e.Seq, e.Body, next)
			}
			next++
		}
		return nil
	})
	if next != n {
		t.Fatalf("%d entries came back, want %d", next, n)
	}
	t.Logf("%d entries appended in %v, opened in %v", n, appended.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	for _, after := range []int{0, n / 2, n - 1} {
		want := journal.Seq(after + 1)
		for e, err := range store.Since(journal.Seq(after)) {
			if err != nil || e.Seq != want {
				t.Fatalf("after %d: entry %d, %v, want %d", after, e.Seq, err, want)
			}
			if want++; want > journal.Seq(after+500) {
				break
			}
		}
	}
}

func (s Suite) full(t *testing.T) {
	if s.Small == nil {
		t.Skip("this store was given no small place")
	}
	place := s.Small(t)
	store := open(t, s.Open(place), nil)
	padding := strings.Repeat("x", 2000)
	try := func(k journal.Kind, n int) error {
		_, err := store.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) {
			return []journal.Entry{{Kind: k, Effect: Effect(n), Body: body("%q", padding)}}, nil
		})
		return err
	}
	var err error
	proposed := 0
	for ; err == nil; proposed++ {
		if proposed > 100_000 {
			t.Fatal("the place is not small")
		}
		err = try(journal.Proposed, proposed)
	}
	proposed--
	alive := func(err error) bool { return errors.Is(err, journal.ErrFull) && !errors.Is(err, journal.ErrPoisoned) }
	if !alive(err) {
		t.Fatalf("after %d effects: %v, want ErrFull and a store that lives", proposed, err)
	}
	if err := try(journal.Dispatched, 0); !alive(err) {
		t.Errorf("a dispatch: %v, want ErrFull", err)
	}
	for n := range 20 {
		if err := try(journal.Committed, n); err != nil {
			t.Fatalf("outcome %d: %v", n, err)
		}
	}
	store.Close()
	f := newFold()
	store = open(t, s.Open(place), f.apply)
	if len(f.kinds) != proposed || len(f.done) != 20 {
		t.Errorf("%d effects and %d outcomes came back, want %d and 20", len(f.kinds), len(f.done), proposed)
	}
	if err := try(journal.Committed, 20); err != nil {
		t.Errorf("an outcome after a restart: %v", err)
	}
}

func (s Suite) readOnly(t *testing.T) {
	if s.ReadOnly == nil {
		t.Skip("this store was given no way to be read-only")
	}
	place := s.Place(t)
	if s.Small != nil {
		place = s.Small(t)
	}
	store := open(t, s.Open(place), nil)
	add(t, store, journal.Entry{Kind: journal.Granted})
	store.Close()
	want := s.all(t, place)
	writable := s.ReadOnly(t, place)
	if store, err := s.Open(place)(func(journal.Entry) error { return nil }); err == nil {
		store.Close()
		t.Error("it was opened to append")
	} else if errors.Is(err, journal.ErrCorrupt) || errors.Is(err, journal.ErrHeld) {
		t.Errorf("the error is %v", err)
	}
	writable()
	if got := s.all(t, place); !equal(got, want) {
		t.Errorf("%d entries came back, want %d", len(got), len(want))
	}
}

func (s Suite) served(t *testing.T) {
	if s.Served == nil {
		t.Skip("this store was given no file system to refuse")
	}
	store, err := s.Open(s.Served(t))(func(journal.Entry) error { return nil })
	if err == nil {
		store.Close()
	}
	if !errors.Is(err, journal.ErrUnsafe) {
		t.Errorf("%v, want ErrUnsafe", err)
	}
}
