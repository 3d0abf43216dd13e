package experiments

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// Finding is one way in which results are not what they should be.
type Finding struct {
	Kind     Kind
	Where    string // a cell's id, or a file and what is in it
	From, To string // what it was, or should be, and what it is
}

// Kind says how a Finding counts.
type Kind int

const (
	Note     Kind = iota // a column that promises nothing differs from what was declared
	Drift                // committed results are not what they are rendered from, or what a run gives
	Broken               // a column that promises its cells broke one
	Unjudged             // a trial could not be judged, or its fault did not happen
)

// String is the kind in words.
func (k Kind) String() string {
	return [...]string{"note", "drift", "broken promise", "not judged"}[k]
}

// String is one line for people.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: from %s to %s", f.Kind, f.Where, cmp.Or(f.From, "nothing"), cmp.Or(f.To, "nothing"))
}

// Check holds the results of e in dir against themselves and, unless bytesOnly,
// against a new run with their own seed. The page must be the rendering of the
// records, byte for byte, and the records those of all of e's cells; a new run
// must give the same records, unless e is made once. Errors are those of Run; results
// that are missing or can't be read are findings, and that nobody has made yet what
// is made once is a note.
func Check(ctx context.Context, e *Experiment, dir string, bytesOnly bool, o Options) ([]Finding, error) {
	if e.Over != nil {
		return checkDerived(dir, e), nil
	}
	files := FilesOf(dir, e)
	encoded, err := readRegular(files.Records)
	if _, page := os.Lstat(files.Page); e.Once && errors.Is(err, fs.ErrNotExist) && errors.Is(page, fs.ErrNotExist) {
		return []Finding{{Note, files.Records, "a run that is made once", "none yet, which `interlock-bench " + e.Name + "` makes"}}, nil
	}
	if err != nil {
		return []Finding{{Drift, files.Records, "a file that can be read", err.Error()}}, nil
	}
	page, err := readRegular(files.Page)
	if err != nil {
		return []Finding{{Drift, files.Page, "a file that can be read", err.Error()}}, nil
	}
	records, err := DecodeRecords(encoded)
	if err != nil {
		return []Finding{{Drift, files.Records, "records", err.Error()}}, nil
	}
	findings := declaredCells(e, files.Records, records)
	if len(findings) == 0 { // the page of other cells differs in every line
		findings = comparePages(files.Page, string(page), PageOf(e, records))
	}
	if e.Drawing != nil {
		if drawn, err := readRegular(files.Drawing); err != nil || string(drawn) != e.Drawing(records) {
			findings = append(findings, Finding{Drift, files.Drawing, "the drawing of its records", "another one"})
		}
	}
	if len(findings) > 0 || bytesOnly || e.Once {
		return append(findings, Promises(e, records)...), nil
	}
	if len(records) > 0 {
		t, err := faults.ParseTrial(records[0].Replay)
		if err != nil {
			return nil, err
		}
		o.Seed = t.Seed
	}
	rerun, err := Run(ctx, e, Filter{}, o)
	if err != nil {
		return nil, err
	}
	return append(compareRecords(records, rerun), Promises(e, rerun)...), nil
}

// Promises holds records against what their cells declare. It is silent about
// cells that have no record.
func Promises(e *Experiment, records []Record) []Finding {
	cells := map[string]Cell{}
	for _, c := range e.Cells {
		cells[c.ID(e.Name)] = c
	}
	holds := map[string]bool{}
	for _, c := range e.Columns {
		holds[c.Name] = c.Holds
	}
	var findings []Finding
	for _, r := range records {
		declared := cells[r.ID].Declared
		kept := declared == r.Judged() || declared == "" && r.Class().Word() != "BAD"
		if kept && r.Class() != oracle.Unknown {
			continue
		}
		f := Finding{Kind: Broken, Where: r.ID, From: declared, To: fmt.Sprintf("%s (replay %s)", r.Judged(), r.Replay)}
		switch {
		case r.Class() == oracle.Unknown:
			f.Kind = Unjudged
		case !holds[r.Column] && declared == "":
			continue // baselines are meant to break
		case !holds[r.Column]:
			f.Kind = Note
		}
		findings = append(findings, f)
	}
	return findings
}

// declaredCells finds cells without a record, and records out of place.
func declaredCells(e *Experiment, file string, records []Record) []Finding {
	var want, have []string
	for _, c := range e.Cells {
		want = append(want, c.ID(e.Name))
	}
	for _, r := range records {
		have = append(have, r.ID)
	}
	var findings []Finding
	for _, part := range without(e, have) {
		findings = append(findings, Finding{Drift, file + ", " + part, "a record", "none: it is new, or was taken out; run " + e.Name + " to write it"})
	}
	for _, id := range have {
		if !slices.Contains(want, id) {
			findings = append(findings, Finding{Drift, file + ", " + id, "none", "a record of a cell that nothing declares; run " + e.Name + " to drop it"})
		}
	}
	if len(findings) > 0 {
		return findings
	}
	for i := range max(len(want), len(have)) {
		if w, h := at(want, i), at(have, i); w != h {
			return []Finding{{Drift, fmt.Sprintf("%s, line %d", file, i+1), w, h}}
		}
	}
	return nil
}

