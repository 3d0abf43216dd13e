package explore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/disk"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// A principal revokes the lease in two steps, each in a process of its own: the
// first is killed when the revocation is durable, the second revokes again and
// returns. Between them, and before the first, everybody else may move.
//
// What a step does to the authority and what it is told depends on the disks and
// the clock alone, so each is done once and remembered.

// revocation is what a step came to.
type revocation struct {
	name    string // file that was appended to
	at      int64
	data    []byte
	returns bool
	doubt   []protocol.OpenEffect
	err     error
}

// step is what a revocation depends on.
type step struct {
	authority, journal [16]byte
	now                time.Duration
	returns            bool
}

// principal is the shipped Authority's Revoke on copies of the disks.
type principal struct {
	dir  string
	done map[step]revocation
}

// impatientClock is a clock whose timeouts are over when they begin: a principal
// doesn't wait in the lock of the lease's byte, where the scheduler wouldn't see
// it.
type impatientClock struct{ simulatedClock }

func (impatientClock) Timeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if d > 0 {
		cancel()
	}
	return ctx, cancel
}

// revoke is the next step of the revocation in w, where no dispatch is under way.
func (p *principal) revoke(w *world) revocation {
	s := step{authority: w.authority.Sum(), now: w.now, returns: w.lease == recorded}
	if s.returns {
		s.journal = w.journal.Sum()
	}
	r, ok := p.done[s]
	if !ok {
		r = p.run(w, s.returns)
		p.done[s] = r
	}
	return r
}

func (p *principal) run(w *world, returns bool) (r revocation) {
	r.returns = returns
	before := w.authority.Cached()
	on := w.authority.Clone()
	clock := simulatedClock{x: &execution{w: w}}
	authorityDir := filepath.Join(p.dir, "authority")
	drain, err := journal.OpenDrain(authorityDir)
	if err != nil {
		return revocation{err: err}
	}
	defer drain.Close()
	authority, err := protocol.OpenAuthority(openAuthority(authorityDir, on, clock), drain, protocol.AuthorityOptions{
		Clock: impatientClock{clock},
		Trace: func(p trace.Point, _ string) {
			if p == protocol.PointRevoked && !returns {
				panic(killed{})
			}
		},
	})
	if err != nil {
		return revocation{err: err}
	}
	defer authority.Close()
	func() {
		defer func() {
			if v := recover(); v != nil {
				if _, ok := v.(killed); !ok {
					panic(v)
				}
			}
		}()
		var told protocol.Revocation
		told, r.err = authority.Revoke(background, leaseID, protocol.RevokeOptions{
			Deadline: time.Nanosecond,
			Journal: journal.FileOpener(filepath.Join(p.dir, "journal"), journal.Options{
				Mode: journal.Reader, Namespace: namespace, Now: clock.Now, Dir: w.journal.Clone(),
			}),
		})
		r.doubt = told.Doubt
	}()
	after := on.Synced()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if was, now := before[name], after[name]; !bytes.Equal(was, now) {
			if r.name != "" || !bytes.HasPrefix(now, was) {
				r.err = fmt.Errorf("explore: a revocation did more than append to %s", name)
			}
			r.name, r.at, r.data = name, int64(len(was)), now[len(was):]
		}
	}
	return r
}

// revoke does the next step of the revocation.
func (x *execution) revoke() {
	w := x.w
	if w.lease == alive {
		w.left.Changes--
		x.tell.revoking(history.Revoking, 0)
	}
	r := x.principal.revoke(w)
	if r.name != "" {
		if err := appendTo(w.authority, r); err != nil {
			x.broken("gate-failed", "%v", err)
		}
	}
	switch {
	case r.err != nil:
		x.broken("gate-failed", "%v", r.err)
	case r.returns:
		w.lease = returned
		x.tell.revoking(history.Revoked, len(r.doubt))
		x.judgeRevocation(r.doubt)
	default:
		w.lease = recorded
	}
}

// probe has the principal try to return while a dispatch is under way, which the
// lease's byte must not let it. Nothing comes of that, so it is no move.
func (x *execution) probe() {
	if x.w.lease != recorded || !x.shares() {
		return
	}
	for _, a := range x.proc.agents {
		if a.at.name != string(protocol.PointRechecked) && a.at.name != "sync" {
			continue
		}
		if r := x.principal.run(x.w, true); !errors.Is(r.err, protocol.ErrUndecided) {
			x.broken("lease-not-live", "a revocation returned (%v) while a dispatch under the lease was under way", r.err)
		}
	}
}

// appendTo puts what a step appended on the disk that the gate reads.
func appendTo(d *disk.Disk, r revocation) error {
	f, err := d.Open(r.name, false)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(r.data, r.at)
	return errors.Join(err, f.Sync(), f.Close())
}

// openAuthority opens the authority log as a principal does.
func openAuthority(dir string, d *disk.Disk, clock simulatedClock) journal.Opener {
	return journal.FileOpener(dir, journal.Options{
		Mode: journal.Appender, Namespace: namespace, Now: clock.Now, Dir: d, Identity: "principal",
	})
}
