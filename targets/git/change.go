package git

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Change is one change to the tree: the effect, as it is journaled.
type Change struct {
	Branch  string    `json:"branch"` // refs/heads/NAME
	Base    string    `json:"base"`   // the commit that its author read
	Author  string    `json:"author"` // a name
	At      time.Time `json:"at"`     // when it was decided; the commit's date
	Message string    `json:"message"`
	Edits   []Edit    `json:"edits"`
}

// Edit is one file's part of a change. A change that was made on another commit
// than the branch stands at is merged, as git merges.
type Edit struct {
	Path string `json:"path"`
	Op   Op     `json:"op"`
	Text string `json:"text,omitempty"`
}

// Op says what becomes of a file.
type Op string

const (
	Write  Op = "write"  // the file holds Text
	Append Op = "append" // Text stands at its end
	Delete Op = "delete"
)

// Digest names the content of a change: two changes are the same exactly when
// their digests are.
func (c Change) Digest() string {
	c.At = c.At.UTC()
	text, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Errorf("git: a change that is no JSON: %w", err)) // it has no field that could be none
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// unfit says what is wrong with c, whatever it is made on; "" is nothing.
func (c Change) unfit() string {
	switch {
	case !strings.HasPrefix(c.Branch, "refs/heads/") || strings.ContainsAny(c.Branch, " \t\n\x00"):
		return fmt.Sprintf("%q is no full name of a branch, refs/heads/NAME", c.Branch)
	case len(c.Base) != 40 && len(c.Base) != 64 || strings.Trim(c.Base, "0123456789abcdef") != "":
		return fmt.Sprintf("%q is no commit's full name", c.Base)
	case c.Author == "" || strings.ContainsAny(c.Author, "<>\n\x00"):
		return fmt.Sprintf("%q is no author's name", c.Author)
	case c.At.IsZero():
		return "it doesn't say when it was decided"
	case strings.TrimSpace(c.Message) == "" || strings.Contains(c.Message, "\x00") || !utf8.ValidString(c.Message):
		return "it has no message"
	case len(c.Edits) == 0:
		return "it changes nothing"
	}
	for line := range strings.Lines(c.Message) {
		if strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "interlock-") {
			return "its message has a line that looks like a trailer of the target"
		}
	}
	for i, e := range c.Edits {
		if why := unfitPath(e.Path); why != "" {
			return fmt.Sprintf("the path %q %s", e.Path, why)
		}
		if !slices.Contains([]Op{Write, Append, Delete}, e.Op) {
			return fmt.Sprintf("%q is nothing that can be done with %s", e.Op, e.Path)
		}
		if slices.ContainsFunc(c.Edits[:i], func(o Edit) bool { return o.Path == e.Path }) {
			return fmt.Sprintf("%s is there twice", e.Path)
		}
	}
	return ""
}

func unfitPath(p string) string {
	if p == "" || p != path.Clean(p) || !filepath.IsLocal(p) || strings.ContainsAny(p, "\x00\n\\") || !utf8.ValidString(p) {
		return "doesn't name a file below the root by its shortest name"
	}
	for part := range strings.SplitSeq(p, "/") {
		if strings.EqualFold(part, ".git") || strings.HasPrefix(strings.ToLower(part), "git~") {
			return "leads into git's own folder"
		}
	}
	return ""
}

