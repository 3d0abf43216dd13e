package journal

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
)

const drainName = "drain"

// Drain is the file of lease bytes beside an authority log: a dispatch holds its
// lease's byte shared from its last look at the authority to its sync; a
// revocation takes it exclusively once, after it is durable, so that when it
// returns no dispatch that saw the lease alive is still under way (I4).
//
// It works between processes and within one, and for several goroutines.
type Drain struct {
	path string
	file *lockFile

	mu     sync.Mutex
	shared map[Seq]int // callers in this process; the kernel's lock is one for them all
	closed bool
}

// OpenDrain opens or makes the drain file in the authority log's directory. Its
// errors are those of OpenFile.
func OpenDrain(dir string) (*Drain, error) {
	if err := checkDir(filepath.Clean(dir), false); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, drainName)
	f, err := openLockFile(path, true)
	if err != nil {
		return nil, err
	}
	return &Drain{path: path, file: f, shared: map[Seq]int{}}, nil
}

// Share takes byte n, the sequence of the lease's GRANTED entry, shared. It does
// not wait: callers of one process are counted, the kernel's lock is taken with
// the first and dropped with the last. ok is false where a revocation is
// draining that byte right now. release is called once, and does nothing more
// after that.
func (d *Drain) Share(n Seq) (release func(), ok bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, false, ErrClosed
	}
	if d.shared[n] == 0 {
		if err := d.file.check(); err != nil {
			return nil, false, err
		}
		if ok, err := d.file.try(int64(n), syscall.F_RDLCK); !ok || err != nil {
			return nil, false, err
		}
	}
	d.shared[n]++
	return sync.OnceFunc(func() { d.unshare(n) }), true, nil
}

func (d *Drain) unshare(n Seq) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shared[n]--; d.shared[n] == 0 {
		delete(d.shared, n)
		if !d.closed {
			d.file.release(int64(n))
		}
	}
}

// Exclude waits until nobody shares byte n, then lets it go again. ctx bounds
// the wait; its error means that some dispatch is undecided.
func (d *Drain) Exclude(ctx context.Context, n Seq) error {
	// A description of its own: this process's shares count like any other's.
	if err := d.check(); err != nil {
		return err
	}
	f, err := openLockFile(d.path, false)
	if err != nil {
		return err
	}
	defer f.close()
	if err := f.wait(ctx, int64(n)); err != nil {
		return fmt.Errorf("journal: a dispatch still holds byte %d of %s: %w", n, d.path, err)
	}
	return nil
}

// check refuses a drain that is closed or whose file is not the one at its path.
func (d *Drain) check() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	return d.file.check()
}

// Close closes the file, and with it drops what is still shared.
func (d *Drain) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		d.file.close()
	}
	return nil
}
