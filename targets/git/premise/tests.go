package premise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Test is a test function of a module: code that somebody wrote against it.
type Test struct {
	Name    string
	Package string   // import path of what it tests
	Symbols []string // of the module, without its tests, that it uses, itself or by helpers in test files
	Files   []string // that declare those
	Calls   []string // calls of those functions with values that stand in the test, for Observe
	Broken  bool     // it, or a helper of it in a test file, doesn't compile
}

// maxCalls is how many calls are made up of one test for each function, and
// maxValues how many values of one kind they are taken from.
const (
	maxCalls  = 3
	maxValues = 16
)

// Tests are the test functions of the module, which was loaded with its tests, in
// order.
func (m *Module) Tests() (tests []Test) {
	for _, d := range m.named {
		f, ok := d.node.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" || !d.test() {
			continue
		}
		t := Test{Name: f.Name.Name, Package: strings.TrimSuffix(d.pkg.PkgPath, "_test")}
		var values valuesOf
		m.reach(d, map[string]bool{}, &t, &values)
		slices.Sort(t.Symbols)
		for _, symbol := range t.Symbols {
			if file := m.decls[symbol].file; !slices.Contains(t.Files, file) {
				t.Files = append(t.Files, file)
			}
			t.Calls = append(t.Calls, m.decls[symbol].calls(values)...)
		}
		tests = append(tests, t)
	}
	return tests
}

func (d *decl) test() bool { return strings.HasSuffix(d.file, "_test.go") }

// reach follows a test through the helpers in test files.
func (m *Module) reach(d *decl, seen map[string]bool, t *Test, values *valuesOf) {
	if seen[d.name] {
		return
	}
	seen[d.name] = true
	t.Broken = t.Broken || m.wrong[d.name]
	values.add(d.part())
	names, _ := m.uses(d)
	for _, name := range names {
		next, ok := m.decls[name]
		switch {
		case !ok:
		case next.test():
			m.reach(next, seen, t, values)
		case !slices.Contains(t.Symbols, name):
			t.Symbols = append(t.Symbols, name)
		}
	}
}

// valuesOf are literals in the order of the source, each once.
type valuesOf struct{ texts, numbers []string }

func (v *valuesOf) add(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if _, ok := n.(*ast.ImportSpec); ok {
			return false
		}
		if l, ok := n.(*ast.BasicLit); ok {
			list := map[token.Token]*[]string{token.STRING: &v.texts, token.INT: &v.numbers}[l.Kind]
			if list != nil && len(*list) < maxValues && !slices.Contains(*list, l.Value) && len(l.Value) < 200 && !strings.Contains(l.Value, "\n") {
				*list = append(*list, l.Value)
			}
		}
		return true
	})
}

// calls are calls of d, an exported function of numbers, texts and truths, with
// the given values.
func (d *decl) calls(values valuesOf) (calls []string) {
	f, ok := d.obj.(*types.Func)
	if !ok || !f.Exported() || d.pkg.Name == "main" {
		return nil
	}
	sig := f.Signature()
	if sig.Recv() != nil || sig.TypeParams().Len() > 0 || sig.Results().Len() == 0 || sig.Params().Len() == 0 || sig.Variadic() {
		return nil
	}
	for i := range maxCalls {
		var args []string
		for p := range sig.Params().Variables() {
			basic, ok := p.Type().Underlying().(*types.Basic)
			var from []string
			switch {
			case ok && basic.Info()&types.IsString != 0:
				from = values.texts
			case ok && basic.Info()&types.IsInteger != 0:
				from = values.numbers
			case ok && basic.Info()&types.IsBoolean != 0:
				from = []string{"true", "false"}
			}
			if len(from) == 0 {
				return nil
			}
			args = append(args, from[(i+len(args))%len(from)])
		}
		call := fmt.Sprintf("%s.%s(%s)", d.pkg.PkgPath, f.Name(), strings.Join(args, ", "))
		if !slices.Contains(calls, call) {
			calls = append(calls, call)
		}
	}
	return calls
}

var testLine = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\S+) \(`)

// RunTests compiles the tests of one package of the module in dir and runs those
// that are named, Confined. It says of each that ran to its end whether it passed;
// built is false where they don't compile. Errors are ErrSandbox, ErrToolchain and
// ctx's.
func RunTests(ctx context.Context, dir string, o Options, l Limits, module, pkg string, names []string) (passed map[string]bool, built bool, err error) {
	work, err := os.MkdirTemp("", "interlock-tests-")
	if err != nil {
		return nil, false, err
	}
	defer os.RemoveAll(work)
	below := strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
	binary := filepath.Join(work, "tests")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-tags="+strings.Join(o.Tags, ","), "-o", binary, "./"+below)
	cmd.Dir, cmd.Env = dir, goEnvironment()
	if said, err := cmd.CombinedOutput(); err != nil || ctx.Err() != nil {
		if ctx.Err() != nil || !bytes.Contains(said, []byte(".go:")) {
			return nil, false, fmt.Errorf("%w: %w: %.500s", ErrToolchain, err, said)
		}
		return nil, false, nil
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	out, err := Confined(ctx, l, filepath.Join(dir, filepath.FromSlash(below)), confinedEnvironment(work), binary,
		"-test.v", "-test.short", "-test.run=^("+strings.Join(quoted, "|")+")$")
	if errors.Is(err, ErrSandbox) || ctx.Err() != nil {
		return nil, true, errors.Join(err, ctx.Err())
	}
	passed = map[string]bool{}
	for _, line := range testLine.FindAllSubmatch(out, -1) {
		if string(line[1]) != "SKIP" {
			passed[string(line[2])] = string(line[1]) == "PASS"
		}
	}
	return passed, true, nil
}
