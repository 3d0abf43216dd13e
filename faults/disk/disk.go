// Package disk is a directory in memory behind the journal's file seam. It knows
// what of it a disk has taken and what only the page cache shows, and so every
// state that a crash may leave.
//
// A workload is run on it once. Before each of its changes the directory is
// kept, and from what is kept all legal states are made, one by one: a log is
// opened on each, goes on, and is cut off again. Whether it did right says a
// reader of the documented format that is written apart from the journal.
//
// What is assumed of a disk: a sector of 512 bytes is written whole or not at
// all, except in the states that end at any byte; what a sync returned for is
// there; a sector that no write named keeps its bytes. What is assumed of the
// system: after a sync that failed the page cache may go on showing what the
// disk doesn't hold, later syncs say yes, and writing the same place again
// doesn't help until the file was cut below it. That goes for bytes: a name, a
// removal or a cut that a failed sync was to write stays to be written.
package disk

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

const sector = 512

// Disk is the directory. It is a journal.Dir for one process after the other and
// safe for concurrent use. The zero value is empty.
type Disk struct {
	// Before is called before each call of a method of Dir or File, without any
	// lock; op counts them from 1. It may set Fault, also for this call. nil
	// watches nothing.
	Before func(op int, what string)
	// Fault fails one call; nil fails none.
	Fault *Fault

	mu      sync.Mutex
	ops     int
	names   map[string]*file // as a process sees the directory
	synced  map[string]*file // as the disk holds it
	entries []entry          // changes since the last sync of the directory

	sum    [16]byte // see Sum
	summed bool     // and nothing changed since
}

// entry is a change of the directory: a name that leads to a file, or to none
// any more.
type entry struct {
	name string
	file *file // nil removes
}

// file is one file. Its slices are never changed in place.
type file struct {
	cache   []byte         // what a read shows
	disk    []byte         // what the last sync left on the disk
	pending []change       // since then
	refused map[int64]bool // sectors that a failed sync left behind: the cache shows them, no sync writes them

	shown, held content // digests of cache and disk
}

// change is a write, or with no data the file's new size.
type change struct {
	at   int64
	data []byte
}

func (c change) on(b []byte) []byte {
	if c.data == nil {
		return resize(b, c.at)
	}
	b = resize(b, max(int64(len(b)), c.at+int64(len(c.data))))
	copy(b[c.at:], c.data)
	return b
}

// resize is a copy of b with the given size.
func resize(b []byte, size int64) []byte {
	to := make([]byte, size)
	copy(to, b)
	return to
}

// begin counts a call and says what it is to fail with.
func (d *Disk) begin(what string) (*Fault, func()) {
	d.mu.Lock()
	d.ops++
	op := d.ops
	d.mu.Unlock()
	if d.Before != nil {
		d.Before(op, what)
	}
	d.mu.Lock()
	d.summed = d.summed && (what == "list" || what == "open" || what == "read" || what == "close")
	if d.Fault != nil && d.Fault.Op == op {
		return d.Fault, d.mu.Unlock
	}
	return nil, d.mu.Unlock
}

// Ops is how many calls there were.
func (d *Disk) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops
}

func (d *Disk) List() (map[string]int64, error) {
	fault, unlock := d.begin("list")
	defer unlock()
	if fault != nil {
		return nil, fault.Err
	}
	sizes := map[string]int64{}
	for name, f := range d.names {
		sizes[name] = int64(len(f.cache))
	}
	return sizes, nil
}

func (d *Disk) Open(name string, create bool) (journal.File, error) {
	what := "open"
	if create {
		what = "create"
	}
	fault, unlock := d.begin(what)
	defer unlock()
	f, there := d.names[name]
	switch {
	case fault != nil:
		return nil, fault.Err
	case create && there:
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	case !create && !there:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case create:
		f = &file{}
		d.set(name, f)
	}
	return &handle{d: d, f: f}, nil
}

