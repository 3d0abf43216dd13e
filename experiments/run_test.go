package experiments_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

func run(t *testing.T, e *experiments.Experiment) []experiments.Record {
	t.Helper()
	records, err := experiments.Run(t.Context(), e, experiments.Filter{}, experiments.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := r.Validate(); err != nil {
			t.Error(err)
		}
	}
	return records
}

func ids(records []experiments.Record) (ids []string) {
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestTheWorstTrialIsTheCell(t *testing.T) {
	records := run(t, tiny(except("crash_before_ack/naive file=lossy", duplicate)))
	if got := records[2]; !reflect.DeepEqual(got, experiments.Record{
		V: 1, ID: "tiny-one/crash_before_ack/naive", Experiment: "tiny-one", Row: "crash_before_ack", Column: "naive",
		Axes: map[string]string{"file": "lossy"}, Cell: "RETRIED $40", Verdict: "DUPLICATE",
		Trials: 2, Counts: map[string]int{"CORRECT": 1, "DUPLICATE": 1}, Broke: []string{"more-landings"},
		Answer: "disagrees", Record: "none", Attempts: 2, Requests: 4,
		Replay: "tiny-one/crash_before_ack/naive file=lossy seed=1", Extra: map[string]any{},
	}) {
		t.Errorf("got %+v", got)
	}
	if got := records[0]; got.Cell != "COMMITTED $20" || got.Axes["file"] != "plain" || got.Answer != "agrees" || got.Record != "full" {
		t.Errorf("of two alike the first is shown: %+v", got)
	}
}

func TestAnUnjudgedTrialLeavesTheCellUnjudged(t *testing.T) {
	r := run(t, tiny(except("naive file=lossy", func(o *experiments.Outcome) {
		if o.Trial.Row == "happy_path" {
			unfired(o)
		}
	})))[0]
	if r.Class() != oracle.Unknown || r.Unfired != 1 || r.Counts["CORRECT"] != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestAnswerAndRecordAreTheWorstOfAnyTrial(t *testing.T) {
	r := run(t, tiny(except("file=lossy", func(o *experiments.Outcome) {
		o.Verdict.Answer, o.Record = oracle.Disagrees, "partial"
	})))[0]
	if r.Answer != oracle.Disagrees || r.Record != "partial" || r.Axes["file"] != "plain" {
		t.Errorf("got %+v", r)
	}
}

// TestOrderIsDeclaredOrder lets the trials end in the opposite of the order in
// which they begin.
func TestOrderIsDeclaredOrder(t *testing.T) {
	e := tiny(right)
	turn := make(map[string]chan struct{})
	var lines []string
	for _, c := range e.Cells {
		for _, trial := range c.Trials {
			trial.Seed = 1
			lines = append(lines, trial.String())
			turn[trial.String()] = make(chan struct{})
		}
	}
	e.Run = func(_ context.Context, t faults.Trial) (experiments.Outcome, error) {
		if i := slices.Index(lines, t.String()); i+1 < len(lines) {
			<-turn[lines[i+1]]
		}
		close(turn[t.String()])
		return right(t), nil
	}
	var done []int
	records, err := experiments.Run(t.Context(), e, experiments.Filter{}, experiments.Options{
		Workers: len(lines), Progress: func(d, total int) { done = append(done, d, total) },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"tiny-one/happy_path/naive", "tiny-one/happy_path/gate@t1", "tiny-one/crash_before_ack/naive", "tiny-one/crash_before_ack/gate@t1"}
	if !slices.Equal(ids(records), want) {
		t.Errorf("got %v", ids(records))
	}
	if !slices.Equal(done, []int{1, 8, 2, 8, 3, 8, 4, 8, 5, 8, 6, 8, 7, 8, 8, 8}) {
		t.Errorf("progress was %v", done)
	}
}

func TestFilter(t *testing.T) {
	e := tiny(right)
	records, err := experiments.Run(t.Context(), e, experiments.Filter{Rows: []string{"crash_before_ack"}, Columns: []string{"gate@t1"}}, experiments.Options{Seed: 7})
	if err != nil || !slices.Equal(ids(records), []string{"tiny-one/crash_before_ack/gate@t1"}) || !strings.HasSuffix(records[0].Replay, " seed=7") {
		t.Errorf("got %v, %v", records, err)
	}
	e.Cells = e.Cells[:1]
	if _, err := experiments.Run(t.Context(), e, experiments.Filter{Columns: []string{"gate@t1"}}, experiments.Options{}); !errors.Is(err, experiments.ErrNoCell) {
		t.Errorf("a column without a cell: %v", err)
	}
}

func TestUnknownNames(t *testing.T) {
	e := tiny(right)
	for _, c := range []struct {
		why    string
		filter experiments.Filter
		want   experiments.NameError
	}{
		{"a slip of the finger", experiments.Filter{Rows: []string{"hapy_path"}},
			experiments.NameError{Kind: "row", Name: "hapy_path", Valid: []string{"happy_path", "crash_before_ack"}, Near: []string{"happy_path"}}},
		{"a part of a name", experiments.Filter{Columns: []string{"gate"}},
			experiments.NameError{Kind: "column", Name: "gate", Valid: []string{"naive", "gate@t1"}, Near: []string{"gate@t1"}}},
		{"nothing like any", experiments.Filter{Columns: []string{"zzzzzzzz"}},
			experiments.NameError{Kind: "column", Name: "zzzzzzzz", Valid: []string{"naive", "gate@t1"}}},
		{"no name", experiments.Filter{Columns: []string{""}},
			experiments.NameError{Kind: "column", Name: "", Valid: []string{"naive", "gate@t1"}}},
	} {
		_, err := experiments.Run(t.Context(), e, c.filter, experiments.Options{})
		var got *experiments.NameError
		if !errors.As(err, &got) || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	var got *experiments.NameError
	if _, err := experiments.Find([]*experiments.Experiment{e}, []string{"tiny"}); !errors.As(err, &got) || got.Kind != "experiment" || !slices.Equal(got.Near, []string{"tiny-one"}) {
		t.Errorf("an experiment: %v", err)
	}
}

func TestATrialThatCantBeRunEndsTheRun(t *testing.T) {
	e := tiny(right)
	broken := errors.New("no processes left")
	e.Run = func(ctx context.Context, t faults.Trial) (experiments.Outcome, error) {
		if t.Row == "crash_before_ack" {
			return experiments.Outcome{}, broken
		}
		return right(t), nil
	}
	records, err := experiments.Run(t.Context(), e, experiments.Filter{}, experiments.Options{})
	if records != nil || !errors.Is(err, experiments.ErrTrial) || !errors.Is(err, broken) {
		t.Errorf("got %v, %v", records, err)
	}
}

func TestAnEndedContextEndsTheRun(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	e := tiny(right)
	e.Run = func(ctx context.Context, t faults.Trial) (experiments.Outcome, error) {
		stop()
		<-ctx.Done()
		return experiments.Outcome{}, errors.New("what a killed child leaves behind")
	}
	if records, err := experiments.Run(ctx, e, experiments.Filter{}, experiments.Options{}); records != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", records, err)
	}
}
