package protocol_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// The folders of testdata/stored are journals as a process left them that was
// killed, with the authority they ran under and, in want.txt, what their own code
// said of each effect. 1 was written at commit 39e89e1, before bodies had a second
// version, and 2 by the first code that had budgets, symbols and secrets. They are
// not written again: a journal that exists can't be.
var store = flag.String("store", "", "folder to write a journal into that later code is to read; a new one for each version of bodies")

// storedRequests are the effects of every stored journal.
var storedRequests = []string{
	"ambiguous", "closed", "committed", "conflicted", "doubt", "lost", "proposed", "refused", "not-sent",
}

// later2 are those that only the second version has.
var later2 = []string{"budget", "budget-doubt", "over-budget", "symbol", "secret"}

func storedVersion(version string) []string {
	if version == "1" {
		return storedRequests
	}
	return slices.Concat(storedRequests, later2)
}

// fill brings effects into every state that a journal can hold them in.
func (r *rig) fill() {
	never := func(p protocol.Proposal) protocol.Result {
		r.service.script = []simulatedAnswer{neverLands}
		return r.submit(p)
	}
	r.service.can = tier3()
	never(r.proposal("closed", 20))
	r.resolve(r.recover(true), false)
	never(r.proposal("ambiguous", 20))
	r.recover(true)
	r.restart()
	r.service.can = tier2()
	r.submit(r.proposal("committed", 20))
	r.submit(r.proposal("conflicted", 20))
	r.submit(r.proposal("conflicted", 15))
	p := r.proposal("refused", 20)
	p.Lease = "L-none"
	r.submit(p)
	r.restart()
	r.service.script = []simulatedAnswer{ackLost}
	r.submit(r.proposal("doubt", 20))
	never(r.proposal("lost", 20))
	r.service.refuse = 1
	r.submit(r.proposal("proposed", 20))
	r.service.script = []simulatedAnswer{says(protocol.NotSent)}
	r.submit(r.proposal("not-sent", 20))
}

