package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// namespace and now are the same in every log: equal workloads are equal bytes.
const namespace = "disk"

func now() time.Time { return time.Unix(1_796_000_000, 0) }

// Session is one run of a workload on a disk. It notes what was given to the log
// and what the log said to be durable, and keeps the disk as it is before every
// change.
type Session struct {
	Disk *Disk
	dir  string // where the lock file lies

	mu     sync.Mutex
	logs   []*journal.Log
	told   told
	points []point
	calls  []string // every call of the disk behind first
	first  int      // calls before the workload began
	watch  bool     // whether points are kept
	hold   func(what string)
	broke  string // what the log did wrong while it ran
}

// told is what is known of a log from outside. Its slices only grow.
type told struct {
	given []journal.Entry // to be written, in this order; some may have been given twice
	acked []journal.Entry // said to be durable
	sent  []journal.ID    // effects of a durable DISPATCHED that were lost since, by rot
}

// point is the disk before a change, with what was told by then.
type point struct {
	disk *Disk
	call int
	told told
}

func newSession(dir string, d *Disk) *Session {
	s := &Session{Disk: d, dir: dir, watch: true}
	d.Before = s.before
	return s
}

func (s *Session) before(call int, what string) {
	s.mu.Lock()
	s.calls = append(s.calls, what)
	hold := s.hold
	s.mu.Unlock()
	switch what {
	case "list", "open", "read", "drop", "allocate", "close":
	default:
		s.keep(call)
	}
	if hold != nil {
		hold(what)
	}
}

func (s *Session) keep(call int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch {
		s.points = append(s.points, point{s.Disk.Clone(), call - s.first, s.told})
	}
}

// Open opens the log. The zero Options are those of an owner.
func (s *Session) Open(o journal.Options) (*journal.Log, error) {
	o.Namespace, o.Dir, o.Now = namespace, s.Disk, now
	l, err := journal.OpenFile(s.dir, o, func(e journal.Entry) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told.given = append(s.told.given, e)
		return nil
	})
	if err == nil {
		s.logs = append(s.logs, l)
	}
	return l, err
}

// Add appends entries in one update.
func (s *Session) Add(l *journal.Log, entries ...journal.Entry) error {
	stamped, err := l.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) { return entries, nil })
	s.mu.Lock()
	if err == nil {
		s.told.acked = append(s.told.acked, stamped...)
	}
	s.mu.Unlock()
	if err != nil && (!errors.Is(err, journal.ErrFull) || errors.Is(err, journal.ErrPoisoned)) {
		_, again := l.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) {
			return []journal.Entry{{Kind: journal.Seal}}, nil
		})
		if again == nil && errors.Is(err, journal.ErrPoisoned) {
			s.mu.Lock()
			s.broke = fmt.Sprintf("the log went on after: %v", err)
			s.mu.Unlock()
		}
	}
	return err
}

// Prove has a later record prove what was appended last.
func (s *Session) Prove(l *journal.Log) error {
	return journal.Prove(context.Background(), l, s.told.acked[len(s.told.acked)-1].Seq)
}

// Together appends the first entry, and while it is being written each of the
// others by a caller of its own: they share one write and one sync.
func (s *Session) Together(l *journal.Log, entries ...journal.Entry) error {
	inWrite, goOn := make(chan bool), make(chan bool)
	s.setHold(func(what string) {
		if what == "write" {
			s.setHold(nil)
			close(inWrite)
			<-goOn
		}
	})
	errs := make(chan error, len(entries))
	go func() { errs <- s.Add(l, entries[0]) }()
	select {
	case <-inWrite:
	case err := <-errs: // refused before anything was written
		s.setHold(nil)
		return err
	}
	for _, e := range entries[1:] {
		inLine := make(chan bool)
		go func() {
			stamped, err := l.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) {
				close(inLine)
				return []journal.Entry{e}, nil
			})
			if err == nil {
				s.mu.Lock()
				s.told.acked = append(s.told.acked, stamped...)
				s.mu.Unlock()
			}
			errs <- err
		}()
		<-inLine
	}
	// The last one's fn was called; once View returns its entry is in line.
	err := l.View(context.Background(), func(journal.Head) {})
	close(goOn)
	for range entries {
		err = errors.Join(err, <-errs)
	}
	return err
}

func (s *Session) setHold(f func(string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = f
}

// Rot flips a bit of what the disk holds. What entries from the given sequence on
// told is lost, but not that they were sent.
func (s *Session) Rot(name string, at int64, from journal.Seq) {
	image := s.Disk.Synced()
	b := resize(image[name], int64(len(image[name])))
	b[at] ^= 4
	image[name] = b
	d := Of(image)
	d.Before = s.before
	s.Disk = d
	s.told = s.told.lose(from)
}

// lose is what is still to be there when the entries from a sequence on were
// lost, by rot: all before them, and that requests were sent.
func (t told) lose(from journal.Seq) told {
	lost := told{given: t.given, sent: slices.Clip(t.sent)}
	for _, e := range t.acked {
		switch {
		case e.Seq < from:
			lost.acked = append(lost.acked, e)
		case e.Kind == journal.Dispatched:
			lost.sent = append(lost.sent, e.Effect)
		}
	}
	return lost
}

// Close closes all logs that are open.
func (s *Session) Close() {
	for _, l := range s.logs {
		l.Close()
	}
	s.logs = nil
}

// run runs w and keeps the disk as it is at the end, too. What the workload does
// with fault failing is its error; one in what it finds is a panic.
func (s *Session) run(w Workload, fault *Fault) error {
	if w.Prepare != nil {
		s.watch = false
		if err := w.Prepare(s); err != nil {
			panic(fmt.Sprintf("disk: %s can't be prepared: %v", w.Name, err))
		}
		s.watch, s.calls, s.first = true, nil, s.Disk.Ops()
	}
	if fault != nil {
		f := *fault
		f.Op += s.first
		s.Disk.Fault = &f
	}
	err := w.Do(s)
	s.keep(s.Disk.Ops() + 1)
	s.watch = false
	s.Close()
	return err
}
