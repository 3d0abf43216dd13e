// Package faults breaks processes, files, clocks and connections on purpose. It
// knows neither the gate nor a target: it starts a program, follows it point by
// point, kills it where a trial says so and writes down what happened.
//
// A program takes part by calling Attach. From then on every step it reports is
// recorded first and answered second, and it does not go on before the answer:
// the order of the history is the order of the world, and a kill comes from
// outside while the program stands still. Its clock is the supervisor's, which
// moves only when nobody can do anything but wait. So a trial that is run twice
// gives the same history, byte for byte.
//
// The package runs on Linux.
package faults

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// Trial is one run of one cell. It prints as one line and parses back:
//
//	refund/crash_before_ack/gate@t2 file=lossy kill@sim/applied#1 seed=1
//
// With a table beside the main one the line begins refund.unbounded/….
type Trial struct {
	Experiment string
	Table      string // "" is the main table
	Row        string
	Column     string
	Axes       []Axis // in the order they print
	Faults     []Fault
	Seed       uint64
}

// Axis is one further dimension of a trial, "file=lossy".
type Axis struct{ Name, Value string }

// Fault is what happens when a point is passed for the n-th time: the process
// under test is killed, or stopped for another one, or a named act of the world
// is done while it stands still.
type Fault struct {
	What    string // Kill, Other, or the name of an action
	At      trace.Point
	Passage int // from 1
}

// Kill is the fault that kills the process under test.
const Kill = "kill"

// ErrTrial is the class of what ParseTrial and Fault.UnmarshalText don't accept.
var ErrTrial = errors.New("faults: not a trial")

// String is the line that ParseTrial takes. A trial with a name that ParseTrial
// would refuse prints a line that doesn't parse.
func (t Trial) String() string {
	var b strings.Builder
	b.WriteString(t.Experiment)
	if t.Table != "" {
		b.WriteString("." + t.Table)
	}
	b.WriteString("/" + t.Row + "/" + t.Column)
	for _, a := range t.Axes {
		b.WriteString(" " + a.Name + "=" + a.Value)
	}
	for _, f := range t.Faults {
		b.WriteString(" " + f.String())
	}
	b.WriteString(" seed=" + strconv.FormatUint(t.Seed, 10))
	return b.String()
}

// ParseTrial reads the line that String prints. Axes and faults may come in any
// order; the seed comes once. Anything else is ErrTrial, with a sentence that
// says what was expected.
func ParseTrial(line string) (Trial, error) {
	var t Trial
	expected := func(what, found string) (Trial, error) {
		return Trial{}, fmt.Errorf("%w: expected %s, found %q", ErrTrial, what, found)
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return expected("EXPERIMENT/ROW/COLUMN", line)
	}
	parts := strings.Split(words[0], "/")
	if len(parts) != 3 {
		return expected("EXPERIMENT/ROW/COLUMN", words[0])
	}
	experiment, table, hasTable := strings.Cut(parts[0], ".")
	if !isName(experiment, "") || hasTable && !isName(table, "") {
		return expected("the name of an experiment, with .TABLE where it isn't the main table", parts[0])
	}
	if !isName(parts[1], "") || !isName(parts[2], "@+.") {
		return expected("a row and a column, in letters, digits, - and _", parts[1]+"/"+parts[2])
	}
	t.Experiment, t.Table, t.Row, t.Column = experiment, table, parts[1], parts[2]

	seeded := false
	for _, word := range words[1:] {
		name, value, isAxis := strings.Cut(word, "=")
		switch {
		case isAxis && name == "seed":
			seed, err := strconv.ParseUint(value, 10, 64)
			if err != nil || seeded {
				return expected("one seed=NUMBER", word)
			}
			t.Seed, seeded = seed, true
		case isAxis:
			if !isName(name, "") || !isName(value, "@+.:/,") {
				return expected("an axis as NAME=VALUE", word)
			}
			t.Axes = append(t.Axes, Axis{name, value})
		default:
			var f Fault
			if err := f.UnmarshalText([]byte(word)); err != nil {
				return Trial{}, err
			}
			t.Faults = append(t.Faults, f)
		}
	}
	if !seeded {
		return expected("seed=NUMBER at the end", line)
	}
	return t, nil
}

// String is WHAT@POINT#PASSAGE, "kill@sim/applied#1".
func (f Fault) String() string { return fmt.Sprintf("%s@%s#%d", f.What, f.At, f.Passage) }

// MarshalText is String.
func (f Fault) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads what String prints. Anything else is ErrTrial.
func (f *Fault) UnmarshalText(text []byte) error {
	what, where, ok := strings.Cut(string(text), "@")
	point, passage, counted := strings.Cut(where, "#")
	n, err := strconv.ParseUint(passage, 10, 31)
	if !ok || !counted || err != nil || n == 0 || !isName(what, ".:") || !isName(point, "/.") {
		return fmt.Errorf("%w: expected a fault as WHAT@POINT#PASSAGE, like kill@before-send#1, or an axis as NAME=VALUE; found %q", ErrTrial, text)
	}
	*f = Fault{What: what, At: trace.Point(point), Passage: int(n)}
	return nil
}

// isName says whether s is one or more letters, digits, - and _, or a further
// character of more.
func isName(s, more string) bool {
	for _, c := range s {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && c != '-' && c != '_' && !strings.ContainsRune(more, c) {
			return false
		}
	}
	return s != ""
}
