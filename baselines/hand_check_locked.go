package baselines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
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

// Submit waits a minute and a bit for the lock, and then says that somebody has it.
func (h *handCheckLocked) Submit(ctx context.Context, d Decision) (Told, error) {
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		err := syscall.Flock(int(h.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return Told{}, fmt.Errorf("baselines: the lock can't be taken: %w", err)
		}
		if wait > time.Minute {
			return Told{d.Amount, "LOCKED", Pending}, nil
		}
		if err := h.Clock.Wait(ctx, wait); err != nil {
			return Told{}, err
		}
	}
	defer syscall.Flock(int(h.lock.Fd()), syscall.LOCK_UN)
	return h.handCheck.Submit(ctx, d)
}

func (h *handCheckLocked) Close() error {
	h.lock.Close()
	return h.handCheck.Close()
}
