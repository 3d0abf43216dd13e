package experiments

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-bench/interlock-bench/faults"
)

// Options say how a run goes. The zero value runs.
type Options struct {
	Seed     uint64                // of every trial; 0 is 1
	Workers  int                   // trials at once; 0 is 2
	Progress func(done, total int) // trials; called for each that ends, never twice at once; nil is silent
	Keep     string                // folder that takes every trial's history and state; "" keeps none
}

// Errors of a run.
var (
	// ErrNoCell is returned where rows and columns are known, and no cell is in both.
	ErrNoCell = errors.New("experiments: no cell")
	// ErrTrial is returned where a trial could not be run. It says nothing of the
	// column.
	ErrTrial = errors.New("experiments: a trial could not be run")
)

// Run runs the cells of e that f selects and returns their records in declared
// order, whatever order the trials ended in. The first trial that can't be run
// ends the others, as ctx does; then there are no records. Errors are *NameError,
// ErrNoCell, ErrTrial, and ctx's.
func Run(ctx context.Context, e *Experiment, f Filter, o Options) ([]Record, error) {
	cells, err := f.Cells(e)
	if err != nil {
		return nil, err
	}
	q := newQueue(e, cells)
	if err := q.fill(orElse(o.Seed, 1)); err != nil {
		return nil, err
	}
	if o.Keep != "" {
		if err := Writable(o.Keep); err != nil {
			return nil, err
		}
	}

	began := time.Now()
	ctx, end, err := e.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(ctx, q.wake)()
	var workers sync.WaitGroup
	for range orElse(o.Workers, 2) {
		workers.Go(func() {
			for {
				j, ok := q.take(ctx)
				if !ok {
					return
				}
				outcome, err := runTrial(ctx, e, j.trial, o.Keep, j.number())
				if err == nil {
					err = q.done(j, outcome, o.Progress)
				}
				if err != nil {
					stop(err)
					return
				}
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	records, err := q.records()
	if e.Once {
		for _, r := range records {
			r.Extra["made"] = Made(time.Since(began))
		}
	}
	return records, err
}

// begin is Begin, where there is one.
func (e *Experiment) begin(ctx context.Context) (context.Context, func(), error) {
	if e.Begin == nil {
		return ctx, func() {}, nil
	}
	with, end, err := e.Begin(ctx)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if err != nil {
		err = fmt.Errorf("%w: %w", ErrTrial, err)
	}
	return with, end, err
}

// runTrial runs a trial. number tells it from the others of its cell.
func runTrial(ctx context.Context, e *Experiment, t faults.Trial, keep, number string) (Outcome, error) {
	name := ""
	if keep != "" {
		name = filepath.Join(keep, strings.ReplaceAll(CellID(t.Experiment, t.Table, t.Row, t.Column), "/", "_")+"_"+number)
		ctx = keepingState(ctx, name+".state")
	}
	o, err := e.Run(ctx, t)
	if ctx.Err() != nil {
		return o, context.Cause(ctx)
	}
	if err != nil {
		return o, fmt.Errorf("%w: %s: %w", ErrTrial, t, err)
	}
	o.Trial = t
	if keep == "" {
		return o, nil
	}
	if err := keepHistory(name+".jsonl", o); err != nil {
		return o, fmt.Errorf("%w: its history can't be kept: %w", ErrTrial, err)
	}
	return o, nil
}

// Replay runs the one trial of a line again. Where keep is not "" its history
// and its state are kept there as Run keeps those of a cell's first trial. Errors
// are faults.ErrTrial for what is no trial, *NameError for one of no experiment,
// row or column, ErrNoCell, ErrTrial, and ctx's.
func Replay(ctx context.Context, all []*Experiment, line, keep string) (Kept, error) {
	t, err := faults.ParseTrial(line)
	if err != nil {
		return Kept{}, err
	}
	chosen, err := Find(all, []string{t.Experiment})
	if err != nil {
		return Kept{}, err
	}
	e := chosen[0]
	cells, err := Filter{Rows: []string{t.Row}, Columns: []string{t.Column}}.Cells(e)
	if err != nil {
		return Kept{}, err
	}
	if !slices.ContainsFunc(cells, func(c Cell) bool { return c.Table == t.Table }) {
		return Kept{}, fmt.Errorf("%w: %s has no table %q with that row and column", ErrNoCell, e.Name, t.Table)
	}
	if err := checkAxes(e, t); err != nil {
		return Kept{}, err
	}
	if keep != "" {
		if err := Writable(keep); err != nil {
			return Kept{}, err
		}
	}
	ctx, end, err := e.begin(ctx)
	if err != nil {
		return Kept{}, err
	}
	defer end()
	o, err := runTrial(ctx, e, t, keep, "1")
	if err != nil {
		return Kept{}, err
	}
	return keptOf(o), nil
}

// checkAxes refuses an axis, or a value of one, that no trial of e has: it would
// be run as if it weren't there.
func checkAxes(e *Experiment, t faults.Trial) error {
	var names []string
	values := map[string][]string{}
	for _, c := range e.Cells {
		for _, of := range c.Trials {
			for _, a := range of.Axes {
				if !slices.Contains(values[a.Name], a.Value) {
					values[a.Name] = append(values[a.Name], a.Value)
				}
				if !slices.Contains(names, a.Name) {
					names = append(names, a.Name)
				}
			}
		}
	}
	for _, a := range t.Axes {
		if slices.Contains(e.Free, a.Name) {
			continue
		}
		if err := CheckName("axis of "+e.Name, a.Name, names); err != nil {
			return err
		}
		if err := CheckName("value of axis "+a.Name, a.Value, values[a.Name]); err != nil {
			return err
		}
	}
	return nil
}

func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
