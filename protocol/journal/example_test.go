package journal_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// A log feeds a fold: here one that counts what was proposed. Opened again, it
// feeds the same entries to a new fold.
func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "refunds")
	effect := journal.ID{1}

	for range 2 {
		proposed := 0
		l, err := journal.OpenFile(path, journal.Options{Namespace: "refunds"}, func(e journal.Entry) error {
			if e.Kind == journal.Proposed {
				proposed++
			}
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
		// One atomic step: look at the fold, and append on what it says.
		entries, err := l.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) {
			if proposed > 0 {
				return nil, nil
			}
			return []journal.Entry{{Kind: journal.Proposed, Effect: effect, Body: []byte(`{"amount":20}`)}}, nil
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("appended", len(entries), "durable", proposed)
		if err := l.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// appended 1 durable 1
	// appended 0 durable 1
}
