package experiments_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/mutant"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// TestAnInterruptedRunOfMutantsLeavesNothing ends a run behind its first trial.
func TestAnInterruptedRunOfMutantsLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a package")
	}
	dir, err := os.MkdirTemp("", "m") // short: paths of sockets end at about a hundred bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	ctx, stop := context.WithCancel(t.Context())
	_, err = experiments.Run(ctx, experiments.MutantsSlice(), experiments.Filter{Rows: []string{"wire"}}, experiments.Options{
		Progress: func(int, int) { stop() },
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestEveryMutantHasItsCell holds the cells of both runs to the planted faults and
// the packages.
func TestEveryMutantHasItsCell(t *testing.T) {
	machine, planted := experiments.Mutants(), experiments.PlantedFaults()
	if len(machine.Cells) != len(mutant.Guarded) || len(planted.Cells) != len(mutant.Broken) {
		t.Errorf("%d cells of packages, want %d; %d of planted faults, want %d", len(machine.Cells), len(mutant.Guarded), len(planted.Cells), len(mutant.Broken))
	}
	cells := map[string]bool{}
	for _, c := range slices.Concat(machine.Cells, planted.Cells) {
		cells[c.ID("")] = true
	}
	for _, c := range experiments.MutantsSlice().Cells {
		if !cells[c.ID("")] {
			t.Errorf("%s is in the slice and in neither whole", c.ID(""))
		}
	}
}

// TestASurvivorFailsTheRun renders what a run would say of one.
func TestASurvivorFailsTheRun(t *testing.T) {
	e := experiments.MutantsSlice()
	var records []experiments.Record
	for _, c := range e.Cells {
		r := experiments.Record{
			V: 1, ID: c.ID(e.Name), Experiment: e.Name, Row: c.Row, Column: c.Column, Axes: map[string]string{},
			Cell: "SURVIVED unnoticed", Verdict: oracle.Lost.String(), Trials: 1, Counts: map[string]int{"LOST": 1}, Broke: []string{},
			Answer: oracle.Agrees, Record: "full", Replay: e.Name + "/" + c.Row + "/" + c.Column + " seed=1",
			Extra: map[string]any{"missed": []string{"a test that looked away"}},
		}
		if c.Column == "machine" {
			r.Extra = map[string]any{"tried": []map[string]string{{"name": "protocol/guard.go:check:force-false:9", "text": "a guard", "source": "00"}}}
		}
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	for _, f := range experiments.Promises(e, records) {
		if f.Kind != experiments.Broken {
			t.Errorf("%v", f)
		}
	}
	if n := len(experiments.Promises(e, records)); n != len(e.Cells) {
		t.Errorf("%d of %d broken promises were named", n, len(e.Cells))
	}
	page := e.Page(records)
	for _, want := range []string{"NOT a test that looked away", "neither", "- `protocol/guard.go:check:force-false:9`: `a guard`"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page doesn't say %q", want)
		}
	}
}

// TestARunThatNobodyMadeIsANote checks a folder without it, and one with half.
func TestARunThatNobodyMadeIsANote(t *testing.T) {
	e, dir := experiments.Mutants(), t.TempDir()
	found, err := experiments.Check(t.Context(), e, dir, true, experiments.Options{})
	if err != nil || len(found) != 1 || found[0].Kind != experiments.Note {
		t.Errorf("found %v, %v", found, err)
	}
	if err := os.WriteFile(experiments.FilesOf(dir, e).Page, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	found, err = experiments.Check(t.Context(), e, dir, true, experiments.Options{})
	if err != nil || len(found) != 1 || found[0].Kind != experiments.Drift {
		t.Errorf("found %v, %v", found, err)
	}
	if found, err := experiments.Check(t.Context(), experiments.MutantsSlice(), t.TempDir(), true, experiments.Options{}); err != nil || len(found) != 1 || found[0].Kind != experiments.Drift {
		t.Errorf("of a run that every check repeats: %v, %v", found, err)
	}
}
