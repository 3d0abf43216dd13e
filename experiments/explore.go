package experiments

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/explore"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/disk"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// The experiments of the explorer: small bounds for every check, and full ones.
const (
	ExploreName     = "explore"
	ExploreFullName = "explore-full"
)

// axisSchedule names one execution of a bound.
const axisSchedule = "schedule"

// Explore visits every state of the shipped gate within small bounds.
func Explore() *Experiment {
	return exploration(ExploreName, "every state of the shipped gate within small bounds", explore.Small(), false)
}

// ExploreFull does so within larger ones.
func ExploreFull() *Experiment {
	return exploration(ExploreFullName, "every state of the shipped gate within larger bounds (minutes)", explore.Full(), true)
}

func exploration(name, short string, spaces []explore.Space, once bool) *Experiment {
	e := &Experiment{
		Name:  name,
		Short: short,
		Long: `The shipped gate, file store, authority and drain run as coroutines of this
program over a disk, services and a clock in memory. A scheduler takes every choice
there is: who moves, what becomes of each call, where the process is killed or the
power goes, when the lease is revoked, a fact changes, a late request arrives or the
disk fails. Every state is judged. A row is what may go wrong, a column the service.

A state that breaks a rule is printed with the shortest schedule that leads there,
as a line that replay takes.`,
		Example: fmt.Sprintf("  interlock-bench %s\n  interlock-bench %[1]s --row crashes --column t2\n  interlock-bench replay '%[1]s/crashes/t2 schedule=14.kill,31.kill seed=1'", name),
		Once:    once,
		Free:    []string{axisSchedule},
		Run: func(ctx context.Context, t faults.Trial) (Outcome, error) {
			s := slices.IndexFunc(spaces, func(s explore.Space) bool { return s.Name == t.Row })
			if s < 0 || !slices.ContainsFunc(spaces[s].Profiles(), func(p explore.Profile) bool { return p.Name == t.Column }) {
				return Outcome{}, fmt.Errorf("experiments: no bounds %q with a service %q", t.Row, t.Column)
			}
			return runExplore(ctx, spaces[s].Bound(t.Column), t)
		},
		Page: func(records []Record) string { return explorePage(name, spaces, records) },
	}
	for _, p := range explore.Profiles() {
		e.Columns = append(e.Columns, Column{Name: p.Name, What: "a service that " + p.What, Holds: true})
	}
	for _, s := range spaces {
		e.Rows = append(e.Rows, Row{Name: s.Name, Group: "bounds", What: s.What})
		for _, p := range s.Profiles() {
			t := faults.Trial{Experiment: name, Row: s.Name, Column: p.Name}
			e.Cells = append(e.Cells, Cell{Row: s.Name, Column: p.Name, Trials: []faults.Trial{t}, Declared: "HELD $0 ok"})
		}
	}
	return e
}

// runExplore explores a bound, or runs the one execution that the trial names.
func runExplore(ctx context.Context, b explore.Bound, t faults.Trial) (Outcome, error) {
	dir, remove, err := disk.LockDir()
	if err != nil {
		return Outcome{}, err
	}
	defer remove()
	for _, a := range t.Axes {
		if a.Name == axisSchedule {
			return replaySchedule(b, dir, a.Value)
		}
	}
	r, err := explore.Explore(ctx, b, dir, explore.Options{})
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Status: "HELD", Record: "full", Verdict: oracle.Verdict{Class: oracle.Correct, Answer: oracle.Agrees}}
	o.Extra = map[string]any{"states": r.States, "executions": r.Executions, "steps": r.Steps, "ends": r.Ends}
	if r.First == nil {
		return o, nil
	}
	shortest, err := explore.Explore(ctx, b, dir, explore.Options{Shortest: true})
	if err != nil {
		return Outcome{}, err
	}
	o.broke(shortest.First)
	line := t
	line.Axes = []faults.Axis{{Name: axisSchedule, Value: shortest.First.Schedule.String()}}
	o.Verdict.Why = append(o.Verdict.Why, line.String())
	o.Extra["violations"], o.Extra["first"], o.Extra["replay"] = r.Violations, shortest.First.Why, line.String()
	return o, nil
}

