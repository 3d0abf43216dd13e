package premise_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/targets/git"
	"github.com/interlock-bench/interlock-bench/targets/git/premise"
)

const branch = "refs/heads/main"

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// repository is a repository with one commit of files, and a way to land on it.
func repository(t *testing.T, files map[string]string) (r *premise.Reader, tip string, land func(edits ...git.Edit) string) {
	t.Helper()
	repo, err := git.Create(t.Context(), filepath.Join(t.TempDir(), "repo"), branch, "a", noon, files)
	if err != nil {
		t.Fatal(err)
	}
	r = &premise.Reader{Repo: repo}
	t.Cleanup(func() { r.Close() })
	now := func() string {
		tip, err := repo.Tip(t.Context(), branch)
		if err != nil {
			t.Fatal(err)
		}
		return tip
	}
	land = func(edits ...git.Edit) string {
		t.Helper()
		c := git.Change{Branch: branch, Base: now(), Author: "a", At: noon, Message: "more", Edits: edits}
		if _, err := repo.Land(t.Context(), git.Landing{Effect: "e-" + now()[:12], Request: "r", Change: c}); err != nil {
			t.Fatal(err)
		}
		return now()
	}
	return r, now(), land
}

func small() map[string]string {
	return map[string]string{
		"go.mod": "module shop\n\ngo 1.21\n",
		"a/a.go": "package a\n\n// F is here.\nfunc F(n int) int { return n + 1 }\n\nfunc G() int { return 2 }\n",
		"b/b.go": "package b\n\nimport \"shop/a\"\n\nfunc Old() int { return a.G() }\n",
	}
}

