package experiments

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// terms are what a trial takes place under: the service, the terms of the
// approval, and what the agent takes as its premises.
type terms struct {
	profile  sim.Profile
	life     time.Duration // of the lease
	uses     int           // of the lease; 0 is no limit
	premises string        // "", or what else the gate's decision rests on
	second   bool          // another agent has an approval of its own on the order
	wire     bool          // a middle stands between the column and the service
	store    string        // the gate's: "" is the file store
	disk     bool          // the journal's disk can fail
	cap      int64         // cents that all cases together may take; 0 is no cap
}

// termsOf is the column's own service with what a row changes in it.
func termsOf(c column, table string, with []string) (terms, error) {
	profile, ok := sim.ProfileNamed(profileOf(c.Name))
	if !ok {
		return terms{}, fmt.Errorf("experiments: no profile is called %q", profileOf(c.Name))
	}
	if table == tableUnbounded {
		profile = profile.Unbounded()
	}
	t := terms{profile: profile, life: leaseLife}
	for _, change := range with {
		if err := t.change(change); err != nil {
			return t, err
		}
	}
	return t, nil
}

// change makes one change by name. What a service without keys or lookup can't
// have, it goes without.
func (t *terms) change(what string) (err error) {
	name, value, _ := strings.Cut(what, ":")
	duration := func() (d time.Duration) { d, err = time.ParseDuration(value); return d }
	switch name {
	case "unbounded":
		t.profile = t.profile.Unbounded()
	case "key-on-acceptance":
		t.profile.KeyOnAcceptance = true
	case "no-lookup":
		t.profile.Lookup = false
	case "lookup-lag":
		if d := duration(); t.profile.Lookup {
			t.profile.LookupLag = d
		}
	case "lookup-window":
		if d := duration(); t.profile.Lookup {
			t.profile.LookupWindow = d
		}
	case "lease-life":
		t.life = duration()
	case "second-bot":
		t.second = true
	case "lease-uses":
		t.uses, err = strconv.Atoi(value)
	case "wire":
		t.wire = true
	case "cap":
		t.cap, err = strconv.ParseInt(value, 10, 64)
	case "store":
		t.store = value
	case "disk":
		t.disk = true
	case "premises":
		t.premises = value
	default:
		err = fmt.Errorf("there are no such terms")
	}
	if err != nil {
		return fmt.Errorf("experiments: terms %q: %w", what, err)
	}
	return nil
}
