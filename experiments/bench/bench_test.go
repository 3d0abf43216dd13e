package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments/bench"
)

func TestMain(m *testing.M) {
	bench.ServeSender()
	os.Exit(m.Run())
}

// TestQuick measures everything once: every figure has a value, the page shows
// each that something is wanted of, and the lines can be read.
func TestQuick(t *testing.T) {
	measures, err := bench.Run(context.Background(), bench.Options{Quick: true, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	page := bench.Page("made here", measures)
	wanted := 0
	for _, m := range measures {
		if len(m.Runs) == 0 || m.Median <= 0 && !strings.HasPrefix(m.ID, "memory/") {
			t.Errorf("%s: a median of %v in %d runs", m.ID, m.Median, len(m.Runs))
		}
		if m.Wanted != "" {
			wanted++
			if !strings.Contains(page, "`"+m.ID+"`") {
				t.Errorf("the page doesn't show %s", m.ID)
			}
		}
	}
	if wanted == 0 {
		t.Error("nothing is wanted of any figure")
	}
	lines, err := bench.Encode("made here", measures)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(lines, []byte("\n")); n != len(measures)+1 {
		t.Errorf("%d lines for %d figures", n, len(measures))
	}
	made, again, err := bench.Decode(lines)
	if err != nil || made != "made here" || len(again) != len(measures) || bench.Page(made, again) != page {
		t.Errorf("read back: %d figures made %q, %v", len(again), made, err)
	}
	for line := range bytes.Lines(lines) {
		if !json.Valid(line) {
			t.Errorf("%s is no JSON", line)
		}
	}
}