// broke makes o the outcome of a bound in which a rule was broken.
func (o *Outcome) broke(v *explore.Violation) {
	o.Status = "BROKEN"
	o.Verdict.Class, o.Verdict.Broke, o.Verdict.Why = explore.ClassOf(v.Rule), []string{v.Rule}, []string{v.Why}
}

// replaySchedule runs one execution, and has it told.
func replaySchedule(b explore.Bound, dir, schedule string) (Outcome, error) {
	s, err := explore.ParseSchedule(schedule)
	if err != nil {
		return Outcome{}, fmt.Errorf("%w: %w", faults.ErrTrial, err)
	}
	told, err := explore.Replay(b, dir, s)
	if err != nil {
		return Outcome{}, fmt.Errorf("%w: %w", faults.ErrTrial, err)
	}
	o := Outcome{Status: "HELD", Record: "full", History: told.History, Verdict: oracle.Judge(told.History)}
	if told.Broke != nil {
		o.broke(told.Broke)
	}
	return o, nil
}

// explorePage renders results/explore.md and results/explore_full.md.
func explorePage(name string, spaces []explore.Space, records []Record) string {
	byCell := map[string]Record{}
	sum := map[string]int{}
	broken := 0
	for _, r := range records {
		byCell[r.Row+"/"+r.Column] = r
		for _, what := range []string{"states", "executions", "steps", "ends"} {
			sum[what] += extraCount(r, what)
		}
		if r.Class() != oracle.Correct {
			broken++
		}
	}
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	p("# The gate in %d states", sum["states"])
	p("Made by `interlock-bench %s --seed %s`. Distinct states: %d. Executions: %d, of %d steps. They came to an end %d times, and else to a state that was known. Bounds with a broken rule: %d.",
		name, indexRecords(records).seed(), sum["states"], sum["executions"], sum["steps"], sum["ends"], broken)
	if len(records) > 0 && records[0].Extra["made"] != nil {
		p("Made once: %v.", records[0].Extra["made"])
	}
	p("The gate, its file store, its authority and its drain are the shipped ones. They run as coroutines of one process; disk, services and clock are in memory. Each bound is explored whole. `docs/proof.md` says what that shows and what it doesn't.")
	p("## States by bound and service")
	t := table.Table{Header: []string{"bound"}}
	for _, profile := range explore.Profiles() {
		t.Header = append(t.Header, profile.Name)
	}
	for _, s := range spaces {
		line := []string{"`" + s.Name + "`"}
		for _, profile := range explore.Profiles() {
			r, there := byCell[s.Name+"/"+profile.Name]
			cell := ""
			if there {
				cell = fmt.Sprint(extraCount(r, "states"))
			}
			if there && r.Class() != oracle.Correct {
				cell += " " + strings.Join(r.Broke, ", ")
			}
			line = append(line, cell)
		}
		t.Rows = append(t.Rows, line)
	}
	b.WriteString(t.Markdown() + "\n")
	for _, s := range spaces {
		fmt.Fprintf(&b, "- `%s`: %s\n", s.Name, s.What)
	}
	b.WriteString("\n## Services\n\n")
	for _, profile := range explore.Profiles() {
		fmt.Fprintf(&b, "- `%s` %s\n", profile.Name, profile.What)
	}
	b.WriteString("\n## Rules\n\n")
	for _, r := range explore.Rules {
		fmt.Fprintf(&b, "- `%s`: %s\n", r.Name, r.What)
	}
	for _, r := range records {
		if line, ok := r.Extra["replay"]; ok {
			fmt.Fprintf(&b, "\n%s: %v\n\n    interlock-bench replay '%v'\n", r.ID, r.Extra["first"], line)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
