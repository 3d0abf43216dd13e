package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/interlock-bench/interlock-bench/faults/disk"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// keeper is a store with one owner after the other, and what it owes them.
type keeper struct {
	t  *rapid.T
	n  Counts
	on ground

	clock    clock
	store    journal.Store
	fed      []journal.Entry // to the fold of the present owner, the log's own entries left out
	head     journal.Entry   // the last of all that were fed
	owed     []journal.Entry // acknowledged as durable, by whichever owner
	maybe    []journal.Entry // given to an update that didn't say so
	killIn   int             // points until a kill; negative for none
	dead     bool
	poisoned bool
}

// journalOn is the machine of a store on one kind of ground.
func journalOn(make func() (ground, error)) func(*rapid.T, Counts) {
	return func(t *rapid.T, n Counts) {
		on, err := make()
		if err != nil {
			t.Fatal(err)
		}
		k := &keeper{t: t, n: n, on: on, killIn: -1}
		defer func() { k.shut(); on.close() }()
		k.open()
		step := func(do func()) func(*rapid.T) {
			return func(t *rapid.T) {
				k.t = t
				k.killIn = rapid.IntRange(-12, 6).Draw(t, "killed at point")
				k.alive(do)
				k.killIn = -1
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"append":       step(k.append),
			"append again": step(k.append),
			"prove":        step(k.prove),
			"read":         step(k.read),
			"claim":        step(k.claim),
			"restart":      step(k.restart),
			"bad disk":     step(k.breakDisk),
		})
		k.t = t
		k.alive(k.restart)
		k.read()
		n["entries"] += len(k.owed)
	}
}

func (k *keeper) at(trace.Point, string) {
	if k.dead || k.killIn < 0 {
		return
	}
	if k.killIn--; k.killIn >= 0 {
		return
	}
	k.dead = true
	if err := k.on.freeze(); err != nil {
		k.t.Fatal(err)
	}
	if k.store != nil { // one that is opening goes on for nothing, to give back its locks
		panic(killed{})
	}
}

func (k *keeper) alive(do func()) {
	defer func() {
		if v := recover(); v != nil {
			if _, ok := v.(killed); !ok {
				panic(v)
			}
			k.n["kills"]++
			k.resume()
		}
	}()
	do()
}

func (k *keeper) open() {
	k.dead, k.poisoned, k.fed, k.head = false, false, nil, journal.Entry{}
	store, err := k.on.owner(k.clock.Now, k.at)(k.apply)
	if err != nil {
		k.t.Fatalf("the log can't be opened: %v", err)
	}
	k.store = store
}

// apply is fed every entry, in order, each linked to the one before.
func (k *keeper) apply(e journal.Entry) error {
	switch before := k.head; {
	case e.Seq != before.Seq+1:
		k.t.Fatalf("entry %d was fed after %d", e.Seq, before.Seq)
	case e.Segment < before.Segment:
		k.t.Fatalf("entry %d is in segment %d, the one before in %d (C29)", e.Seq, e.Segment, before.Segment)
	case e.Sum() != e.Hash:
		k.t.Fatalf("entry %d doesn't match its hash", e.Seq)
	}
	k.head = e
	if !own(e.Kind) {
		k.fed = append(k.fed, e)
	}
	return nil
}

// own reports whether a log writes entries of this kind by itself.
func own(k journal.Kind) bool {
	return k == journal.Opened || k == journal.Suspect || k == journal.Seal
}

func (k *keeper) shut() {
	k.dead = true
	if k.store != nil {
		k.store.Close()
	}
	k.store = nil
}

func (k *keeper) restart() {
	if err := k.on.freeze(); err != nil {
		k.t.Fatal(err)
	}
	k.dead = true
	k.n["restarts"]++
	k.resume()
}

// resume opens the log on what the last owner left, and holds it to what is owed:
// all that was acknowledged, in order, and then as much of the last update as
// there may be.
func (k *keeper) resume() {
	k.killIn = rapid.SampledFrom([]int{-1, -1, -1, 0, 1, 2, 4, 7}).Draw(k.t, "killed in opening at")
	for k.store == nil || k.dead {
		k.shut()
		lost := func(unsynced int) int { return rapid.IntRange(0, unsynced).Draw(k.t, "unsynced bytes lost") }
		if err := k.on.resume(lost); err != nil {
			k.t.Fatal(err)
		}
		k.open()
		if k.dead {
			k.n["kills in opening"]++
		}
		k.killIn = -1
	}
	more := len(k.fed) - len(k.owed)
	if more < 0 || more > len(k.maybe) {
		k.t.Fatalf("%d entries, of which %d were acknowledged and %d may be there", len(k.fed), len(k.owed), len(k.maybe))
	}
	for i, e := range slices.Concat(k.owed, k.maybe[:more]) {
		if !same(k.fed[i], e) {
			k.t.Fatalf("entry %d is %v %s, given was %v %s", k.fed[i].Seq, k.fed[i].Kind, k.fed[i].Body, e.Kind, e.Body)
		}
	}
	k.n["unacknowledged and there"] += more
	k.n["unacknowledged and gone"] += len(k.maybe) - more
	k.owed, k.maybe = slices.Clone(k.fed), nil
}

