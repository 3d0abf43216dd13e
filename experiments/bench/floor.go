package bench

import (
	"os"
	"path/filepath"
	"sync"
	"time"
)

// frame is what the floor writes for one entry: about as much as an entry takes
// on the disk.
const frame = 1024

// bare is an append-and-sync loop without anything else: no hashes, no fold, no
// locks between processes. Callers at work at once share a sync, which the first
// of them performs, as in the file store.
type bare struct {
	f *os.File

	mu       sync.Mutex
	pending  []byte
	appended int
	synced   int
	flushing chan struct{}
	err      error
}

// append returns when one frame is durable.
func (b *bare) append() error {
	var content [frame]byte
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = append(b.pending, content[:]...)
	b.appended++
	mine := b.appended
	for b.synced < mine && b.err == nil {
		if done := b.flushing; done != nil {
			b.mu.Unlock()
			<-done
			b.mu.Lock()
			continue
		}
		out, upTo := b.pending, b.appended
		b.pending, b.flushing = nil, make(chan struct{})
		done := b.flushing
		b.mu.Unlock()
		_, err := b.f.Write(out)
		if err == nil {
			err = b.f.Sync()
		}
		b.mu.Lock()
		b.synced, b.err, b.flushing = upTo, err, nil
		close(done)
	}
	return b.err
}

// floor is how many appends a second writers get done in d.
func floor(dir string, writers int, d time.Duration) (float64, error) {
	f, err := os.Create(filepath.Join(dir, "floor"))
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	b := &bare{f: f}
	perSecond, _, err := rate(writers, d, func(int) error { return b.append() })
	return perSecond, err
}

// rate is how often a second the workers get do done, in d, and how often in all.
func rate(workers int, d time.Duration, do func(n int) error) (perSecond float64, times int, err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	done, next := 0, 0
	began := time.Now()
	for range workers {
		all.Go(func() {
			for {
				mu.Lock()
				n, stop := next, failed != nil || time.Since(began) >= d
				next++
				mu.Unlock()
				if stop {
					return
				}
				err := do(n)
				mu.Lock()
				if err != nil {
					failed = err
				}
				done++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return float64(done) / time.Since(began).Seconds(), done, failed
}
