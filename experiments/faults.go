package experiments

import "github.com/interlock-bench/interlock-bench/faults"

// Faults is what the reference table leaves out: every further way to go wrong
// that people were hurt by, for every column that it applies to.
func Faults() *Experiment {
	return &Experiment{
		Name:  "faults",
		Short: "the same refund against everything else that people were hurt by",
		Long: `The refund of the reference table, with crashes at further places, services that
answer late, wrongly or not at all, decisions that come twice, authority and facts
that change, and clocks that are wrong. A row's own controls void nothing: to
refuse there is wrong.

ok: it held. BAD: it was violated. look: it held, and a person must look.`,
		Example: `  interlock-bench faults
  interlock-bench faults --row crash_on_the_wire --words
  interlock-bench faults --column gate@t2,hand-check@t2
  interlock-bench faults --check`,
		Rows:    faultsDesk.rowInfo(),
		Columns: faultsDesk.columnInfo(),
		Cells:   faultsDesk.cells("", faultsDesk.columns),
		Run:     faultsDesk.run,
		More:    faultsDesk.more,
		Child:   work,
		Page:    faultsPage,
	}
}

var faultsDesk = desk{
	name: "faults", rows: faults.Further, columns: faultsColumns, declared: faultsDeclared,
}
