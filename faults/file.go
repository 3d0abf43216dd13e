package faults

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// LossyDir is the directory at path as a power cut leaves it. A kill takes away
// only what a process holds in memory, never what it wrote: the kernel keeps
// that. So here what is not synced stays in memory. A file's bytes reach the disk
// in its Sync, its name and its removal in the Sync of the directory, and what a
// new file synced before waits for its name. This process sees all that it wrote;
// other processes see what was synced.
//
// Files and directory are safe for concurrent use. A process has one value for a
// directory; two don't share what is not synced. The files are meant to be small:
// reading one with unsynced bytes costs a copy of it.
func LossyDir(path string) journal.Dir {
	return &lossyDir{disk: journal.RealDir(path), files: map[string]*lossyFile{}}
}

type lossyDir struct {
	disk journal.Dir

	mu    sync.Mutex
	files map[string]*lossyFile // those that are open or not synced; nil is a removed one that the disk still has
}

// lossyFile is one file, however often it is opened.
type lossyFile struct {
	dir     *lossyDir
	name    string
	open    int
	disk    journal.File // nil until the directory was synced with the name in it
	synced  []byte       // without disk: contents that wait for the name
	pending []change     // since the last sync
}

// change is a write, or with no data the file's new size.
type change struct {
	at   int64
	data []byte
}

func (d *lossyDir) List() (map[string]int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sizes, err := d.disk.List()
	if err != nil {
		return nil, err
	}
	for name, f := range d.files {
		if f == nil {
			delete(sizes, name)
			continue
		}
		size := sizes[name]
		if f.disk == nil {
			size = int64(len(f.synced))
		}
		for _, c := range f.pending {
			size = c.size(size)
		}
		sizes[name] = size
	}
	return sizes, nil
}

func (d *lossyDir) Open(name string, create bool) (journal.File, error) {
	if filepath.Base(name) != name || name == "." || name == ".." {
		return nil, fmt.Errorf("faults: %q is no name of a file: %w", name, fs.ErrInvalid)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f, known := d.files[name]
	there := f != nil
	if !known && create {
		sizes, err := d.disk.List()
		if err != nil {
			return nil, err
		}
		_, there = sizes[name]
	}
	switch {
	case create && there:
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	case create:
		f = &lossyFile{dir: d, name: name}
	case known && !there:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case !known:
		disk, err := d.disk.Open(name, false)
		if err != nil {
			return nil, err
		}
		f = &lossyFile{dir: d, name: name, disk: disk}
	}
	d.files[name] = f
	f.open++
	return &lossyHandle{lossyFile: f}, nil
}

func (d *lossyDir) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, known := d.files[name]
	sizes, err := d.disk.List()
	if err != nil {
		return err
	}
	switch _, onDisk := sizes[name]; {
	case known && f == nil, f == nil && !onDisk:
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	case onDisk:
		d.files[name] = nil
	default: // made and removed, and never synced
		delete(d.files, name)
	}
	return nil
}

func (d *lossyDir) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	onDisk, err := d.disk.List()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		f := d.files[name]
		if f != nil && f.disk != nil {
			continue
		}
		if _, old := onDisk[name]; old {
			if err := d.disk.Remove(name); err != nil {
				return err
			}
		}
		if f == nil {
			delete(d.files, name)
			continue
		}
		disk, err := d.disk.Open(name, true)
		if err != nil {
			return err
		}
		f.disk = disk
		if _, err := disk.WriteAt(f.synced, 0); err != nil {
			return err
		}
		if err := disk.Sync(); err != nil {
			return err
		}
		f.synced = nil
	}
	return d.disk.Sync()
}

// content is the file as this process sees it. The directory's lock is held.
func (f *lossyFile) content() ([]byte, error) {
	content := slices.Clone(f.synced)
	if f.disk != nil {
		var err error
		if content, err = io.ReadAll(io.NewSectionReader(f.disk, 0, 1<<62)); err != nil {
			return nil, err
		}
	}
	for _, c := range f.pending {
		size := c.size(int64(len(content)))
		content = append(content, make([]byte, max(0, size-int64(len(content))))...)[:size]
		copy(content[c.at:], c.data)
	}
	return content, nil
}

// size is the size that c makes of a file of the given size.
func (c change) size(before int64) int64 {
	if c.data == nil {
		return c.at
	}
	return max(before, c.at+int64(len(c.data)))
}

// lossyHandle is one opening of a file.
type lossyHandle struct {
	*lossyFile
	closed bool
}

// use takes the lock for one operation of an open handle.
func (h *lossyHandle) use(off int64) (unlock func(), err error) {
	h.dir.mu.Lock()
	if h.closed {
		err = fs.ErrClosed
	} else if off < 0 {
		err = fs.ErrInvalid
	}
	return h.dir.mu.Unlock, err
}

func (h *lossyHandle) ReadAt(p []byte, off int64) (int, error) {
	unlock, err := h.use(off)
	defer unlock()
	if err != nil {
		return 0, err
	}
	if h.disk != nil && len(h.pending) == 0 {
		return h.disk.ReadAt(p, off)
	}
	content, err := h.content()
	if err != nil {
		return 0, err
	}
	n := copy(p, content[min(off, int64(len(content))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *lossyHandle) WriteAt(p []byte, off int64) (int, error) {
	unlock, err := h.use(off)
	defer unlock()
	if err != nil {
		return 0, err
	}
	if len(p) > 0 {
		h.pending = append(h.pending, change{off, slices.Clone(p)})
	}
	return len(p), nil
}

func (h *lossyHandle) Truncate(size int64) error {
	unlock, err := h.use(size)
	defer unlock()
	if err == nil {
		h.pending = append(h.pending, change{at: size})
	}
	return err
}

func (h *lossyHandle) Sync() error {
	unlock, err := h.use(0)
	defer unlock()
	if err != nil {
		return err
	}
	if h.disk == nil {
		content, err := h.content()
		h.synced, h.pending = content, nil
		return err
	}
	for _, c := range h.pending {
		if c.data == nil {
			err = h.disk.Truncate(c.at)
		} else {
			_, err = h.disk.WriteAt(c.data, c.at)
		}
		if err != nil {
			return err
		}
	}
	h.pending = nil
	return h.disk.Sync()
}

// Close loses nothing: what is not synced belongs to the process, not to the
// handle.
func (h *lossyHandle) Close() error {
	unlock, err := h.use(0)
	defer unlock()
	if err != nil {
		return err
	}
	h.closed = true
	h.open--
	current := h.dir.files[h.name] == h.lossyFile
	if h.open > 0 || h.disk == nil || current && len(h.pending) > 0 {
		return nil
	}
	if current {
		delete(h.dir.files, h.name)
	}
	return h.disk.Close()
}
