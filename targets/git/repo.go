// Package git is a branch of a git repository as a target: an effect is a change
// to the tree, and it lands by one compare-and-swap of the branch ref.
//
// Everything goes through git's plumbing. Objects are written first, and nothing
// refers to them; then the ref moves, or it doesn't. No working tree and no index
// of the repository is touched, so a process that is killed leaves a repository
// that is as it was, or as it should be. The effect's id is a trailer of the
// commit, which is how a landing is found again, and absorbed when it is sent
// twice.
//
// The package runs on Linux, with git from version 2.38 on.
package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Classes of failure; errors.Is finds them.
var (
	ErrNoGit      = errors.New("git: no git that can do this; install git 2.38 or later")
	ErrRepository = errors.New("git: not a repository that can be used")
	ErrBranch     = errors.New("git: no branch that can be landed on")
	ErrChange     = errors.New("git: the change can't be made")
	ErrConflict   = errors.New("git: the change and the branch touch the same lines")
	ErrMoved      = errors.New("git: the branch no longer holds what the change is based on")
	ErrOther      = errors.New("git: the effect landed with another content")
	ErrFenced     = errors.New("git: a later attempt has fenced this one")
	ErrInDoubt    = errors.New("git: nobody knows yet whether the branch moved")
	ErrTooLarge   = errors.New("git: a file is too large")
	ErrNoFile     = errors.New("git: no such file")
)

// Repo is one repository. It is safe for concurrent use.
type Repo struct {
	dir string // the git directory, absolute
}

// Open finds the repository at path, bare or with a working tree. It changes
// nothing. Errors are ErrNoGit and ErrRepository.
func Open(ctx context.Context, path string) (*Repo, error) {
	if err := usable(ctx); err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is no folder", ErrRepository, path)
	}
	out, err := command{args: []string{"-C", abs, "rev-parse", "--absolute-git-dir"}}.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRepository, path, err)
	}
	return &Repo{dir: strings.TrimSuffix(string(out), "\n")}, nil
}

// usable asks git for its version.
func usable(ctx context.Context) error {
	out, err := command{args: []string{"version"}}.run(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoGit, err)
	}
	var major, minor int
	if n, _ := fmt.Sscanf(string(out), "git version %d.%d", &major, &minor); n < 2 || major < 2 || major == 2 && minor < 38 {
		return fmt.Errorf("%w: this one says %q", ErrNoGit, strings.TrimSpace(string(out)))
	}
	return nil
}

// command is one run of git.
type command struct {
	args []string
	env  []string
	in   io.Reader
	held *os.File // stays open in git for as long as it runs
}

// settings keep what a person or a repository has configured away from the
// plumbing: no hooks, no helpers, no signatures, no network, no housekeeping.
var settings = []string{
	"-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
	"-c", "core.attributesFile=/dev/null", "-c", "core.autocrlf=false", "-c", "commit.gpgSign=false",
	"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "protocol.allow=never",
	"-c", "core.fsync=committed", "-c", "core.logAllRefUpdates=false", "-c", "merge.renames=true", "-c", "core.quotePath=true",
}

// environment is all that git gets: nothing of the caller's but where programs
// and temporary files are.
func environment() []string {
	env := []string{
		"LC_ALL=C", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_LITERAL_PATHSPECS=1", "GIT_OPTIONAL_LOCKS=0", "PATH=" + os.Getenv("PATH"),
	}
	if tmp := os.Getenv("TMPDIR"); tmp != "" {
		env = append(env, "TMPDIR="+tmp)
	}
	return env
}

// run returns what git printed; an *exec.ExitError is wrapped with its words.
func (c command) run(ctx context.Context) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append(append([]string(nil), settings...), c.args...)...)
	cmd.Env = append(environment(), c.env...)
	cmd.Stdin = c.in
	if c.held != nil {
		cmd.ExtraFiles = []*os.File{c.held}
	}
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	err := cmd.Run()
	if err != nil {
		if said := strings.TrimSpace(words.String()); said != "" {
			err = fmt.Errorf("git %s: %w: %s", c.args[len(c.args)-1], err, strings.ReplaceAll(said, "\n", "; "))
		}
	}
	return out.Bytes(), err
}

// git runs one command in the repository and returns what it printed, without
// the last line end.
func (r *Repo) git(ctx context.Context, args ...string) (string, error) {
	out, err := r.command(args...).run(ctx)
	return strings.TrimSuffix(string(out), "\n"), err
}

func (r *Repo) command(args ...string) command {
	return command{args: append([]string{"--git-dir=" + r.dir}, args...)}
}

// Tip is the commit that branch, a full ref name, stands at. Its error is
// ErrBranch.
func (r *Repo) Tip(ctx context.Context, branch string) (string, error) {
	if !strings.HasPrefix(branch, "refs/heads/") {
		return "", fmt.Errorf("%w: %q is no full name of a branch, refs/heads/NAME", ErrBranch, branch)
	}
	tip, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", branch+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("%w: %s has no commit yet, or isn't there", ErrBranch, branch)
	}
	return tip, nil
}

// Landable returns nil where changes can land on branch. A shallow clone can't
// say what landed, and a branch that a working tree shows would move away under
// it. Errors are ErrRepository and ErrBranch.
func (r *Repo) Landable(ctx context.Context, branch string) error {
	if _, err := r.Tip(ctx, branch); err != nil {
		return err
	}
	if shallow, err := r.git(ctx, "rev-parse", "--is-shallow-repository"); err != nil || shallow != "false" {
		return fmt.Errorf("%w: it is a shallow clone, whose history doesn't say what landed; fetch the rest, or name the repository that it was cloned from", ErrRepository)
	}
	trees, err := r.git(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRepository, err)
	}
	for line := range strings.SplitSeq(trees, "\n") {
		if line == "branch "+branch {
			return fmt.Errorf("%w: %s is checked out in a working tree, which a landing would leave behind; name a bare repository, or a branch that nobody has checked out", ErrBranch, branch)
		}
	}
	return nil
}

// Follows says whether commit is ancestor or has it in its history.
func (r *Repo) Follows(ctx context.Context, commit, ancestor string) (bool, error) {
	_, err := r.git(ctx, "merge-base", "--is-ancestor", ancestor, commit)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}

// History is the newest commits of HEAD along first parents, at most n of them,
// the oldest first. Of a shallow clone it is what the clone has. Its error is
// ErrBranch where there is no commit.
func (r *Repo) History(ctx context.Context, n int) ([]string, error) {
	out, err := r.git(ctx, "rev-list", "--first-parent", fmt.Sprintf("--max-count=%d", n), "--reverse", "HEAD")
	if err != nil {
		return nil, fmt.Errorf("%w: HEAD has no commit: %w", ErrBranch, err)
	}
	return strings.Fields(out), nil
}
