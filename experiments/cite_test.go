package experiments_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
)

// git runs git in dir and is silent about who commits.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{
		"-C", dir, "-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false",
	}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestCiteSaysWhatGitKnows cites one cell while its tree goes from no repository
// to a clean one and on to one that was changed.
func TestCiteSaysWhatGitKnows(t *testing.T) {
	t.Setenv("GIT_CEILING_DIRECTORIES", os.TempDir())
	e := tiny(right)
	all := []*experiments.Experiment{e}
	root := t.TempDir()
	dir := filepath.Join(root, "results")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := experiments.Save(dir, e, run(t, e)); err != nil {
		t.Fatal(err)
	}
	cite := func() experiments.Citation {
		t.Helper()
		c, err := experiments.Cite(t.Context(), all, dir, "tiny-one/crash_before_ack/gate@t1")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := cite(); c.Commit != "" || c.Caveat == "" {
		t.Errorf("without a repository: %+v", c)
	}

	git(t, root, "init", "-q")
	if c := cite(); c.Commit != "" || c.Caveat == "" {
		t.Errorf("without a commit: %+v", c)
	}
	if err := os.WriteFile(filepath.Join(root, "code"), []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	git(t, root, "add", "code")
	git(t, root, "commit", "-q", "-m", "code")
	if c := cite(); c.Commit == "" || c.Caveat == "" {
		t.Errorf("with results that aren't committed: %+v", c)
	}
	git(t, root, "add", "results")
	git(t, root, "commit", "-q", "-m", "results")

	c := cite()
	if c.Commit != git(t, root, "rev-parse", "HEAD") || c.Caveat != "" {
		t.Errorf("in a clean tree: %+v", c)
	}
	if c.Value != "COMMITTED $20" || c.Verdict != "CORRECT" || c.Replay != "interlock-bench replay 'tiny-one/crash_before_ack/gate@t1 file=plain seed=1'" {
		t.Errorf("got %+v", c)
	}
	for _, part := range []string{"@misc{interlock-bench-tiny-one--crash_before_ack--gate-at-t1,", c.Commit, `COMMITTED \$20`, "year = {" + c.Date[:4] + "}"} {
		if !strings.Contains(c.BibTeX, part) {
			t.Errorf("%q isn't in\n%s", part, c.BibTeX)
		}
	}
	if strings.Count(c.BibTeX, "{") != strings.Count(c.BibTeX, "}") {
		t.Errorf("braces don't match in\n%s", c.BibTeX)
	}

	if err := os.WriteFile(filepath.Join(root, "code"), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	elsewhere := cite().Caveat
	edit(t, filepath.Join(dir, "tiny_one.jsonl"), `"id":"tiny-one/crash_before_ack/gate@t1","experiment":"tiny-one","row":"crash_before_ack","column":"gate@t1","axes":{"file":"plain"},"cell":"COMMITTED $20"`,
		`"id":"tiny-one/crash_before_ack/gate@t1","experiment":"tiny-one","row":"crash_before_ack","column":"gate@t1","axes":{"file":"plain"},"cell":"COMMITTED $0"`)
	if here := cite().Caveat; elsewhere == "" || here == "" || here == elsewhere {
		t.Errorf("changed elsewhere: %q; changed results: %q", elsewhere, here)
	}
}

func TestCiteWithoutGit(t *testing.T) {
	e := tiny(right)
	dir, _ := saved(t, e)
	t.Setenv("PATH", t.TempDir())
	c, err := experiments.Cite(t.Context(), []*experiments.Experiment{e}, dir, "tiny-one/happy_path/naive")
	if err != nil || c.Commit != "" || c.Caveat == "" || c.Value != "COMMITTED $20" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestWhatCantBeCited(t *testing.T) {
	e := tiny(right)
	dir, files := saved(t, e)
	var name *experiments.NameError
	isName := func(kind string) func(error) bool {
		return func(err error) bool { return errors.As(err, &name) && name.Kind == kind }
	}
	noCell := func(err error) bool { return errors.Is(err, experiments.ErrNoCell) }
	for _, c := range []struct {
		why, dir, id string
		want         func(error) bool
	}{
		{"no id", dir, "tiny-one", noCell},
		{"an unknown experiment", dir, "tiny/happy_path/naive", isName("experiment")},
		{"an unknown row", dir, "tiny-one/hapy_path/naive", isName("row")},
		{"an unknown column", dir, "tiny-one/happy_path/gate", isName("column")},
		{"an unknown table", dir, "tiny-one.other/happy_path/naive", noCell},
		{"no results", t.TempDir(), "tiny-one/happy_path/naive", noCell},
	} {
		if _, err := experiments.Cite(t.Context(), []*experiments.Experiment{e}, c.dir, c.id); !c.want(err) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	if err := os.WriteFile(files.Records, []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := experiments.Cite(t.Context(), []*experiments.Experiment{e}, dir, "tiny-one/happy_path/naive"); !errors.Is(err, experiments.ErrRecord) {
		t.Errorf("damaged records: %v", err)
	}
}

// TestEveryCellHasAnAnchorOfItsOwn looks at all cells of all experiments.
func TestEveryCellHasAnAnchorOfItsOwn(t *testing.T) {
	of := map[string]string{}
	for _, e := range experiments.All() {
		for _, c := range e.Cells {
			id := c.ID(e.Name)
			a := experiments.Record{ID: id}.Anchor()
			if other, taken := of[a]; taken || strings.Trim(a, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
				t.Errorf("%s has the anchor %q, as has %q", id, a, other)
			}
			of[a] = id
		}
	}
}

// TestPagesHaveTheAnchors looks for each record of the committed results on its
// page.
func TestPagesHaveTheAnchors(t *testing.T) {
	for _, e := range experiments.All() {
		files := experiments.FilesOf("../results", e)
		records, err := os.ReadFile(files.Records)
		if errors.Is(err, os.ErrNotExist) {
			continue // check says so
		}
		page, err2 := os.ReadFile(files.Page)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		for _, r := range must(experiments.DecodeRecords(records)) {
			if n := strings.Count(string(page), `<a id="`+r.Anchor()+`"></a>`); n != 1 {
				t.Errorf("%s has the anchor of %s %d times, and maybe others", files.Page, r.ID, n)
				break
			}
		}
	}
}
