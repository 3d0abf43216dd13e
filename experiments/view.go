package experiments

import (
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/table"
)

// View is what a terminal of the given width shows of records: each table of the
// experiment that has any, with money and verdict in every cell. With words the
// cells carry the status too; a width of 0 breaks nothing.
func View(e *Experiment, records []Record, width int, words bool) string {
	byID := map[string]Record{}
	var tables, rows, columns []string
	note := func(list *[]string, name string) {
		if !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	for _, r := range records {
		byID[r.ID] = r
		note(&tables, r.Table())
		note(&rows, r.Row)
	}
	for _, c := range e.Columns {
		if slices.ContainsFunc(records, func(r Record) bool { return r.Column == c.Name }) {
			note(&columns, c.Name)
		}
	}
	var parts []string
	for _, name := range tables {
		in := slices.DeleteFunc(slices.Clone(columns), func(column string) bool {
			return !slices.ContainsFunc(rows, func(row string) bool { _, ok := byID[CellID(e.Name, name, row, column)]; return ok })
		})
		t := table.Table{Header: append([]string{"row"}, in...)}
		for _, row := range rows {
			line := []string{row}
			for _, column := range in {
				line = append(line, brief(byID[CellID(e.Name, name, row, column)], words))
			}
			t.Rows = append(t.Rows, line)
		}
		title := ""
		if name != "" {
			title = e.Name + "." + name + "\n\n"
		}
		parts = append(parts, title+t.Terminal(width))
	}
	return strings.Join(parts, "\n")
}

// brief is a cell on a terminal. A cell that was not run is empty.
func brief(r Record, words bool) string {
	switch {
	case r.ID == "":
		return ""
	case words:
		return r.Judged()
	}
	return Money(r.Money()) + " " + r.Class().Word()
}
