package experiments_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

func results(t *testing.T) []experiments.Record {
	t.Helper()
	records, err := experiments.ReadResults("../results", experiments.All())
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// TestREADMEFindings compares the generated parts of docs/findings.md with the
// records. It has the README's name in front so that one -update writes them all.
func TestREADMEFindings(t *testing.T) {
	const path = "../docs/findings.md"
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(have)
	for name, text := range experiments.FindingsBlocks(results(t)) {
		block := regexp.MustCompile(`(?s)<!-- generated: ` + name + ` -->\n.*?<!-- end -->`)
		if n := len(block.FindAllString(want, -1)); n != 1 {
			t.Fatalf("the page has %d places for %q", n, name)
		}
		want = block.ReplaceAllLiteralString(want, "<!-- generated: "+name+" -->\n"+strings.TrimSpace(text)+"\n<!-- end -->")
	}
	if want == string(have) {
		return
	}
	if !*update {
		t.Fatal("the page differs from the results; run: go test ./experiments -run TestREADME -update")
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestREADMEScoreboard compares results/scoreboard.md with the records, as check
// does, and writes it with -update.
func TestREADMEScoreboard(t *testing.T) {
	findings, err := experiments.Check(t.Context(), experiments.Scoreboard(), "../results", true, experiments.Options{})
	if err != nil || len(findings) == 0 {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if !*update {
		t.Fatalf("the scoreboard differs from the results in %d places; run: go test ./experiments -run TestREADME -update", len(findings))
	}
	if err := experiments.Derive("../results", experiments.Scoreboard()); err != nil {
		t.Fatal(err)
	}
}

// TestItShows reads the committed records of every experiment: what a gate's column
// may come to, and where it may come to anything else.
func TestItShows(t *testing.T) {
	promised := map[string]string{} // by its experiment, of a cell
	for _, e := range experiments.All() {
		for _, c := range e.Cells {
			promised[c.ID(e.Name)] = c.Declared
		}
	}
	used := map[int]bool{}
	gates := 0
	for _, r := range results(t) {
		if !strings.HasPrefix(r.Column, "gate") {
			continue
		}
		gates++
		if slices.Contains([]string{"crash_on_the_wire", "crash_on_the_wire_unbounded", "late_landing", "queue_kept"}, r.Row) && r.Money() > 20_00 {
			t.Errorf("%s: %s, never more than $20", r.ID, r.Cell)
		}
		if r.Class() == oracle.Correct {
			continue
		}
		excepted := slices.IndexFunc(experiments.Exceptions, func(x experiments.Exception) bool {
			return x.Class == r.Class() && x.Row == r.Row && slices.Contains(x.Columns, r.Column)
		})
		if excepted >= 0 {
			used[excepted] = true
			continue
		}
		// Another world's cells are held to what they declare; what is measured without
		// a declaration is that experiment's own finding, short of doing it twice or
		// leaving it undone.
		own := slices.ContainsFunc([]string{"refund", "faults", "crash", "stripe"}, func(name string) bool { return strings.HasPrefix(r.Experiment, name) })
		honest := r.Class() == oracle.Ambiguous && (strings.HasSuffix(r.Column, "@t3") || strings.Contains(r.Table(), "unbounded"))
		grave := slices.Contains([]oracle.Class{oracle.Unknown, oracle.Stuck, oracle.Lost, oracle.Duplicate}, r.Class())
		kept := promised[r.ID] == r.Judged() || promised[r.ID] == "" && !grave
		if !honest && (own || !kept) {
			t.Errorf("%s: %s, which nothing excepts", r.ID, r.Judged())
		}
		for class, n := range r.Counts {
			if c, err := oracle.ParseClass(class); err == nil && c > r.Class() {
				t.Errorf("%s counts %d %s beside %s", r.ID, n, class, r.Verdict)
			}
		}
	}
	for i, x := range experiments.Exceptions {
		if !used[i] {
			t.Errorf("%s is excepted in %s, and no record has it", x.Class, x.Row)
		}
	}
	if gates == 0 {
		t.Error("no record is of a gate")
	}
}

// TestADerivedPageDrifts: a page over the records of others is held against them.
func TestADerivedPageDrifts(t *testing.T) {
	dir, e := t.TempDir(), experiments.Scoreboard()
	check := func() []experiments.Finding {
		findings, err := experiments.Check(t.Context(), e, dir, false, experiments.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return findings
	}
	if len(check()) == 0 {
		t.Error("a page that isn't there is as committed")
	}
	if err := experiments.Derive(dir, e); err != nil {
		t.Fatal(err)
	}
	if found := check(); len(found) > 0 {
		t.Errorf("a page just written has drifted: %v", found)
	}
	records, err := os.ReadFile("../results/refund.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(experiments.FilesOf(dir, experiments.Refund()).Records, records, 0o644); err != nil {
		t.Fatal(err)
	}
	found := check()
	if len(found) == 0 || found[0].Kind != experiments.Drift {
		t.Errorf("records that the page lacks are no drift: %v", found)
	}
}
