package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/mutant"
)

// root is the module's root.
const root = "../.."

// documents are the README and the pages of docs, by their path from the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, path := range append(pages, root+"/README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	return texts
}

// block is a fenced block of shell commands, with the comment before it that
// takes it out of the test and says why.
var block = regexp.MustCompile("(?ms)^(<!-- not run: [^\n]+ -->\n)?```sh\n(.*?)^```$")

// TestDocumentedCommandsRun runs the shell commands of each document, one block
// after the other in one folder, with this command in place of the clone's.
func TestDocumentedCommandsRun(t *testing.T) {
	records, err := os.ReadFile(root + "/results/refund.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range documents(t) {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "results"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "results/refund.jsonl"), records, 0o644); err != nil {
				t.Fatal(err)
			}
			for _, b := range block.FindAllStringSubmatch(text, -1) {
				if b[1] != "" {
					continue
				}
				commands := strings.ReplaceAll(b[2], "go run ./cmd/interlock-bench", "interlock-bench")
				sh := exec.CommandContext(t.Context(), "sh", "-euc", commands)
				sh.Dir = dir
				if out, err := sh.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s\n%s", name, err, commands, out)
				}
			}
		})
	}
}

// TestGuidesProgram: what the guide shows of a program that uses the gate is an
// example that is compiled and run, with its output.
func TestGuidesProgram(t *testing.T) {
	_, part, _ := strings.Cut(documents(t)["docs/guide.md"], "\n## Using the gate in a program of your own\n")
	part, _, _ = strings.Cut(part, "\n## ")
	example, err := os.ReadFile(root + "/protocol/example_desk_test.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?ms)^```(go)?\n(.*?)^```$").FindAllStringSubmatch(part, -1)
	if len(shown) != 4 {
		t.Fatalf("the guide shows %d parts of the program and its output", len(shown))
	}
	for _, b := range shown {
		text := b[2]
		if b[1] == "" { // the output
			text = "\t// " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n\t// ")
		}
		if !strings.Contains(string(example), text) {
			t.Errorf("this is not in the example:\n%s", text)
		}
	}
}

// TestGuidesRowAndColumn builds the row and the column that the guide adds into
// this command, runs them, and compares what comes out with the guide.
func TestGuidesRowAndColumn(t *testing.T) {
	guide := documents(t)["docs/guide.md"]
	_, guide, _ = strings.Cut(guide, "\n## Adding a row\n")
	code := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(guide, 3)
	shown := regexp.MustCompile("(?ms)^```\n(row .*?)^```$").FindStringSubmatch(guide)
	if len(code) != 3 || shown == nil {
		t.Fatal("the guide doesn't have a row, a file, a column and a table")
	}
	dir := t.TempDir()
	replace := map[string]string{}
	write := func(path, text string) {
		to := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		full, err := filepath.Abs(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		replace[full] = to
	}
	// insert puts a value at the end of the list that begins with head.
	insert := func(path, head, value string) {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), head) != 1 {
			t.Fatalf("%s has no one place that reads %q", path, head)
		}
		before, after, _ := strings.Cut(string(text), head)
		end := "\n" + head[:len(head)-len(strings.TrimLeft(head, "\t"))] + "}\n"
		list, rest, _ := strings.Cut(after, end)
		write(path, before+head+list+"\n"+value+end+rest)
	}
	insert("faults/matrix.go", "var Reference = []Row{\n", code[0][1])
	write("baselines/log_first.go", code[1][1])
	insert("experiments/column.go", "\thandChecks = []column{\n", code[2][1])
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	bench := filepath.Join(dir, "bench")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", bench, "./cmd/interlock-bench")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("what the guide adds doesn't build: %v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), bench, "refund", "--row", "crash_after_answer,crash_before_send", "--column", "log-first@t1,naive,gate@t1")
	run.Dir = dir
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), shown[1]) {
		t.Errorf("the guide shows\n%s\nand it is\n%s", shown[1], out)
	}
}

