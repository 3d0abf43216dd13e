package experiments_test

import (
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
)

// TestPrescribedCellsAreDeclared: a name that is spelled otherwise in the
// prescription would leave its cells without one, and the check silent.
func TestPrescribedCellsAreDeclared(t *testing.T) {
	reference := []string{"naive", "idempotency-key@t1", "durable-replay@t1", "gate@t1", "gate@t2", "gate@t3"}
	for _, c := range []struct {
		e    *experiments.Experiment
		want func(experiments.Cell) bool
	}{
		{experiments.Refund(), func(c experiments.Cell) bool {
			for _, name := range reference {
				if c.Column == name && (c.Table == "" || strings.HasPrefix(name, "gate@")) {
					return true
				}
			}
			return false
		}},
		{experiments.Faults(), func(c experiments.Cell) bool {
			return c.Column == "gate@t1" || c.Column == "gate@t2" || c.Column == "gate@t3"
		}},
		{experiments.Coding(), func(c experiments.Cell) bool {
			return c.Column == "naive" && !strings.HasPrefix(c.Row, "notice_") || strings.HasPrefix(c.Column, "gate-")
		}},
		{experiments.Takeover(), func(c experiments.Cell) bool { return strings.HasPrefix(c.Column, "gate") }},
		{experiments.Stripe(), func(c experiments.Cell) bool { return c.Column == "gate" }},
	} {
		n := 0
		for _, cell := range c.e.Cells {
			if !c.want(cell) {
				continue
			}
			n++
			if cell.Declared == "" {
				t.Errorf("%s has no prescription", cell.ID(c.e.Name))
			}
		}
		if n == 0 {
			t.Errorf("%s has none of the cells that are prescribed", c.e.Name)
		}
	}
}