// Applied is the tree that a change makes on its base. Nothing refers to it.
// Errors are ErrChange and ErrMoved, where the base isn't there.
func (r *Repo) Applied(ctx context.Context, c Change) (tree string, err error) {
	bad := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("%w: %s", ErrChange, fmt.Sprintf(format, args...))
	}
	if why := c.unfit(); why != "" {
		return bad("%s", why)
	}
	if _, err := r.git(ctx, "rev-parse", "--verify", "--quiet", c.Base+"^{commit}"); err != nil {
		return "", fmt.Errorf("%w: commit %s isn't in the repository", ErrMoved, c.Base)
	}
	files, err := r.Files(ctx, c.Base)
	if err != nil {
		return "", err
	}
	var index bytes.Buffer // what update-index is told
	for _, e := range c.Edits {
		was, there := files[e.Path]
		for name := path.Dir(e.Path); name != "."; name = path.Dir(name) {
			if _, ok := files[name]; ok {
				return bad("%s is below %s, which is no folder", e.Path, name)
			}
		}
		switch {
		case there && was.Mode == modeLink || there && was.Mode == modeSubmodule:
			return bad("%s is a link or a submodule", e.Path)
		case !there && e.Op != Write:
			return bad("%s isn't there to %s", e.Path, e.Op)
		}
		if e.Op == Delete {
			fmt.Fprintf(&index, "0 %s\t%s\x00", strings.Repeat("0", len(c.Base)), e.Path)
			continue
		}
		text := []byte(e.Text)
		if e.Op == Append {
			old, err := r.Read(ctx, c.Base, e.Path)
			if err != nil {
				return "", err
			}
			text = append(old, text...)
		}
		write := r.command("hash-object", "-w", "--stdin")
		write.in = bytes.NewReader(text)
		id, err := write.run(ctx)
		if err != nil {
			return "", err
		}
		mode := modeFile
		if there {
			mode = was.Mode
		}
		fmt.Fprintf(&index, "%s %s\t%s\x00", mode, strings.TrimSpace(string(id)), e.Path)
	}
	tree, err = r.indexed(ctx, c.Base, &index)
	if err != nil {
		return bad("%v", err)
	}
	return tree, nil
}

// indexed is the tree of a commit, "" for none, with the given lines of an index,
// made in an index of its own outside of the repository.
func (r *Repo) indexed(ctx context.Context, base string, lines *bytes.Buffer) (string, error) {
	dir, err := os.MkdirTemp("", "interlock-index-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	private := []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}
	if base != "" {
		read := r.command("read-tree", base)
		read.env = private
		if _, err := read.run(ctx); err != nil {
			return "", err
		}
	}
	update := r.command("update-index", "-z", "--index-info")
	update.env, update.in = private, lines
	if _, err := update.run(ctx); err != nil {
		return "", err
	}
	write := r.command("write-tree")
	write.env = private
	tree, err := write.run(ctx)
	return strings.TrimSpace(string(tree)), err
}

// Merged is the tree of c on top of commit. Nothing refers to it. Errors are
// ErrChange, ErrMoved where commit doesn't follow the base, and ErrConflict.
func (r *Repo) Merged(ctx context.Context, c Change, commit string) (tree string, err error) {
	if tree, err = r.Applied(ctx, c); err != nil || commit == c.Base {
		return tree, err
	}
	if follows, err := r.Follows(ctx, commit, c.Base); err != nil || !follows {
		return "", errors.Join(fmt.Errorf("%w: %s is not in the history of %s", ErrMoved, c.Base, commit), err)
	}
	side, err := r.commit(ctx, c, tree, c.Base, nil)
	if err != nil {
		return "", err
	}
	out, err := r.git(ctx, "merge-tree", "--write-tree", "--name-only", "--no-messages", commit, side)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		_, names, _ := strings.Cut(out, "\n")
		return "", fmt.Errorf("%w: in %s", ErrConflict, strings.Join(strings.Fields(names), ", "))
	}
	return out, err
}

// commit writes a commit object with the given trailers.
func (r *Repo) commit(ctx context.Context, c Change, tree, parent string, trailers []string) (string, error) {
	message := strings.TrimSpace(c.Message) + "\n"
	if len(trailers) > 0 {
		message += "\n" + strings.Join(trailers, "\n") + "\n"
	}
	write := r.command("commit-tree", tree)
	if parent != "" {
		write = r.command("commit-tree", "-p", parent, tree)
	}
	write.in = strings.NewReader(message)
	date := fmt.Sprintf("@%d +0000", c.At.Unix())
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		write.env = append(write.env, "GIT_"+role+"_NAME="+c.Author, "GIT_"+role+"_EMAIL=", "GIT_"+role+"_DATE="+date)
	}
	id, err := write.run(ctx)
	return strings.TrimSpace(string(id)), err
}