// TestClaims holds every line of docs/claims.md to its document and to what holds
// it, and every rule that is built to a line.
func TestClaims(t *testing.T) {
	texts := documents(t)
	tests := testNames(t)
	cells := map[string]bool{}
	for _, e := range experiments.All() {
		for _, c := range e.Cells {
			cells[c.ID(e.Name)] = true
		}
	}
	mutants := map[string]bool{}
	for _, m := range mutant.Broken {
		mutants[m.Name] = true
	}
	scripts := map[string]bool{}
	files, err := os.ReadDir("testdata/script")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		scripts[f.Name()] = true
	}
	line := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.+) \\| (.+) \\|$")
	holder := regexp.MustCompile("(mutant |script )?`([^`]+)`")
	claims := line.FindAllStringSubmatch(texts["docs/claims.md"], -1)
	if len(claims) < 20 {
		t.Fatalf("only %d claims were found", len(claims))
	}
	for _, c := range claims {
		where, claim, held := c[1], c[2], c[3]
		if !strings.Contains(words(texts[where]), words(claim)) {
			t.Errorf("%s doesn't say: %s", where, claim)
		}
		holders := holder.FindAllStringSubmatch(held, -1)
		if len(holders) == 0 {
			t.Errorf("nothing holds: %s", claim)
		}
		for _, h := range holders {
			name := h[2]
			switch {
			case h[1] == "mutant " && !mutants[name]:
				t.Errorf("no mutant is called %s, which holds: %s", name, claim)
			case h[1] == "script " && !scripts[name+".txt"]:
				t.Errorf("no script is called %s, which holds: %s", name, claim)
			case h[1] == "" && strings.Contains(name, "/") && !cells[name]:
				t.Errorf("no cell is called %s, which holds: %s", name, claim)
			case h[1] == "" && !strings.Contains(name, "/") && !tests[name]:
				t.Errorf("no test is called %s, which holds: %s", name, claim)
			}
		}
	}
	for _, rule := range rules.FindAllStringSubmatch(texts["docs/contract.md"], -1) {
		if built := rule[2] == ""; built && !strings.Contains(texts["docs/claims.md"], "**"+rule[1]+"** ") {
			t.Errorf("no line of claims.md is about %s", rule[1])
		}
	}
}

func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// rules are those of the contract's first page; the second group is that one is
// not built.
var rules = regexp.MustCompile(`(?m)^- \*\*(I[0-9]+)\*\*(†?) (.+)$`)

// testNames are the functions in the module's test files that go test knows.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	walk(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				for _, kind := range []string{"Test", "Fuzz", "Example"} {
					if strings.HasPrefix(f.Name.Name, kind) {
						names[f.Name.Name] = true
					}
				}
			}
		}
	})
	return names
}

