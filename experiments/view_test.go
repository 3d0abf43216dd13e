package experiments_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults"
)

func ExampleTables() {
	e := tiny(except("crash_before_ack/naive", duplicate))
	records, err := experiments.Run(context.Background(), e, experiments.Filter{}, experiments.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(table.Formats[0].Write(80, experiments.Tables(e, records, experiments.Brief)...))
	// Output:
	// tiny-one
	//
	// row               naive    gate@t1
	// happy_path        $20 ok   $20 ok
	// crash_before_ack  $40 BAD  $20 ok
}

func TestTablesShowCellsInThreeWays(t *testing.T) {
	e := tiny(except("crash_before_ack/naive", duplicate))
	records := run(t, e)
	for _, c := range []struct {
		show experiments.Show
		want string
	}{{experiments.Brief, "$40 BAD"}, {experiments.Words, "RETRIED $40 BAD"}, {experiments.Marks, "RETRIED $40 ❌"}} {
		tables := experiments.Tables(e, records, c.show)
		if len(tables) != 1 || tables[0].Rows[1][1] != c.want {
			t.Errorf("%v: %+v, not %q", c.show, tables, c.want)
		}
	}
}

func TestTablesHaveNoEmptyRowsOrColumns(t *testing.T) {
	e := tiny(right)
	for i := range e.Cells {
		if e.Cells[i].Row == "crash_before_ack" {
			e.Cells[i].Table = "second"
		}
	}
	e.Run = func(_ context.Context, trial faults.Trial) (experiments.Outcome, error) { return right(trial), nil }
	for i, c := range e.Cells {
		for k := range c.Trials {
			e.Cells[i].Trials[k].Table = c.Table
		}
	}
	tables := experiments.Tables(e, run(t, e)[:3], experiments.Brief)
	if len(tables) != 2 || tables[0].Name != "tiny-one" || tables[1].Name != "tiny-one.second" {
		t.Fatalf("%+v", tables)
	}
	if len(tables[0].Rows) != 1 || len(tables[1].Rows) != 1 || len(tables[1].Header) != 2 {
		t.Errorf("%+v", tables)
	}
}
