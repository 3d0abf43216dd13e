package explore

import (
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/faults/disk"
)

// locks is a directory for lock files.
func locks(t testing.TB) string {
	t.Helper()
	dir, remove, err := disk.LockDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	return dir
}

// tiny are bounds that a test can explore in about a second.
func tiny() []Bound {
	var all []Bound
	for _, p := range []string{"t1", "t2", "t2-fence", "t2-if", "t3"} {
		all = append(all, Bound{Profiles: []string{p}, Agents: 1, Budget: Budget{Crashes: 1, Faults: 1}})
	}
	for _, p := range []string{"t1", "t2"} {
		all = append(all, Bound{Profiles: []string{p}, Agents: 1, Budget: Budget{Changes: 1, Faults: 1}, World: []string{"revoke", "change"}})
	}
	return append(all, Bound{Profiles: []string{"t2"}, Agents: 1, Budget: Budget{Crashes: 1, Changes: 1}, World: []string{"mind"}, Restarts: true})
}

// TestSmall explores bounds small enough for every run of the tests: the shipped
// gate keeps every rule in each of their states.
func TestSmall(t *testing.T) {
	states := 0
	for _, b := range tiny() {
		r, err := Explore(t.Context(), b, locks(t), Options{})
		if err != nil {
			t.Fatal(err)
		}
		states += r.States
		t.Logf("%s, %s: %d states, %d executions", b.What(), strings.Join(b.World, "+"), r.States, r.Executions)
		if r.First != nil {
			t.Errorf("%s: %v %v", b.What(), r.Violations, r.First)
		}
	}
	t.Logf("%d states", states)
}
