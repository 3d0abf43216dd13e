package experiments_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
)

var update = flag.Bool("update", false, "write generated text anew")

// TestREADME compares the generated parts of the README with what they are
// generated from: the committed records and the source. A figure that somebody
// counted by hand is in none of them (B30, B40, B47).
func TestREADME(t *testing.T) {
	const path = "../README.md"
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := os.ReadFile("../results/refund.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	records, err := experiments.DecodeRecords(encoded)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err = os.ReadFile("../results/faults.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	faulty, err := experiments.DecodeRecords(encoded)
	if err != nil {
		t.Fatal(err)
	}
	want := string(have)
	for name, text := range map[string]string{
		"table": experiments.RefundTable(records),
		"why":   experiments.RefundWhy(records, faulty),
		"size":  sizes(t),
	} {
		block := regexp.MustCompile(`(?s)<!-- generated: ` + name + ` -->\n.*?<!-- end -->`)
		if n := len(block.FindAllString(want, -1)); n != 1 {
			t.Fatalf("the README has %d places for %q", n, name)
		}
		want = block.ReplaceAllLiteralString(want, "<!-- generated: "+name+" -->\n"+strings.TrimSpace(text)+"\n<!-- end -->")
	}
	if want == string(have) {
		return
	}
	if !*update {
		t.Fatal("the README differs from the results or the source; run: go test ./experiments -run TestREADME -update")
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sizes counts lines that hold a token of code, and tests.
func sizes(t *testing.T) string {
	type size struct{ code, tests int }
	var core, all size
	tests := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == ".git" {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n := codeLines(text)
		isTest := strings.HasSuffix(path, "_test.go")
		add := func(s *size) {
			if isTest {
				s.tests += n
			} else {
				s.code += n
			}
		}
		add(&all)
		if strings.HasPrefix(path, filepath.Join("..", "protocol")) {
			add(&core)
		}
		if isTest {
			tests += testFunctions(t, path, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	refund := experiments.Refund()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d thousand lines of code in `protocol/` and %d of its tests; %d in all, and %d of tests.\n", thousands(core.code), thousands(core.tests), thousands(all.code), thousands(all.tests))
	fmt.Fprintf(&b, "More than %d test functions, fuzz targets, examples and benchmarks; in the refund experiment %d rows in %d columns, with the second table %d cells.\n", tests/50*50, len(refund.Rows), len(refund.Columns), len(refund.Cells))
	return b.String()
}

// thousands rounds, so that the README changes when its size does.
func thousands(lines int) int { return (lines + 500) / 1000 }

func codeLines(text []byte) int {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok != token.SEMICOLON || lit != "\n" {
			lines[file.Line(pos)] = true
		}
	}
}

func testFunctions(t *testing.T, path string, text []byte) (n int) {
	file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || f.Name.Name == "TestMain" {
			continue
		}
		for _, prefix := range []string{"Test", "Fuzz", "Example", "Benchmark"} {
			if strings.HasPrefix(f.Name.Name, prefix) {
				n++
				break
			}
		}
	}
	return n
}
