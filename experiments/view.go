package experiments

import (
	"slices"

	"github.com/interlock-bench/interlock-bench/experiments/table"
)

// Show says how a cell reads.
type Show int

const (
	Brief Show = iota // "$20 ok"
	Words             // "COMMITTED $20 ok"
	Marks             // "COMMITTED $20 ✅"
)

// Tables are those tables of the experiment that have any of the records, each
// under its name: the experiment's, or experiment.table.
func Tables(e *Experiment, records []Record, show Show) []table.Table {
	byID := map[string]Record{}
	var names, rows, columns []string
	note := func(list *[]string, name string) {
		if !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	for _, r := range records {
		byID[r.ID] = r
		note(&names, r.Table())
		note(&rows, r.Row)
	}
	for _, c := range e.Columns {
		if slices.ContainsFunc(records, func(r Record) bool { return r.Column == c.Name }) {
			note(&columns, c.Name)
		}
	}
	var tables []table.Table
	for _, name := range names {
		has := func(row, column string) bool { _, ok := byID[CellID(e.Name, name, row, column)]; return ok }
		in := slices.DeleteFunc(slices.Clone(columns), func(column string) bool {
			return !slices.ContainsFunc(rows, func(row string) bool { return has(row, column) })
		})
		t := table.Table{Name: e.Name, Header: append([]string{"row"}, in...)}
		if name != "" {
			t.Name += "." + name
		}
		for _, row := range rows {
			if !slices.ContainsFunc(in, func(column string) bool { return has(row, column) }) {
				continue
			}
			line := []string{row}
			for _, column := range in {
				line = append(line, show.cell(byID[CellID(e.Name, name, row, column)]))
			}
			t.Rows = append(t.Rows, line)
		}
		tables = append(tables, t)
	}
	return tables
}

// cell is a record as it is shown. A cell that was not run is empty.
func (s Show) cell(r Record) string {
	switch {
	case r.ID == "":
		return ""
	case s == Words:
		return r.Judged()
	case s == Marks:
		return r.Cell + " " + r.Class().Mark()
	}
	return r.Shown() + " " + r.Class().Word()
}