// TestFindingsNameTests holds the tests that docs/findings.md names to being there.
func TestFindingsNameTests(t *testing.T) {
	tests := testNames(t)
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`").FindAllStringSubmatch(documents(t)["docs/findings.md"], -1)
	for _, n := range named {
		if !tests[n[1]] {
			t.Errorf("the page names %s, and there is no such test", n[1])
		}
	}
	if len(named) == 0 {
		t.Error("the page names no test")
	}
}

// walk calls f for every file of the tree that isn't hidden.
func walk(t *testing.T, f func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root:
			return fs.SkipDir
		case d.Type().IsRegular():
			f(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPageOneIsShort holds the contract's first page to one sentence of at most
// twenty words a rule, and to all fourteen.
func TestPageOneIsShort(t *testing.T) {
	found := rules.FindAllStringSubmatch(documents(t)["docs/contract.md"], -1)
	if len(found) != 14 {
		t.Errorf("there are %d rules", len(found))
	}
	for _, rule := range found {
		if n := len(strings.Fields(rule[3])); n > 20 || strings.Count(rule[3], ".") != 1 {
			t.Errorf("%s has %d words: %s", rule[1], n, rule[3])
		}
	}
}

// TestCitedNumbersExist holds every number that code or documents cite to what
// defines it: rules and counterexamples to the contract, rows to the doc comments
// of Submit and Recover.
func TestCitedNumbersExist(t *testing.T) {
	defined := map[string]bool{}
	contract := documents(t)["docs/contract.md"]
	for _, rule := range rules.FindAllStringSubmatch(contract, -1) {
		defined[rule[1]] = true
	}
	_, two, _ := strings.Cut(contract, "# Page two")
	for _, c := range regexp.MustCompile(`\bC[0-9]+\b`).FindAllString(two, -1) {
		defined[c] = true
	}
	for _, of := range []struct{ file, method string }{{"submit.go", "Submit"}, {"recover.go", "Recover"}} {
		for _, row := range regexp.MustCompile(`(?m)^\t([SR][0-9]+b?) `).FindAllStringSubmatch(docOf(t, root+"/protocol/"+of.file, of.method), -1) {
			defined[row[1]] = true
		}
	}
	for _, want := range []string{"I1", "I14", "C1", "S1", "S1b", "S18", "R1", "R8"} {
		if !defined[want] {
			t.Errorf("%s is defined nowhere", want)
		}
	}
	cited := regexp.MustCompile(`(?:^|[ (,"])([ISRC][0-9]{1,2}b?)(?:[ ),.;:"]|$)`)
	walk(t, func(path string) {
		ours := strings.HasPrefix(path, root+"/protocol/") || strings.HasPrefix(path, root+"/docs/") || strings.HasPrefix(path, root+"/experiments/") ||
			strings.HasPrefix(path, root+"/faults/") || path == root+"/README.md"
		if ext := filepath.Ext(path); !ours || ext != ".go" && ext != ".md" {
			return
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			_, comment, has := bytes.Cut(line, []byte("//"))
			if filepath.Ext(path) == ".go" {
				if !has {
					continue
				}
				line = comment
			}
			// Neighbours share what stands between them, so each is looked for by itself.
			for _, word := range bytes.Fields(line) {
				if c := cited.FindSubmatch(word); c != nil && !defined[string(c[1])] {
					t.Errorf("%s:%d cites %s, which nothing defines", path, i+1, c[1])
				}
			}
		}
	})
}

// docOf is the doc comment of a method.
func docOf(t *testing.T, path, method string) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == method {
			return f.Doc.Text()
		}
	}
	t.Fatalf("%s has no method %s", path, method)
	return ""
}

// TestExitCodesAreDocumented compares the page's table with the one that help is
// made from.
func TestExitCodesAreDocumented(t *testing.T) {
	page := documents(t)["docs/formats.md"]
	rows := regexp.MustCompile(`(?m)^\| ([0-9]+) \| (.+) \|$`).FindAllString(page, -1)
	var want []string
	for _, c := range exitCodes {
		want = append(want, fmt.Sprintf("| %d | %s |", c.code, c.what))
	}
	if !slices.Equal(rows, want) {
		t.Errorf("the page has\n%s\nthe command\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}

// TestRecordFieldsAreDocumented compares the fields of a committed record with
// the page's table.
func TestRecordFieldsAreDocumented(t *testing.T) {
	page := documents(t)["docs/formats.md"]
	record, err := os.ReadFile(root + "/results/refund.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	record, _, _ = bytes.Cut(record, []byte("\n"))
	_, section, _ := strings.Cut(page, "## Records")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, field := range regexp.MustCompile(`[{,]"([a-z_]+)":`).FindAllSubmatch(record, -1) {
		if name := "`" + string(field[1]) + "`"; name != "`file`" && !strings.Contains(section, name) {
			t.Errorf("the page doesn't say what %s is", name)
		}
	}
}

// TestPagesSayHowTheyWereMade looks for the command and the seed on each page of
// results that has records.
func TestPagesSayHowTheyWereMade(t *testing.T) {
	for _, e := range experiments.All() {
		page, err := os.ReadFile(experiments.FilesOf(root+"/results", e).Page)
		if err != nil || e.Over != nil {
			continue // check says so; and it has no seed
		}
		if !bytes.Contains(page, []byte("`interlock-bench "+e.Name+" --seed ")) {
			t.Errorf("the page of %s doesn't say by which command and seed it was made", e.Name)
		}
	}
}
