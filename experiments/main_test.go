package experiments_test

import (
	"os"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
)

// TestMain is also the columns under test: a trial starts this binary again.
func TestMain(m *testing.M) {
	experiments.ServeChild()
	os.Exit(m.Run())
}
