package git_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/git"
)

const main = "refs/heads/main"

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is a bare repository with one commit on main, and a clone to prepare
// other commits in.
type world struct {
	t         *testing.T
	dir, work string
	repo      *git.Repo
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: filepath.Join(t.TempDir(), "bare.git"), work: filepath.Join(t.TempDir(), "work")}
	first.Do(func() { // one template, in a folder that outlives the test that needs it first
		dir, err := os.MkdirTemp("", "interlock-git-")
		if err != nil {
			t.Fatal(err)
		}
		template.dir, template.work, template.t = filepath.Join(dir, "bare.git"), filepath.Join(dir, "work"), t
		template.sh(".", "git", "init", "-q", "--bare", "-b", "main", template.dir)
		template.sh(".", "git", "clone", "-q", template.dir, template.work)
		template.put("a.txt", "one\ntwo\nthree\n")
		template.put("sub/b.txt", "b\n")
		template.push("first")
	})
	err := errors.Join(os.CopyFS(w.dir, os.DirFS(template.dir)), os.CopyFS(w.work, os.DirFS(template.work)))
	if err != nil {
		t.Fatal(err)
	}
	w.sh(w.work, "git", "remote", "set-url", "origin", w.dir)
	if w.repo, err = git.Open(t.Context(), w.dir); err != nil {
		t.Fatal(err)
	}
	return w
}

var (
	first    sync.Once
	template world
)

// sh runs a command with a name and an address for git to use.
func (w *world) sh(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=p", "GIT_AUTHOR_EMAIL=p", "GIT_COMMITTER_NAME=p", "GIT_COMMITTER_EMAIL=p",
		"GIT_AUTHOR_DATE=1767355200 +0000", "GIT_COMMITTER_DATE=1767355200 +0000")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) put(name, text string) {
	w.t.Helper()
	to := filepath.Join(w.work, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, []byte(text), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

// push commits everything in the clone and pushes it.
func (w *world) push(message string) string {
	w.t.Helper()
	w.sh(w.work, "git", "checkout", "-q", "-B", "main")
	w.sh(w.work, "git", "add", "-A")
	w.sh(w.work, "git", "commit", "-q", "--allow-empty", "-m", message)
	w.sh(w.work, "git", "push", "-q", "origin", "main")
	return w.tip()
}

func (w *world) tip() string { return w.sh(w.dir, "git", "rev-parse", "main") }

func (w *world) show(name string) string { return w.sh(w.dir, "git", "show", "main:"+name) }

// clean fails the test where the repository is not as git wants it, or where
// something was left in it.
func (w *world) clean() {
	w.t.Helper()
	w.sh(w.dir, "git", "fsck", "--strict", "--no-dangling")
	filepath.WalkDir(w.dir, func(path string, _ os.DirEntry, err error) error {
		if name := filepath.Base(path); err == nil && strings.HasSuffix(name, ".lock") && name != "interlock.lock" || name == "index" {
			w.t.Errorf("%s was left behind", path)
		}
		return nil
	})
}

func (w *world) change(edits ...git.Edit) git.Change {
	return git.Change{Branch: main, Base: w.tip(), Author: "agent-b", At: noon, Message: "a change", Edits: edits}
}

func landing(effect string, c git.Change) git.Landing {
	return git.Landing{Effect: effect, Request: "task-12", Change: c}
}

func TestLand(t *testing.T) {
	w := newWorld(t)
	c := w.change(git.Edit{Path: "new/c.txt", Op: git.Write, Text: "c\n"}, git.Edit{Path: "a.txt", Op: git.Append, Text: "four\n"}, git.Edit{Path: "sub/b.txt", Op: git.Delete})
	before := w.tip()
	landed, err := w.repo.Land(t.Context(), landing("e1", c))
	if err != nil || landed.Commit != w.tip() || landed.Parent != before || landed.Repeated {
		t.Fatalf("%+v, %v; the tip is %s", landed, err, w.tip())
	}
	if got := w.show("a.txt") + w.show("new/c.txt"); got != "one\ntwo\nthree\nfourc" {
		t.Errorf("landed %q", got)
	}
	if got := w.sh(w.dir, "git", "log", "-1", "--format=%(trailers:key=Interlock-Effect,valueonly)", "main"); got != "e1" {
		t.Errorf("git finds the trailer %q", got)
	}
	again, err := w.repo.Land(t.Context(), landing("e1", c))
	if err != nil || !again.Repeated || again.Commit != landed.Commit || w.tip() != landed.Commit {
		t.Errorf("sent again: %+v, %v", again, err)
	}
	other := c
	other.Message = "another change"
	if _, err := w.repo.Land(t.Context(), landing("e1", other)); !errors.Is(err, git.ErrOther) {
		t.Errorf("other content under the same id: %v", err)
	}
	w.clean()
}

// A change that was made before others' is merged as git merges, and refused
// where both touch the same lines.
func TestTheBranchMoved(t *testing.T) {
	for _, test := range []struct {
		name, why, file, text string
		edit                  git.Edit
		want                  error
	}{
		{"elsewhere", "another file changed", "sub/b.txt", "bb\n", git.Edit{Path: "a.txt", Op: git.Append, Text: "four\n"}, nil},
		{"above", "another line of the same file changed", "a.txt", "ONE\ntwo\nthree\n", git.Edit{Path: "a.txt", Op: git.Append, Text: "four\n"}, nil},
		{"same", "the same lines changed", "a.txt", "one\ntwo\nthree\n3.5\n", git.Edit{Path: "a.txt", Op: git.Append, Text: "four\n"}, git.ErrConflict},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			c := w.change(test.edit)
			w.put(test.file, test.text)
			tip := w.push("by another")
			_, err := w.repo.Land(t.Context(), landing("e1", c))
			if !errors.Is(err, test.want) || test.want == nil && err != nil {
				t.Fatalf("%s: %v", test.why, err)
			}
			if err != nil && w.tip() != tip {
				t.Error("a refused change moved the branch")
			}
			w.clean()
		})
	}
}

