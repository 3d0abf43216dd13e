package disk

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"os"
	"slices"
	"syscall"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

var ctx = context.Background()

// Count is what an enumeration came to.
type Count struct {
	Points int // places where the workload was crashed
	States int // different states that the log was opened on, with what had been told by then
	// Of rot: how many were refused, lost a tail, or were opened as if nothing had
	// been. The latter are logs that end early between two entries, and what is
	// behind the last entry of any.
	Refused, Cut, Opened int
	Violations           int
	First                *Violation // nil for none
}

func (c *Count) violated(state string, err error) {
	if err == nil {
		return
	}
	c.Violations++
	if c.First == nil {
		c.First = &Violation{state, err.Error()}
	}
}

func (c *Count) add(other Count) {
	c.Points += other.Points
	c.States += other.States
	c.Violations += other.Violations
	if c.First == nil {
		c.First = other.First
	}
}

// Crash runs w, crashes it before every change of the disk and at its end, and
// opens the log on every state of one kind that this may leave. Lock files are
// put into dir, which nothing else uses meanwhile. Its error is that of a
// workload that can't be run.
func Crash(dir string, w Workload, kind Kind, seed uint64) (Count, error) {
	s := newSession(dir, &Disk{})
	if err := s.run(w, nil); err != nil {
		return Count{}, fmt.Errorf("disk: %s: %w", w.Name, err)
	}
	var c Count
	seen, reopened := newSeen(), newSeen()
	for _, p := range s.points {
		c.Points++
		for d := range p.disk.States(kind, seed) {
			if !seen.add(d, p.told) {
				continue
			}
			c.States++
			how := fmt.Sprintf("%s, %s before call %d", w.Name, kind, p.call)
			if w.Deep {
				deep, err := w.again(dir, d, p.told, kind, seed, how, seen, reopened)
				if err != nil {
					c.violated(how, err)
					continue
				}
				c.add(deep)
			}
			c.violated(how, w.verify(dir, d, p.told, reopened))
		}
	}
	return c, nil
}

// again crashes the opening on d, too.
func (w Workload) again(dir string, d *Disk, t told, kind Kind, seed uint64, how string, seen, reopened seen) (Count, error) {
	s := newSession(dir, d.Clone())
	s.told = t
	s.told.given, s.told.acked = slices.Clip(t.given), slices.Clip(t.acked)
	opening := w
	opening.Prepare = nil
	opening.Do = func(s *Session) error {
		o := w.options()
		_, err := s.Open(o)
		return err
	}
	if err := s.run(opening, nil); err != nil {
		return Count{}, err
	}
	if kind == Bytes {
		kind = Sectors // every byte of every byte would be millions
	}
	var c Count
	for _, p := range s.points {
		c.Points++
		for d := range p.disk.States(kind, seed) {
			if seen.add(d, p.told) {
				c.States++
				c.violated(fmt.Sprintf("%s, and its opening before call %d", how, p.call), w.verify(dir, d, p.told, reopened))
			}
		}
	}
	return c, nil
}

// Faults runs w again and again, each time with another call failing in another
// way, and opens the log on the states that a crash may leave at any point from
// there on.
func Faults(dir string, w Workload, seed uint64) (Count, error) {
	s := newSession(dir, &Disk{})
	if err := s.run(w, nil); err != nil {
		return Count{}, fmt.Errorf("disk: %s: %w", w.Name, err)
	}
	var c Count
	seen, reopened := newSeen(), newSeen()
	for i, what := range s.calls {
		for _, f := range faults(what) {
			f.Op = i + 1
			c.Points++
			how := fmt.Sprintf("%s, call %d (%s) fails with %v, %d bytes written, %v", w.Name, f.Op, what, f.Err, f.Short, f.After)
			s := newSession(dir, &Disk{})
			s.run(w, &f) // its error is the fault, or what came of it
			if s.broke != "" {
				c.violated(how, errors.New(s.broke))
			}
			for _, p := range s.points {
				if p.call <= f.Op {
					continue
				}
				for _, kind := range []Kind{Sectors, Short, Entries, Killed} {
					for d := range p.disk.FewStates(kind, seed) {
						if seen.add(d, p.told) {
							c.States++
							c.violated(fmt.Sprintf("%s, then %s before call %d", how, kind, p.call), w.verify(dir, d, p.told, reopened))
						}
					}
				}
			}
		}
	}
	return c, nil
}

