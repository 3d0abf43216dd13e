package baselines_test

import (
	"testing"

	"github.com/interlock-bench/interlock-bench/baselines"
)

// TestSizes holds the counts that are printed beside the hand checks to what
// they must be whatever the code is: there, and no longer than their file.
func TestSizes(t *testing.T) {
	sizes := baselines.Sizes()
	if len(sizes) == 0 {
		t.Fatal("no baseline is counted")
	}
	for _, s := range sizes {
		if s.Check < 1 || s.File <= s.Check {
			t.Errorf("%s: a check of %d lines in a file of %d", s.Name, s.Check, s.File)
		}
	}
}
