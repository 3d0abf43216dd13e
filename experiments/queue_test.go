package experiments_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// branching is tiny, in which two trials with one more fault follow from each
// until there are three, in a table of their own. The last of all is a duplicate.
func branching() *experiments.Experiment {
	e := tiny(func(t faults.Trial) experiments.Outcome {
		o := right(t)
		if fmt.Sprint(t.Faults) == "[kill@p#2 kill@p#2 kill@p#2]" {
			o.Verdict.Class, o.Verdict.Money = oracle.Duplicate, 40_00
		}
		return o
	})
	for _, c := range e.Cells {
		c.Table, c.Trials = "more", nil
		e.Cells = append(e.Cells, c)
	}
	e.More = func(o experiments.Outcome) (next []faults.Trial) {
		for n := range 2 {
			if t := o.Trial; len(t.Faults) < 3 {
				t.Table = "more"
				t.Faults = append(append([]faults.Fault{}, t.Faults...), faults.Fault{What: faults.Kill, At: trace.Point("p"), Passage: n + 1})
				next = append(next, t)
			}
		}
		return next
	}
	e.Sum = func(of []experiments.Outcome) map[string]any {
		var lines []string
		for _, o := range of {
			if o.History != nil {
				lines = append(lines, "a history is kept")
			}
			lines = append(lines, o.Trial.String())
		}
		return map[string]any{"lines": lines}
	}
	return e
}

// Trials that follow from others are run, in records that don't tell in which
// order they ended.
func TestTrialsFollowFromOthers(t *testing.T) {
	run := func(workers int) []experiments.Record {
		last := 0
		records, err := experiments.Run(t.Context(), branching(), experiments.Filter{}, experiments.Options{
			Workers: workers, Progress: func(done, total int) { last = total - done },
		})
		if err != nil || last != 0 {
			t.Fatalf("%v, and %d trials left", err, last)
		}
		return records
	}
	one := run(1)
	if len(one) != 8 {
		t.Fatalf("%d records, want those of 8 cells", len(one))
	}
	for _, r := range one {
		want := 2 // plain and lossy
		if r.Table() == "more" {
			want = 2 * (2 + 4 + 8)
		}
		if r.Trials != want {
			t.Errorf("%s has %d trials, want %d", r.ID, r.Trials, want)
		}
	}
	more := one[4]
	if more.Verdict != "DUPLICATE" || more.Counts["DUPLICATE"] != 2 ||
		more.Replay != "tiny-one.more/happy_path/naive file=plain kill@p#2 kill@p#2 kill@p#2 seed=1" {
		t.Errorf("the worst of %v is %s, replayed by %s", more.Counts, more.Verdict, more.Replay)
	}
	if lines := more.Extra["lines"].([]string); lines[0] != "tiny-one.more/happy_path/naive file=plain kill@p#1 seed=1" ||
		lines[1] != "tiny-one.more/happy_path/naive file=plain kill@p#1 kill@p#1 seed=1" {
		t.Errorf("the first trials are %q, want each before those that follow from it", lines[:2])
	}
	for range 5 {
		if many := run(8); !reflect.DeepEqual(one, many) {
			t.Fatal("eight workers give other records than one")
		}
	}
}

func TestTrialsThatFollowNowhere(t *testing.T) {
	e := branching()
	e.Cells = e.Cells[:4] // the table is gone
	if _, err := experiments.Run(t.Context(), e, experiments.Filter{}, experiments.Options{}); !errors.Is(err, experiments.ErrTrial) {
		t.Errorf("a trial of no cell: %v", err)
	}
	e = branching()
	e.More = func(experiments.Outcome) []faults.Trial { return nil }
	if _, err := experiments.Run(t.Context(), e, experiments.Filter{}, experiments.Options{}); !errors.Is(err, experiments.ErrTrial) {
		t.Errorf("a cell without a trial: %v", err)
	}
}

// A run that waits for what may follow ends with its context.
func TestTrialsThatFollowEndWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e := branching()
	e.Cells = []experiments.Cell{e.Cells[0]}
	e.Cells[0].Trials = e.Cells[0].Trials[:1]
	e.Run = func(ctx context.Context, t faults.Trial) (experiments.Outcome, error) {
		cancel()
		<-ctx.Done()
		return experiments.Outcome{}, ctx.Err()
	}
	if _, err := experiments.Run(ctx, e, experiments.Filter{}, experiments.Options{Workers: 4}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// What is made once is held against itself only, and says when it was made.
func TestOnce(t *testing.T) {
	e := branching()
	e.Once = true
	records, err := experiments.Run(t.Context(), e, experiments.Filter{}, experiments.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if made, ok := records[0].Extra["made"].(string); !ok || made == "" {
		t.Errorf("its records don't say when: %v", records[0].Extra)
	}
	dir := t.TempDir()
	if err := experiments.Save(dir, e, records); err != nil {
		t.Fatal(err)
	}
	e.Run = func(context.Context, faults.Trial) (experiments.Outcome, error) {
		t.Error("a check runs it again")
		return experiments.Outcome{}, nil
	}
	check := func() []experiments.Finding {
		findings, err := experiments.Check(t.Context(), e, dir, false, experiments.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return findings
	}
	before := len(check()) // its promises
	page := experiments.FilesOf(dir, e).Page
	if err := os.WriteFile(page, []byte("# Other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if len(check()) <= before {
		t.Error("a page that is not the rendering of its records passes")
	}
}
