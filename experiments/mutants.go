package experiments

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/mutant"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// Mutants is every machine mutant of the gate, its journal and its wire, each tried
// by what should catch it.
func Mutants() *Experiment {
	return mutants("mutants", "the gate with each guard taken out in turn: who notices? (the whole run; minutes)", true, nil,
		func(of []mutant.Spot, _ uint64) []mutant.Spot { return of })
}

// PlantedFaults is every fault that is planted by design, each tried by all that is
// said to catch it.
func PlantedFaults() *Experiment {
	return mutants("planted", "faults planted in the gate, as real systems had them: who notices? (minutes)", true, mutant.Broken, nil)
}

// MutantsSlice is a part of both, small enough to be run again by every check. It
// leaves out machine mutants whose survival is explained: the whole run has tried
// them.
func MutantsSlice() *Experiment {
	return mutants("mutants-slice", "a part of the mutants and planted faults, picked by the seed", false, slicePlanted(), sliceMachine)
}

// The columns.
const (
	mutantsPlanted = "planted"
	mutantsMachine = "machine"
)

func mutants(name, short string, once bool, planted []mutant.Mutant, pick func([]mutant.Spot, uint64) []mutant.Spot) *Experiment {
	e := &Experiment{
		Name:  name,
		Short: short,
		Long: `A mutant is the gate with one guard gone. Planted faults are ways in which real
systems got it wrong; each says which cells and tests catch it, and all of them
must. Machine mutants are made of the source: a condition is forced, a side of it
dropped, a call not made. Each is tried by the tests of its package, then by what
costs more, until something fails. What nothing catches must be explained.

It needs the module's source and the go command.`,
		Example: "  interlock-bench " + name,
		Begin:   beginMutants,
		Run:     func(ctx context.Context, t faults.Trial) (Outcome, error) { return runMutant(ctx, t, planted) },
		More:    func(o Outcome) []faults.Trial { return mutantsOf(o, pick) },
		Sum:     sumMutants,
		Once:    once,
		Page:    func(records []Record) string { return mutantsPage(name, once, records) },
	}
	if len(planted) > 0 {
		e.Columns = append(e.Columns, Column{Name: mutantsPlanted, What: "planted by design; each is caught by all that is said to catch it", Holds: true})
	}
	for _, m := range planted {
		e.Rows = append(e.Rows, Row{Name: m.Name, Group: mutantsPlanted, What: sentence(m.Why)})
		e.Cells = append(e.Cells, mutantCell(name, m.Name, mutantsPlanted))
	}
	if pick == nil {
		return e
	}
	e.Example += " --row wire"
	e.Columns = append(e.Columns, Column{Name: mutantsMachine, What: "made by machine; each is caught, or its survival is explained", Holds: true})
	for _, pkg := range mutant.Guarded {
		e.Rows = append(e.Rows, Row{Name: packageRow(pkg), Group: mutantsMachine, What: "Mutants of " + pkg + ", and first the package as it is, which nothing may catch."})
		e.Cells = append(e.Cells, mutantCell(name, packageRow(pkg), mutantsMachine))
	}
	return e
}

func mutantCell(name, row, column string) Cell {
	return Cell{Row: row, Column: column, Trials: []faults.Trial{{Experiment: name, Row: row, Column: column}}}
}

// packageRow names a package's row by the last part of its path.
func packageRow(pkg string) string { return pkg[strings.LastIndex(pkg, "/")+1:] }

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

// How many a slice takes.
const (
	slicePlantedFaults = 2
	sliceOfPackage     = 5
)

// slicePlanted are some planted faults that tests alone catch: their programs are
// the quickest to build.
func slicePlanted() (of []mutant.Mutant) {
	for _, m := range mutant.Broken {
		if len(m.Cells) == 0 && len(m.Tests) == 1 {
			of = append(of, m)
		}
	}
	return first(of, slicePlantedFaults, func(m mutant.Mutant) string { return m.Name })
}

func sliceMachine(of []mutant.Spot, seed uint64) []mutant.Spot {
	of = slices.DeleteFunc(slices.Clone(of), func(s mutant.Spot) bool { _, ok := mutant.Explained(s); return ok })
	return first(of, sliceOfPackage, func(s mutant.Spot) string { return fmt.Sprint(s.Name, seed) })
}

// first are those n of a list that come first by a digest of their names.
func first[T any](of []T, n int, name func(T) string) []T {
	digest := func(v T) uint64 {
		sum := sha256.Sum256([]byte(name(v)))
		return binary.BigEndian.Uint64(sum[:])
	}
	of = slices.Clone(of)
	slices.SortStableFunc(of, func(a, b T) int { return cmp.Compare(digest(a), digest(b)) })
	return of[:min(n, len(of))]
}