func (d *Disk) set(name string, f *file) {
	if d.names == nil {
		d.names = map[string]*file{}
	}
	d.entries = append(d.entries, entry{name, f})
	if f == nil {
		delete(d.names, name)
	} else {
		d.names[name] = f
	}
}

func (d *Disk) Remove(name string) error {
	fault, unlock := d.begin("remove")
	defer unlock()
	if fault != nil {
		return fault.Err
	}
	if _, there := d.names[name]; !there {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	d.set(name, nil)
	return nil
}

func (d *Disk) Sync() error {
	fault, unlock := d.begin("sync directory")
	defer unlock()
	if fault != nil {
		return fault.Err
	}
	d.synced, d.entries = maps.Clone(d.names), nil
	return nil
}

// handle is one opening of a file.
type handle struct {
	d      *Disk
	f      *file
	closed bool
}

func (h *handle) begin(what string, off int64) (*Fault, func(), error) {
	fault, unlock := h.d.begin(what)
	var err error
	if h.closed {
		err = fs.ErrClosed
	} else if off < 0 {
		err = fs.ErrInvalid
	}
	return fault, unlock, err
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	fault, unlock, err := h.begin("read", off)
	defer unlock()
	if fault != nil {
		err = fault.Err
	}
	if err != nil {
		return 0, err
	}
	n := copy(p, h.f.cache[min(off, int64(len(h.f.cache))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	fault, unlock, err := h.begin("write", off)
	defer unlock()
	if err != nil {
		return 0, err
	}
	if fault != nil {
		p, err = p[:min(fault.Short, len(p))], fault.Err
	}
	if len(p) > 0 {
		h.f.change(change{off, bytes.Clone(p)})
	}
	return len(p), err
}

func (h *handle) Truncate(size int64) error {
	fault, unlock, err := h.begin("truncate", size)
	defer unlock()
	if fault != nil {
		err = fault.Err
	}
	if err == nil && size != int64(len(h.f.cache)) {
		h.f.change(change{at: size})
	}
	return err
}

// Allocate has room for everything, unless a fault says otherwise.
func (h *handle) Allocate(int64) error {
	fault, unlock, err := h.begin("allocate", 0)
	defer unlock()
	if fault != nil {
		err = fault.Err
	}
	return err
}

func (f *file) change(c change) {
	f.cache = c.on(f.cache)
	f.pending = append(slices.Clip(f.pending), c)
}

func (h *handle) Sync() error {
	fault, unlock, err := h.begin("sync", 0)
	defer unlock()
	if err != nil {
		return err
	}
	if fault != nil {
		h.f.fail(fault.After)
		return fault.Err
	}
	h.f.disk, h.f.pending = h.f.written(), nil
	return nil
}

// written is what the disk holds once what is pending has been written.
func (f *file) written() []byte {
	to := f.disk
	refused := maps.Clone(f.refused)
	for _, c := range f.pending {
		before := to
		to = c.on(to)
		if c.data == nil {
			maps.DeleteFunc(refused, func(at int64, _ bool) bool { return at >= c.at })
			continue
		}
		for at := range refused {
			if at < c.at+int64(len(c.data)) && at+sector > c.at && at < int64(len(to)) {
				end := min(at+sector, int64(len(to)))
				clear(to[at:end])
				copy(to[at:end], before[min(at, int64(len(before))):])
			}
		}
	}
	f.refused = refused
	return to
}

// DropCache shows what the disk holds, but for what is not synced.
func (h *handle) DropCache() error {
	fault, unlock, err := h.begin("drop", 0)
	defer unlock()
	if fault != nil {
		err = fault.Err
	}
	if err == nil {
		shown := (&file{disk: h.f.disk, pending: h.f.pending, refused: h.f.refused}).written()
		h.f.cache = resize(shown, max(int64(len(shown)), int64(len(h.f.cache)))) // the size stays known
		if n := len(h.f.pending); n > 0 && h.f.pending[n-1].data == nil {
			h.f.cache = shown
		}
	}
	return err
}

func (h *handle) Close() error {
	fault, unlock, err := h.begin("close", 0)
	defer unlock()
	if fault != nil {
		err = fault.Err
	}
	h.closed = true
	return err
}

// Clone is a directory that is and goes on like d: what a process finds that is
// started after another one was killed. Nobody watches it and nothing fails.
func (d *Disk) Clone() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := map[*file]*file{}
	copied := func(f *file) *file {
		if f != nil && of[f] == nil {
			c := *f
			of[f] = &c
		}
		return of[f]
	}
	to := &Disk{names: map[string]*file{}, synced: map[string]*file{}, sum: d.sum, summed: d.summed}
	for name, f := range d.names {
		to.names[name] = copied(f)
	}
	for name, f := range d.synced {
		to.synced[name] = copied(f)
	}
	for _, e := range d.entries {
		to.entries = append(to.entries, entry{e.name, copied(e.file)})
	}
	return to
}

// Of is a directory whose disk holds these files.
func Of(image Image) *Disk {
	d := &Disk{names: map[string]*file{}, synced: map[string]*file{}}
	for name, b := range image {
		f := &file{cache: b, disk: b}
		d.names[name], d.synced[name] = f, f
	}
	return d
}

// Image is a directory's files by name.
type Image map[string][]byte

// Cached is what a process sees in d. The bytes are not to be changed.
func (d *Disk) Cached() Image {
	d.mu.Lock()
	defer d.mu.Unlock()
	image := Image{}
	for name, f := range d.names {
		image[name] = f.cache
	}
	return image
}

// Synced is what is left when the power goes and nothing that was not synced has
// reached the disk.
func (d *Disk) Synced() Image {
	d.mu.Lock()
	defer d.mu.Unlock()
	image := Image{}
	for name, f := range d.synced {
		image[name] = f.disk
	}
	return image
}

// Fault fails one call of a directory or of its files.
type Fault struct {
	Op    int   // which, as Before counts
	Err   error // what it returns
	Short int   // bytes that a failing write still writes
	After After // what a failing sync leaves behind
}

// After is what a failed sync leaves behind.
type After int

const (
	Kept  After = iota // what was to be written stays to be written
	Zeros              // the disk has the file's size and zeros, the cache shows what was written
	Old                // the disk has what it had, the cache shows what was written
	Half               // like Zeros, but the first half was written
)

// fail is a sync that fails.
func (f *file) fail(after After) {
	cut := slices.ContainsFunc(f.pending, func(c change) bool { return c.data == nil })
	if after == Kept || len(f.pending) == 0 || cut {
		return
	}
	whole := (&file{disk: f.disk, pending: f.pending, refused: f.refused}).written()
	var lost []int64
	for at := int64(0); at < int64(len(whole)); at += sector {
		end := min(at+sector, int64(len(whole)))
		old := f.disk[min(at, int64(len(f.disk))):min(end, int64(len(f.disk)))]
		if !bytes.Equal(whole[at:end], old) {
			lost = append(lost, at)
		}
	}
	if after == Half {
		lost = lost[len(lost)/2:]
	}
	if after == Old {
		whole = resize(f.disk, int64(len(f.disk)))
	}
	refused := maps.Clone(f.refused)
	if refused == nil {
		refused = map[int64]bool{}
	}
	for _, at := range lost {
		refused[at] = true
		if after != Old {
			end := min(at+sector, int64(len(whole)))
			clear(whole[at:end])
			copy(whole[at:end], f.disk[min(at, int64(len(f.disk))):])
		}
	}
	f.disk, f.pending, f.refused = whole, nil, refused
}

// Dirty reports whether a power loss would leave another directory, or other
// bytes, than a kill.
func (d *Disk) Dirty() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.entries) > 0 {
		return true
	}
	for _, f := range d.names {
		if len(f.pending) > 0 || len(f.refused) > 0 {
			return true
		}
	}
	return false
}
