package faults

import (
	"errors"
	"sync"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// FailingDir is dir on a disk that fails when fails says so. fails is asked
// before every allocation and every write that finds no allocated blocks, with
// "write", and before every sync of a file or of the directory, with "sync"; its
// error is what the operation meets, and then nothing of it is done. Where dir
// can't allocate, an allocation that fails doesn't is noted only.
//
// It is safe for concurrent use where dir is.
func FailingDir(dir journal.Dir, fails func(op string) error) journal.Dir {
	return &failingDir{dir, fails}
}

type failingDir struct {
	journal.Dir
	fails func(op string) error
}

func (d *failingDir) Open(name string, create bool) (journal.File, error) {
	f, err := d.Dir.Open(name, create)
	if err != nil {
		return nil, err
	}
	return &failingFile{File: f, fails: d.fails}, nil
}

func (d *failingDir) Sync() error {
	if err := d.fails("sync"); err != nil {
		return err
	}
	return d.Dir.Sync()
}

// failingFile is one opening of a file. What an earlier one allocated is not known
// to it.
type failingFile struct {
	journal.File
	fails func(op string) error

	mu        sync.Mutex
	allocated int64 // writes up to here find their blocks
}

func (f *failingFile) WriteAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	there := off+int64(len(p)) <= f.allocated
	f.mu.Unlock()
	if !there {
		if err := f.fails("write"); err != nil {
			return 0, err
		}
	}
	return f.File.WriteAt(p, off)
}

func (f *failingFile) Sync() error {
	if err := f.fails("sync"); err != nil {
		return err
	}
	return f.File.Sync()
}

// Allocate allocates the first size bytes, as journal.File may.
func (f *failingFile) Allocate(size int64) error {
	if err := f.fails("write"); err != nil {
		return err
	}
	if a, ok := f.File.(interface{ Allocate(int64) error }); ok {
		if err := a.Allocate(size); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.allocated = max(f.allocated, size)
	return nil
}

// DropCache drops the file's clean pages, where the file can.
func (f *failingFile) DropCache() error {
	if d, ok := f.File.(interface{ DropCache() error }); ok {
		return d.DropCache()
	}
	return nil
}
