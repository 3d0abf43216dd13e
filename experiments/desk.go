package experiments

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// desk is an experiment at the refund desk: rows of what can go wrong against
// columns that carry out one approved refund.
type desk struct {
	name     string
	rows     []faults.Row
	columns  []column
	declared func(table, row, column string) string
	plain    bool // no trial runs on the file that loses what was not synced: another process reads it
}

func (d desk) rowInfo() []Row {
	var rows []Row
	for _, r := range d.rows {
		rows = append(rows, Row{Name: r.Name, Group: r.Group, What: r.What})
	}
	return rows
}

func (d desk) columnInfo() []Column {
	var columns []Column
	for _, c := range d.columns {
		columns = append(columns, c.Column)
	}
	return columns
}

// cells are those of one table: each row with the columns that it applies to.
func (d desk) cells(table string, columns []column) []Cell {
	var cells []Cell
	for _, r := range d.rows {
		for _, c := range columns {
			if c.has(r.Needs) {
				cells = append(cells, Cell{
					Table: table, Row: r.Name, Column: c.Name,
					Trials:   d.trials(table, r, c),
					Declared: d.declared(table, r.Name, c.Name),
				})
			}
		}
	}
	return cells
}

// trials are those that one cell begins with: one, or one per kind of file where
// the column writes a journal. The runner gives them their seed.
func (d desk) trials(table string, r faults.Row, c column) []faults.Trial {
	t := faults.Trial{Experiment: d.name, Table: table, Row: r.Name, Column: c.Name, Faults: c.steps.places(r.Faults)}
	if !c.journaled || d.plain {
		return []faults.Trial{t}
	}
	if c.gate && slices.Contains(r.With, "store:"+storeSQLite) {
		t.Axes = []faults.Axis{{Name: "store", Value: storeSQLite}}
		return []faults.Trial{t}
	}
	var trials []faults.Trial
	for _, kind := range []string{filePlain, fileLossy} {
		t.Axes = []faults.Axis{{Name: "file", Value: kind}}
		trials = append(trials, t)
	}
	return trials
}

// more are the trials that follow from one that was run.
func (d desk) more(o Outcome) []faults.Trial {
	at := slices.IndexFunc(d.rows, func(r faults.Row) bool { return r.Name == o.Trial.Row })
	if at < 0 || !d.rows[at].EveryStep {
		return nil
	}
	return everyStep(d.rows[at], o)
}

// patience is how long, in real time, a process may say nothing before it counts
// as hung.
const patience = 20 * time.Second

// settleTime is how much virtual time passes after the last process is done, so
// that whatever may still land has landed.
const settleTime = time.Hour

// run runs one trial.
func (d desk) run(ctx context.Context, t faults.Trial) (Outcome, error) {
	at := slices.IndexFunc(d.rows, func(r faults.Row) bool { return r.Name == t.Row })
	if at < 0 {
		return Outcome{}, fmt.Errorf("experiments: no row is called %q", t.Row)
	}
	row := d.rows[at]
	c, ok := findColumn(d.columns, t.Column)
	if !ok {
		return Outcome{}, fmt.Errorf("experiments: no column is called %q", t.Column)
	}
	on, err := termsOf(c, t.Table, row.With)
	if err != nil {
		return Outcome{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return Outcome{}, fmt.Errorf("experiments: this program can't start itself: %w", err)
	}
	var world *refundWorld
	var given task
	h, err := faults.Run(ctx, faults.Plan{
		Trial:    t,
		Before:   row.Before,
		Outage:   append(slices.Clone(row.Outage), outageOf(t)...),
		Restarts: max(maxTries, len(t.Faults)),
		Command:  func(int) *exec.Cmd { return exec.Command(self) },
		Task:     &given,
		World: func(s *faults.Stage) (faults.World, error) {
			var err error
			if world, err = newRefundWorld(ctx, s, row, c, on); err != nil {
				return nil, err
			}
			given = task{
				Experiment: t.Experiment, Column: t.Column, Network: world.network, Address: world.address, State: s.State(), File: fileOf(t),
				Store: on.store, Disk: on.disk, Cap: on.cap, Amount: row.Submits[0].Amount,
				Profile: on.profile, Premises: on.premises, Agent: agentID, Lease: leaseID, Order: orderID, Case: caseID, Request: caseID,
			}
			return world, nil
		},
		Patience: patience,
		Settle:   settleTime,
	})
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Trial: t, History: h, Verdict: oracle.Judge(h), Status: cellStatus(h), Record: world.evidence}
	o.Extra = map[string]any{}
	if on.wire {
		o.Extra = world.seenOnWire(h)
	}
	if row.Group == "after" {
		o.Extra["settlement"] = world.settled
	}
	if len(world.seconds) > 0 {
		var words []string
		for _, said := range world.seconds {
			words = append(words, said.Status)
		}
		o.Extra["second"] = strings.Join(words, ", ")
	}
	if n := o.Verdict.Window; n > 0 {
		o.Extra["window"] = n
	}
	return o, nil
}

// outageOf are the acts that a trial has in its outage, beside those of its row.
func outageOf(t faults.Trial) []string {
	for _, a := range t.Axes {
		if a.Name == "outage" {
			return []string{a.Value}
		}
	}
	return nil
}

func fileOf(t faults.Trial) string {
	for _, a := range t.Axes {
		if a.Name == "file" {
			return a.Value
		}
	}
	return filePlain
}
