package table

import (
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Terminal is the table for people to read, no line longer than width where that
// can be: names are broken at their own hyphens, underscores and @, and columns
// that don't fit go into further tables below, each with the first column. A
// width of 0 breaks nothing, and neither does one that the table fits into. It ends with a newline.
func (t Table) Terminal(width int) string {
	if width <= 0 {
		return t.render()
	}
	if t.Prose {
		return t.prose(width)
	}
	if whole := t.render(); longest(whole) <= width {
		return whole
	}
	t = t.broken()
	var parts []string
	for i := 1; i < len(t.Header); {
		j := i + 1
		part := t.columns(i, j).render()
		for ; j < len(t.Header); j++ {
			wider := t.columns(i, j+1).render()
			if longest(wider) > width {
				break
			}
			part = wider
		}
		parts = append(parts, part)
		i = j
	}
	if len(parts) == 0 {
		return t.render()
	}
	return strings.Join(parts, "\n")
}

// render writes the table by tablewriter, without frames and with nothing
// rewritten.
func (t Table) render() string {
	var b strings.Builder
	padding := tw.CellPadding{Global: tw.Padding{Right: "  ", Overwrite: true}}
	w := tablewriter.NewTable(&b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Symbols: tw.NewSymbols(tw.StyleASCII),
			Settings: tw.Settings{
				Separators: tw.SeparatorsNone,
				Lines:      tw.LinesNone,
			},
		})),
		tablewriter.WithConfig(tablewriter.Config{
			Header: tw.CellConfig{
				Formatting: tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone},
				Alignment:  tw.CellAlignment{Global: tw.AlignLeft},
				Padding:    padding,
			},
			Row: tw.CellConfig{
				Formatting: tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone},
				Alignment:  tw.CellAlignment{Global: tw.AlignLeft},
				Padding:    padding,
			},
		}),
	)
	w.Header(t.Header)
	// The builder never fails, and neither does a table of strings.
	if err := w.Bulk(t.Rows); err != nil {
		return err.Error()
	}
	if err := w.Render(); err != nil {
		return err.Error()
	}
	var trimmed strings.Builder
	for line := range strings.Lines(b.String()) {
		trimmed.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return trimmed.String()
}

// leastProse is how wide sentences are at the least beside the other columns.
const leastProse = 28

// prose is a table whose last column is broken at spaces, or where there is too
// little room for that, goes below the others.
func (t Table) prose(width int) string {
	last := len(t.Header) - 1
	beside := Table{Header: t.Header[:last]}
	for _, row := range t.Rows {
		beside.Rows = append(beside.Rows, t.whole(row)[:last])
	}
	room := width - longest(beside.render()) - 2
	if room >= max(leastProse, narrowest/2) {
		broken := Table{Header: t.Header}
		for _, row := range t.Rows {
			row = t.whole(row)
			row[last] = wrap(row[last], 0, room)
			broken.Rows = append(broken.Rows, row)
		}
		return broken.render()
	}
	var b strings.Builder
	for _, row := range append([][]string{t.Header}, t.Rows...) {
		row = t.whole(row)
		b.WriteString(Wrap(strings.Join(row[:last], "  "), 4, width) + "\n")
		b.WriteString(Wrap("    "+row[last], 4, width) + "\n")
	}
	return b.String()
}

// longestLabel is from where on a row's name is broken: six columns then fit a
// terminal of 80.
const longestLabel = 19

// broken is the table with its names broken over lines.
func (t Table) broken() Table {
	broken := Table{}
	for _, name := range t.Header {
		name = strings.ReplaceAll(name, "@", "\n@")
		broken.Header = append(broken.Header, strings.ReplaceAll(name, "-", "\n-"))
	}
	for _, row := range t.Rows {
		row = append([]string(nil), row...)
		if len(row) > 0 {
			row[0] = breakLabel(row[0])
		}
		broken.Rows = append(broken.Rows, row)
	}
	return broken
}

// breakLabel breaks a long name behind underscores.
func breakLabel(name string) string {
	var lines []string
	line := ""
	for part := range strings.SplitAfterSeq(name, "_") {
		if line != "" && len(line)+len(part) > longestLabel {
			lines, line = append(lines, line), ""
		}
		line += part
	}
	return strings.Join(append(lines, line), "\n")
}

func longest(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		n = max(n, utf8.RuneCountInString(strings.TrimRight(line, " \n")))
	}
	return n
}
