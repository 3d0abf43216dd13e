package experiments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// Record is what is kept of one cell, one JSON line in results/<experiment>.jsonl.
type Record struct {
	V          int               `json:"v"`
	ID         string            `json:"id"` // experiment[.table]/row/column
	Experiment string            `json:"experiment"`
	Row        string            `json:"row"`
	Column     string            `json:"column"`
	Axes       map[string]string `json:"axes"`    // of the worst trial
	Cell       string            `json:"cell"`    // status and money of the worst trial, "COMMITTED_ON_QUERY $20"; a word for money where it is about none
	Verdict    string            `json:"verdict"` // its class
	Trials     int               `json:"trials"`
	Counts     map[string]int    `json:"counts"` // class: trials
	Broke      []string          `json:"broke"`  // rules of the judge that any trial broke
	Unfired    int               `json:"unfired"`
	Answer     string            `json:"answer"` // disagrees if any trial's does
	Record     string            `json:"record"` // the least that any trial's artefacts show
	Attempts   int               `json:"attempts"`
	Requests   int               `json:"requests"`
	ModelCalls int               `json:"model_calls"`
	Replay     string            `json:"replay"` // the worst trial's line
	Extra      map[string]any    `json:"extra"`
}

// version is the V of every record this program writes and reads.
const version = 1

// What a record's Record can be, the least first.
var grades = []string{"none", "partial", "full"}

// ErrRecord is returned for a line that is no record, and for a record that
// contradicts itself.
var ErrRecord = errors.New("experiments: not a record")

// CellID names a cell: experiment[.table]/row/column.
func CellID(experiment, table, row, column string) string {
	if table != "" {
		experiment += "." + table
	}
	return experiment + "/" + row + "/" + column
}

// ID names the cell in its experiment.
func (c Cell) ID(experiment string) string { return CellID(experiment, c.Table, c.Row, c.Column) }

// Class is the record's verdict; oracle.Unknown where it names none.
func (r Record) Class() oracle.Class {
	class, _ := oracle.ParseClass(r.Verdict)
	return class
}

// Money is the cell's money in cents; 0 where the cell shows none.
func (r Record) Money() int64 {
	_, money, _ := strings.Cut(r.Cell, " ")
	cents, _ := parseMoney(money)
	return cents
}

// Shown is what stands behind the cell's status: money, or a word.
func (r Record) Shown() string {
	_, came, _ := strings.Cut(r.Cell, " ")
	return came
}

// shown is what a verdict shows behind the status.
func shown(v oracle.Verdict) string { return orElse(v.Shown, Money(v.Money)) }

// isShown says whether s is money as Money prints it, or one word.
func isShown(s string) bool {
	if strings.HasPrefix(s, "$") {
		cents, err := parseMoney(s)
		return err == nil && s == Money(cents)
	}
	return word.MatchString(s)
}

