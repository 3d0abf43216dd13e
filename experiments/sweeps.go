package experiments

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/sweep"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// SweepName is the experiment that takes a number of cases.
const SweepName = "sweep"

// sweepCases are how many cases the committed run has, and its slice.
const (
	sweepCases      = 100_000
	sweepSliceCases = 2_000
)

// Sweep is all state machines, run for so many cases in all; 0 is as many as the
// committed run has.
func Sweep(cases int) *Experiment {
	e := machines(SweepName, "state machines of the gate, the journal and the judge against models, case by case (the whole sweep; minutes)", orElse(cases, sweepCases))
	e.Once = true
	return e
}

// SweepSlice is a sweep that is small enough to be run again by every check.
func SweepSlice() *Experiment {
	return machines("sweep-slice", "a small sweep of the state machines, whose counts are compared exactly", sweepSliceCases)
}

// batch is how many cases are one trial.
const batch = 500

// machines declares a sweep of so many cases: a row for what is held to a model, a
// column for the ground that it stands on, and trials of a batch of cases each.
func machines(name, short string, cases int) *Experiment {
	more := ""
	if name == SweepName {
		more = "\n  interlock-bench sweep --cases 5000 --seed 7"
	}
	e := &Experiment{
		Name:  name,
		Short: short,
		Long: `Each case is one run of a state machine: what happens in it is drawn from its own
seed, and whatever the gate, the journal or the judge says is held to a simpler
model. A kill is no process killed but a gate left where it stands, and the next
one opened on what its disk in memory, or a copy of its database, held then.

A case that contradicts its model is made as small as it gets, and kept in the
folder that --keep names, or else in the one for temporary files; the page and the
line behind "replay" say how to run it again.`,
		Example: "  interlock-bench " + name + "\n  interlock-bench " + name + " --row journal --words" + more,
		Free:    []string{"from", "cases"},
		Run:     runMachine,
		Sum:     sumCounts,
		Page:    sweepPage,
	}
	for _, m := range sweep.Machines() {
		if !slices.ContainsFunc(e.Rows, func(r Row) bool { return r.Name == m.Name }) {
			e.Rows = append(e.Rows, Row{Name: m.Name, Group: "machines", What: m.What})
		}
		if !slices.ContainsFunc(e.Columns, func(c Column) bool { return c.Name == m.On }) {
			e.Columns = append(e.Columns, Column{Name: m.On, What: grounds[m.On], Holds: true})
		}
		c := Cell{Row: m.Name, Column: m.On, Declared: "HELD model ok"}
		share := max(1, cases*m.Share/100)
		for from := 0; from < share; from += batch {
			c.Trials = append(c.Trials, faults.Trial{Experiment: name, Row: m.Name, Column: m.On, Axes: []faults.Axis{
				{Name: "from", Value: strconv.Itoa(from)}, {Name: "cases", Value: strconv.Itoa(min(batch, share-from))},
			}})
		}
		e.Cells = append(e.Cells, c)
	}
	return e
}

// grounds are what a machine stands on.
var grounds = map[string]string{
	"file":    "the file store on a disk in memory",
	"sqlite":  "the SQLite store",
	"history": "a history, and nothing else",
}

// runMachine runs one batch of cases.
func runMachine(ctx context.Context, t faults.Trial) (Outcome, error) {
	all := sweep.Machines()
	i := slices.IndexFunc(all, func(m sweep.Machine) bool { return m.Name == t.Row && m.On == t.Column })
	if i < 0 {
		return Outcome{}, fmt.Errorf("experiments: no machine %q stands on %q", t.Row, t.Column)
	}
	at := axes(t)
	from, err1 := strconv.Atoi(at["from"])
	cases, err2 := strconv.Atoi(at["cases"])
	if err1 != nil || err2 != nil || from < 0 || cases < 1 {
		return Outcome{}, fmt.Errorf("%w: a sweep is from=NUMBER and cases=NUMBER, not %v", faults.ErrTrial, at)
	}
	counts, failed, err := all[i].Run(ctx, t.Seed, from, cases)
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Status: "HELD", Record: recordFull, Extra: map[string]any{}, Verdict: oracle.Verdict{Class: oracle.Correct, Answer: oracle.Agrees, Shown: "model"}}
	for what, n := range counts {
		o.Extra[what] = n
	}
	if failed == nil {
		return o, nil
	}
	t.Axes = []faults.Axis{{Name: "from", Value: strconv.Itoa(failed.Case)}, {Name: "cases", Value: "1"}}
	dir, ok := ctx.Value(keptState{}).(string)
	if !ok {
		dir = filepath.Join(os.TempDir(), "interlock-bench-counterexamples")
	}
	kept, err := failed.Keep(dir, all[i], fmt.Sprintf("interlock-bench replay '%s'", t))
	if err != nil {
		return Outcome{}, err
	}
	o.Status, o.Verdict.Class = "CONTRADICTED", oracle.Lost
	o.Verdict.Why = []string{failed.Text}
	o.Extra["counterexample"], o.Extra["kept"] = t.String(), kept
	return o, nil
}

