package mutant_test

import (
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments/mutant"
)

// TestPlantedFaultsFit lays every planted fault over the source.
func TestPlantedFaultsFit(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mutant.Broken {
		if _, err := m.Overlay("../..", t.TempDir()); err != nil {
			t.Error(err)
		}
		if seen[m.Name] || m.Source == "" || m.Why == "" || len(m.Cells)+len(m.Tests) == 0 {
			t.Errorf("%s is there twice, or says not where it comes from, what it breaks or what catches it", m.Name)
		}
		seen[m.Name] = true
	}
	if len(seen) < 40 {
		t.Errorf("only %d faults are planted", len(seen))
	}
}