var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_]*$`)

// Table is the table of the experiment that the record's cell stands in; "" is
// the main one.
func (r Record) Table() string {
	head, _, _ := strings.Cut(r.ID, "/")
	_, table, _ := strings.Cut(head, ".")
	return table
}

// Anchor is where the cell stands on its page: its id, with what an address would
// have to escape in words. Other ids have other anchors.
func (r Record) Anchor() string { return anchor.Replace(r.ID) }

var anchor = strings.NewReplacer("/", "--", "@", "-at-", "+", "-and-")

// Judged is the cell with its mark in words, "COMMITTED $20 ok", as a Cell
// declares it.
func (r Record) Judged() string { return r.Cell + " " + r.Class().Word() }

// Validate returns nil for a record that agrees with itself; other errors are
// ErrRecord. It does not know which cells an experiment has.
func (r Record) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s: %s", ErrRecord, r.ID, fmt.Sprintf(format, args...))
	}
	class, err := oracle.ParseClass(r.Verdict)
	if err != nil {
		return bad("%v", err)
	}
	sum := 0
	var classes []oracle.Class
	for name, n := range r.Counts {
		counted, err := oracle.ParseClass(name)
		if err != nil || n < 1 {
			return bad("counts %d trials as %q", n, name)
		}
		sum += n
		classes = append(classes, counted)
	}
	status, came, _ := strings.Cut(r.Cell, " ")
	trial, badTrial := faults.ParseTrial(r.Replay)
	switch {
	case r.V != version:
		return bad("has version %d; this program reads %d", r.V, version)
	case r.ID != CellID(r.Experiment, r.Table(), r.Row, r.Column):
		return bad("is of %s, %s and %s", r.Experiment, r.Row, r.Column)
	case status == "" || !isShown(came):
		return bad("cell %q is no status with money or a word", r.Cell)
	case r.Trials < 1 || sum != r.Trials:
		return bad("counts %d of %d trials", sum, r.Trials)
	case oracle.Worst(classes...) != class:
		return bad("%s is not the worst of %v", class, classes)
	case r.Unfired < 0 || r.Attempts < 0 || r.Requests < r.Attempts || r.ModelCalls < 0:
		return bad("has figures that can't be")
	case r.Unfired > 0 && class != oracle.Unknown:
		return bad("%d faults did not happen, and it is judged %s", r.Unfired, class)
	case r.Answer != oracle.Agrees && r.Answer != oracle.Disagrees:
		return bad("the answer neither agrees nor disagrees: %q", r.Answer)
	case !slices.Contains(grades, r.Record):
		return bad("its record is %q, which is none of %v", r.Record, grades)
	case badTrial != nil:
		return bad("can't be replayed: %v", badTrial)
	case r.ID != CellID(trial.Experiment, trial.Table, trial.Row, trial.Column):
		return bad("replays %s", r.Replay)
	case !maps.Equal(r.Axes, axes(trial)):
		return bad("has the axes %v, and replays %s", r.Axes, r.Replay)
	case r.Axes == nil || r.Broke == nil || r.Extra == nil:
		return bad("has a null where it may be empty")
	}
	return nil
}

// EncodeRecords writes records as JSON lines: fields in order, maps sorted, so
// that equal records are equal bytes. Its error is ErrRecord.
func EncodeRecords(records []Record) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for _, r := range records {
		if err := r.Validate(); err != nil {
			return nil, err
		}
		if err := e.Encode(r); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrRecord, r.ID, err)
		}
	}
	return b.Bytes(), nil
}

// DecodeRecords reads what EncodeRecords wrote, and nothing else: each line is
// one valid record, spelled as EncodeRecords spells it, and no id comes twice.
// Other errors are ErrRecord and name the line.
func DecodeRecords(b []byte) ([]Record, error) {
	var records []Record
	seen := map[string]bool{}
	number := 0
	for line := range bytes.Lines(b) {
		number++
		bad := func(err error) error { return fmt.Errorf("line %d: %w", number, err) }
		var r Record
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		d.UseNumber()
		if err := d.Decode(&r); err != nil {
			return nil, bad(fmt.Errorf("%w: %w", ErrRecord, err))
		}
		spelled, err := EncodeRecords([]Record{r})
		switch {
		case err != nil:
			return nil, bad(err)
		case !bytes.Equal(spelled, line):
			return nil, bad(fmt.Errorf("%w: %s is not spelled as this program spells it", ErrRecord, r.ID))
		case seen[r.ID]:
			return nil, bad(fmt.Errorf("%w: %s is there twice", ErrRecord, r.ID))
		}
		seen[r.ID] = true
		records = append(records, r)
	}
	return records, nil
}

// Money prints cents as $20, or as $20.50 where there are any.
func Money(cents int64) string {
	if cents%100 == 0 {
		return fmt.Sprintf("$%d", cents/100)
	}
	return fmt.Sprintf("$%d.%02d", cents/100, cents%100)
}

// parseMoney reads what Money prints of amounts that aren't negative.
func parseMoney(s string) (int64, error) {
	dollars, part, hasPart := strings.Cut(strings.TrimPrefix(s, "$"), ".")
	d, err := strconv.ParseUint(dollars, 10, 50)
	if err != nil || !strings.HasPrefix(s, "$") || hasPart && len(part) != 2 {
		return 0, fmt.Errorf("%w: %q is no money", ErrRecord, s)
	}
	cents := uint64(0)
	if hasPart {
		if cents, err = strconv.ParseUint(part, 10, 7); err != nil || cents > 99 {
			return 0, fmt.Errorf("%w: %q is no money", ErrRecord, s)
		}
	}
	return int64(d*100 + cents), nil
}

func axes(t faults.Trial) map[string]string {
	m := map[string]string{}
	for _, a := range t.Axes {
		m[a.Name] = a.Value
	}
	return m
}
