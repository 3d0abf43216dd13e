package baselines

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// lockLife is how long a lock of the ttl-lock column holds; nothing that the
// service is asked takes as long.
const lockLife = 20 * time.Second

// NewTTLLock returns the hand check inside a lock that ends by itself, as locks in
// a cache or a queue do, so that a worker that died holds up nobody for long.
func NewTTLLock(e Env) (Column, error) {
	h, err := newHandCheck(e, true)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(e.Lock, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		h.Close()
		return nil, fmt.Errorf("baselines: the lock file can't be opened: %w", err)
	}
	return &ttlLock{h, f}, nil
}

type ttlLock struct {
	*handCheck
	file *os.File
}

func (l *ttlLock) Submit(ctx context.Context, d Decision) (Told, error) {
	mine := l.Clock.Now().Add(lockLife).UnixNano()
	free, err := l.swap(func(till int64) (int64, bool) { return mine, till <= l.Clock.Now().UnixNano() })
	if err != nil || !free {
		return Told{d.Amount, "IN_FLIGHT", Pending}, err
	}
	told, err := l.handCheck.Submit(ctx, d)
	if _, unlock := l.swap(func(till int64) (int64, bool) { return 0, till == mine }); err == nil {
		err = unlock
	}
	return told, err
}

// swap replaces the lock's end, in one step, where change says so.
func (l *ttlLock) swap(change func(till int64) (int64, bool)) (changed bool, err error) {
	if err := syscall.Flock(int(l.file.Fd()), syscall.LOCK_EX); err != nil {
		return false, fmt.Errorf("baselines: the lock can't be taken: %w", err)
	}
	defer syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
	b := make([]byte, 20)
	n, _ := l.file.ReadAt(b, 0) // an empty file is a free lock
	till, _ := strconv.ParseInt(string(b[:n]), 10, 64)
	to, ok := change(till)
	if !ok {
		return false, nil
	}
	_, err = l.file.WriteAt(fmt.Appendf(nil, "%020d", to), 0)
	return true, err
}

func (l *ttlLock) Close() error {
	l.file.Close()
	return l.handCheck.Close()
}