// faults are the ways in which a call can fail.
func faults(what string) []Fault {
	var all []Fault
	for _, err := range []error{syscall.EIO, syscall.ENOSPC} {
		switch what {
		case "write":
			for _, n := range []int{0, 1, headEnd, bodyAt, sector - 1, sector, 2*sector - 1, 1 << 20} {
				all = append(all, Fault{Err: err, Short: n})
			}
		case "sync":
			for _, after := range []After{Kept, Zeros, Old, Half} {
				all = append(all, Fault{Err: err, After: after})
			}
		default:
			all = append(all, Fault{Err: err})
		}
	}
	return all
}

// Flips flips every bit of what w leaves on the disk, one at a time.
func Flips(dir string, w Workload) (Count, error) {
	return rot(dir, w, func(b []byte) int { return 8 * len(b) }, func(b []byte, i int) []byte {
		b = resize(b, int64(len(b)))
		b[i/8] ^= 1 << (i % 8)
		return b
	}, true)
}

// Truncations ends every file that w leaves on the disk at every byte, one at a
// time.
func Truncations(dir string, w Workload) (Count, error) {
	return rot(dir, w, func(b []byte) int { return len(b) }, func(b []byte, i int) []byte { return b[:i:i] }, false)
}

func rot(dir string, w Workload, n func([]byte) int, spoil func([]byte, int) []byte, flipped bool) (Count, error) {
	s := newSession(dir, &Disk{})
	if err := s.run(w, nil); err != nil {
		return Count{}, fmt.Errorf("disk: %s: %w", w.Name, err)
	}
	var c Count
	reopened := newSeen()
	image := s.points[len(s.points)-1].disk.Synced()
	for _, name := range slices.Sorted(maps.Keys(image)) {
		for i := range n(image[name]) {
			spoilt := maps.Clone(image)
			spoilt[name] = spoil(image[name], i)
			c.States++
			became, err := w.rotted(dir, spoilt, s.told, flipped, reopened)
			switch became {
			case "refused":
				c.Refused++
			case "cut":
				c.Cut++
			case "opened":
				c.Opened++
			}
			c.violated(fmt.Sprintf("%s, %s spoilt at %d", w.Name, name, i), err)
		}
	}
	return c, nil
}

// seen are the states that were judged.
type seen struct {
	seed maphash.Seed
	had  map[uint64]bool
}

func newSeen() seen { return seen{maphash.MakeSeed(), map[uint64]bool{}} }

// add reports whether the state is new.
func (s seen) add(d *Disk, t told) bool {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for _, of := range []map[string]*file{d.names, d.synced} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			f := of[name]
			h.WriteString(name)
			maphash.WriteComparable(&h, [5]int{len(f.cache), len(f.disk), len(f.pending), len(f.refused), len(d.entries)})
			h.Write(f.cache)
			h.Write(f.disk)
		}
		h.WriteByte(0)
	}
	maphash.WriteComparable(&h, [3]int{len(t.acked), len(t.given), len(t.sent)})
	key := h.Sum64()
	if s.had[key] {
		return false
	}
	s.had[key] = true
	return true
}

// addImage reports whether the files are new, as left by a log that ends with an
// entry of the given hash.
func (s seen) addImage(image Image, end journal.Hash) bool {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for _, name := range slices.Sorted(maps.Keys(image)) {
		h.WriteString(name)
		maphash.WriteComparable(&h, len(image[name]))
		h.Write(image[name])
	}
	h.Write(end[:])
	key := h.Sum64()
	if s.had[key] {
		return false
	}
	s.had[key] = true
	return true
}

// LockDir makes a directory for lock files, on a file system in memory where
// there is one: no log is ever in it. It is removed by remove.
func LockDir() (dir string, remove func(), err error) {
	const memory = "/dev/shm"
	parent := ""
	if info, err := os.Stat(memory); err == nil && info.IsDir() && syscall.Access(memory, 2) == nil {
		parent = memory
	}
	if dir, err = os.MkdirTemp(parent, "disk-states-"); err != nil {
		return "", nil, err
	}
	return dir, func() { os.RemoveAll(dir) }, nil
}
