package experiments

import (
	"fmt"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// recordIndex finds records by cell.
type recordIndex map[string]Record

func indexRecords(records []Record) recordIndex {
	r := recordIndex{}
	for _, record := range records {
		r[record.ID] = record
	}
	return r
}

// seed is the seed of the run, read from a replay line.
func (r recordIndex) seed() string {
	for _, record := range r {
		if _, seed, ok := strings.Cut(record.Replay, "seed="); ok {
			return seed
		}
	}
	return "1"
}

func (d desk) at(r recordIndex, table, row, column string) (Record, bool) {
	record, ok := r[CellID(d.name, table, row, column)]
	return record, ok
}

// table is rows against columns, each cell with its mark. A row that means
// nothing for a column says so.
func (d desk) table(r recordIndex, name string, rows []faults.Row, columns []column) table.Table {
	t := table.Table{Header: []string{"row"}}
	for _, c := range columns {
		t.Header = append(t.Header, c.Name)
	}
	for _, row := range rows {
		cells := []string{"`" + row.Name + "`"}
		if row.Control {
			cells[0] += " (own control)"
		}
		for _, c := range columns {
			record, ok := d.at(r, name, row.Name, c.Name)
			switch {
			case ok:
				cells = append(cells, record.Cell+" "+record.Class().Mark())
			case !c.has(row.Needs):
				cells = append(cells, "n/a")
			default:
				cells = append(cells, "—")
			}
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

func isClass(c oracle.Class) func(Record) bool {
	return func(r Record) bool { return r.Class() == c }
}

func isBad(r Record) bool { return r.Class().Word() == "BAD" }

func ints(values ...int) []string {
	var s []string
	for _, v := range values {
		s = append(s, fmt.Sprint(v))
	}
	return s
}

func list(rows []string) string {
	if len(rows) == 0 {
		return "none"
	}
	return "`" + strings.Join(rows, "`, `") + "`"
}

func listed(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return " (" + strings.Join(s, "; ") + ")"
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
