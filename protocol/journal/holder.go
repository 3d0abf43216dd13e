package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Holder is who holds a lock right now, for an operator who wants to end it. A
// name in a file proves nothing, and neither does a process id that was written
// down; Processes comes from the kernel.
type Holder struct {
	What  string    // that is held: "journal /path" or "effect 3f…"
	Who   string    // as it wrote of itself; "" where nothing is held
	Since time.Time // zero where unknown
	// Processes have the lock's open file description, by the kernel's word: one,
	// unless a program passed it on. Empty where nothing is held, or where the
	// processes of others can't be looked at.
	Processes []int

	path string // of the lock file
	at   int64  // byte that is locked
}

// Held reports whether anybody holds it.
func (h Holder) Held() bool { return h.Who != "" }

// OwnerOf says who owns the file store in dir.
func OwnerOf(dir string) (Holder, error) {
	dir = filepath.Clean(dir)
	h := Holder{What: "journal " + dir, path: filepath.Join(dir, lockName), at: lifeByte}
	return h.look(func(l *lockFile) (string, time.Time) {
		var said holder
		json.Unmarshal([]byte(l.read()), &said) // for people: what can't be read is unknown
		return said.String(), said.Since
	})
}

// HolderOf is for stores: who holds a byte of the lock file at path. who reads
// what the holder wrote of itself, and is asked where somebody holds it.
func HolderOf(what, path string, at int64, who func() (string, time.Time)) (Holder, error) {
	return Holder{What: what, path: path, at: at}.look(func(*lockFile) (string, time.Time) { return who() })
}

func (h Holder) look(who func(*lockFile) (string, time.Time)) (Holder, error) {
	l, err := openLockFile(h.path, false)
	if err != nil {
		return h, err
	}
	defer l.close()
	locked, err := (&LockFile{l}).Locked(h.at)
	if err != nil || !locked {
		return h, err
	}
	h.Who, h.Since = who(l)
	h.Processes, err = lockers(l.is, h.at)
	return h, err
}

// ErrNotProven is returned where no single process can be shown to hold a lock:
// nothing is killed on a guess.
var ErrNotProven = errors.New("journal: it can't be shown which process holds it")

// Kill sends SIGKILL to the process that holds the lock, and returns nil when the
// kernel has freed it; what it held is settled by whoever recovers next. The
// process is the one that has the lock at that moment, by the kernel's list of
// its open files, and a process id that was used again meanwhile is not hit.
// ErrNotProven means that nothing was killed. ctx bounds the wait.
func (h Holder) Kill(ctx context.Context) error {
	if len(h.Processes) != 1 || h.Processes[0] == os.Getpid() {
		return fmt.Errorf("%w: processes %v have it; end the right one by hand", ErrNotProven, h.Processes)
	}
	p, err := os.FindProcess(h.Processes[0]) // a handle: it is never another process
	if err != nil {
		return fmt.Errorf("%w: process %d: %w", ErrNotProven, h.Processes[0], err)
	}
	defer p.Release()
	l, err := openLockFile(h.path, false)
	if err != nil {
		return err
	}
	defer l.close()
	still, err := lockers(l.is, h.at)
	if err != nil || !slices.Equal(still, h.Processes) {
		return fmt.Errorf("%w: processes %v had it, and now %v have; look again: %w", ErrNotProven, h.Processes, still, errors.Join(err))
	}
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("journal: process %d can't be killed: %w", h.Processes[0], err)
	}
	for {
		locked, err := (&LockFile{l}).Locked(h.at)
		if err != nil || !locked {
			return err
		}
		t := time.NewTimer(time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("journal: process %d was killed and %s is still held: %w", h.Processes[0], h.What, ctx.Err())
		}
	}
}

// lockers are the processes with an open file description that holds byte at of a
// file, as /proc/PID/fdinfo shows it. Processes of other users show nothing.
func lockers(of FileID, at int64) (pids []int, err error) {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("journal: the kernel's list of processes: %w", err)
	}
	for _, proc := range procs {
		pid, err := strconv.Atoi(proc.Name())
		if err != nil {
			continue
		}
		files, err := os.ReadDir(filepath.Join("/proc", proc.Name(), "fdinfo"))
		if err != nil {
			continue // ended, or another user's
		}
		if slices.ContainsFunc(files, func(f os.DirEntry) bool {
			info, err := os.ReadFile(filepath.Join("/proc", proc.Name(), "fdinfo", f.Name()))
			return err == nil && locks(string(info), of, at)
		}) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// locks reads the lines of one open file description:
//
//	lock:	1: OFDLCK ADVISORY  WRITE -1 fe:00:4711 0 0
func locks(info string, of FileID, at int64) bool {
	for line := range strings.Lines(info) {
		words := strings.Fields(line)
		if len(words) != 9 || words[0] != "lock:" || words[2] != "OFDLCK" || words[4] != "WRITE" {
			continue
		}
		first, err1 := strconv.ParseInt(words[7], 10, 64)
		last, err2 := strconv.ParseInt(words[8], 10, 64)
		if words[8] == "EOF" {
			last, err2 = math.MaxInt64, nil
		}
		if err1 == nil && err2 == nil && words[6] == of.kernel() && first <= at && at <= last {
			return true
		}
	}
	return false
}

// kernel spells a file as the kernel's lists do: device in hex, inode in decimal.
func (f FileID) kernel() string {
	major := f.Device>>8&0xfff | f.Device>>32&^0xfff
	minor := f.Device&0xff | f.Device>>12&^0xff
	return fmt.Sprintf("%02x:%02x:%d", major, minor, f.Inode)
}