// sumCounts adds up what the trials of a cell counted, and keeps the first
// counter-example.
func sumCounts(of []Outcome) map[string]any {
	sum := map[string]any{}
	for _, o := range of {
		for what, v := range o.Extra {
			n, isCount := v.(int)
			before, there := sum[what].(int)
			switch {
			case isCount:
				sum[what] = before + n
			case !there && sum[what] == nil:
				sum[what] = v
			}
		}
	}
	return sum
}

// sweepPage renders results/sweep.md, and that of the slice.
func sweepPage(records []Record) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	cases, contradicted := 0, 0
	name, made := SweepName, ""
	t := table.Table{Header: []string{"machine", "on", "cases", "model"}}
	for _, r := range records {
		name = r.Experiment
		n := extraCount(r, "cases")
		cases += n
		if r.Class() != oracle.Correct {
			contradicted++
		}
		if m, ok := r.Extra["made"].(string); ok {
			made = m
		}
		held := "held"
		if at, ok := r.Extra["counterexample"]; ok {
			held = fmt.Sprintf("contradicted: `interlock-bench replay '%s'`", at)
		}
		t.Rows = append(t.Rows, []string{"`" + r.Row + "`", r.Column, fmt.Sprint(n), held})
	}
	p("# %d cases of five state machines", cases)
	of := ""
	if name == SweepName && cases != sweepCases {
		of = fmt.Sprintf(" --cases %d", cases)
	}
	p("Made by `interlock-bench %s --seed %s%s`. Machines contradicted by a case: %d.", name, indexRecords(records).seed(), of, contradicted)
	if made != "" {
		p("This run is made once and not repeated by a check: %s. A check runs `sweep-slice`, and compares every count below.", made)
	}
	b.WriteString(t.Markdown() + "\n")
	for _, m := range sweep.Machines() {
		fmt.Fprintf(&b, "- `%s` on %s: %s\n", m.Name, m.On, m.What)
	}
	p("\n## What happened in them")
	p("Everything that was drawn and everything that was said, counted. All of it follows from the seed.")
	for _, r := range records {
		if r.Row == "" {
			continue
		}
		counts := table.Table{Header: []string{"what", "times"}}
		for _, what := range slices.Sorted(maps.Keys(r.Extra)) {
			if n, err := strconv.Atoi(fmt.Sprint(r.Extra[what])); err == nil && what != "cases" {
				counts.Rows = append(counts.Rows, []string{what, fmt.Sprint(n)})
			}
		}
		p("### `%s` on %s", r.Row, r.Column)
		b.WriteString(counts.Markdown() + "\n")
	}
	p("## What is held to what")
	p("The gate meets services of nine profiles that keep their promises and are unkind within them: answers that are lost or late, requests that never arrive, refused connections, temporary and final refusals, failures that a key replays, lookups and reads that fail. Facts change, leases are revoked, renewed, granted for one use or for another amount, agents propose what they may not, propose it again and with other content, persons settle what is ambiguous, time passes, and disks fail. All of it also happens at any point of a call that is under way, besides two calls at once and kills, in recoveries and openings as well. Unsynced bytes are kept, lost or torn at any byte.")
	p("Held are: one landing at most (I2), and of the content decided first (I5); nothing sent before its intent was durable (I1), beside an attempt that may land (I2), on facts that were read as changed or too long ago (I3), without a lease that is live, covers it and names the agent (I4), or behind a failed write (I11); every answer and every receipt against the service's books (I12); every refusal against what the model knows to be its ground; what a revocation reports against what is in doubt; and at the end nothing open that anybody could settle (I13).")
	p("The stores owe what they acknowledged, in order, whole and linked, across kills at every point, torn ends and failing disks, and nothing that they weren't given. The judge owes nothing to a right history, and to a wrong one the rule that finds it.")
	return strings.TrimSuffix(b.String(), "\n")
}
