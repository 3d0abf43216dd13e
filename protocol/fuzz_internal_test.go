package protocol

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// storedEntries are the entries of a stored log.
func storedEntries(t testing.TB, dir string) (entries []journal.Entry) {
	t.Helper()
	to := t.TempDir()
	if err := os.Chmod(to, 0o700); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join("testdata", "stored", dir, "*.seg"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v, %v", dir, paths, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(path)), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	log, err := journal.OpenFile(to, journal.Options{Mode: journal.Reader}, func(e journal.Entry) error {
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return entries
}

// FuzzBodies: whatever the body of an entry says, the folds of journal and
// authority and the receipt either take it or refuse it with an error of a class,
// and what is held is given back once the effect is refused. The entry comes
// behind those of a stored journal.
func FuzzBodies(f *testing.F) {
	var journaled, granted [][]journal.Entry
	for _, version := range []string{"1", "2"} {
		journaled = append(journaled, storedEntries(f, version+"/journal"))
		granted = append(granted, storedEntries(f, version+"/authority"))
	}
	for _, log := range append(journaled, granted...) {
		for i, e := range log {
			f.Add(uint16(e.Kind), uint8(i), []byte(e.Body))
		}
	}
	f.Fuzz(func(t *testing.T, kind uint16, of uint8, text []byte) {
		for i, log := range journaled {
			s, a := newState(), newAuthority()
			for _, e := range log {
				if err := s.apply(e); err != nil {
					t.Fatal(err)
				}
			}
			for _, e := range granted[i] {
				if err := a.apply(e); err != nil {
					t.Fatal(err)
				}
			}
			after := log[int(of)%len(log)]
			last := log[len(log)-1]
			e := journal.Entry{
				Segment: last.Segment, Seq: last.Seq + 1, Time: last.Time, Before: last.Hash,
				Kind: journal.Kind(kind), Effect: after.Effect, Body: json.RawMessage(text),
			}
			chain := []journal.Entry{}
			for _, o := range log {
				if o.Effect == e.Effect {
					chain, e.Prev = append(chain, o), o.Hash
				}
			}
			e.Hash = e.Sum()
			classed := func(err error) {
				if err != nil && !errors.Is(err, journal.ErrFormat) && !errors.Is(err, journal.ErrCorrupt) && !errors.Is(err, ErrReceipt) {
					t.Errorf("kind %v, %s: %v", e.Kind, text, err)
				}
			}
			if err := a.apply(e); err == nil {
				for name, b := range a.budgets {
					if why := b.unfit(); why != "" && b.seq == e.Seq {
						t.Errorf("budget %q counts, and it %s", name, why)
					}
				}
			} else {
				classed(err)
			}
			err := s.apply(e)
			classed(err)
			if !e.Effect.IsZero() {
				r, err := ReceiptFromEntries(append(chain, e))
				classed(err)
				if err == nil {
					_ = r.String()
				}
			}
			if err != nil {
				continue
			}
			if now := s.effects[e.Effect]; now != nil && now.final == Refused && (now.holds != "" || now.draw != nil || now.symbols != nil) {
				t.Errorf("refused by kind %v, %s, and still holds", e.Kind, text)
			}
			for name, of := range s.budgets {
				for from, tally := range of.periods {
					if tally.sum.Sign() < 0 {
						t.Errorf("budget %q holds %s from %s", name, &tally.sum, from)
					}
				}
			}
		}
	})
}
