// Package table is a table of text and the ways to write it down.
package table

import "strings"

// Table is a header and rows of plain text. A row shorter than the header ends
// in empty cells.
type Table struct {
	Name   string // above it, where there are several; "" is none
	Header []string
	Rows   [][]string
	Prose  bool // the last column is sentences, which a terminal breaks at spaces
}

// Markdown is the table as GitHub renders it. Cells may hold any text: pipes are
// escaped and line breaks become <br>. Nothing is padded, so that one new cell
// changes one line. It ends with a newline.
func (t Table) Markdown() string {
	var b strings.Builder
	line := func(cells []string) {
		for i := range t.Header {
			b.WriteString("| ")
			if i < len(cells) {
				b.WriteString(escape.Replace(cells[i]))
			}
			b.WriteString(" ")
		}
		b.WriteString("|\n")
	}
	line(t.Header)
	b.WriteString(strings.Repeat("|---", len(t.Header)) + "|\n")
	for _, row := range t.Rows {
		line(row)
	}
	return b.String()
}

// A backslash of the text itself would be read as escaping what follows it.
var escape = strings.NewReplacer(`\`, `\\`, "|", `\|`, "\r\n", "<br>", "\n", "<br>", "\r", "<br>")

// Without is the table without its column i, counted from 0.
func (t Table) Without(i int) Table {
	drop := func(cells []string) []string {
		if i >= len(cells) {
			return cells
		}
		return append(append([]string{}, cells[:i]...), cells[i+1:]...)
	}
	rest := Table{Name: t.Name, Header: drop(t.Header), Prose: t.Prose}
	for _, row := range t.Rows {
		rest.Rows = append(rest.Rows, drop(row))
	}
	return rest
}

// columns is the table with its first column and those from i up to j.
func (t Table) columns(i, j int) Table {
	take := func(cells []string) []string {
		taken := make([]string, 0, 1+j-i)
		for _, k := range append([]int{0}, indices(i, j)...) {
			cell := ""
			if k < len(cells) {
				cell = cells[k]
			}
			taken = append(taken, cell)
		}
		return taken
	}
	part := Table{Header: take(t.Header)}
	for _, row := range t.Rows {
		part.Rows = append(part.Rows, take(row))
	}
	return part
}

func indices(i, j int) (all []int) {
	for ; i < j; i++ {
		all = append(all, i)
	}
	return all
}
