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
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// Refund is the reference experiment: one approved $20 refund, eleven ways to go
// wrong, and a second table in which the service can't say how late a request
// may land.
func Refund() *Experiment {
	return &Experiment{
		Name:  "refund",
		Short: "one approved $20 refund against eleven ways to go wrong",
		Long: `A customer paid $100; a case approves one $20 refund. Each cell is one or more
trials: the column runs as a process of its own, is killed by SIGKILL where the
row says so, is started again by the same command, and is judged from the
service's own ledger.

ok: it held. BAD: it was violated. look: it held, and a person must look.`,
		Example: `  interlock-bench refund
  interlock-bench refund --row crash_before_ack
  interlock-bench refund --column naive,gate@t1
  interlock-bench refund --check`,
		Rows:    refundRows(),
		Columns: refundColumnInfo(),
		Cells:   refundCells(),
		Run:     runRefund,
		Child:   work,
		Page:    refundPage,
	}
}

// tableUnbounded is the second table: the same rows where the service doesn't
// say how late a request may land.
const tableUnbounded = "unbounded"

func refundRows() []Row {
	var rows []Row
	for _, r := range faults.Reference {
		rows = append(rows, Row{Name: r.Name, Group: r.Group, What: r.What})
	}
	return rows
}

func refundColumnInfo() []Column {
	var columns []Column
	for _, c := range refundColumns {
		columns = append(columns, c.Column)
	}
	return columns
}

// unboundedColumns are the columns whose cells may depend on the landing bound.
func unboundedColumns() []column {
	return slices.DeleteFunc(slices.Clone(refundColumns), func(c column) bool {
		return !c.gate && !strings.HasPrefix(c.Name, "hand-check@")
	})
}

func refundCells() []Cell {
	var cells []Cell
	add := func(table string, columns []column) {
		for _, r := range faults.Reference {
			for _, c := range columns {
				cells = append(cells, Cell{
					Table: table, Row: r.Name, Column: c.Name,
					Trials:   refundTrials(table, r, c),
					Declared: declared(table, r.Name, c.Name),
				})
			}
		}
	}
	add("", refundColumns)
	add(tableUnbounded, unboundedColumns())
	return cells
}

// refundTrials are the trials of one cell: one, or one per kind of file where
// the column writes a journal. The runner gives them their seed.
func refundTrials(table string, r faults.Row, c column) []faults.Trial {
	t := faults.Trial{Experiment: "refund", Table: table, Row: r.Name, Column: c.Name, Faults: r.Faults}
	if !c.journaled {
		return []faults.Trial{t}
	}
	var trials []faults.Trial
	for _, kind := range []string{filePlain, fileLossy} {
		t.Axes = []faults.Axis{{Name: "file", Value: kind}}
		trials = append(trials, t)
	}
	return trials
}

// patience is how long, in real time, a process may say nothing before it counts
// as hung.
const patience = 20 * time.Second

// settle is how much virtual time passes after the last process is done, so that
// whatever may still land has landed.
const settle = time.Hour

// runRefund runs one trial of the refund experiment.
func runRefund(ctx context.Context, t faults.Trial) (Outcome, error) {
	at := slices.IndexFunc(faults.Reference, func(r faults.Row) bool { return r.Name == t.Row })
	if at < 0 {
		return Outcome{}, fmt.Errorf("experiments: no row is called %q", t.Row)
	}
	row := faults.Reference[at]
	c, ok := findColumn(refundColumns, t.Column)
	if !ok {
		return Outcome{}, fmt.Errorf("experiments: no column is called %q", t.Column)
	}
	profile, ok := sim.ProfileNamed(profileOf(t.Column))
	if !ok {
		return Outcome{}, fmt.Errorf("experiments: no profile is called %q", profileOf(t.Column))
	}
	if t.Table == tableUnbounded {
		profile = profile.Unbounded()
	}
	self, err := os.Executable()
	if err != nil {
		return Outcome{}, fmt.Errorf("experiments: this program can't start itself: %w", err)
	}
	var world *refundWorld
	var given task
	h, err := faults.Run(ctx, faults.Plan{
		Trial:    t,
		Outage:   row.Outage,
		Restarts: maxTries,
		Command:  func(int) *exec.Cmd { return exec.Command(self) },
		Task:     &given,
		World: func(s *faults.Stage) (faults.World, error) {
			var err error
			if world, err = newRefundWorld(ctx, s, row, c, profile); err != nil {
				return nil, err
			}
			given = task{
				Experiment: t.Experiment, Column: t.Column, Network: "unix", Address: world.address(), State: s.State(), File: fileOf(t), Profile: profile,
				Agent: agentID, Lease: leaseID, Order: orderID, Case: caseID, Request: caseID,
			}
			return world, nil
		},
		Patience: patience,
		Settle:   settle,
	})
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Trial: t, History: h, Verdict: oracle.Judge(h), Status: cellStatus(h), Record: world.evidence}, nil
}

func fileOf(t faults.Trial) string {
	for _, a := range t.Axes {
		if a.Name == "file" {
			return a.Value
		}
	}
	return filePlain
}