// same compares what was given; a stamped entry is compared whole.
func same(a, b journal.Entry) bool {
	return a.Kind == b.Kind && a.Effect == b.Effect && bytes.Equal(a.Body, b.Body) && (b.Seq == 0 || a.Hash == b.Hash && a.Seq == b.Seq)
}

func (k *keeper) append() {
	var entries []journal.Entry
	for range rapid.IntRange(1, 3).Draw(k.t, "entries") {
		size := rapid.SampledFrom([]int{0, 10, 300, 600, 2000}).Draw(k.t, "bytes")
		entries = append(entries, journal.Entry{
			Kind:   rapid.SampledFrom([]journal.Kind{journal.Proposed, journal.Dispatched, journal.Committed, journal.Refused}).Draw(k.t, "kind"),
			Effect: journal.ID{0xd1, byte(rapid.IntRange(1, 3).Draw(k.t, "effect"))},
			Body:   fmt.Appendf(nil, `{"n":%d,"fill":%q}`, k.n["appended"], bytes.Repeat([]byte("x"), size)),
		})
		k.n["appended"]++
	}
	k.maybe = append(k.maybe, entries...)
	before := k.head.Seq
	stamped, err := k.store.Update(context.Background(), func(h journal.Head) ([]journal.Entry, error) {
		if h.Seq != before {
			k.t.Fatalf("the head is %d, fed was %d", h.Seq, before)
		}
		return entries, nil
	})
	if k.failed(err) {
		return
	}
	if len(stamped) != len(entries) {
		k.t.Fatalf("%d of %d entries came back", len(stamped), len(entries))
	}
	k.maybe, k.owed = nil, append(k.owed, stamped...)
	k.n["acknowledged"] += len(stamped)
}

// failed reports an error, which only a broken disk may give. From then on
// nothing works (I11).
func (k *keeper) failed(err error) bool {
	if err == nil {
		if k.poisoned {
			k.t.Fatal("a poisoned store answered (I11)")
		}
		return false
	}
	if f, ok := k.on.(*files); !ok || f.decided.Fault == nil || f.decided.Ops() < f.decided.Fault.Op {
		k.t.Fatalf("an error without a cause: %v", err)
	}
	k.n["errors of the disk"]++
	k.poisoned = k.poisoned || errors.Is(err, journal.ErrPoisoned)
	return true
}

func (k *keeper) prove() {
	if len(k.owed) == 0 {
		k.t.Skip()
	}
	k.failed(journal.Prove(context.Background(), k.store, k.owed[len(k.owed)-1].Seq))
}

// read reads everything back.
func (k *keeper) read() {
	var read []journal.Entry
	for e, err := range k.store.Since(0) {
		if k.failed(err) {
			return
		}
		if !own(e.Kind) {
			read = append(read, e)
		}
	}
	if len(read) < len(k.owed) {
		k.t.Fatalf("%d entries can be read, %d were acknowledged", len(read), len(k.owed))
	}
	for i, e := range k.owed {
		if !same(read[i], e) {
			k.t.Fatalf("entry %d reads %v %s, given was %v %s", e.Seq, read[i].Kind, read[i].Body, e.Kind, e.Body)
		}
	}
}

// claim takes a claim twice, and once more behind its release.
func (k *keeper) claim() {
	id := journal.ID{0xd1, 1}
	c, err := k.store.Claim(context.Background(), id)
	if k.failed(err) {
		return
	}
	if _, err := k.store.Claim(context.Background(), id); !errors.Is(err, journal.ErrHeld) && !k.failed(err) {
		k.t.Fatal("a claim was given twice")
	}
	c.Release()
	if c, err = k.store.Claim(context.Background(), id); !k.failed(err) {
		c.Release()
	}
}

func (k *keeper) breakDisk() {
	after := rapid.SampledFrom([]disk.After{disk.Kept, disk.Zeros, disk.Old, disk.Half}).Draw(k.t, "a failed sync leaves")
	if !k.on.fail(rapid.IntRange(1, 8).Draw(k.t, "call of the disk"), after) {
		k.t.Skip()
	}
}
