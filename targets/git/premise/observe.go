package premise

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// unbuilt is the result of a call that doesn't compile any more.
const unbuilt = "doesn't build"

// Observe makes calls into the module in dir and returns what each gave, in Go's
// own notation; a panic is a result, too. A call is an expression that begins with
// the path of a package that can be imported within the module, and its arguments
// name nothing outside of it but what Go declares everywhere:
//
//	shop/money.Format(125050)
//
// A call that doesn't compile there gives "doesn't build". The program that makes
// the calls is Confined. Errors are ErrCall, ErrSandbox, ErrToolchain and ctx's.
func Observe(ctx context.Context, dir string, o Options, l Limits, calls []string) ([]string, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	var split []call
	for _, text := range calls {
		c, err := parseCall(text)
		if err != nil {
			return nil, err
		}
		split = append(split, c)
	}
	runs, err := observe(ctx, dir, o, l, split, 1)
	if err != nil || runs != nil {
		return runs[0], err
	}
	var results []string
	for _, c := range split { // one of them is to blame, or several
		runs, err := observe(ctx, dir, o, l, []call{c}, 1)
		switch {
		case err != nil:
			return nil, err
		case runs == nil:
			results = append(results, unbuilt)
		default:
			results = append(results, runs[0]...)
		}
	}
	return results, nil
}

// Stable makes calls as Observe does, twice, and returns those that compile and
// give the same each time, with what they gave.
func Stable(ctx context.Context, dir string, o Options, l Limits, calls []string) (map[string]string, error) {
	stable := map[string]string{}
	if len(calls) == 0 {
		return stable, nil
	}
	var both [2][]string
	for i := range both {
		var err error
		if both[i], err = Observe(ctx, dir, o, l, calls); err != nil {
			return nil, err
		}
	}
	for i, text := range calls {
		if both[0][i] == both[1][i] && both[0][i] != unbuilt {
			stable[text] = both[0][i]
		}
	}
	return stable, nil
}

// call is a call, taken apart.
type call struct{ path, expr string }

var callHead = regexp.MustCompile(`^([A-Za-z0-9_.~/-]+)\.([A-Z][A-Za-z0-9_]*)([\[(].*)$`)

// parseCall reads IMPORT/PATH.Func(ARGUMENTS), or a chain of calls that begins
// so.
func parseCall(text string) (call, error) {
	bad := func(why string) (call, error) {
		return call{}, fmt.Errorf("%w: %q %s", ErrCall, text, why)
	}
	head, rest := text, ""
	if i := strings.IndexAny(text, "[("); i >= 0 {
		head, rest = text[:i], text[i:]
	}
	parts := callHead.FindStringSubmatch(head + "(" + ")")
	if parts == nil || rest == "" || strings.TrimSpace(text) != text {
		return bad("is no call of an exported function by the path of its package")
	}
	expr := parts[2] + rest
	tree, err := parser.ParseExpr("p." + expr)
	if err != nil {
		return bad("is no expression")
	}
	if _, ok := tree.(*ast.CallExpr); !ok {
		return bad("is no call")
	}
	return call{parts[1], expr}, nil
}

// observe compiles a program that makes the calls and runs it a number of times.
// It gives the results of each run, and none where it doesn't compile.
func observe(ctx context.Context, dir string, o Options, l Limits, calls []call, times int) (runs [][]string, err error) {
	work, err := os.MkdirTemp("", "interlock-observe-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	source := filepath.Join(work, "main.go")
	if err := os.WriteFile(source, program(calls), 0o644); err != nil {
		return nil, err
	}
	// The program lies in the module for the compiler only.
	const inside = "interlock_observe"
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(dir, inside, "main.go"): source}})
	if err == nil {
		err = os.WriteFile(filepath.Join(work, "overlay.json"), overlay, 0o644)
	}
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(work, "observe")
	if said, err := goBuild(ctx, dir, o, "-overlay", filepath.Join(work, "overlay.json"), "-o", binary, "./"+inside); err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && ctx.Err() == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("%w: %w: %s", ErrToolchain, err, said)
	}
	for range times {
		results, err := once(ctx, l, work, binary, len(calls))
		if err != nil {
			return nil, err
		}
		runs = append(runs, results)
	}
	return runs, nil
}

// once runs the program that makes n calls once.
func once(ctx context.Context, l Limits, work, binary string, n int) (results []string, err error) {
	out, err := Confined(ctx, l, work, confinedEnvironment(work), binary)
	if errors.Is(err, ErrSandbox) || ctx.Err() != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	if err != nil {
		for range n {
			results = append(results, "ended by itself, or at a limit")
		}
		return results, nil
	}
	_, marked, ok := bytes.Cut(out, []byte(mark))
	if !ok || json.Unmarshal(marked, &results) != nil || len(results) != n {
		return nil, fmt.Errorf("%w: the program that makes it printed %.200q", ErrCall, out)
	}
	return results, nil
}

// confinedEnvironment is all that a confined program gets of an environment.
func confinedEnvironment(work string) []string {
	return []string{"HOME=" + work, "TMPDIR=" + work, "LC_ALL=C", "TZ=UTC", "GOMAXPROCS=2", "GOTRACEBACK=none"}
}

// mark stands before the results; whatever the calls print comes before it.
const mark = "\x00interlock results\x00"

// program is the source of the program that makes the calls.
func program(calls []call) []byte {
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n\t\"encoding/json\"\n\t\"fmt\"\n\t\"os\"\n")
	names := map[string]string{}
	for _, c := range calls {
		if names[c.path] == "" {
			names[c.path] = fmt.Sprint("p", len(names))
			fmt.Fprintf(&b, "\t%s %q\n", names[c.path], c.path)
		}
	}
	b.WriteString(`)

func all(v ...any) []any { return v }

func one(f func() []any) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint("panic: ", v)
		}
	}()
	for i, v := range f() {
		if i > 0 {
			text += ", "
		}
		if err, ok := v.(error); ok {
			text += fmt.Sprintf("error %q", err.Error())
			continue
		}
		text += fmt.Sprintf("%#v", v)
	}
	return text
}

func main() {
	var results []string
`)
	for _, c := range calls {
		fmt.Fprintf(&b, "\tresults = append(results, one(func() []any { return all(%s.%s) }))\n", names[c.path], c.expr)
	}
	fmt.Fprintf(&b, "\ttext, _ := json.Marshal(results)\n\tos.Stdout.WriteString(%q + string(text))\n}\n", mark)
	return []byte(b.String())
}

// goBuild runs go build in dir and returns what it printed.
func goBuild(ctx context.Context, dir string, o Options, args ...string) ([]byte, error) {
	args = append([]string{"build", "-ldflags=-s -w"}, args...)
	if len(o.Tags) > 0 {
		args = slices.Insert(args, 1, "-tags="+strings.Join(o.Tags, ","))
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, goEnvironment()
	return cmd.CombinedOutput()
}
