package experiments

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/interlock-bench/interlock-bench/faults"
)

// queue hands out the trials of a run, and takes in those that follow from
// their outcomes. The order in which they end leaves no trace in the records.
type queue struct {
	e     *Experiment
	cells []Cell
	index map[string]int // of cells, by id

	mu       sync.Mutex
	changed  *sync.Cond
	jobs     []job // not begun
	running  int
	total    int
	ended    int
	outcomes [][]ended // by cell
}

// job is a trial and its place: the number of a trial that a cell names, and
// behind it, for one that follows from another, its number among those. All
// numbers are from 0.
type job struct {
	cell  int
	trial faults.Trial
	place []int
}

// ended is a trial that was run.
type ended struct {
	place   []int
	outcome Outcome
}

// number is the job's place as it stands in the name of a kept file.
func (j job) number() string {
	var parts []string
	for _, n := range j.place {
		parts = append(parts, strconv.Itoa(n+1))
	}
	return strings.Join(parts, "-")
}

func newQueue(e *Experiment, cells []Cell) *queue {
	q := &queue{e: e, cells: cells, index: map[string]int{}, outcomes: make([][]ended, len(cells))}
	q.changed = sync.NewCond(&q.mu)
	for i, c := range cells {
		q.index[c.ID(e.Name)] = i
	}
	return q
}

// fill takes in the trials that the cells name.
func (q *queue) fill(seed uint64) error {
	for i, c := range q.cells {
		if len(c.Trials) == 0 && q.e.More == nil {
			return q.empty(c)
		}
		for k, t := range c.Trials {
			t.Seed = seed
			q.jobs = append(q.jobs, job{i, t, []int{k}})
		}
	}
	q.total = len(q.jobs)
	return nil
}

func (q *queue) empty(c Cell) error {
	return fmt.Errorf("%w: %s has none", ErrTrial, c.ID(q.e.Name))
}

// take returns the next trial; false when there is none and none will follow, or
// ctx has ended.
func (q *queue) take(ctx context.Context) (job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 0 && q.running > 0 && ctx.Err() == nil {
		q.changed.Wait()
	}
	if len(q.jobs) == 0 || ctx.Err() != nil {
		return job{}, false
	}
	j := q.jobs[0]
	q.jobs = q.jobs[1:]
	q.running++
	return j, true
}

// wake lets those who wait in take look at their contexts.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed.Broadcast()
}

// done notes what came of j and takes in what follows from it, ahead of what
// waits. An outcome's history is let go.
func (q *queue) done(j job, o Outcome, progress func(done, total int)) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.changed.Broadcast()
	var next []job
	if q.e.More != nil {
		for k, t := range q.e.More(o) {
			t.Seed = j.trial.Seed
			id := CellID(t.Experiment, t.Table, t.Row, t.Column)
			cell, ok := q.index[id]
			if !ok {
				return fmt.Errorf("%w: %s is in no cell of this run", ErrTrial, t)
			}
			next = append(next, job{cell, t, append(slices.Clone(j.place), k)})
		}
	}
	o.History = nil
	q.outcomes[j.cell] = append(q.outcomes[j.cell], ended{j.place, o})
	q.jobs = append(next, q.jobs...)
	q.total += len(next)
	q.running--
	q.ended++
	if progress != nil {
		progress(q.ended, q.total)
	}
	return nil
}

// records merges what came of every cell, each in the order of places.
func (q *queue) records() ([]Record, error) {
	var records []Record
	for i, c := range q.cells {
		if len(q.outcomes[i]) == 0 {
			return nil, q.empty(c)
		}
		slices.SortFunc(q.outcomes[i], func(a, b ended) int { return slices.Compare(a.place, b.place) })
		var of []Outcome
		for _, e := range q.outcomes[i] {
			of = append(of, e.outcome)
		}
		records = append(records, merge(of, q.e.Sum))
	}
	return records, nil
}
