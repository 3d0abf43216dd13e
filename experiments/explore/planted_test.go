package explore

import (
	"slices"
	"testing"
	"time"
)

// TestPlantsAreFound: whoever finds nothing wrong with the gate has to find what
// is wrong with a world that is not as declared.
func TestPlantsAreFound(t *testing.T) {
	for _, p := range Plants() {
		t.Run(string(p.Name), func(t *testing.T) {
			t.Log(p.What)
			began := time.Now()
			dir := locks(t)
			r, err := Explore(t.Context(), p.Bound, dir, Options{Shortest: true})
			if err != nil {
				t.Fatal(err)
			}
			if r.First == nil {
				t.Fatalf("not found in %d states", r.States)
			}
			t.Logf("%v, after %d executions, in %v", r.First, r.Executions, time.Since(began))
			if !slices.Contains(p.Rules, r.First.Rule) {
				t.Errorf("want one of %v broken, have %v", p.Rules, r.First)
			}
			told, err := Replay(p.Bound, dir, r.First.Schedule)
			if err != nil || told.Broke == nil || told.Broke.Rule != r.First.Rule {
				t.Errorf("%s replays as %v, %v", r.First.Schedule, told.Broke, err)
			}
			p.Bound.Planted = ""
			if told, err := Replay(p.Bound, dir, r.First.Schedule); err == nil && told.Broke != nil {
				t.Errorf("without the fault: %v", told.Broke)
			}
		})
	}
}
