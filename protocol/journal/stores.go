package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// What follows is for stores in other packages: it lets every store refuse, lock
// and begin alike.

// Writable returns nil where e, as a caller gave it, can be appended.
func Writable(e Entry) error { return writable(e) }

// FirstEntry is the OPENED entry that a log begins with, or goes on with when it
// was opened as restored under a raised epoch.
func FirstEntry(namespace string, epoch uint64) Entry {
	return own(Opened, ID{}, opened{namespace, Format, epoch})
}

// EpochOf is the epoch that an OPENED entry names; ErrFormat where it can't be read.
func EpochOf(e Entry) (uint64, error) {
	var o opened
	if err := json.Unmarshal(e.Body, &o); err != nil {
		return 0, fmt.Errorf("journal: entry %d: %w: %w", e.Seq, ErrFormat, err)
	}
	return o.Epoch, nil
}

// SuspectEntry is the SUSPECT entry of an effect that may have had an attempt in
// what was lost at segment and offset.
func SuspectEntry(effect ID, segment uint64, offset int64, why string) Entry {
	return own(Suspect, effect, suspicion{segment, offset, why, nil})
}

// CheckDir refuses, as ErrUnsafe, a directory that is not this user's alone, or
// that is on a file system where locks and syncs can't be relied on. create makes
// one that is missing, with mode 0700.
func CheckDir(path string, create bool) error { return checkDir(filepath.Clean(path), create) }

// CheckFile refuses, as ErrUnsafe, a path that isn't a plain file of this user
// with one link and mode 0600. It opens nothing, so that no POSIX lock of this
// process on the file is lost. It returns what the file is, to be compared.
func CheckFile(path string) (FileID, error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return FileID{}, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	switch {
	case st.Mode&syscall.S_IFMT == syscall.S_IFLNK:
		return FileID{}, unsafeOpen(path, syscall.ELOOP)
	case st.Mode&syscall.S_IFMT != syscall.S_IFREG:
		return FileID{}, unsafeOpen(path, syscall.EISDIR)
	case st.Nlink != 1:
		return FileID{}, fmt.Errorf("%w: %s has %d links; it must have one", ErrUnsafe, path, st.Nlink)
	}
	return FileID{uint64(st.Dev), st.Ino}, checkOwner(&st, path, 0o600)
}

// FileID tells files apart, whatever they are called.
type FileID struct{ Device, Inode uint64 }

// Full adds ErrFull to the error of a disk, a quota or a size limit.
func Full(err error) error { return full(err) }

// LockFile is a file whose bytes are locked, each a lock of its own that belongs
// to the open file description: the kernel frees it with the process, whatever
// else the process opens and closes. It is held by a bare descriptor, which no
// collector closes and no child inherits.
type LockFile struct{ l *lockFile }

// OpenLockFile opens the lock file at path, and makes it with mode 0600 where it
// is missing. What is no plain file of this user alone is ErrUnsafe.
func OpenLockFile(path string) (*LockFile, error) {
	l, err := openLockFile(path, true)
	if err != nil {
		return nil, err
	}
	return &LockFile{l}, nil
}

// Check returns ErrUnsafe where the file is not the one at its path any more:
// what is locked in it keeps nobody out. Lock files are never removed.
func (f *LockFile) Check() error { return f.l.check() }

// Lock locks byte n, shared or alone, and turns the one into the other. It does
// not wait: false is that another description holds it. Descriptions of one
// process exclude each other like those of two.
func (f *LockFile) Lock(n int64, shared bool) (bool, error) {
	if shared {
		return f.l.try(n, syscall.F_RDLCK)
	}
	return f.l.try(n, syscall.F_WRLCK)
}

// Wait is Lock that waits until ctx ends.
func (f *LockFile) Wait(ctx context.Context, n int64, shared bool) error {
	if !shared {
		return f.l.wait(ctx, n)
	}
	for {
		ok, err := f.Lock(n, true)
		if ok || err != nil {
			return err
		}
		t := time.NewTimer(time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// Unlock frees byte n.
func (f *LockFile) Unlock(n int64) { f.l.release(n) }

// Locked reports whether another description holds byte n.
func (f *LockFile) Locked(n int64) (bool, error) {
	const getLock = 36 // F_OFD_GETLK
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: n, Len: 1}
	if err := syscall.FcntlFlock(uintptr(f.l.fd), getLock, &lock); err != nil {
		return false, fmt.Errorf("journal: lock %s: %w", f.l.path, err)
	}
	return lock.Type != syscall.F_UNLCK, nil
}

// ReadAt fills b with the file's bytes at off; behind its end they are zeros.
func (f *LockFile) ReadAt(b []byte, off int64) error {
	n, err := syscall.Pread(f.l.fd, b, off)
	if err != nil {
		return fmt.Errorf("journal: read %s: %w", f.l.path, err)
	}
	clear(b[n:])
	return nil
}

// WriteAt writes b at off.
func (f *LockFile) WriteAt(b []byte, off int64) error {
	n, err := syscall.Pwrite(f.l.fd, b, off)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return full(fmt.Errorf("journal: write %s: %w", f.l.path, err))
	}
	return nil
}

// Sync makes what was written durable.
func (f *LockFile) Sync() error {
	if err := syscall.Fsync(f.l.fd); err != nil {
		return full(fmt.Errorf("journal: sync %s: %w", f.l.path, err))
	}
	return nil
}

// Close closes the file and frees all that is locked.
func (f *LockFile) Close() { f.l.close() }