// A session says what a change rests on from what was read and tried and from the
// code that was written, and each granularity in its own words.
func TestRests(t *testing.T) {
	r, tip, land := repository(t, small())
	s := r.Begin(tip, nil)
	if _, err := s.Open(t.Context(), "a/a.go"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Try(t.Context(), "shop/a.F(1)"); err != nil || got != "2" {
		t.Fatalf("%q, %v", got, err)
	}
	c := git.Change{Branch: branch, Base: tip, Author: "b", At: noon, Message: "new", Edits: []git.Edit{{Path: "b/b.go", Op: git.Append, Text: "\nfunc New() int { return a.F(41) }\n"}}}
	facts := map[premise.Granularity]premise.Fact{}
	for g, want := range map[premise.Granularity]string{premise.File: "a/a.go", premise.Symbol: "shop/a.F", premise.Body: "shop/a.F", premise.Behaviour: "shop/a.F(1)"} {
		rests, err := s.Rests(t.Context(), g, c)
		if err != nil || len(rests.Facts) != 1 || rests.Facts[0].Of != want || !slices.Equal(rests.Symbols, []string{"shop/b.New"}) {
			t.Fatalf("%s: %+v, %v", g, rests, err)
		}
		facts[g] = rests.Facts[0]
	}
	seen := func(commit string) (changed []premise.Granularity) {
		for _, g := range premise.Granularities {
			now, err := r.Again(t.Context(), commit, facts[g])
			if err != nil {
				t.Fatal(err)
			}
			if now.Is != facts[g].Is || now.Gone {
				changed = append(changed, g)
			}
		}
		return changed
	}
	write := func(text string) git.Edit { return git.Edit{Path: "a/a.go", Op: git.Write, Text: text} }
	for _, test := range []struct {
		why  string
		edit git.Edit
		want []premise.Granularity
	}{
		{"another file", git.Edit{Path: "c/c.go", Op: git.Write, Text: "package c\n"}, nil},
		{"a comment", write("package a\n\n// F is there.\nfunc F(n int) int { return n + 1 }\n\nfunc G() int { return 2 }\n"), []premise.Granularity{premise.File}},
		{"a rewrite", write("package a\n\nfunc F(n int) int { n++; return n }\n\nfunc G() int { return 2 }\n"), []premise.Granularity{premise.File, premise.Body}},
		{"another meaning", write("package a\n\nfunc F(n int) int { return n - 1 }\n\nfunc G() int { return 2 }\n"), []premise.Granularity{premise.File, premise.Body, premise.Behaviour}},
		{"a module that doesn't build", write("package a\n\nfunc F(n int) int { return \"\" }\n\nfunc G() int { return 2 }\n"), []premise.Granularity{premise.File, premise.Symbol, premise.Body, premise.Behaviour}},
		{"a deleted file", git.Edit{Path: "a/a.go", Op: git.Delete}, []premise.Granularity{premise.File, premise.Symbol, premise.Body, premise.Behaviour}},
	} {
		if got := seen(land(test.edit)); !slices.Equal(got, test.want) {
			t.Errorf("%s is seen by %v, not by %v", test.why, got, test.want)
		}
	}
	if got := seen(tip); got != nil {
		t.Errorf("on its own commit %v changed", got)
	}
}

// Where the repository doesn't build before anything lands nothing can rest on
// its symbols, and that is said; files can be rested on all the same.
func TestARepositoryThatDoesntBuild(t *testing.T) {
	files := small()
	files["b/b.go"] = "package b\n\nfunc Old() int { return none() }\n"
	r, tip, _ := repository(t, files)
	s := r.Begin(tip, nil)
	if _, err := s.Open(t.Context(), "a/a.go"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Try(t.Context(), "shop/a.F(1)"); !errors.Is(err, premise.ErrBroken) {
		t.Errorf("a call: %v", err)
	}
	c := git.Change{Branch: branch, Base: tip, Author: "b", At: noon, Message: "new", Edits: []git.Edit{{Path: "c/c.go", Op: git.Write, Text: "package c\n"}}}
	for _, g := range []premise.Granularity{premise.Symbol, premise.Body, premise.Behaviour} {
		if _, err := s.Rests(t.Context(), g, c); !errors.Is(err, premise.ErrBroken) {
			t.Errorf("%s: %v", g, err)
		}
	}
	if rests, err := s.Rests(t.Context(), premise.File, c); err != nil || len(rests.Facts) != 1 {
		t.Errorf("files: %+v, %v", rests, err)
	}
}

func TestCallsThatAreNoFacts(t *testing.T) {
	files := small()
	files["a/a.go"] = "package a\n\nimport \"time\"\n\nfunc F(n int) int { return n }\n\nfunc G() int { return 2 }\n\nfunc Now() int64 { return time.Now().UnixNano() }\n"
	r, tip, _ := repository(t, files)
	s := r.Begin(tip, nil)
	for call, want := range map[string]error{"shop/a.Now()": premise.ErrUnstable, "shop/a.None()": premise.ErrCall, "F()": premise.ErrCall} {
		if _, err := s.Try(t.Context(), call); !errors.Is(err, want) {
			t.Errorf("%s: %v", call, err)
		}
	}
	if got := s.SoFar(t.Context(), premise.Behaviour); len(got) != 0 {
		t.Errorf("rests on %v", got)
	}
}

// What a test rests on, for replays of a history.
func TestTestsOfAModule(t *testing.T) {
	files := small()
	files["a/a_test.go"] = "package a\n\nimport \"testing\"\n\nfunc help(t *testing.T, n int) { if F(n) != n+1 { t.Fail() } }\n\nfunc TestF(t *testing.T) { help(t, 7) }\n\nfunc TestG(t *testing.T) { if G() != 3 { t.Fail() } }\n\nfunc TestNone(t *testing.T) {}\n"
	dir := module(t, files)
	m, err := premise.Load(t.Context(), dir, premise.Options{Tests: true})
	if err != nil || m.Broken != "" {
		t.Fatal(err, m)
	}
	tests := m.Tests()
	if len(tests) != 3 || !slices.Equal(tests[0].Symbols, []string{"shop/a.F"}) || !slices.Equal(tests[0].Files, []string{"a/a.go"}) || !slices.Contains(tests[0].Calls, "shop/a.F(7)") || len(tests[2].Symbols) != 0 {
		t.Errorf("%+v", tests)
	}
	if !m.Reaches("shop/b", map[string]bool{"a/a.go": true}) || m.Reaches("shop/a", map[string]bool{"b/b.go": true}) {
		t.Error("a package reaches what it imports, and nothing else")
	}
	passed, built, err := premise.RunTests(t.Context(), dir, premise.Options{}, premise.Limits{Memory: 4 << 30}, "shop", "shop/a", []string{"TestF", "TestG"})
	if err != nil || !built || !passed["TestF"] || passed["TestG"] || len(passed) != 2 {
		t.Errorf("%v, %v, %v", passed, built, err)
	}
}
