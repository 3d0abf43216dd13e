package faults_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-bench/interlock-bench/faults"
)

var trials = []struct {
	line string
	want faults.Trial
}{
	{
		"refund/crash_before_ack/gate@t2 file=lossy kill@sim/applied#1 seed=1",
		faults.Trial{
			Experiment: "refund", Row: "crash_before_ack", Column: "gate@t2", Seed: 1,
			Axes:   []faults.Axis{{Name: "file", Value: "lossy"}},
			Faults: []faults.Fault{{What: faults.Kill, At: "sim/applied", Passage: 1}},
		},
	},
	{
		"refund.unbounded/happy_path/gate@t3+notary seed=18446744073709551615",
		faults.Trial{Experiment: "refund", Table: "unbounded", Row: "happy_path", Column: "gate@t3+notary", Seed: 1<<64 - 1},
	},
	{
		"refund/lease_revoked/naive revoke@decided#1 wait:25h@decided#2 kill@decided#2 seed=0",
		faults.Trial{
			Experiment: "refund", Row: "lease_revoked", Column: "naive",
			Faults: []faults.Fault{{What: "revoke", At: "decided", Passage: 1}, {What: "wait:25h", At: "decided", Passage: 2}, {What: faults.Kill, At: "decided", Passage: 2}},
		},
	},
}

func TestTrialLine(t *testing.T) {
	for _, test := range trials {
		if got := test.want.String(); got != test.line {
			t.Errorf("prints as %q, want %q", got, test.line)
		}
		got, err := faults.ParseTrial(test.line)
		if err != nil {
			t.Errorf("%s: %v", test.line, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s parses to something else (-want +got):\n%s", test.line, diff)
		}
	}
}

func TestParseTrialRefuses(t *testing.T) {
	tests := []struct{ line, why string }{
		{"", "nothing"},
		{"refund seed=1", "no row and no column"},
		{"refund/happy_path seed=1", "no column"},
		{"refund/happy_path/naive/x seed=1", "a part too many"},
		{"refund//naive seed=1", "an empty row"},
		{"refund./happy_path/naive seed=1", "an empty table"},
		{"refund/happy_path/naive", "no seed"},
		{"refund/happy_path/naive seed=1 seed=2", "two seeds"},
		{"refund/happy_path/naive seed=-1", "a seed below zero"},
		{"refund/happy_path/naive seed=18446744073709551616", "a seed that is too large"},
		{"refund/happy_path/naive kill@ seed=1", "no point"},
		{"refund/happy_path/naive kill@sim/applied seed=1", "no passage"},
		{"refund/happy_path/naive kill@sim/applied#0 seed=1", "passages count from 1"},
		{"refund/happy_path/naive @sim/applied#1 seed=1", "no act"},
		{"refund/happy_path/naive kill seed=1", "neither axis nor fault"},
		{"refund/happy_path/naive file= seed=1", "an axis without a value"},
		{"refund/happy_path/naïve seed=1", "a letter outside the alphabet"},
	}
	for _, test := range tests {
		if got, err := faults.ParseTrial(test.line); !errors.Is(err, faults.ErrTrial) {
			t.Errorf("ParseTrial(%q) = %v, %v; want ErrTrial: %s", test.line, got, err, test.why)
		}
	}
}

func FuzzParseTrial(f *testing.F) {
	for _, test := range trials {
		f.Add(test.line)
	}
	f.Add("refund/a/b a=b=c kill@x#1 seed=1")
	f.Fuzz(func(t *testing.T, line string) {
		trial, err := faults.ParseTrial(line)
		if err != nil {
			if !errors.Is(err, faults.ErrTrial) {
				t.Errorf("%q: an error of no class: %v", line, err)
			}
			return
		}
		again, err := faults.ParseTrial(trial.String())
		if err != nil {
			t.Fatalf("%q prints as %q, which doesn't parse: %v", line, trial, err)
		}
		if diff := cmp.Diff(trial, again); diff != "" {
			t.Errorf("%q prints as another trial:\n%s", line, diff)
		}
	})
}

// TestRows: every row can be written as a trial, has a name of its own and asks
// for something.
func TestRows(t *testing.T) {
	names := map[string]bool{}
	for _, row := range slices.Concat(faults.Reference, faults.Further) {
		trial := faults.Trial{Experiment: "refund", Row: row.Name, Column: "naive", Faults: row.Faults}
		if _, err := faults.ParseTrial(trial.String()); err != nil {
			t.Error(err)
		}
		if names[row.Name] {
			t.Errorf("two rows are called %s", row.Name)
		}
		names[row.Name] = true
		if len(row.Submits) == 0 || row.What == "" {
			t.Errorf("row %s says not what happens or asks for nothing", row.Name)
		}
		for _, act := range slices.Concat(row.Before, row.Outage) {
			name := strings.ReplaceAll(act, " ", ":")
			if _, err := faults.ParseTrial(fmt.Sprintf("refund/%s/naive %s@point#1 seed=1", row.Name, name)); err != nil {
				t.Errorf("row %s: act %q can't be hung on a point: %v", row.Name, act, err)
			}
		}
		if len(row.Outage) > 0 && !slices.ContainsFunc(row.Faults, func(f faults.Fault) bool { return f.What == faults.Kill }) {
			t.Errorf("row %s has an outage and nobody dies", row.Name)
		}
	}
}

func ExampleParseTrial() {
	trial, err := faults.ParseTrial("refund/crash_before_ack/gate@t2 file=lossy kill@sim/applied#1 seed=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(trial.Row, "for", trial.Column)
	fmt.Println(trial.Faults[0].What, "when", trial.Faults[0].At, "is passed for the first time")
	// Output:
	// crash_before_ack for gate@t2
	// kill when sim/applied is passed for the first time
}
