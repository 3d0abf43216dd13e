package baselines

import (
	"context"
	"fmt"
	"os"
	"syscall"
)

// NewHandCheckLocked returns the hand check inside a file lock, so that two
// processes on one host don't check at the same time.
func NewHandCheckLocked(e Env) (Column, error) {
	h, err := newHandCheck(e, true)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(e.Lock, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		h.Close()
		return nil, fmt.Errorf("baselines: the lock file can't be opened: %w", err)
	}
	return &handCheckLocked{h, f}, nil
}

type handCheckLocked struct {
	*handCheck
	lock *os.File
}

func (h *handCheckLocked) Submit(ctx context.Context, d Decision) (Told, error) {
	if err := syscall.Flock(int(h.lock.Fd()), syscall.LOCK_EX); err != nil {
		return Told{}, fmt.Errorf("baselines: the lock can't be taken: %w", err)
	}
	defer syscall.Flock(int(h.lock.Fd()), syscall.LOCK_UN)
	return h.handCheck.Submit(ctx, d)
}

func (h *handCheckLocked) Close() error {
	h.lock.Close()
	return h.handCheck.Close()
}
