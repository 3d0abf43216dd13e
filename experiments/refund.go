package experiments

import (
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/faults"
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
		Rows:    refundDesk.rowInfo(),
		Columns: refundDesk.columnInfo(),
		Cells:   append(refundDesk.cells("", refundColumns), refundDesk.cells(tableUnbounded, unboundedColumns())...),
		Run:     refundDesk.run,
		Child:   work,
		Page:    refundPage,
	}
}

var refundColumns = slices.Concat(referenceColumns, handChecks)

var refundDesk = desk{name: "refund", rows: faults.Reference, columns: refundColumns, declared: declared}

// tableUnbounded is the second table: the same rows where the service doesn't
// say how late a request may land.
const tableUnbounded = "unbounded"

// unboundedColumns are the columns whose cells may depend on the landing bound.
func unboundedColumns() []column {
	return slices.DeleteFunc(slices.Clone(refundColumns), func(c column) bool {
		return !c.gate && !strings.HasPrefix(c.Name, "hand-check@")
	})
}
