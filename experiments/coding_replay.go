package experiments

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-bench/interlock-bench/targets/git/premise"
)

// ErrReplay is returned for a history that can't be replayed.
var ErrReplay = errors.New("experiments: no history that can be replayed")

// snapshot is one state of a module's files.
type snapshot struct {
	name  string
	write func(ctx context.Context, dir string) error // puts the files into dir
}

// Replayed is what a history came to. A pair is a change of agent A's, from one
// state of the module to the next, and a test function of the earlier state, which
// stands for what agent B wrote on it. Only pairs count in which A's change is
// compiled into the test, and in which the test passed before.
type Replayed struct {
	Of      string
	States  int
	Changes int      // from one state to the next, that could be replayed
	Skipped []string // "NAME: why" of the others
	Tests   int      // different ones
	Pairs   int
	Breaks  int // pairs in which the test doesn't compile or pass any more
	Unknown int // pairs that can't be judged: the package's tests don't compile for another's sake, or ended early
	By      []ReplayedBy
	names   map[string]bool // of the tests
}

// ReplayedBy is what one granularity made of the pairs.
type ReplayedBy struct {
	Granularity premise.Granularity
	Rests       int // pairs in which the test rests on any fact of this kind
	Refused     int // pairs in which one of them changed
	Rightly     int // of those, pairs in which the test breaks
	Broke       int // pairs that were let through, and the test breaks
}

// replayLimits bound one run of a package's tests.
var replayLimits = premise.Limits{Time: time.Minute, Memory: 4 << 30}

// replaying is how many changes are replayed at once.
const replaying = 4

