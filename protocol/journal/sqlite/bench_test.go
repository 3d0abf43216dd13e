package sqlite_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/journaltest"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

var payload = []byte(`{"order":"order-4471","case":"case-4471","amount":2000,"currency":"usd","reason":"requested_by_customer","lease":"L-refund","agent":"agent-7","seen":{"eligible":true,"refunded":0},"at":"2026-11-30T12:00:00Z"}`)

// BenchmarkUpdate is one append of a 210 byte body with its commit, as the file
// store's benchmark of that name.
func BenchmarkUpdate(b *testing.B) {
	for _, callers := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			var commits atomic.Int64
			s, err := sqlite.Open(newPath(b), sqlite.Options{Namespace: "bench", Trace: func(p trace.Point, _ string) {
				if p == sqlite.Committed {
					commits.Add(1)
				}
			}}, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for range callers {
				wg.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						if _, err := s.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) {
							return []journal.Entry{{Kind: journal.Proposed, Effect: journaltest.Effect(int(n)), Body: payload}}, nil
						}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(commits.Load())/float64(b.N), "commits/op")
		})
	}
}

// BenchmarkView is a look at a log where nothing is new.
func BenchmarkView(b *testing.B) {
	s, _ := mustOpen(b, newPath(b), sqlite.Options{})
	for b.Loop() {
		if err := s.View(context.Background(), func(journal.Head) {}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkClaim is a claim and its release.
func BenchmarkClaim(b *testing.B) {
	s, _ := mustOpen(b, newPath(b), sqlite.Options{})
	for b.Loop() {
		c, err := s.Claim(context.Background(), e1)
		if err != nil {
			b.Fatal(err)
		}
		c.Release()
	}
}

// BenchmarkOpen opens a log of 100,000 entries.
func BenchmarkOpen(b *testing.B) {
	path := newPath(b)
	s, _ := mustOpen(b, path, sqlite.Options{})
	for i := range 1000 {
		entries := make([]journal.Entry, 100)
		for j := range entries {
			entries[j] = journal.Entry{Kind: journal.Proposed, Effect: journaltest.Effect(i*100 + j), Body: payload}
		}
		add(b, s, entries...)
	}
	s.Close()
	for b.Loop() {
		n := 0
		s, err := sqlite.Open(path, sqlite.Options{}, func(journal.Entry) error { n++; return nil })
		if err != nil || n < 100_000 {
			b.Fatal(n, err)
		}
		s.Close()
	}
}
