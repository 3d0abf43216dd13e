package table

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
)

// Format is one way to write tables down.
type Format struct {
	Name string
	What string // one line of help
	one  func(t Table, width int) string
}

// Formats are all of them, the one for people first.
var Formats = []Format{
	{"table", "for a terminal", func(t Table, width int) string { return titled(t.Name, t.Terminal(width)) }},
	{"markdown", "as GitHub renders it", func(t Table, _ int) string { return titled(t.Name, t.Markdown()) }},
	{"json", "one JSON object a table, one line each", func(t Table, _ int) string { return t.JSON() }},
	{"csv", "comma-separated, as RFC 4180 has it", func(t Table, _ int) string { return t.CSV() }},
	{"latex", "a tabular with the rules of booktabs", func(t Table, _ int) string { return t.LaTeX() }},
}

// Write is the tables in this format, an empty line between two but for JSON,
// which has a line each. width is that of a terminal and counts for the first
// format alone.
func (f Format) Write(width int, tables ...Table) string {
	var parts []string
	for _, t := range tables {
		parts = append(parts, f.one(t, width))
	}
	if f.Name == "json" {
		return strings.Join(parts, "")
	}
	return strings.Join(parts, "\n")
}

func titled(name, text string) string {
	if name == "" {
		return text
	}
	return name + "\n\n" + text
}

// version is the "v" of every table that is written as JSON.
const version = 1

// JSON is the table as one line of JSON:
//
//	{"v":1,"table":"refund.unbounded","header":["row","naive"],"rows":[["happy_path","APPLIED $20 ok"]]}
//
// Every row has as many cells as the header; table is "" where it has no name.
func (t Table) JSON() string {
	rows := make([][]string, 0, len(t.Rows))
	for _, row := range t.Rows {
		rows = append(rows, t.whole(row))
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(struct { // strings never fail, and neither does a buffer
		V      int        `json:"v"`
		Table  string     `json:"table"`
		Header []string   `json:"header"`
		Rows   [][]string `json:"rows"`
	}{version, t.Name, append([]string{}, t.Header...), rows})
	return b.String()
}

// CSV is the table as RFC 4180 has it but for the line ends, which are \n. The
// header is its first record; the table's name is not in it.
func (t Table) CSV() string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(t.Header) // a builder never fails
	for _, row := range t.Rows {
		w.Write(t.whole(row))
	}
	w.Flush()
	return b.String()
}

// LaTeX is the table as a tabular environment with the rules of the package
// booktabs. Whatever LaTeX would read as a command is escaped.
func (t Table) LaTeX() string {
	var b strings.Builder
	if t.Name != "" {
		b.WriteString("% " + strings.ReplaceAll(t.Name, "\n", " ") + "\n")
	}
	b.WriteString(`\begin{tabular}{` + strings.Repeat("l", len(t.Header)) + "}\n\\toprule\n")
	line := func(cells []string) {
		var escaped []string
		for _, c := range t.whole(cells) {
			escaped = append(escaped, EscapeLaTeX(c))
		}
		b.WriteString(strings.Join(escaped, " & ") + ` \\` + "\n")
	}
	line(t.Header)
	b.WriteString("\\midrule\n")
	for _, row := range t.Rows {
		line(row)
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n")
	return b.String()
}

// EscapeLaTeX is text as LaTeX prints it, on one line.
func EscapeLaTeX(text string) string { return latex.Replace(text) }

var latex = strings.NewReplacer(
	`\`, `\textbackslash{}`, "{", `\{`, "}", `\}`, "$", `\$`, "&", `\&`, "#", `\#`, "%", `\%`, "_", `\_`,
	"~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "<", `\textless{}`, ">", `\textgreater{}`, "\r\n", " ", "\n", " ", "\r", " ",
)

// whole is a row with as many cells as the header.
func (t Table) whole(row []string) []string {
	cells := make([]string, len(t.Header))
	copy(cells, row)
	return cells
}
