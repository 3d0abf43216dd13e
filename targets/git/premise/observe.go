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
	var split []call
	for _, text := range calls {
		c, err := parseCall(text)
		if err != nil {
			return nil, err
		}
		split = append(split, c)
	}
	results, built, err := observe(ctx, dir, o, l, split)
	if err != nil || built {
		return results, err
	}
	results = nil
	for _, c := range split { // one of them is to blame, or several
		one, built, err := observe(ctx, dir, o, l, []call{c})
		switch {
		case err != nil:
			return nil, err
		case !built:
			one = []string{unbuilt}
		}
		results = append(results, one...)
	}
	return results, nil
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

// observe is Observe for calls that all compile, or none is made.
func observe(ctx context.Context, dir string, o Options, l Limits, calls []call) (results []string, built bool, err error) {
	if len(calls) == 0 {
		return nil, true, nil
	}
	work, err := os.MkdirTemp("", "interlock-observe-")
	if err != nil {
		return nil, false, err
	}
	defer os.RemoveAll(work)
	source := filepath.Join(work, "main.go")
	if err := os.WriteFile(source, program(calls), 0o644); err != nil {
		return nil, false, err
	}
	// The program lies in the module for the compiler only.
	const inside = "interlock_observe"
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(dir, inside, "main.go"): source}})
	if err == nil {
		err = os.WriteFile(filepath.Join(work, "overlay.json"), overlay, 0o644)
	}
	if err != nil {
		return nil, false, err
	}
	binary := filepath.Join(work, "observe")
	if said, err := goBuild(ctx, dir, o, "-overlay", filepath.Join(work, "overlay.json"), "-o", binary, "./"+inside); err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && ctx.Err() == nil {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("%w: %w: %s", ErrToolchain, err, said)
	}
	out, err := Confined(ctx, l, work, []string{"HOME=" + work, "TMPDIR=" + work, "LC_ALL=C", "TZ=UTC", "GOMAXPROCS=2", "GOTRACEBACK=none"}, binary)
	if err != nil {
		if errors.Is(err, ErrSandbox) || ctx.Err() != nil {
			return nil, false, err
		}
		for range calls {
			results = append(results, "ended by itself, or at a limit")
		}
		return results, true, nil
	}
	_, marked, ok := bytes.Cut(out, []byte(mark))
	if !ok || json.Unmarshal(marked, &results) != nil || len(results) != len(calls) {
		return nil, false, fmt.Errorf("%w: the program that makes it printed %.200q", ErrCall, out)
	}
	return results, true, nil
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
	args = append([]string{"build"}, args...)
	if len(o.Tags) > 0 {
		args = append(args[:1:1], append([]string{"-tags=" + strings.Join(o.Tags, ",")}, args[1:]...)...)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, goEnvironment()
	return cmd.CombinedOutput()
}