func TestARewrittenBranch(t *testing.T) {
	w := newWorld(t)
	w.put("a.txt", "other\n")
	w.push("second")
	c := w.change(git.Edit{Path: "x", Op: git.Write, Text: "x"})
	w.sh(w.work, "git", "checkout", "-q", "--orphan", "fresh")
	w.sh(w.work, "git", "commit", "-q", "-m", "rewritten")
	w.sh(w.work, "git", "push", "-q", "--force", "origin", "fresh:main")
	if _, err := w.repo.Land(t.Context(), landing("e1", c)); !errors.Is(err, git.ErrMoved) {
		t.Errorf("a base that the branch no longer holds: %v", err)
	}
	c.Base = strings.Repeat("a", 40)
	if _, err := w.repo.Land(t.Context(), landing("e1", c)); !errors.Is(err, git.ErrMoved) {
		t.Errorf("a base that was never there: %v", err)
	}
}

// Whatever Holds said was said of the commit that the change then stands on.
func TestNothingComesBetweenCheckAndLanding(t *testing.T) {
	w := newWorld(t)
	c := w.change(git.Edit{Path: "c.txt", Op: git.Write, Text: "c\n"})
	var asked []string
	l := landing("e1", c)
	l.Holds = func(_ context.Context, commit string) error { asked = append(asked, commit); return nil }
	moved := 0
	l.Trace = func(p trace.Point, _ string) {
		if p == git.PointLanding && moved < 2 {
			moved++
			w.put("a.txt", fmt.Sprintln("moved", moved))
			w.push("in between")
		}
	}
	landed, err := w.repo.Land(t.Context(), l)
	if err != nil || len(asked) != 3 || asked[2] != landed.Parent {
		t.Errorf("asked about %v, landed %+v, %v", asked, landed, err)
	}
	stop := errors.New("no")
	l = landing("e2", w.change(git.Edit{Path: "d.txt", Op: git.Write, Text: "d\n"}))
	l.Holds = func(context.Context, string) error { return stop }
	tip := w.tip()
	if _, err := w.repo.Land(t.Context(), l); !errors.Is(err, stop) || w.tip() != tip {
		t.Errorf("a check that doesn't hold: %v", err)
	}
}

