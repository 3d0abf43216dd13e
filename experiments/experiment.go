// Package experiments declares what is measured and runs it: rows and columns
// as data, trials as real processes, records as the asset, tables as a
// rendering of them.
package experiments

import (
	"context"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// Experiment is one declaration. Everything that lists experiments, rows or
// columns (flags, help, tables, documents, CI) reads these slices.
type Experiment struct {
	Name    string // also its command and its files in results/
	Short   string // one line of help
	Long    string // help text: what is run and how to read it
	Example string // help examples, one command a line

	Rows    []Row
	Columns []Column
	Cells   []Cell // all of them, in the order of the page

	// Begin makes what the trials of one run share: Run gets the context that it
	// returns, and end is called behind the last of them. Nil where they share
	// nothing.
	Begin func(ctx context.Context) (with context.Context, end func(), err error)

	// Run runs one trial in processes of its own and judges it. It is called by
	// several goroutines. Its error means that the harness failed; a trial that
	// could not be judged is an Outcome with the verdict UNKNOWN.
	Run func(ctx context.Context, t faults.Trial) (Outcome, error)

	// Judge judges a history of a trial; nil is oracle.Judge. It is a pure function,
	// and what Run says of the trial it ran is what Judge says of its history.
	Judge func(h history.History) oracle.Verdict

	// More names the trials that follow from one that was run, so that a sweep goes
	// by what trials came past; nil where the cells name them all. They are of
	// these same cells. It depends on the outcome only.
	More func(o Outcome) []faults.Trial

	// Free are axes that a line to be replayed may have beside those of the cells,
	// of whatever value: Run refuses what it can't read.
	Free []string

	// Sum is the Extra of a record from all outcomes of its cell, in order and
	// without their histories; nil takes the worst one's.
	Sum func(of []Outcome) map[string]any

	// Once says that a run is too long to be repeated: a check holds its results
	// against themselves only, and each record says when and on what it was made.
	Once bool

	// Child is the program under test, in a process that Run started with a task
	// that names this experiment; nil where Run starts other programs.
	Child func(c *faults.Child) error

	// Over renders the page of an experiment over the records of the others, in the
	// order of All. It has no cells and no records of its own, and nothing is run.
	Over func(results []Record) string

	// Page renders the records of a whole run as the experiment's page.
	Page func(records []Record) string

	// Drawing renders them as a drawing in SVG, which the page shows; nil where it
	// shows none.
	Drawing func(records []Record) string
}

// Row is one thing that can go wrong.
type Row struct {
	Name  string
	Group string
	What  string // what happens, in one sentence
}

// Column is one thing that people use.
type Column struct {
	Name string
	What string
	// Holds says that the column promises its cells: a broken promise, not only a
	// drift, fails the run. Baselines are meant to break.
	Holds bool
}

// Cell is one row in one column of one table.
type Cell struct {
	Table  string // "" is the experiment's main table
	Row    string
	Column string
	Trials []faults.Trial // the cell is the worst of them
	// Declared is what the specification prescribes, with the mark in words:
	// "COMMITTED $20 ok" (ok, BAD or look; a word in place of the money where the
	// experiment is about none); "" where it prescribes nothing. The check
	// and the exit code read it, nothing else.
	Declared string
}

// Outcome is one judged trial.
type Outcome struct {
	Trial   faults.Trial
	History history.History
	Verdict oracle.Verdict
	Status  string         // the column's own word, by the rule of the experiment
	Record  string         // "full", "partial" or "none": what the column's own artefacts show
	Extra   map[string]any // kept in the record as it is
}