// theBench is the key of the bench of a run.
type theBench struct{}

func beginMutants(ctx context.Context) (context.Context, func(), error) {
	b, err := mutant.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	return context.WithValue(ctx, theBench{}, b), func() { b.Close() }, nil
}

// axisMutant names a machine mutant in a trial.
const axisMutant = "mutant"

// runMutant tries one mutant, or a package without one.
func runMutant(ctx context.Context, t faults.Trial, planted []mutant.Mutant) (Outcome, error) {
	b := ctx.Value(theBench{}).(*mutant.Bench)
	if t.Column == mutantsPlanted {
		i := slices.IndexFunc(planted, func(m mutant.Mutant) bool { return m.Name == t.Row })
		if i < 0 {
			return Outcome{}, fmt.Errorf("experiments: no planted fault is called %q", t.Row)
		}
		caught, missed, err := b.Planted(ctx, planted[i])
		return plantedOutcome(caught, missed), err
	}
	of := slices.DeleteFunc(slices.Clone(b.Spots()), func(s mutant.Spot) bool { return packageRow(s.Package()) != t.Row })
	if len(of) == 0 {
		return Outcome{}, fmt.Errorf("experiments: %q has no mutants", t.Row)
	}
	if len(t.Axes) == 0 {
		c, err := b.Control(ctx, of[0].Package())
		if err == nil && c.By != "" {
			err = fmt.Errorf("experiments: %s, %s %s without any mutant, so nothing can be said of one", c.By, c.What, c.How)
		}
		return Outcome{Status: "HELD", Record: "full", Verdict: verdictOf(oracle.Correct, "whole"), Extra: map[string]any{"spots": of}}, err
	}
	i := slices.IndexFunc(of, func(s mutant.Spot) bool { return s.Name == t.Axes[0].Value })
	if i < 0 {
		return Outcome{}, fmt.Errorf("experiments: the source has no mutant %q", t.Axes[0].Value)
	}
	c, err := b.Machine(ctx, of[i])
	return machineOutcome(of[i], c), err
}

func verdictOf(class oracle.Class, shown string) oracle.Verdict {
	return oracle.Verdict{Class: class, Shown: shown, Answer: oracle.Agrees}
}

func plantedOutcome(caught []mutant.Catch, missed []string) Outcome {
	o := Outcome{Status: "CAUGHT", Record: "full", Verdict: verdictOf(oracle.Correct, "noticed"), Extra: map[string]any{"caught": caught}}
	if len(missed) > 0 {
		o.Status, o.Verdict = "SURVIVED", verdictOf(oracle.Lost, "unnoticed")
		o.Extra["missed"] = missed
	}
	return o
}

func machineOutcome(s mutant.Spot, c mutant.Catch) Outcome {
	o := Outcome{Status: "CAUGHT", Record: "full", Verdict: verdictOf(oracle.Correct, "noticed")}
	x := triedMutant{Name: s.Name, By: c.By, What: c.What, How: c.How, Source: s.Function}
	if c.By == "" {
		x.Text = s.Text
		if _, ok := mutant.Explained(s); ok {
			o.Status, o.Verdict = "EXPLAINED", verdictOf(oracle.Ambiguous, "unnoticed")
		} else {
			o.Status, o.Verdict = "SURVIVED", verdictOf(oracle.Lost, "unnoticed")
		}
	}
	o.Extra = map[string]any{"tried": x}
	return o
}

// triedMutant is what a record says of a machine mutant. A record has its names in
// order.
type triedMutant struct {
	By     string `json:"by,omitempty"` // "" is nobody
	How    string `json:"how,omitempty"`
	Name   string `json:"name"`
	Source string `json:"source"`         // digest of the function that it is in
	Text   string `json:"text,omitempty"` // of the source, where nobody caught it
	What   string `json:"what,omitempty"`
}

// mutantsOf are the trials that follow from a package without a mutant.
func mutantsOf(o Outcome, pick func([]mutant.Spot, uint64) []mutant.Spot) (next []faults.Trial) {
	of, _ := o.Extra["spots"].([]mutant.Spot)
	for _, s := range pick(of, o.Trial.Seed) {
		t := o.Trial
		t.Axes = []faults.Axis{{Name: axisMutant, Value: s.Name}}
		next = append(next, t)
	}
	return next
}

// sumMutants is the extra of a cell.
func sumMutants(of []Outcome) map[string]any {
	if of[0].Trial.Column == mutantsPlanted {
		return of[0].Extra
	}
	tried := []triedMutant{}
	for _, o := range of {
		if x, ok := o.Extra["tried"].(triedMutant); ok {
			tried = append(tried, x)
		}
	}
	return map[string]any{"tried": tried}
}
