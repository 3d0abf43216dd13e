package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Locks are of the open file description: the kernel frees them with the last
// descriptor, so with the process, and closing another one of the same file
// leaves them.
const ofdSetLock = 37 // F_OFD_SETLK, see fcntl(2)

// Bytes of the lock file.
const (
	lifeByte   = 0 // an owner holds it alone, appenders share it, from open to close
	appendByte = 1 // an appender holds it for one update
)

// lockFile is a file whose bytes are locked. It is a bare descriptor, so that
// the garbage collector can't close it and nothing inherits it.
type lockFile struct {
	path string
	fd   int
	is   FileID // the open file
	info string // what the file said when it was last read
}

// openLockFile opens the lock file at path, and makes it where it is missing and
// create says so.
func openLockFile(path string, create bool) (*lockFile, error) {
	flags := syscall.O_RDWR | syscall.O_NOFOLLOW | syscall.O_CLOEXEC | syscall.O_NONBLOCK
	if create {
		flags |= syscall.O_CREAT
	}
	fd, err := syscall.Open(path, flags, 0o600)
	if err != nil {
		return nil, unsafeOpen(path, &os.PathError{Op: "open", Path: path, Err: err})
	}
	l := &lockFile{path: path, fd: fd}
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		l.close()
		return nil, os.NewSyscallError("fstat", err)
	}
	l.is = FileID{uint64(st.Dev), st.Ino}
	if err := checkPlain(&st, path); err != nil {
		l.close()
		return nil, err
	}
	if err := l.check(); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// check refuses a lock file that is not the one at its path any more: locks on
// it would keep nobody out.
//
// It is one system call: what the path names is the open file where device and
// inode are, since no other file gets them while this one is open.
func (l *lockFile) check() error {
	var named syscall.Stat_t
	err := syscall.Lstat(l.path, &named)
	if err != nil || l.is != (FileID{uint64(named.Dev), named.Ino}) {
		return fmt.Errorf("%w: %s was removed or replaced; stop what did that, and every process that has the log open", ErrUnsafe, l.path)
	}
	return checkPlain(&named, l.path)
}

// try sets or clears the lock on one byte without waiting; typ is F_RDLCK,
// F_WRLCK or F_UNLCK. It reports false where another description holds it.
func (l *lockFile) try(n int64, typ int16) (bool, error) {
	err := syscall.FcntlFlock(uintptr(l.fd), ofdSetLock, &syscall.Flock_t{Type: typ, Start: n, Len: 1})
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("journal: lock %s: %w", l.path, err)
	}
	return true, nil
}

// wait locks byte n exclusively; ctx bounds the wait. It asks again and again: a
// blocking call could not be called off.
func (l *lockFile) wait(ctx context.Context, n int64) error {
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		ok, err := l.try(n, syscall.F_WRLCK)
		if ok || err != nil {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

func (l *lockFile) release(n int64) { l.try(n, syscall.F_UNLCK) }

// close lets every byte go and closes the descriptor. The locks are cleared, not
// left to the close: a process that another goroutine is starting right now has a
// copy of the descriptor until it runs its program, and would keep them.
func (l *lockFile) close() {
	all := syscall.Flock_t{Type: syscall.F_UNLCK, Whence: io.SeekStart} // length 0: to the end
	syscall.FcntlFlock(uintptr(l.fd), ofdSetLock, &all)
	syscall.Close(l.fd)
}

// holder is what a lock file says about who opened the log last, and how far its
// segments go. People read it; readers of the log only see that it changed.
type holder struct {
	Mode    string    `json:"mode"`
	What    string    `json:"what"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Segment uint64    `json:"segment"`
}

func newHolder(o Options, now time.Time) holder {
	h := holder{Mode: o.Mode.String(), What: o.Identity, PID: os.Getpid(), Since: now.UTC()}
	if h.What == "" {
		h.What = filepath.Base(os.Args[0])
	}
	h.Host, _ = os.Hostname()
	return h
}

func (h holder) String() string {
	if h.PID == 0 {
		return "an unknown process"
	}
	return fmt.Sprintf("%s (%s, process %d on %s)", h.What, h.Mode, h.PID, h.Host)
}

// write puts h into the file.
func (l *lockFile) write(h holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	n, err := syscall.Pwrite(l.fd, b, 0)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err == nil {
		err = syscall.Ftruncate(l.fd, int64(n))
	}
	if err != nil {
		return full(fmt.Errorf("journal: write %s: %w", l.path, err))
	}
	return nil
}

// read returns the file's text.
func (l *lockFile) read() string {
	var b [infoSize]byte
	n, _ := syscall.Pread(l.fd, b[:], 0)
	return string(b[:max(n, 0)])
}

const infoSize = 1024 // bytes of the file that are read

// changed reports whether the file says something else than when it was last
// asked. It is one system call.
func (l *lockFile) changed() bool {
	var b [infoSize]byte
	n, _ := syscall.Pread(l.fd, b[:], 0)
	info := b[:max(n, 0)]
	if string(info) == l.info {
		return false
	}
	l.info = string(info)
	return true
}

// held is the error of a lock that another holds.
func (l *lockFile) held() error {
	var h holder
	json.Unmarshal([]byte(l.read()), &h) // for people: what can't be read is unknown
	return &HeldError{What: "journal " + filepath.Dir(l.path), Owner: h.String(), Since: h.Since}
}
