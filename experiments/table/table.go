// Package table is a table of text and the ways to write it down.
package table

import "strings"

// Table is a header and rows of plain text. A row shorter than the header ends
// in empty cells.
type Table struct {
	Header []string
	Rows   [][]string
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
