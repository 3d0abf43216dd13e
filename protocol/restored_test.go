package protocol_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
)

// backUp copies the disk as it stands.
func (r *rig) backUp() *simulatedDisk {
	r.disk.mu.Lock()
	defer r.disk.mu.Unlock()
	d := newDisk()
	d.kept = maps.Clone(r.disk.kept)
	for name, f := range r.disk.files {
		d.files[name] = &simulatedFile{disk: d, bytes: slices.Clone(f.durable), durable: slices.Clone(f.durable)}
	}
	return d
}

// restore ends the process, puts a copy in the disk's place and opens it as
// restored, this once.
func (r *rig) restore(d *simulatedDisk) {
	r.Helper()
	r.kill()
	r.disk, r.restored = d, true
	r.open()
	r.restored = false
}

// TestC22ARequestThatTheBackupLacks: what was sent after the backup was made is
// not sent again, whatever the restored log knows of it.
func TestC22ARequestThatTheBackupLacks(t *testing.T) {
	for _, c := range []struct {
		why    string
		can    protocol.Capabilities
		before func(r *rig) // the backup is made
		status string
	}{
		{"it is looked up, and landed", tier2(), func(*rig) {}, "COMMITTED_ON_QUERY"},
		{"a key is no reason to send what may be older than its window", tier1(), func(*rig) {}, "COMMITTED_ON_QUERY"},
		{"nobody can be asked", tier3(), func(*rig) {}, "AMBIGUOUS"},
		{"the backup knows a refusal of it that a new lease overcame later", tier2(), func(r *rig) {
			wrong := r.proposal("case-1", 20)
			wrong.Lease = "L-unknown"
			r.want(r.submit(wrong), "REFUSED:lease", 0)
		}, "COMMITTED_ON_QUERY"},
	} {
		t.Run(c.why, func(t *testing.T) {
			r := newRig(t, c.can)
			c.before(r)
			backup := r.backUp()
			p := r.proposal("case-1", 20)
			r.want(r.submit(p), "COMMITTED", 1)
			r.restore(backup)
			r.want(r.submit(p), c.status, 1)
			r.restart()
			r.submit(p)
			if n := r.service.landings(id("case-1")); n != 1 {
				t.Errorf("it landed %d times", n)
			}
		})
	}
}

// TestC22ARequestThatWasNeverSent is sent once its absence counts, and once.
func TestC22ARequestThatWasNeverSent(t *testing.T) {
	r := newRig(t, tier2())
	r.restore(r.backUp())
	p := r.proposal("case-2", 20)
	got := r.submit(p)
	r.want(got, "IN_FLIGHT", 0)
	if got.RetryAfter < 30*time.Second {
		t.Errorf("retry after %v, less than the landing bound", got.RetryAfter)
	}
	r.want(r.recover(true), "REAPPLIED_AFTER_QUERY", 1)
	r.want(r.submit(p), "DUPLICATE_IGNORED", 1)
}

// TestC22WhatIsSettledInTheBackupStaysSo: a person's word is no doubt again, and a
// refusal that was recorded after the backup was restored isn't either.
func TestC22WhatIsSettledInTheBackupStaysSo(t *testing.T) {
	r := newRig(t, tier3())
	r.service.script = []simulatedAnswer{neverLands}
	r.submit(r.proposal("case-1", 20))
	got := r.recover(false)
	r.want(got, "AMBIGUOUS", 0)
	r.want(r.resolve(got, false), "REFUSED:resolved_not_landed", 0)
	r.restore(r.backUp())
	r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:closed", 0)

	r = newRig(t, tier2())
	r.restore(r.backUp())
	wrong := r.proposal("case-2", 20)
	wrong.Lease = "L-unknown"
	r.want(r.submit(wrong), "IN_FLIGHT", 0)
	r.want(r.recover(true), "REFUSED:lease_at_recovery", 0)
	r.want(r.submit(r.proposal("case-2", 20)), "COMMITTED", 1) // looked up once; nothing can have been lost since
}