// replay goes through the changes between states. They are replayed several at
// once; they share nothing, and are added up in order.
func replay(ctx context.Context, of string, states []snapshot, say func(done, total int)) (Replayed, error) {
	r := newReplayed(of)
	r.States = len(states)
	if len(states) < 2 {
		return r, fmt.Errorf("%w: %s has %d states of the module; a change needs two", ErrReplay, of, len(states))
	}
	changes := len(states) - 1
	parts, whys := make([]Replayed, changes), make([]string, changes)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var workers sync.WaitGroup
	var mu sync.Mutex
	next, done := 0, 0
	for range min(replaying, changes) {
		workers.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= changes || ctx.Err() != nil {
					return
				}
				parts[i] = newReplayed(of)
				why, err := parts[i].step(ctx, states[i], states[i+1])
				if err != nil {
					stop(fmt.Errorf("experiments: from %s to %s: %w", states[i].name, states[i+1].name, err))
					return
				}
				mu.Lock()
				whys[i] = why
				if done++; say != nil {
					say(done, changes)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	for i, part := range parts {
		if whys[i] != "" {
			r.Skipped = append(r.Skipped, states[i+1].name+": "+whys[i])
			continue
		}
		r.Changes++
		r.add(part)
	}
	r.Tests = len(r.names)
	return r, nil
}

func newReplayed(of string) Replayed {
	r := Replayed{Of: of, names: map[string]bool{}}
	for _, g := range premise.Granularities {
		r.By = append(r.By, ReplayedBy{Granularity: g})
	}
	return r
}

// add adds what one change came to.
func (r *Replayed) add(o Replayed) {
	maps.Copy(r.names, o.names)
	r.Pairs, r.Breaks, r.Unknown = r.Pairs+o.Pairs, r.Breaks+o.Breaks, r.Unknown+o.Unknown
	for i, by := range o.By {
		r.By[i].Rests += by.Rests
		r.By[i].Refused += by.Refused
		r.By[i].Rightly += by.Rightly
		r.By[i].Broke += by.Broke
	}
}

// step replays one change; why says that it can't be.
func (r *Replayed) step(ctx context.Context, from, to snapshot) (why string, err error) {
	work, err := os.MkdirTemp("", "interlock-replay-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	before, after, mixed := filepath.Join(work, "before"), filepath.Join(work, "after"), filepath.Join(work, "mixed")
	for dir, s := range map[string]snapshot{before: from, after: to} {
		if err := errors.Join(os.Mkdir(dir, 0o755), s.write(ctx, dir)); err != nil {
			return "", err
		}
	}
	changed, err := codeChanged(before, after)
	if err != nil {
		return "", err
	}
	if len(changed) == 0 {
		return "no code outside of tests changed", nil
	}
	// The state in which B's test would run: A's code, and the tests as B wrote them.
	if err := errors.Join(copyFiles(after, mixed, func(name string) bool { return !ofTests(name) }), copyFiles(before, mixed, ofTests)); err != nil {
		return "", err
	}
	tested, err := premise.Load(ctx, before, premise.Options{Tests: true})
	if errors.Is(err, premise.ErrModule) {
		return "there is no module before it", nil
	}
	if err != nil {
		return "", err
	}
	was, err := premise.Load(ctx, before, premise.Options{})
	if err != nil {
		return "", err
	}
	now, err := premise.Load(ctx, after, premise.Options{})
	if errors.Is(err, premise.ErrModule) {
		return "there is no module after it", nil
	}
	if err != nil {
		return "", err
	}
	switch {
	case tested.Broken != "":
		return "the module doesn't build before it (" + tested.Broken + ")", nil
	case now.Broken != "":
		return "the module doesn't build after it (" + now.Broken + ")", nil
	}
	mix, err := premise.Load(ctx, mixed, premise.Options{Tests: true})
	if err != nil {
		return "", err
	}

	var touched []premise.Test
	for _, t := range tested.Tests() {
		if len(t.Symbols) > 0 && tested.Reaches(t.Package, changed) {
			touched = append(touched, t)
		}
	}
	outcome, err := outcomes(ctx, before, mixed, was.Path, touched, mix.Tests())
	if err != nil {
		return "", err
	}
	var calls []string
	for _, t := range touched {
		for _, c := range t.Calls {
			if !slices.Contains(calls, c) {
				calls = append(calls, c)
			}
		}
	}
	seen, err := premise.Stable(ctx, before, premise.Options{}, premise.Limits{}, calls)
	if err != nil {
		return "", err
	}
	calls = slices.DeleteFunc(calls, func(c string) bool { _, ok := seen[c]; return !ok })
	again, err := premise.Observe(ctx, after, premise.Options{}, premise.Limits{}, calls)
	if err != nil {
		return "", err
	}
	differs := map[string]bool{}
	for i, c := range calls {
		differs[c] = again[i] != seen[c]
	}
	for _, t := range touched {
		breaks, judged := outcome[t.Package+" "+t.Name]
		if !judged {
			continue
		}
		if breaks == unknown {
			r.Unknown++
			continue
		}
		r.names[t.Package+" "+t.Name] = true
		r.Pairs++
		if breaks == broken {
			r.Breaks++
		}
		for i := range r.By {
			rests, refused := 0, false
			note := func(changed bool) { rests++; refused = refused || changed }
			switch r.By[i].Granularity {
			case premise.File:
				for _, f := range t.Files {
					note(changed[f])
				}
			case premise.Symbol:
				for _, s := range t.Symbols {
					note(differ(s, was.Signature, now.Signature))
				}
			case premise.Body:
				for _, s := range t.Symbols {
					note(differ(s, was.Body, now.Body))
				}
			case premise.Behaviour:
				for _, c := range t.Calls {
					if _, ok := seen[c]; ok {
						note(differs[c])
					}
				}
			}
			r.By[i].count(rests > 0, refused, breaks == broken)
		}
	}
	return "", nil
}

func (b *ReplayedBy) count(rests, refused, breaks bool) {
	if rests {
		b.Rests++
	}
	switch {
	case refused && breaks:
		b.Refused++
		b.Rightly++
	case refused:
		b.Refused++
	case breaks:
		b.Broke++
	}
}

// differ says whether what is read of a symbol is another thing after the change.
func differ(symbol string, was, now func(string) (string, error)) bool {
	a, errA := was(symbol)
	b, errB := now(symbol)
	return errA == nil && (errB != nil || a != b)
}

// ending is what became of a test.
type ending int

const (
	holds ending = iota
	broken
	unknown
)

// outcomes runs tests before the change and with it, package by package. A test
// that didn't pass before is in no outcome.
func outcomes(ctx context.Context, before, mixed, module string, tests, compiled []premise.Test) (map[string]ending, error) {
	ends := map[string]ending{}
	byPackage := map[string][]string{}
	for _, t := range tests {
		byPackage[t.Package] = append(byPackage[t.Package], t.Name)
	}
	for pkg, names := range byPackage {
		passed, built, err := premise.RunTests(ctx, before, premise.Options{}, replayLimits, module, pkg, names)
		if err != nil {
			return nil, err
		}
		if !built {
			continue
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !passed[name] })
		if len(names) == 0 {
			continue
		}
		then, built, err := premise.RunTests(ctx, mixed, premise.Options{}, replayLimits, module, pkg, names)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			end := unknown
			if !built {
				i := slices.IndexFunc(compiled, func(t premise.Test) bool { return t.Package == pkg && t.Name == name })
				if i < 0 || compiled[i].Broken {
					end = broken
				}
			} else if ok, ran := then[name]; ran && ok {
				end = holds
			} else if ran {
				end = broken
			}
			ends[pkg+" "+name] = end
		}
	}
	return ends, nil
}

// ofTests says whether a file belongs to tests and not to what they test.
func ofTests(name string) bool {
	return strings.HasSuffix(name, "_test.go") || slices.Contains(strings.Split(name, "/"), "testdata")
}

// codeChanged are the files that are no tests' and differ between two folders.
func codeChanged(before, after string) (map[string]bool, error) {
	changed := map[string]bool{}
	for _, pair := range [][2]string{{before, after}, {after, before}} {
		err := eachFile(pair[0], func(name string) error {
			if ofTests(name) || !strings.HasSuffix(name, ".go") && name != "go.mod" && !strings.HasSuffix(name, ".s") {
				return nil
			}
			a, err := os.ReadFile(filepath.Join(pair[0], name))
			if err != nil {
				return err
			}
			b, err := os.ReadFile(filepath.Join(pair[1], name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err != nil || !bytes.Equal(a, b) {
				changed[name] = true
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return changed, nil
}

// eachFile visits the regular files below dir by their names with slashes.
func eachFile(dir string, visit func(name string) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(name))
	})
}

// copyFiles copies the files of a folder that are wanted.
func copyFiles(from, to string, wanted func(string) bool) error {
	return eachFile(from, func(name string) error {
		if !wanted(name) {
			return nil
		}
		content, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		return errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, content, 0o644))
	})
}
