package premise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/interlock-bench/interlock-bench/targets/git"
)

// Reader reads facts from the commits of one repository. It keeps what it checked
// out and type-checked until it is closed. It is safe for concurrent use.
type Reader struct {
	Repo   *git.Repo
	Limits Limits // of observed calls

	mu      sync.Mutex
	folders map[string]string
	modules map[string]*Module
	facts   map[string]Fact // of a commit; a commit doesn't change
}

// Close removes what was checked out.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, dir := range r.folders {
		errs = append(errs, os.RemoveAll(dir))
	}
	r.folders, r.modules = nil, nil
	return errors.Join(errs...)
}

// folder is a folder with the files of a commit or a tree.
func (r *Reader) folder(ctx context.Context, commit string) (string, error) {
	if dir, ok := r.folders[commit]; ok {
		return dir, nil
	}
	dir, err := os.MkdirTemp("", "interlock-tree-")
	if err != nil {
		return "", err
	}
	if r.folders == nil {
		r.folders, r.modules = map[string]string{}, map[string]*Module{}
	}
	r.folders[commit] = dir
	if err := r.Repo.Checkout(ctx, commit, dir); err != nil {
		delete(r.folders, commit)
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// Module is the module of a commit or a tree. Errors are those of Load and of
// git.Repo.Checkout.
func (r *Reader) Module(ctx context.Context, commit string, tags []string) (*Module, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.module(ctx, commit, tags)
}

func (r *Reader) module(ctx context.Context, commit string, tags []string) (*Module, error) {
	key := commit + " " + strings.Join(tags, ",")
	if m, ok := r.modules[key]; ok {
		return m, nil
	}
	dir, err := r.folder(ctx, commit)
	if err != nil {
		return nil, err
	}
	m, err := Load(ctx, dir, Options{Tags: tags})
	if err == nil {
		r.modules[key] = m
	}
	return m, err
}

// Again asks for a fact in another commit. A fact that is gone, and a module that
// doesn't build there, are answers; errors are those of git, of the go command,
// and ErrSandbox.
func (r *Reader) Again(ctx context.Context, commit string, f Fact) (Fact, error) {
	now := Fact{Kind: f.Kind, Of: f.Of, Tags: f.Tags}
	if f.Kind == File {
		files, err := r.Repo.Files(ctx, commit)
		if err != nil {
			return now, err
		}
		there, ok := files[f.Of]
		now.Is, now.Gone = there.ID, !ok
		return now, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := fmt.Sprint(commit, f.Kind, f.Tags, f.Of)
	if known, ok := r.facts[key]; ok {
		return known, nil
	}
	now, err := r.again(ctx, commit, now)
	if err == nil {
		r.know(key, now)
	}
	return now, err
}

func (r *Reader) know(key string, f Fact) {
	if r.facts == nil {
		r.facts = map[string]Fact{}
	}
	r.facts[key] = f
}

// again asks for what f is about in a commit.
func (r *Reader) again(ctx context.Context, commit string, f Fact) (Fact, error) {
	now := f
	m, err := r.module(ctx, commit, f.Tags)
	if errors.Is(err, ErrModule) {
		now.Gone, now.Broken = true, err.Error()
		return now, nil
	}
	if err != nil {
		return now, err
	}
	if now.Broken = m.Broken; now.Broken != "" {
		now.Gone = true
		return now, nil
	}
	switch f.Kind {
	case Symbol:
		now.Is, err = m.Signature(f.Of)
	case Body:
		now.Is, err = m.Body(f.Of)
	case Behaviour:
		var results []string
		if results, err = Observe(ctx, m.dir, m.opts, r.Limits, []string{f.Of}); err == nil {
			now.Is = results[0]
		}
	default:
		return now, fmt.Errorf("%w: %q", ErrKind, f.Kind)
	}
	if errors.Is(err, ErrSymbol) {
		now.Gone, err = true, nil
	}
	return now, err
}

// Session is an agent's work on one commit. What the agent reads and tries goes
// through it, and is what its change rests on. A session is one agent's: it is not
// safe for concurrent use.
type Session struct {
	reader *Reader
	commit string
	tags   []string
	opened []Fact
	tried  []Fact
}

// Begin starts a session on a commit. It reads nothing.
func (r *Reader) Begin(commit string, tags []string) *Session {
	return &Session{reader: r, commit: commit, tags: tags}
}

// Commit is what the session reads.
func (s *Session) Commit() string { return s.commit }

// Open reads a file for the agent. Errors are git's.
func (s *Session) Open(ctx context.Context, path string) ([]byte, error) {
	f, err := s.reader.Again(ctx, s.commit, Fact{Kind: File, Of: path})
	if err != nil {
		return nil, err
	}
	text, err := s.reader.Repo.Read(ctx, s.commit, path)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(s.opened, func(o Fact) bool { return o.Of == path }) {
		s.opened = append(s.opened, f)
	}
	return text, nil
}

// Try makes a call for the agent and returns what it gave. It is made twice: a
// call that gives something else each time is no fact, and ErrUnstable. Other
// errors are those of Observe, and ErrBroken.
func (s *Session) Try(ctx context.Context, text string) (string, error) {
	c, err := parseCall(text)
	if err != nil {
		return "", err
	}
	r := s.reader
	r.mu.Lock()
	defer r.mu.Unlock()
	m, err := r.module(ctx, s.commit, s.tags)
	switch {
	case err != nil:
		return "", err
	case m.Broken != "":
		return "", fmt.Errorf("%w: %s", ErrBroken, m.Broken)
	}
	runs, err := observe(ctx, m.dir, m.opts, r.Limits, []call{c}, 2)
	switch {
	case err != nil:
		return "", err
	case runs == nil:
		return "", fmt.Errorf("%w: %s doesn't compile", ErrCall, text)
	case runs[0][0] != runs[1][0]:
		return "", fmt.Errorf("%w: %s gave %.100s and %.100s", ErrUnstable, text, runs[0][0], runs[1][0])
	}
	f := Fact{Kind: Behaviour, Of: text, Tags: s.tags, Is: runs[0][0]}
	if !slices.ContainsFunc(s.tried, func(t Fact) bool { return t.Of == text }) {
		s.tried = append(s.tried, f)
	}
	return f.Is, nil
}

// Rests is what a change rests on, and what it adds.
type Rests struct {
	Facts   []Fact
	Symbols []string // that the change declares and the commit didn't, import/path.Name
}

// Rests is what c, made in this session, rests on at the granularity given: files
// as opened, calls as tried, and otherwise the symbols that the declarations
// which c adds or alters use. It needs a module that builds, before c and with
// it, for all but files: else it is ErrBroken. Other errors are ErrModule,
// ErrToolchain and git's.
func (s *Session) Rests(ctx context.Context, g Granularity, c git.Change) (Rests, error) {
	r := s.reader
	tree, err := r.Repo.Applied(ctx, c)
	if err != nil {
		return Rests{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before, err := r.module(ctx, c.Base, s.tags)
	if err != nil {
		return Rests{}, err
	}
	after, err := r.module(ctx, tree, s.tags)
	if err != nil {
		return Rests{}, err
	}
	for _, m := range []*Module{before, after} {
		if m.Broken != "" && g != File {
			return Rests{}, fmt.Errorf("%w: %s", ErrBroken, m.Broken)
		}
	}
	used, added := after.Since(before)
	rests := Rests{Symbols: added}
	switch g {
	case File:
		rests.Facts = slices.Clone(s.opened)
		return rests, nil
	case Behaviour:
		rests.Facts = slices.Clone(s.tried)
		return rests, nil
	}
	for _, symbol := range used {
		f := Fact{Kind: g, Of: symbol, Tags: s.tags}
		if g == Symbol {
			f.Is, err = before.Signature(symbol)
		} else {
			f.Is, err = before.Body(symbol)
		}
		if errors.Is(err, ErrSymbol) {
			continue // the change brings it along
		}
		if err != nil {
			return Rests{}, err
		}
		rests.Facts = append(rests.Facts, f)
	}
	return rests, nil
}

// Since compares a module with what it was: the symbols that new and altered
// declarations use, and the symbols that are new.
func (m *Module) Since(before *Module) (used, added []string) {
	had := map[string]int{}
	for _, d := range before.named {
		had[d.name+" "+d.tree()]++
	}
	for _, d := range m.named {
		if key := d.name + " " + d.tree(); had[key] > 0 {
			had[key]--
			continue
		}
		names, _ := m.uses(d)
		for _, name := range names {
			if !slices.Contains(used, name) {
				used = append(used, name)
			}
		}
		if _, there := before.decls[d.name]; !there && m.decls[d.name] == d {
			added = append(added, d.name)
		}
	}
	slices.Sort(used)
	slices.Sort(added)
	return used, added
}

// SoFar is what the work rests on before anything is written, at the granularity
// given: the files that were opened, the calls that were tried, or the functions
// that those call.
func (s *Session) SoFar(ctx context.Context, g Granularity) []Fact {
	switch g {
	case File:
		return slices.Clone(s.opened)
	case Behaviour:
		return slices.Clone(s.tried)
	}
	var facts []Fact
	m, err := s.reader.Module(ctx, s.commit, s.tags)
	if err != nil || m.Broken != "" {
		return nil
	}
	for _, t := range s.tried {
		c, err := parseCall(t.Of)
		if err != nil {
			continue
		}
		name := c.expr[:strings.IndexAny(c.expr, "[(")]
		f := Fact{Kind: g, Of: c.path + "." + name, Tags: s.tags}
		if g == Symbol {
			f.Is, err = m.Signature(f.Of)
		} else {
			f.Is, err = m.Body(f.Of)
		}
		if err == nil {
			facts = append(facts, f)
		}
	}
	return facts
}

// Run compiles the program in a package of a commit or a tree, Confined, and
// returns what it printed. Errors are ErrBroken where it doesn't compile,
// *exec.ExitError, ErrSandbox and git's.
func (r *Reader) Run(ctx context.Context, commit, pkg string) ([]byte, error) {
	r.mu.Lock()
	dir, err := r.folder(ctx, commit)
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "interlock-run-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	binary := filepath.Join(work, "program")
	if said, err := goBuild(ctx, dir, Options{}, "-o", binary, pkg); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrBroken, strings.TrimSpace(string(said)))
	}
	return Confined(ctx, r.Limits, work, confinedEnvironment(work), binary)
}
