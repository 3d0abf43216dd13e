package faults

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// LossyDir is the directory at path as a power cut leaves it. A kill takes away
// only what a process holds in memory, never what it wrote: the kernel keeps
// that. So here what is not synced stays in memory. A file's bytes reach the disk
// in its Sync, its name and its removal in the Sync of the directory, and what a
// new file synced before waits for its name. This process sees all that it wrote;
// other processes see what was synced.
//
// Files and directory are safe for concurrent use. The files are meant to be
// small: reading one with unsynced bytes costs a copy of it.
func LossyDir(path string) journal.Dir {
	return &lossyDir{path: path, changed: map[string]*lossyFile{}}
}

type lossyDir struct {
	path string

	mu      sync.Mutex
	changed map[string]*lossyFile // files opened here; nil is one removed, which the disk still has
}

// lossyFile is one file, however often it is opened.
type lossyFile struct {
	dir     *lossyDir
	name    string
	open    int
	disk    *os.File // nil until the directory was synced with its name in it
	synced  []byte   // without disk: contents that wait for the name
	pending []change // since the last sync
}

// change is a write, or with no data the file's new size.
type change struct {
	at   int64
	data []byte
}

func (d *lossyDir) List() (map[string]int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			sizes[e.Name()] = info.Size()
		}
	}
	for name, f := range d.changed {
		if f == nil {
			delete(sizes, name)
			continue
		}
		content, err := f.content()
		if err != nil {
			return nil, err
		}
		sizes[name] = int64(len(content))
	}
	return sizes, nil
}

func (d *lossyDir) Open(name string, create bool) (journal.File, error) {
	path, err := d.join(name)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f, known := d.changed[name]
	if f != nil {
		if create {
			return nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
		}
		f.open++
		return &lossyHandle{lossyFile: f}, nil
	}
	if create {
		if _, err := os.Lstat(path); !known && !errors.Is(err, fs.ErrNotExist) {
			return nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
		}
		f = &lossyFile{dir: d, name: name, open: 1}
	} else {
		if known {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		disk, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			return nil, err
		}
		f = &lossyFile{dir: d, name: name, open: 1, disk: disk}
	}
	d.changed[name] = f
	return &lossyHandle{lossyFile: f}, nil
}

func (d *lossyDir) Remove(name string) error {
	path, err := d.join(name)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f, known := d.changed[name]
	_, err = os.Lstat(path)
	switch {
	case known && f == nil || f == nil && err != nil:
		return &fs.PathError{Op: "remove", Path: path, Err: fs.ErrNotExist}
	case err != nil: // made and removed, and never synced
		delete(d.changed, name)
	default:
		d.changed[name] = nil
	}
	return nil
}

func (d *lossyDir) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(d.changed)) {
		f, path := d.changed[name], filepath.Join(d.path, name)
		if f != nil && f.disk != nil {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if f == nil {
			delete(d.changed, name)
			continue
		}
		disk, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return err
		}
		if _, err := disk.WriteAt(f.synced, 0); err != nil {
			return errors.Join(err, disk.Close())
		}
		if err := disk.Sync(); err != nil {
			return errors.Join(err, disk.Close())
		}
		f.disk, f.synced = disk, nil
	}
	handle, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(handle.Sync(), handle.Close())
}

// join is the path of a file in the directory itself.
func (d *lossyDir) join(name string) (string, error) {
	if name == "" || name == "." || name == ".." || filepath.Base(name) != name {
		return "", fmt.Errorf("faults: %q is no name of a file: %w", name, fs.ErrInvalid)
	}
	return filepath.Join(d.path, name), nil
}

// content is the file as this process sees it. The directory's lock is held.
func (f *lossyFile) content() ([]byte, error) {
	content := slices.Clone(f.synced)
	if f.disk != nil {
		info, err := f.disk.Stat()
		if err != nil {
			return nil, err
		}
		content = make([]byte, info.Size())
		if n, err := f.disk.ReadAt(content, 0); err == io.EOF {
			content = content[:n] // another process cut it meanwhile
		} else if err != nil {
			return nil, err
		}
	}
	for _, c := range f.pending {
		content = c.apply(content)
	}
	return content, nil
}

func (c change) apply(content []byte) []byte {
	end := c.at + int64(len(c.data))
	if grow := end - int64(len(content)); grow > 0 {
		content = append(content, make([]byte, grow)...)
	}
	if c.data == nil {
		return content[:c.at]
	}
	copy(content[c.at:], c.data)
	return content
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
	if h.open > 0 || h.disk == nil || len(h.pending) > 0 {
		return nil
	}
	if h.dir.changed[h.name] == h.lossyFile {
		delete(h.dir.changed, h.name)
	}
	return h.disk.Close()
}
