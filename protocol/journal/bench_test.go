package journal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/journaltest"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

var payload = []byte(`{"order":"order-4471","case":"case-4471","amount":2000,"currency":"usd","reason":"requested_by_customer","lease":"L-refund","agent":"agent-7","seen":{"eligible":true,"refunded":0},"at":"2026-11-30T12:00:00Z"}`)

// BenchmarkUpdate is one append of a 210 byte body with its sync.
func BenchmarkUpdate(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			var syncs atomic.Int64
			l, err := journal.OpenFile(newPath(b), journal.Options{Namespace: "bench", Trace: func(p trace.Point, _ string) {
				if p == journal.Synced {
					syncs.Add(1)
				}
			}}, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			syncs.Store(0)
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range callers {
				wg.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						if _, err := l.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) {
							return []journal.Entry{{Kind: journal.Proposed, Effect: journaltest.Effect(int(n)), Body: payload}}, nil
						}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(syncs.Load())/float64(b.N), "syncs/op")
		})
	}
}

// BenchmarkSync is what the disk alone takes for as many bytes.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "file"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	frame := make([]byte, 512)
	for b.Loop() {
		if _, err := f.Write(frame); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkView is a reader's look at a log where nothing is new.
func BenchmarkView(b *testing.B) {
	path := newPath(b)
	l, err := journal.OpenFile(path, journal.Options{Namespace: "bench"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	r, err := journal.OpenFile(path, journal.Options{Mode: journal.Reader}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	for b.Loop() {
		if err := r.View(context.Background(), func(journal.Head) {}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens a log of 100,000 entries.
func BenchmarkOpen(b *testing.B) {
	path := newPath(b)
	l, err := journal.OpenFile(path, journal.Options{Namespace: "bench"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		entries := make([]journal.Entry, 100)
		for j := range entries {
			entries[j] = journal.Entry{Kind: journal.Proposed, Effect: journaltest.Effect(i*100 + j), Body: payload}
		}
		if _, err := l.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) { return entries, nil }); err != nil {
			b.Fatal(err)
		}
	}
	l.Close()
	for b.Loop() {
		n := 0
		l, err := journal.OpenFile(path, journal.Options{}, func(journal.Entry) error { n++; return nil })
		if err != nil || n < 100_000 {
			b.Fatal(n, err)
		}
		l.Close()
	}
}
