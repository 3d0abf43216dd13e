package experiments_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// tiny is an experiment of two rows and two columns that runs no process: every
// trial is right, until a test says otherwise through outcome.
func tiny(outcome func(faults.Trial) experiments.Outcome) *experiments.Experiment {
	e := &experiments.Experiment{
		Name: "tiny-one",
		Rows: []experiments.Row{{Name: "happy_path"}, {Name: "crash_before_ack"}},
		Columns: []experiments.Column{
			{Name: "naive"},
			{Name: "gate@t1", Holds: true},
		},
	}
	for _, r := range e.Rows {
		for _, c := range e.Columns {
			trial := faults.Trial{Experiment: e.Name, Row: r.Name, Column: c.Name}
			plain, lossy := trial, trial
			plain.Axes = []faults.Axis{{Name: "file", Value: "plain"}}
			lossy.Axes = []faults.Axis{{Name: "file", Value: "lossy"}}
			e.Cells = append(e.Cells, experiments.Cell{
				Row: r.Name, Column: c.Name, Trials: []faults.Trial{plain, lossy}, Declared: "COMMITTED $20 ok",
			})
		}
	}
	e.Run = func(_ context.Context, t faults.Trial) (experiments.Outcome, error) { return outcome(t), nil }
	e.Page = func(records []experiments.Record) string {
		t := table.Table{Header: []string{"cell", "result"}}
		for _, r := range records {
			t.Rows = append(t.Rows, []string{"`" + r.ID + "`", r.Cell + " " + r.Class().Mark()})
		}
		return fmt.Sprintf("# Tiny\n\n%s\nTrials: %d.\n", t.Markdown(), 2*len(records))
	}
	return e
}

// right is what every trial of tiny gives at first.
func right(t faults.Trial) experiments.Outcome {
	return experiments.Outcome{
		Trial:   t,
		History: history.History{{N: 1, Who: "supervisor", Kind: history.Declared}},
		Status:  "COMMITTED",
		Record:  "full",
		Verdict: oracle.Verdict{Class: oracle.Correct, Money: 20_00, Answer: oracle.Agrees, Attempts: 1, Requests: 2, ModelCalls: 1},
	}
}

// except is right but for the trials whose line contains part.
func except(part string, bend func(*experiments.Outcome)) func(faults.Trial) experiments.Outcome {
	return func(t faults.Trial) experiments.Outcome {
		o := right(t)
		if strings.Contains(t.String(), part) {
			bend(&o)
		}
		return o
	}
}

func duplicate(o *experiments.Outcome) {
	o.Status = "RETRIED"
	o.Verdict = oracle.Verdict{Class: oracle.Duplicate, Money: 40_00, Broke: []string{"more-landings"}, Answer: oracle.Disagrees, Attempts: 2, Requests: 4}
	o.Record = "none"
}

func unfired(o *experiments.Outcome) {
	o.Verdict = oracle.Verdict{Class: oracle.Unknown, Money: 20_00, Answer: oracle.Agrees, Unfired: 1}
}