func TestConcurrentLandings(t *testing.T) {
	w := newWorld(t)
	base := w.change(git.Edit{Path: "x", Op: git.Write, Text: "x"})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			c := base
			c.Edits = []git.Edit{{Path: fmt.Sprint("f", i%4), Op: git.Write, Text: "x"}}
			if _, err := w.repo.Land(context.Background(), landing(fmt.Sprint("e", i%4), c)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := w.sh(w.dir, "git", "rev-list", "--count", "main"); n != "5" {
		t.Errorf("%s commits of 4 effects and the first", n)
	}
	w.clean()
}

func TestFence(t *testing.T) {
	w := newWorld(t)
	c := w.change(git.Edit{Path: "c.txt", Op: git.Write, Text: "c\n"})
	if err := w.repo.Fence("e1", [2]uint64{2, 7}); err != nil {
		t.Fatal(err)
	}
	if err := w.repo.Fence("e1", [2]uint64{1, 9}); err != nil {
		t.Fatal(err)
	}
	l := landing("e1", c)
	l.Token = [2]uint64{2, 6}
	if _, err := w.repo.Land(t.Context(), l); !errors.Is(err, git.ErrFenced) {
		t.Errorf("an older attempt: %v", err)
	}
	l.Token = [2]uint64{2, 7}
	if _, err := w.repo.Land(t.Context(), l); err != nil {
		t.Errorf("the attempt that fenced: %v", err)
	}
}

func TestChangesThatCantBeMade(t *testing.T) {
	w := newWorld(t)
	w.sh(w.work, "ln", "-s", "/etc/passwd", "link")
	w.sh(w.work, "git", "-c", "protocol.file.allow=always", "submodule", "-q", "add", w.dir, "module")
	w.push("a link and a submodule")
	tip := w.tip()
	for _, test := range []struct {
		why  string
		spoi func(*git.Change)
	}{
		{"no edits", func(c *git.Change) { c.Edits = nil }},
		{"out of the tree", func(c *git.Change) { c.Edits[0].Path = "../x" }},
		{"an absolute path", func(c *git.Change) { c.Edits[0].Path = "/etc/x" }},
		{"git's own folder", func(c *git.Change) { c.Edits[0].Path = "sub/.GIT/hooks/pre-push" }},
		{"a path of two spellings", func(c *git.Change) { c.Edits[0].Path = "a//x" }},
		{"a line end in a path", func(c *git.Change) { c.Edits[0].Path = "a\nb" }},
		{"below a file", func(c *git.Change) { c.Edits[0].Path = "a.txt/x" }},
		{"below a link", func(c *git.Change) { c.Edits[0].Path = "link/x" }},
		{"a link", func(c *git.Change) { c.Edits[0].Path = "link" }},
		{"a submodule", func(c *git.Change) { c.Edits[0].Path = "module" }},
		{"below a submodule", func(c *git.Change) { c.Edits[0].Path = "module/x" }},
		{"delete what isn't there", func(c *git.Change) { c.Edits[0] = git.Edit{Path: "none", Op: git.Delete} }},
		{"append to what isn't there", func(c *git.Change) { c.Edits[0] = git.Edit{Path: "none", Op: git.Append, Text: "x"} }},
		{"no such edit", func(c *git.Change) { c.Edits[0].Op = "chmod" }},
		{"one file twice", func(c *git.Change) { c.Edits = append(c.Edits, c.Edits[0]) }},
		{"a forged trailer", func(c *git.Change) { c.Message = "x\n\nInterlock-Effect: e9" }},
		{"no message", func(c *git.Change) { c.Message = " \n" }},
		{"an author with an address", func(c *git.Change) { c.Author = "a <b@c>" }},
		{"no time", func(c *git.Change) { c.At = time.Time{} }},
		{"a base by another name", func(c *git.Change) { c.Base = "HEAD" }},
		{"a branch by its short name", func(c *git.Change) { c.Branch = "main" }},
	} {
		c := w.change(git.Edit{Path: "new.txt", Op: git.Write, Text: "x"})
		test.spoi(&c)
		if _, err := w.repo.Land(t.Context(), landing("e1", c)); !errors.Is(err, git.ErrChange) {
			t.Errorf("%s: %v", test.why, err)
		}
	}
	if w.tip() != tip {
		t.Error("the branch moved")
	}
	w.clean()
}

// What stands beside a change stays as it is.
func TestLinksSubmodulesAndHugeFilesStay(t *testing.T) {
	w := newWorld(t)
	w.sh(w.work, "ln", "-s", "a.txt", "link")
	w.sh(w.work, "ln", "-s", "/etc/passwd", "out")
	w.sh(w.work, "git", "-c", "protocol.file.allow=always", "submodule", "-q", "add", w.dir, "module")
	w.push("a link and a submodule")
	small := t.TempDir()
	if err := w.repo.Checkout(t.Context(), w.tip(), small); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(filepath.Join(small, "link")); err != nil || to != "a.txt" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	for _, name := range []string{"out", "module/a.txt"} {
		if _, err := os.Lstat(filepath.Join(small, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was written: %v", name, err)
		}
	}
	huge, err := os.Create(filepath.Join(w.work, "huge"))
	if err == nil {
		err = errors.Join(huge.Truncate(git.MaxFile+1), huge.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	w.push("a huge file")
	if _, err := w.repo.Land(t.Context(), landing("e1", w.change(git.Edit{Path: "c.txt", Op: git.Write, Text: "c\n"}))); err != nil {
		t.Errorf("beside a huge file: %v", err)
	}
	if w.show("link") != "a.txt" || !strings.Contains(w.sh(w.dir, "git", "ls-tree", "main"), "160000 commit") {
		t.Error("a link or a submodule is no longer what it was")
	}
	if err := w.repo.Checkout(t.Context(), w.tip(), t.TempDir()); !errors.Is(err, git.ErrTooLarge) {
		t.Errorf("a checkout with a huge file: %v", err)
	}
	if _, err := w.repo.Read(t.Context(), w.tip(), "huge"); !errors.Is(err, git.ErrTooLarge) {
		t.Errorf("reading it: %v", err)
	}
	w.clean()
}

func TestRepositoriesThatCantBeLandedOn(t *testing.T) {
	w := newWorld(t)
	w.put("a.txt", "more\n")
	w.push("second")
	dir := t.TempDir()
	w.sh(dir, "git", "init", "-q", "--bare", "-b", "main", "empty")
	w.sh(dir, "git", "clone", "-q", "--depth", "1", "--bare", "file://"+w.dir, "shallow")
	w.sh(dir, "git", "clone", "-q", w.dir, "checkedout")
	for _, test := range []struct {
		why, path, branch string
		want              error
	}{
		{"no commits", "empty", main, git.ErrBranch},
		{"a shallow clone", "shallow", main, git.ErrRepository},
		{"a branch that is checked out", "checkedout", main, git.ErrBranch},
		{"no such branch", "checkedout", "refs/heads/other", git.ErrBranch},
		{"a tag", "checkedout", "refs/tags/v1", git.ErrBranch},
	} {
		r, err := git.Open(t.Context(), filepath.Join(dir, test.path))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Landable(t.Context(), test.branch); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.why, err)
		}
	}
	if err := w.repo.Landable(t.Context(), main); err != nil {
		t.Errorf("a bare repository: %v", err)
	}
	for why, path := range map[string]string{"no folder": filepath.Join(dir, "none"), "a file": filepath.Join(w.work, "a.txt"), "no repository": dir} {
		if _, err := git.Open(t.Context(), path); !errors.Is(err, git.ErrRepository) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

func TestGitIsMissing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if _, err := git.Open(t.Context(), dir); !errors.Is(err, git.ErrNoGit) {
		t.Errorf("no git: %v", err)
	}
	script := "#!/bin/sh\necho git version 2.30.1\n"
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := git.Open(t.Context(), dir); !errors.Is(err, git.ErrNoGit) {
		t.Errorf("an old git: %v", err)
	}
}

// Neither the caller's environment nor what is configured reaches git.
func TestAForeignEnvironment(t *testing.T) {
	w := newWorld(t)
	trap := filepath.Join(t.TempDir(), "trapped")
	hook := "#!/bin/sh\ntouch " + trap + "\nexit 1\n"
	for _, name := range []string{"reference-transaction", "pre-receive", "update", "post-update"} {
		if err := os.WriteFile(filepath.Join(w.dir, "hooks", name), []byte(hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.sh(w.dir, "git", "config", "core.fsmonitor", "touch "+trap)
	w.sh(w.dir, "git", "config", "commit.gpgSign", "true")
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[core]\n\thooksPath = "+filepath.Join(w.dir, "hooks")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	other := newWorld(t)
	for name, value := range map[string]string{
		"HOME": home, "GIT_DIR": other.dir, "GIT_INDEX_FILE": filepath.Join(home, "index"), "GIT_WORK_TREE": home,
		"GIT_OBJECT_DIRECTORY": home, "GIT_AUTHOR_DATE": "yesterday", "GIT_COMMITTER_NAME": "somebody",
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": filepath.Join(w.dir, "hooks"),
	} {
		t.Setenv(name, value)
	}
	repo, err := git.Open(t.Context(), w.dir)
	if err != nil {
		t.Fatal(err)
	}
	tip, err := repo.Tip(t.Context(), main)
	if err != nil {
		t.Fatal(err)
	}
	c := git.Change{Branch: main, Base: tip, Author: "agent-b", At: noon, Message: "a change", Edits: []git.Edit{{Path: "c", Op: git.Write, Text: "c"}}}
	if _, err := repo.Land(t.Context(), landing("e1", c)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(trap); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a hook ran: %v", err)
	}
	if left, _ := os.ReadDir(home); len(left) != 1 {
		t.Errorf("%d files in the caller's folder", len(left))
	}
}

// Equal changes on equal commits are equal bytes, whoever runs them and when.
func TestCommitsArePinned(t *testing.T) {
	var ids []string
	for range 2 {
		w := newWorld(t)
		landed, err := w.repo.Land(t.Context(), landing("e1", w.change(git.Edit{Path: "c", Op: git.Write, Text: "c"})))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, landed.Commit)
	}
	if ids[0] != ids[1] {
		t.Errorf("commits %v", ids)
	}
}

// The gate's side: facts are read without the effect's own landing, and what the
// target checks itself it checks where it lands.
func TestTarget(t *testing.T) {
	w := newWorld(t)
	target := git.Target{Repo: w.repo, Facts: func(ctx context.Context, commit string, p protocol.Premise) (json.RawMessage, error) {
		text, err := w.repo.Read(ctx, commit, p.Name)
		if errors.Is(err, git.ErrNoFile) {
			return json.RawMessage(`{"is":null}`), nil
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]string{"is": string(text)})
	}}
	c := w.change(git.Edit{Path: "a.txt", Op: git.Append, Text: "four\n"})
	payload, err := git.PayloadOf(c)
	if err != nil {
		t.Fatal(err)
	}
	r := protocol.Request{Effect: protocol.EffectID("n", "task-12", 0), Request: "task-12", Action: "land", Payload: payload}
	premise := protocol.Premise{Name: "a.txt", Seen: json.RawMessage(`{"is":"one\ntwo\nthree\n"}`), Holds: protocol.ByTarget}
	send := func(r protocol.Request) protocol.Answer {
		t.Helper()
		a, err := target.Prepare(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		return a.Send(t.Context(), protocol.Envelope{Token: journal.Token{Segment: 1, Seq: 3}})
	}
	if f, err := target.Lookup(t.Context(), r); err != nil || f.Landed {
		t.Errorf("before: %+v, %v", f, err)
	}
	r.Premises = []protocol.Premise{premise}
	if a := send(r); a.Outcome != protocol.Done {
		t.Fatalf("%+v", a)
	}
	if a := send(r); a.Outcome != protocol.Done {
		t.Errorf("again, with its own change in the way: %+v", a)
	}
	if f, err := target.Lookup(t.Context(), r); err != nil || !f.Landed || !f.Same {
		t.Errorf("after: %+v, %v", f, err)
	}
	if got, err := target.Observe(t.Context(), premise, r); err != nil || string(got) != string(premise.Seen) {
		t.Errorf("observed %s, %v", got, err)
	}
	w.put("a.txt", "")
	w.sh(w.work, "git", "fetch", "-q")
	w.sh(w.work, "git", "reset", "-q", "--hard", "origin/main")
	w.sh(w.work, "git", "rm", "-q", "a.txt")
	w.push("deleted")
	r.Effect = protocol.EffectID("n", "task-13", 0)
	if got, err := target.Observe(t.Context(), premise, r); err != nil || string(got) != `{"is":null}` {
		t.Errorf("a deleted file: %s, %v", got, err)
	}
	if a := send(r); a.Outcome != protocol.PremiseFailed || a.Premise != "a.txt" {
		t.Errorf("on a deleted file: %+v", a)
	}
	if !slices.Contains(git.Points(), git.PointLanded) {
		t.Error("the points are not listed")
	}
}
