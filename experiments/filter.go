package experiments

import (
	"fmt"
	"slices"
	"strings"
)

// Filter selects cells by row and column. Empty selects all.
type Filter struct {
	Rows    []string
	Columns []string
}

// NameError says that no row, column or experiment has a name.
type NameError struct {
	Kind  string   // "row", "column" or "experiment"
	Name  string   // what was asked for
	Valid []string // the names there are
	Near  []string // those that look like it
}

func (e *NameError) Error() string {
	hint := ""
	if len(e.Near) > 0 {
		hint = fmt.Sprintf("did you mean %s? ", strings.Join(e.Near, " or "))
	}
	return fmt.Sprintf("experiments: no %s is called %q; %sthere are: %s", e.Kind, e.Name, hint, strings.Join(e.Valid, ", "))
}

// CheckName returns nil where valid has name, else a *NameError.
func CheckName(kind, name string, valid []string) error {
	if slices.Contains(valid, name) {
		return nil
	}
	e := &NameError{Kind: kind, Name: name, Valid: valid}
	for _, v := range valid {
		if name != "" && (strings.Contains(v, name) || strings.Contains(name, v)) || distance(name, v) <= 2 {
			e.Near = append(e.Near, v)
		}
	}
	return e
}

// Find returns the experiments of those names, all where there is none. Its
// error is a *NameError.
func Find(all []*Experiment, names []string) ([]*Experiment, error) {
	if len(names) == 0 {
		return all, nil
	}
	var valid []string
	for _, e := range all {
		valid = append(valid, e.Name)
	}
	var found []*Experiment
	for _, name := range names {
		if err := CheckName("experiment", name, valid); err != nil {
			return nil, err
		}
		if e := all[slices.Index(valid, name)]; !slices.Contains(found, e) {
			found = append(found, e)
		}
	}
	return found, nil
}

// Cells returns the selected cells of e in declared order. Errors are *NameError and
// ErrNoCell.
func (f Filter) Cells(e *Experiment) ([]Cell, error) {
	var rows, columns []string
	for _, r := range e.Rows {
		rows = append(rows, r.Name)
	}
	for _, c := range e.Columns {
		columns = append(columns, c.Name)
	}
	for _, name := range f.Rows {
		if err := CheckName("row", name, rows); err != nil {
			return nil, err
		}
	}
	for _, name := range f.Columns {
		if err := CheckName("column", name, columns); err != nil {
			return nil, err
		}
	}
	var cells []Cell
	for _, c := range e.Cells {
		if (len(f.Rows) == 0 || slices.Contains(f.Rows, c.Row)) && (len(f.Columns) == 0 || slices.Contains(f.Columns, c.Column)) {
			cells = append(cells, c)
		}
	}
	if len(cells) == 0 {
		return nil, fmt.Errorf("%w of %s is in rows %v and columns %v", ErrNoCell, e.Name, f.Rows, f.Columns)
	}
	return cells, nil
}

// distance is the number of single characters to insert, delete or replace that
// turns a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