// without names what of e has no record among those of the given ids: rows and
// columns as such where nothing of them has one, and then single cells.
func without(e *Experiment, have []string) (parts []string) {
	missing := func(of func(Cell) bool) bool {
		return !slices.ContainsFunc(e.Cells, func(c Cell) bool { return of(c) && slices.Contains(have, c.ID(e.Name)) })
	}
	rows, columns := map[string]bool{}, map[string]bool{}
	for _, c := range e.Cells {
		if _, asked := rows[c.Row]; !asked {
			if rows[c.Row] = missing(func(o Cell) bool { return o.Row == c.Row }); rows[c.Row] {
				parts = append(parts, "row "+c.Row)
			}
		}
		if _, asked := columns[c.Column]; !asked {
			if columns[c.Column] = missing(func(o Cell) bool { return o.Column == c.Column }); columns[c.Column] {
				parts = append(parts, "column "+c.Column)
			}
		}
	}
	for _, c := range e.Cells {
		if id := c.ID(e.Name); !rows[c.Row] && !columns[c.Column] && !slices.Contains(have, id) {
			parts = append(parts, id)
		}
	}
	return parts
}

// comparePages finds what differs in a page, cell by cell where a table's line
// differs. Pages of different bytes give at least one finding.
func comparePages(file, committed, rendered string) []Finding {
	if committed == rendered {
		return nil
	}
	was, is := strings.Split(committed, "\n"), strings.Split(rendered, "\n")
	last := func(n int) string { return at(was, len(was)-n) }
	same := 0 // lines alike at the end
	for same < min(len(was), len(is)) && last(same+1) == at(is, len(is)-same-1) {
		same++
	}
	var findings []Finding
	var header []string
	for i := range max(len(was), len(is)) - same {
		w, s := at(was, i), at(is, i)
		if strings.HasPrefix(at(is, i+1), "|---") {
			header = cellsOf(s)
		}
		if w == s {
			continue
		}
		line := fmt.Sprintf("%s, line %d", file, i+1)
		cw, cs := cellsOf(w), cellsOf(s)
		if len(cw) != len(cs) || len(cs) != len(header) {
			findings = append(findings, Finding{Drift, line, cmp.Or(s, "an empty line"), cmp.Or(w, "an empty line")})
			continue
		}
		if slices.Equal(cw, cs) { // an anchor, or what stands around the cells
			findings = append(findings, Finding{Drift, line, s, w})
		}
		for k := range cs {
			if cw[k] != cs[k] {
				findings = append(findings, Finding{Drift, fmt.Sprintf("%s, row %s, column %s", line, cs[0], header[k]), cs[k], cw[k]})
			}
		}
	}
	if len(findings) == 0 { // the same lines, and empty ones at the end
		n := 0
		for n < min(len(committed), len(rendered)) && committed[n] == rendered[n] {
			n++
		}
		findings = []Finding{{Drift, fmt.Sprintf("%s, byte %d", file, n+1), endOf(rendered[n:]), endOf(committed[n:])}}
	}
	return findings
}

// endOf shows what a page ends with.
func endOf(rest string) string {
	if rest == "" {
		return "the end of the file"
	}
	return strconv.Quote(rest)
}

// cellsOf splits a line of a Markdown table at the pipes that aren't escaped.
func cellsOf(line string) []string {
	inner, ok := strings.CutPrefix(anchored.ReplaceAllString(line, ""), "| ")
	if !ok {
		return nil
	}
	return strings.Split(strings.TrimSuffix(inner, " |"), " | ")
}

// anchored is an anchor in front of a cell's text, which nobody sees.
var anchored = regexp.MustCompile(`<a id="[^"]*"></a>`)

// compareRecords finds what differs between two runs of the same cells, field by
// field.
func compareRecords(committed, rerun []Record) []Finding {
	var findings []Finding
	for i := range min(len(committed), len(rerun)) {
		was, is := fieldsOf(committed[i]), fieldsOf(rerun[i])
		for k, name := range fieldNames {
			if !bytes.Equal(was[k], is[k]) {
				findings = append(findings, Finding{Drift, committed[i].ID + ", " + name, string(was[k]), string(is[k])})
			}
		}
	}
	return findings
}

// fieldNames are the names of a record's fields as they stand in its line.
var fieldNames = func() (names []string) {
	for f := range reflect.TypeFor[Record]().Fields() {
		names = append(names, f.Tag.Get("json"))
	}
	return names
}()

// fieldsOf spells a record's fields in the order of fieldNames.
func fieldsOf(r Record) [][]byte {
	var fields [][]byte
	for _, v := range reflect.ValueOf(r).Fields() {
		spelled, err := json.Marshal(v.Interface())
		if err != nil {
			spelled = []byte(err.Error()) // EncodeRecords refuses such a record
		}
		fields = append(fields, spelled)
	}
	return fields
}

func at(of []string, i int) string {
	if i < len(of) {
		return of[i]
	}
	return ""
}
