package mutant_test

import (
	"slices"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments/mutant"
)

// TestMachineMutants makes all of them, twice.
func TestMachineMutants(t *testing.T) {
	a, _, err := mutant.Instrument("../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := mutant.Instrument("../..", t.TempDir())
	if err != nil || !slices.Equal(a, b) {
		t.Errorf("made again the mutants are others: %v", err)
	}
	names := map[string]bool{}
	for i, s := range a {
		if names[s.Name] || s.Number != i+1 {
			t.Errorf("%s is there twice, or has the number %d in place %d", s.Name, s.Number, i)
		}
		names[s.Name] = true
	}
	if len(a) < 300 {
		t.Errorf("there are only %d mutants", len(a))
	}
}
