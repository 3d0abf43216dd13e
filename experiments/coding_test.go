package experiments_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	gittarget "github.com/interlock-bench/interlock-bench/targets/git"
	"github.com/interlock-bench/interlock-bench/targets/git/premise"
)

const invoice = "invoice: due $1250.50, refund -$5.00"

// codingHistory is a history of the experiment with two agents, as its judge
// reads it.
func codingHistory(events ...history.Event) history.History {
	for i := range events {
		events[i].N = i + 1
	}
	return events
}

func event(kind history.Kind, body any) history.Event {
	e := history.Event{Kind: kind, Who: "worker#1"}
	if body != nil {
		e.Body, _ = json.Marshal(body)
	}
	return e
}

func passed(p trace.Point) history.Event {
	return history.Event{Kind: history.Passed, Who: "worker#1", Point: p}
}

// What the branch came to, and what was said of it, makes the verdict.
func TestCodingJudge(t *testing.T) {
	type branch map[string]any
	told := func(status string, says history.Says) history.Event {
		return event(history.Told, history.Answer{Request: "task-12", Status: status, Says: says})
	}
	right := []string{invoice}
	for _, test := range []struct {
		why     string
		defines string
		events  []history.Event
		branch  branch
		class   oracle.Class
		shown   string
		answer  string
	}{
		{"it landed and prints what it should", "", []history.Event{passed(gittarget.PointLanded), told("COMMITTED", history.SaysDone)}, branch{"commits": 1, "lines": right}, oracle.Correct, "landed_ok", oracle.Agrees},
		{"it landed and prints something else", "", []history.Event{passed(gittarget.PointLanded), told("COMMITTED", history.SaysDone)}, branch{"commits": 1, "lines": []string{"invoice: no"}}, oracle.Stale, "landed_BROKEN", oracle.Agrees},
		{"it landed and doesn't compile", "", []history.Event{passed(gittarget.PointLanded), told("COMMITTED", history.SaysDone)}, branch{"commits": 1}, oracle.Stale, "landed_BROKEN", oracle.Agrees},
		{"two commits", "", []history.Event{told("APPLIED", history.SaysDone)}, branch{"commits": 2, "lines": right}, oracle.Duplicate, "landed_twice", oracle.Agrees},
		{"one commit that prints it twice", "", []history.Event{told("APPLIED", history.SaysDone)}, branch{"commits": 1, "lines": []string{invoice, invoice}}, oracle.Duplicate, "landed_twice", oracle.Agrees},
		{"two implementations", "F", []history.Event{told("APPLIED", history.SaysDone)}, branch{"commits": 1, "implementations": 2}, oracle.Duplicate, "2_impl", oracle.Agrees},
		{"the other's implementation alone", "F", []history.Event{told("REFUSED:duplicate_symbol", history.SaysNot)}, branch{"implementations": 1}, oracle.Correct, "1_impl", oracle.Agrees},
		{"refused, and it would have broken", "", []history.Event{told("REFUSED:stale_premise", history.SaysNot)}, branch{"otherwise": nil}, oracle.Correct, "not_landed", oracle.Agrees},
		{"refused, and it would have been right", "", []history.Event{told("REFUSED:stale_premise", history.SaysNot)}, branch{"otherwise": right}, oracle.FalseRefusal, "not_landed", oracle.Agrees},
		{"refused under a revoked lease", "", []history.Event{event(history.Revoked, history.Lease{Lease: "L-b"}), told("REFUSED:lease", history.SaysNot)}, branch{"otherwise": right}, oracle.Correct, "not_landed", oracle.Agrees},
		{"landed under a revoked lease", "", []history.Event{event(history.Revoked, history.Lease{Lease: "L-b"}), passed(gittarget.PointLanded), told("APPLIED", history.SaysDone)}, branch{"commits": 1, "lines": right}, oracle.Unauthorized, "landed_ok", oracle.Agrees},
		{"landed, and revoked then", "", []history.Event{passed(gittarget.PointLanded), event(history.Revoked, history.Lease{Lease: "L-b"}), told("COMMITTED", history.SaysDone)}, branch{"commits": 1, "lines": right}, oracle.Correct, "landed_ok", oracle.Agrees},
		{"said done and isn't there", "", []history.Event{told("COMMITTED", history.SaysDone)}, branch{}, oracle.Lost, "not_landed", oracle.Disagrees},
		{"never settled", "", []history.Event{told("IN_FLIGHT", history.SaysPending)}, branch{}, oracle.Stuck, "not_landed", oracle.Agrees},
		{"a process that failed", "", []history.Event{event(history.Exited, history.Exit{Code: 1}), told("COMMITTED", history.SaysDone)}, branch{"commits": 1, "lines": right}, oracle.Unknown, "landed_ok", oracle.Agrees},
		{"a fault that didn't happen", "", []history.Event{event(history.Unfired, nil), told("COMMITTED", history.SaysDone)}, branch{"commits": 1, "lines": right}, oracle.Unknown, "landed_ok", oracle.Agrees},
		{"nobody was told", "", nil, branch{"commits": 1, "lines": right}, oracle.Unknown, "landed_ok", oracle.Agrees},
		{"nobody looked", "", []history.Event{told("COMMITTED", history.SaysDone)}, nil, oracle.Unknown, "not_landed", oracle.Disagrees},
	} {
		events := []history.Event{event("declared-code", map[string]string{"Request": "task-12", "Defines": test.defines}), event(history.Started, nil)}
		events = append(events, test.events...)
		events = append(events, event(history.Finished, nil))
		if test.branch != nil {
			events = append(events, event("inspected", test.branch))
		}
		v := experiments.Coding().Judge(codingHistory(events...))
		if v.Class != test.class || v.Shown != test.shown || v.Answer != test.answer {
			t.Errorf("%s: %s %s, %s; %v", test.why, v.Class, v.Shown, v.Answer, v.Why)
		}
	}
	if v := experiments.Coding().Judge(nil); v.Class != oracle.Unknown {
		t.Errorf("an empty history is judged %s", v.Class)
	}
}

