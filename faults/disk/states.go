package disk

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
)

// Kind is a kind of state that a crash leaves. What was synced is there in all
// of them.
type Kind int

const (
	Sectors Kind = iota // every subset of the unsynced sectors; what is missing is zeros
	Garbage             // every subset of them; what is missing is garbage
	Short               // the file ends behind any of its sectors; of those before, every subset
	Bytes               // the file ends behind any byte, and holds all before it
	Entries             // any subset of the new and the removed names is lost
	Killed              // the process is killed and the page cache lives
)

// Kinds are all of them, in the order of the page.
var Kinds = []Kind{Sectors, Garbage, Short, Bytes, Entries, Killed}

// String is the kind's word.
func (k Kind) String() string {
	return [...]string{"sectors", "garbage", "short", "bytes", "entries", "killed"}[k]
}

// What is the kind in one sentence.
func (k Kind) What() string {
	return [...]string{
		"the power goes; any subset of the unsynced 512-byte sectors was written, the file has its full size, and zeros where nothing was",
		"the same, with garbage where nothing was written",
		"the same, and the file ends behind any of its sectors",
		"the power goes; the file ends behind any byte, and holds everything before it",
		"the power goes; any subset of the unsynced names and removals is lost, with all or nothing of what else is unsynced",
		"the process is killed; the page cache lives on, and the next process finds it",
	}[k]
}

// most is how many unsynced sectors a file may have, so that all their subsets
// can be made.
const most = 16

// States yields the states of one kind that a crash may leave of d, each a disk
// of its own. They are all there are, if no file has more than 16 unsynced
// sectors; for one that has more States panics. garbage is a seed.
func (d *Disk) States(kind Kind, garbage uint64) iter.Seq[*Disk] {
	return d.states(kind, garbage, most)
}

// FewStates is States that takes of more than eight unsynced sectors not every
// subset but the prefixes, each sector alone and each one missing.
func (d *Disk) FewStates(kind Kind, garbage uint64) iter.Seq[*Disk] {
	return d.states(kind, garbage, 8)
}

func (d *Disk) states(kind Kind, garbage uint64, limit int) iter.Seq[*Disk] {
	return func(yield func(*Disk) bool) {
		if kind == Killed {
			yield(d.Clone())
			return
		}
		for _, names := range d.directories(kind == Entries) {
			if !product(names, kind, garbage, limit, Image{}, slices.Sorted(maps.Keys(names)), yield) {
				return
			}
		}
	}
}

// product yields every combination of the files' states.
func product(of map[string]*file, kind Kind, garbage uint64, limit int, made Image, names []string, yield func(*Disk) bool) bool {
	if len(names) == 0 {
		return yield(Of(maps.Clone(made)))
	}
	for b := range of[names[0]].states(kind, garbage, limit) {
		made[names[0]] = b
		if !product(of, kind, garbage, limit, made, names[1:], yield) {
			return false
		}
	}
	return true
}

// directories are the directories that a crash may leave: what was synced and
// everything since, or each with some of that lost.
func (d *Disk) directories(lossy bool) []map[string]*file {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.entries) > most {
		panic(fmt.Sprintf("disk: %d unsynced changes of a directory are too many", len(d.entries)))
	}
	var all []map[string]*file
	for kept := range 1 << len(d.entries) {
		if whole := kept == 1<<len(d.entries)-1; whole == lossy {
			continue
		}
		names := maps.Clone(d.synced)
		if names == nil {
			names = map[string]*file{}
		}
		for i, e := range d.entries {
			if kept&(1<<i) == 0 {
				continue
			}
			if e.file == nil {
				delete(names, e.name)
			} else {
				names[e.name] = e.file
			}
		}
		all = append(all, names)
	}
	return all
}

// states yields the contents that a crash may leave of a file. A change of its
// size other than by a write was done, with all before it, or was not.
func (f *file) states(kind Kind, garbage uint64, limit int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		base, pending := *f, f.pending
		for {
			cut := slices.IndexFunc(pending, func(c change) bool { return c.data == nil })
			writes := pending
			if cut >= 0 {
				writes = pending[:cut]
			}
			base.pending = writes
			for b := range written(base.disk, (&file{disk: base.disk, pending: writes, refused: base.refused}).written(), kind, garbage, limit) {
				if !yield(b) {
					return
				}
			}
			if cut < 0 {
				return
			}
			base.pending = pending[:cut+1]
			base.disk, pending = base.written(), pending[cut+1:]
		}
	}
}

// written yields what may be on the disk while from is being made to whole by
// writes.
func written(from, whole []byte, kind Kind, garbage uint64, limit int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		switch {
		case bytes.Equal(from, whole):
			yield(whole)
			return
		case kind == Entries:
			_ = yield(whole) && yield(from)
			return
		case kind == Bytes:
			for size := len(from); size <= len(whole); size++ {
				if !yield(whole[:size:size]) {
					return
				}
			}
			return
		}
		var dirty []int
		for at := 0; at < len(whole); at += sector {
			end := min(at+sector, len(whole))
			if at >= len(from) || !bytes.Equal(whole[at:end], from[at:min(end, len(from))]) {
				dirty = append(dirty, at)
			}
		}
		if len(dirty) > most && limit >= most {
			panic(fmt.Sprintf("disk: all subsets of %d unsynced sectors are too many", len(dirty)))
		}
		sizes := []int{len(whole)}
		if kind == Short {
			sizes = nil
			for _, at := range dirty {
				if at >= len(from) {
					sizes = append(sizes, at)
				}
			}
			if len(sizes) == 0 {
				yield(from) // nothing was to become longer
				return
			}
		}
		holes := make([]byte, len(whole))
		if kind == Garbage {
			r := rand.New(rand.NewPCG(garbage, 1))
			for i := range holes {
				holes[i] = byte(r.Uint32())
			}
		}
		copy(holes, from)
		for _, size := range sizes {
			n := 0
			for n < len(dirty) && dirty[n] < size {
				n++
			}
			for kept := range subsets(n, limit) {
				b := bytes.Clone(holes[:size])
				for i := range n {
					if kept&(1<<i) != 0 {
						copy(b[dirty[i]:min(dirty[i]+sector, size)], whole[dirty[i]:])
					}
				}
				if !yield(b) {
					return
				}
			}
		}
	}
}

// subsets yields the subsets of n things as bits: all of them up to the limit,
// beyond it the prefixes, each alone and each missing.
func subsets(n, limit int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		if n <= limit {
			for s := range uint64(1) << n {
				if !yield(s) {
					return
				}
			}
			return
		}
		all := uint64(1)<<n - 1
		for i := range n {
			if !yield(all>>i) || !yield(1<<i) || !yield(all&^(1<<i)) {
				return
			}
		}
		yield(0)
	}
}