// described is what a receipt says of an effect that every version can say.
func (r *rig) described(request string) string {
	r.Helper()
	receipt, err := r.gate.Receipt(context.Background(), id(request))
	if err != nil {
		r.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s executed %s\n  %s\n", request, receipt.Effect, receipt.Status, receipt.Executed.Is, receipt.Payload)
	for _, a := range receipt.Attempts {
		fmt.Fprintf(&b, "  %s %s under %s\n", a.Token, a.Outcome, a.Lease)
	}
	fmt.Fprintf(&b, "  %v, %d turned away, last %s\n", r.kinds(receipt.Effect), len(receipt.TurnedAway), receipt.Last.Hash)
	return b.String()
}

// TestStoreAJournal writes a journal where it is told to.
func TestStoreAJournal(t *testing.T) {
	if *store == "" {
		t.Skip("it writes what later code is to read, when told where")
	}
	r := newRig(t, tier2())
	requests := storedRequests
	r.fill()
	requests = r.fill2(requests)
	var want strings.Builder
	for _, request := range requests {
		want.WriteString(r.described(request))
	}
	r.kill()
	for _, dir := range []string{"journal", "authority"} {
		if err := os.MkdirAll(filepath.Join(*store, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	keep := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(*store, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, f := range r.disk.files {
		keep("journal/"+name, f.bytes)
	}
	segments, err := filepath.Glob(filepath.Join(r.dir, "authority", "*.seg"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("%v, %v", segments, err)
	}
	for _, path := range segments {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		keep("authority/"+filepath.Base(path), text)
	}
	keep("want.txt", []byte(want.String()))
}

// fill2 adds what the second version of bodies can say.
func (r *rig) fill2(requests []string) []string {
	r.setBudget(budget("30"))
	l := lease("L-capped")
	l.Budget = "refunds"
	r.grant(l)
	r.submit(r.capped("budget", 20))
	r.service.script = []simulatedAnswer{ackLost}
	r.submit(r.capped("budget-doubt", 10))
	r.submit(r.capped("over-budget", 20))
	r.submit(r.defines("symbol", "pay.Refund"))
	r.reopen(key(1))
	r.service.script = []simulatedAnswer{ackLost}
	r.submit(r.payout("secret", account))
	return append(slices.Clone(requests), later2...)
}

// loadStored is a rig in which a stored journal lies, as its process left it. What
// had landed is in the service's ledger.
func loadStored(t *testing.T, version string) *rig {
	t.Helper()
	clock := &simulatedClock{}
	r := &rig{
		TB: t, clock: clock, disk: newDisk(), dir: t.TempDir(), passed: map[trace.Point]bool{},
		service: newSimulatedService(), person: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)),
		keys: [][]byte{key(1)},
	}
	r.service.can, r.service.clock = tier2(), clock
	from := filepath.Join("testdata", "stored", version)
	for name, text := range filesIn(t, filepath.Join(from, "journal")) {
		r.disk.files[name] = &simulatedFile{disk: r.disk, bytes: text, durable: slices.Clone(text)}
		r.disk.kept[name] = true
	}
	for name, text := range filesIn(t, filepath.Join(from, "authority")) {
		if err := os.WriteFile(filepath.Join(r.path("authority"), name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, request := range []string{"committed", "conflicted", "doubt", "budget", "budget-doubt", "symbol", "secret"} {
		payload := `{"amount":20,"order":"881"}`
		switch request {
		case "budget-doubt":
			payload = `{"amount":10,"order":"881"}`
		case "secret":
			clear, err := protocol.Canonical(r.payout("secret", account).Effect.Payload)
			if err != nil {
				t.Fatal(err)
			}
			payload = string(clear)
		}
		if slices.Contains(storedVersion(version), request) {
			r.service.ledger = append(r.service.ledger, simulatedLanding{id(request), payload, 0})
		}
	}
	return r
}

func filesIn(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v, %v", dir, paths, err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestAStoredJournalKeepsItsMeaning: what earlier code wrote is opened by this one
// with the same ids, states and chain, and recovered to the same ends.
func TestAStoredJournalKeepsItsMeaning(t *testing.T) {
	for _, version := range []string{"1", "2"} {
		t.Run(version, func(t *testing.T) {
			r := loadStored(t, version)
			r.open()
			want, err := os.ReadFile(filepath.Join("testdata", "stored", version, "want.txt"))
			if err != nil {
				t.Fatal(err)
			}
			var have strings.Builder
			for _, request := range storedVersion(version) {
				have.WriteString(r.described(request))
			}
			if have.String() != string(want) {
				t.Errorf("it was\n%s\nand is now\n%s", want, have.String())
			}

			// Equal content is still equal, and other content still other.
			payloads := map[string]protocol.Proposal{}
			for _, request := range storedVersion(version) {
				payloads[request] = r.proposal(request, 20)
			}
			if version == "2" {
				payloads["budget"], payloads["budget-doubt"] = r.capped("budget", 20), r.capped("budget-doubt", 10)
				payloads["over-budget"], payloads["symbol"] = r.capped("over-budget", 20), r.defines("symbol", "pay.Refund")
				payloads["secret"] = r.payout("secret", account)
				r.want(r.submit(r.defines("another", "pay.Refund")), "REFUSED:duplicate_symbol", 0)
				r.wantHolders(r.submit(r.capped("yet-another", 1)), "budget-doubt 10, budget 20")
			}
			r.want(r.submit(r.proposal("committed", 15)), "REFUSED:conflicting_payload", 1)
			entries := len(r.kinds(id("conflicted")))
			r.want(r.submit(r.proposal("conflicted", 15)), "REFUSED:conflicting_payload", 1)
			if n := len(r.kinds(id("conflicted"))); n != entries {
				t.Errorf("what was turned away before was taken for something new: %d entries more", n-entries)
			}
			for request, status := range map[string]string{"committed": "DUPLICATE_IGNORED", "closed": "REFUSED:closed", "ambiguous": "AMBIGUOUS"} {
				if got := r.submit(payloads[request]); got.Status.String() != status {
					t.Errorf("%s: %s, want %s", request, got.Status, status)
				}
			}

			// What is open ends as it would have.
			ends := map[string]string{
				"doubt": "COMMITTED_ON_QUERY", "lost": "REAPPLIED_AFTER_QUERY", "proposed": "COMMITTED", "not-sent": "COMMITTED",
				"budget-doubt": "COMMITTED_ON_QUERY", "secret": "COMMITTED_ON_QUERY",
			}
			results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range results {
				r.want(got, ends[got.Receipt.Request], 1)
				delete(ends, got.Receipt.Request)
			}
			for request := range ends {
				if slices.Contains(storedVersion(version), request) {
					t.Errorf("%s was not recovered", request)
				}
			}
			for _, sent := range r.service.sent {
				if sent.Effect != id(sent.Request.Request) {
					t.Errorf("%s was sent under %s", sent.Request.Request, sent.Effect)
				}
			}
		})
	}
}

// TestNewerEntriesAreRefused: a journal that later code wrote to is not opened, is
// not changed, and is whole for the code that can read it.
func TestNewerEntriesAreRefused(t *testing.T) {
	body := []byte(`{"v":1,"body":{}}`)
	for _, c := range []struct {
		entry journal.Entry
		in    string
		why   string
	}{
		{journal.Entry{Kind: 31, Effect: id("doubt"), Body: body}, "journal", "a kind of a later version"},
		{journal.Entry{Kind: 31, Effect: id("new"), Body: body}, "journal", "the same, of an effect that nothing else is known of"},
		{journal.Entry{Kind: 31, Body: body}, "journal", "the same, of no effect"},
		{journal.Entry{Kind: 127}, "journal", "a kind of a later log"},
		{journal.Entry{Kind: journal.Proposed, Effect: id("new"), Body: []byte(`{"v":3,"body":{}}`)}, "journal", "a later version of a body"},
		{journal.Entry{Kind: journal.Proposed, Effect: id("new"), Body: []byte(`{"v":0,"body":{}}`)}, "journal", "no version at all"},
		{journal.Entry{Kind: 63, Body: body}, "authority", "a later way to take authority away"},
		{journal.Entry{Kind: journal.Budgeted, Body: []byte(`{"v":3,"body":{}}`)}, "authority", "a later kind of budget"},
	} {
		r := loadStored(t, "1")
		o := r.on(journal.Options{Namespace: namespace, Now: r.clock.Now})
		if c.in == "authority" {
			o.Dir = nil
			o.Mode = journal.Appender
		}
		log, err := journal.FileOpener(r.path(c.in), o)(func(journal.Entry) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		_, err = log.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) { return []journal.Entry{c.entry}, nil })
		if err = errors.Join(err, log.Close()); err != nil {
			t.Fatal(err)
		}
		before := map[string]string{}
		for name, f := range r.disk.files {
			before[name] = string(f.bytes)
		}
		gate, err := protocol.Open(context.Background(), protocol.Config{
			Namespace: namespace, Journal: journal.FileOpener(r.path("journal"), r.on(journal.Options{Namespace: namespace, Now: r.clock.Now})),
			Authority: journal.FileOpener(r.path("authority"), journal.Options{Mode: journal.Reader, Namespace: namespace}), Clock: r.clock,
		})
		if !errors.Is(err, journal.ErrFormat) {
			t.Errorf("%s: %v", c.why, err)
		}
		if err == nil {
			gate.Close()
		}
		for name, text := range before {
			if f := r.disk.files[name]; f == nil || !strings.HasPrefix(string(f.bytes), text) {
				t.Errorf("%s: %s was changed", c.why, name)
			}
		}
	}
}
