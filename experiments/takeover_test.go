package experiments_test

import (
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
)

// TestNobodyTakesOverFromTheLiving runs the slow sender: the process beside it is
// told that somebody is, by each kind of journal, and the hand
// check lands a second refund. Without the last this would show nothing.
func TestNobodyTakesOverFromTheLiving(t *testing.T) {
	e := experiments.Takeover()
	records, err := experiments.Run(t.Context(), e, experiments.Filter{Rows: []string{"slow"}}, experiments.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"hand-check@t2":        "SENT:ok+SENT:ok $40 BAD",
		"hand-check-locked@t2": "SENT:ok+LOCKED $20 ok",
		"gate@t2":              "COMMITTED+LOCKED_OUT:gate@t2 $20 ok",
		"gate-shared@t2":       "COMMITTED+IN_FLIGHT $20 ok",
	}
	for _, r := range records {
		if cell, ok := want[r.Column]; ok && r.Judged() == cell {
			delete(want, r.Column)
		}
	}
	if len(want) > 0 {
		t.Errorf("these did not come out: %v", want)
	}
}
