package mutant_test

import (
	"errors"
	"flag"
	"regexp"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments/mutant"
)

// TestPlantedFaultsAreCaught builds each planted fault that the -planted flag
// names and sees what is said to catch it turn red: what is green in the tables is
// green because the guard is there. The whole list is the mutants experiment.
func TestPlantedFaultsAreCaught(t *testing.T) {
	b, err := mutant.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	for _, m := range mutant.Broken {
		if named := regexp.MustCompile(*planted); !named.MatchString(m.Name) {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			caught, missed, err := b.Planted(t.Context(), m)
			if err != nil || len(missed) > 0 {
				t.Errorf("caught by %v, missed by %v: %v", caught, missed, err)
			}
			t.Log(caught)
		})
	}
}

var planted = flag.String("planted", "^(no-sync|no-premise-check|no-lease-check|no-suspects)$", "planted faults to try, a pattern")

func TestPatchThatDoesntFit(t *testing.T) {
	m := mutant.Mutant{Name: "nowhere", Patches: []mutant.Patch{{File: "go.mod", Old: "no such line", New: ""}}}
	if _, err := m.Overlay("../..", t.TempDir()); !errors.Is(err, mutant.ErrPatch) {
		t.Errorf("want ErrPatch, have %v", err)
	}
}
