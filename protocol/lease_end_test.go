package protocol_test

import (
	"testing"
	"time"
)

// TestI4ALeaseIsOverByTheLatestClock: a gate whose clock is behind sends nothing
// under a lease that is over by the margin or by what a log proves.
func TestI4ALeaseIsOverByTheLatestClock(t *testing.T) {
	const life = 30 * 24 * time.Hour // of the rig's lease
	for _, c := range []struct {
		why  string
		late func(r *rig) // it is past the end, and the clock doesn't say so
	}{
		{"the clock is behind by less than the margin", func(r *rig) {
			r.clock.advance(life - time.Second)
		}},
		{"the journal has an entry from behind the end", func(r *rig) {
			r.clock.advance(life)
			r.want(r.submit(r.proposal("case-0", 20)), "REFUSED:lease", 0)
			r.clock.skew = -time.Hour
			r.restart()
		}},
		{"the authority log has an entry from behind the end", func(r *rig) {
			r.clock.advance(life)
			r.grant(lease("L-another"))
			r.clock.skew = -time.Hour
		}},
	} {
		t.Run(c.why, func(t *testing.T) {
			r := newRig(t, tier1())
			c.late(r)
			r.want(r.submit(r.proposal("case-1", 20)), "REFUSED:lease", 0)
		})
	}
}