// A small history whose every change is known, and what each granularity makes of
// it.
func TestReplayRepo(t *testing.T) {
	files := map[string]string{
		"go.mod":      "module m\n\ngo 1.21\n",
		"a/a.go":      "package a\n\n// F adds one.\nfunc F(n int) int { return n + 1 }\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) {\n\tif F(1) != 2 || F(-1) != 0 {\n\t\tt.Fatal(F(1), F(-1))\n\t}\n}\n",
		"b/b.go":      "package b\n\nfunc G() int { return 1 }\n",
	}
	dir := filepath.Join(t.TempDir(), "repo")
	const branch = "refs/heads/main"
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	repo := must(gittarget.Create(t.Context(), dir, branch, "a", noon, files))
	a := func(text string) gittarget.Edit {
		return gittarget.Edit{Path: "a/a.go", Op: gittarget.Write, Text: "package a\n\n" + text}
	}
	for i, edit := range []gittarget.Edit{
		{Path: "b/b.go", Op: gittarget.Write, Text: "package b\n\nfunc G() int { return 2 }\n"},               // not compiled into the test
		{Path: "README", Op: gittarget.Write, Text: "no code\n"},                                              //
		a("func F(n int) int { return n + 1 }\n"),                                                             // a comment
		a("func F(n int) int { n++; return n }\n"),                                                            // a rewrite
		a("func F(n int) int { if n == -1 { return 7 }; n++; return n }\n"),                                   // a meaning that the tried calls see
		a("func F(n int) int { return n + 1 }\n"),                                                             // back; the test didn't pass before
		a("func H(n int) int { return n + 1 }\n"),                                                             // a rename
		{Path: "b/b.go", Op: gittarget.Write, Text: "package b\n\nfunc G() int { return \"\" }\n"},            // doesn't build
		{Path: "b/b.go", Op: gittarget.Write, Text: "package b\n\nfunc G() int { return 1 } // builds again"}, //
	} {
		tip := must(repo.Tip(t.Context(), branch))
		c := gittarget.Change{Branch: branch, Base: tip, Author: "a", At: noon, Message: "more", Edits: []gittarget.Edit{edit}}
		must(repo.Land(t.Context(), gittarget.Landing{Effect: "e" + string(rune('0'+i)), Request: "r", Change: c}))
	}
	r, err := experiments.ReplayRepo(t.Context(), dir, 50, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []experiments.ReplayedBy{
		{Granularity: premise.File, Rests: 4, Refused: 4, Rightly: 2},
		{Granularity: premise.Symbol, Rests: 4, Refused: 1, Rightly: 1, Broke: 1},
		{Granularity: premise.Body, Rests: 4, Refused: 3, Rightly: 2},
		{Granularity: premise.Behaviour, Rests: 4, Refused: 1, Rightly: 1, Broke: 1},
	}
	if diff := cmp.Diff(want, r.By); diff != "" || r.Pairs != 4 || r.Breaks != 2 {
		t.Errorf("%s\n%s", r.Sentence(), diff)
	}

	bare, shallow := filepath.Join(t.TempDir(), "bare"), filepath.Join(t.TempDir(), "shallow")
	for _, args := range [][]string{{"clone", "-q", "--bare", dir, bare}, {"clone", "-q", "--depth", "4", "file://" + dir, shallow}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if r, err := experiments.ReplayRepo(t.Context(), shallow, 50, nil); err != nil || r.States != 4 {
		t.Errorf("a shallow clone: %d states, %v", r.States, err)
	}
	if r, err := experiments.ReplayRepo(t.Context(), bare, 1, nil); err != nil || r.States != 2 {
		t.Errorf("a bare repository: %d states, %v", r.States, err)
	}
}

func TestRepositoriesThatCantBeReplayed(t *testing.T) {
	empty := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", empty).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := experiments.ReplayRepo(t.Context(), empty, 5, nil); !errors.Is(err, gittarget.ErrBranch) {
		t.Errorf("no commits: %v", err)
	}
	if _, err := experiments.ReplayRepo(t.Context(), t.TempDir(), 5, nil); !errors.Is(err, gittarget.ErrRepository) {
		t.Errorf("no repository: %v", err)
	}
	one := filepath.Join(t.TempDir(), "one")
	must(gittarget.Create(t.Context(), one, "refs/heads/main", "a", time.Unix(0, 0), map[string]string{"a.txt": "a"}))
	if _, err := experiments.ReplayRepo(t.Context(), one, 5, nil); !errors.Is(err, experiments.ErrReplay) {
		t.Errorf("one commit: %v", err)
	}
}

// A column of the coding experiment that promises its cells declares the floor it
// has, and nothing is declared that no cell could be.
func TestCodingFloorsAreDeclared(t *testing.T) {
	var floors []string
	for _, c := range experiments.Coding().Cells {
		if c.Declared == "COMMITTED landed_BROKEN BAD" {
			floors = append(floors, c.Row+" "+c.Column)
		}
	}
	want := []string{"semantic_only gate-symbol", "unobserved_behaviour gate-symbol", "unobserved_behaviour gate-behaviour"}
	if !slices.Equal(floors, want) {
		t.Errorf("floors are declared at %v", floors)
	}
}

// The page says that what landed was compiled, and the records are those of all
// cells; the check compares the rest.
func TestCodingPage(t *testing.T) {
	e := experiments.Coding()
	encoded, err := os.ReadFile(experiments.FilesOf("../results", e).Records)
	if err != nil {
		t.Fatal(err)
	}
	records := must(experiments.DecodeRecords(encoded))
	for _, r := range records {
		if r.Class() == oracle.Unknown || r.Unfired > 0 {
			t.Errorf("%s is not judged", r.ID)
		}
	}
	if len(records) != len(e.Cells) {
		t.Errorf("%d records of %d cells", len(records), len(e.Cells))
	}
}

// A kept trial that shows a word reads back as it was written, and is judged by
// its own experiment's judge.
func TestKeptTrialsThatShowAWord(t *testing.T) {
	h := codingHistory(
		event("declared-code", map[string]string{"Request": "task-12"}), event(history.Started, nil), passed(gittarget.PointLanded),
		event(history.Told, history.Answer{Request: "task-12", Status: "COMMITTED", Says: history.SaysDone}), event(history.Finished, nil),
		event("inspected", map[string]any{"commits": 1, "lines": []string{invoice}}),
	)
	k := experiments.Kept{Trial: must(faults.ParseTrial("coding/rename_break/naive seed=1")), Status: "COMMITTED", History: h}
	k.Said = experiments.Said{Class: oracle.Correct, Shown: "landed_ok", Broke: []string{}}
	var b bytes.Buffer
	if err := experiments.EncodeKept(&b, k); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	again, err := experiments.DecodeKept(strings.NewReader(text))
	if err != nil || again.Shows() != "landed_ok" || again.Verdict.Class != oracle.Correct || again.Said.Shown != "landed_ok" {
		t.Errorf("%+v, %v", again.Said, err)
	}
	for why, spoilt := range map[string]string{
		"a word in version 1":         strings.Replace(text, `"kept":2`, `"kept":1`, 1),
		"a version nobody writes":     strings.Replace(text, `"kept":2`, `"kept":3`, 1),
		"version 2 without its word":  strings.Replace(text, `"shown":"landed_ok",`, "", 1),
		"version 2 with an empty one": strings.Replace(text, `"landed_ok"`, `""`, 1),
	} {
		if _, err := experiments.DecodeKept(strings.NewReader(spoilt)); !errors.Is(err, experiments.ErrKept) {
			t.Errorf("%s: %v", why, err)
		}
	}
}
