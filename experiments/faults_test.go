package experiments_test

import (
	"os"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
)

// TestFaultsAreDeclared holds every cell of the gate at t1, t2 and t3 to what is
// prescribed: a row without that would pass whatever came out.
func TestFaultsAreDeclared(t *testing.T) {
	for _, c := range experiments.Faults().Cells {
		tier := c.Column == "gate@t1" || c.Column == "gate@t2" || c.Column == "gate@t3"
		if tier && c.Declared == "" {
			t.Errorf("nothing is prescribed for %s in %s", c.Row, c.Column)
		}
	}
}

// TestEveryLossSaysWhatItTakes reads the committed page: where the hand check
// does worse than the gate, the page says what further lines it would take.
func TestEveryLossSaysWhatItTakes(t *testing.T) {
	page, err := os.ReadFile("../results/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	losses := 0
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.Contains(line, ", the gate ") {
			continue
		}
		losses++
		for _, cell := range []string{"✅", "⚠️", "❌", "what is not so", "is not made"} {
			if strings.HasSuffix(strings.TrimSpace(line), cell+".") {
				t.Errorf("the page doesn't say what it would take: %s", line)
			}
		}
	}
	if losses == 0 {
		t.Error("the page lists no row in which the hand check does worse")
	}
}
