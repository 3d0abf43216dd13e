package bench

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
)

// firstRequest is the request whose entries a grown journal repeats.
const firstRequest = "case-0000000"

// grow makes a journal in dir of about so many entries: a gate carries out one
// refund, and its entries are written again under other request ids, in batches.
// Of the last inFlight effects the outcome is left out: they are in doubt.
func grow(ctx context.Context, dir, store string, entries, inFlight int) error {
	s := setup{store: store, unsynced: true}
	b, err := open(ctx, dir, s)
	if err != nil {
		return err
	}
	if err := b.submit(ctx, firstRequest, true); err != nil {
		return err
	}
	opener := b.journal(s)
	if err := b.close(); err != nil {
		return err
	}
	var model []journal.Entry
	opened := false
	log, err := opener(func(e journal.Entry) error {
		if !opened && !e.Effect.IsZero() {
			model = append(model, e)
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer log.Close()
	opened = true
	effects := entries/len(model) + inFlight
	for n := 1; n < effects; {
		var batch []journal.Entry
		for ; n < effects && len(batch) < 1000; n++ {
			request := fmt.Sprintf("case-%07d", n)
			id := protocol.EffectID(namespace, request, 0)
			for _, e := range model {
				if e.Kind == journal.Committed && n >= effects-inFlight {
					continue
				}
				batch = append(batch, journal.Entry{Kind: e.Kind, Effect: id, Body: bytes.ReplaceAll(e.Body, []byte(firstRequest), []byte(request))})
			}
		}
		_, err := log.Update(ctx, func(h journal.Head) ([]journal.Entry, error) {
			proposed := 0
			for i, e := range batch {
				switch e.Kind {
				case journal.Proposed:
					proposed = int(h.Seq) + 1 + i
				case journal.Dispatched: // names the entry that it carries out
					batch[i].Body = bytes.Replace(e.Body, fmt.Appendf(nil, `"proposed":%d,`, model[0].Seq), fmt.Appendf(nil, `"proposed":%d,`, proposed), 1)
				}
			}
			return batch, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// replayed opens the log in dir alone, without a gate, and counts its entries.
func replayed(dir, store string) (entries int, err error) {
	count := func(journal.Entry) error { entries++; return nil }
	var log journal.Store
	if store == "sqlite" {
		log, err = sqlite.Open(filepath.Join(dir, "journal.db"), sqlite.Options{}, count)
	} else {
		log, err = journal.OpenFile(filepath.Join(dir, "journal"), journal.Options{}, count)
	}
	if err != nil {
		return 0, err
	}
	return entries, log.Close()
}

// median of some figures.
func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}
