package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
)

// regressions are the numbers that docs/regressions.md has to have, in order.
func regressions() (numbers []string) {
	for n := range 98 {
		numbers = append(numbers, fmt.Sprintf("B%02d", n+1))
		if n+1 == 15 {
			numbers = append(numbers, "B15a", "B15b")
		}
	}
	for n := range 10 {
		numbers = append(numbers, fmt.Sprintf("W%d", n+1))
	}
	return numbers
}

// unbuilt are the parts that a regression may wait for.
var unbuilt = []string{"approvals", "coding", "engines", "proxy", "exports", "models"}

// TestRegressions holds docs/regressions.md to the tree: every number is there
// once, and a test that holds it exists and names it.
func TestRegressions(t *testing.T) {
	page := documents(t)["docs/regressions.md"]
	texts := testTexts(t)
	cells := map[string]bool{}
	for _, e := range experiments.All() {
		for _, c := range e.Cells {
			cells[c.ID(e.Name)] = true
		}
	}
	var numbers []string
	for _, line := range regexp.MustCompile(`(?m)^\| ([BW][0-9]+[ab]?) \| .+ \| (.+) \|$`).FindAllStringSubmatch(page, -1) {
		number, held := line[1], line[2]
		numbers = append(numbers, number)
		if part, waits := strings.CutPrefix(held, "waits for "); waits {
			if !slices.Contains(unbuilt, part) {
				t.Errorf("%s waits for %q, which is no part that isn't built", number, part)
			}
			continue
		}
		if why, not := strings.CutPrefix(held, "doesn't apply: "); not {
			if why == "" {
				t.Errorf("%s doesn't apply, and the page doesn't say why", number)
			}
			continue
		}
		named := 0
		for _, h := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(held, -1) {
			text, isTest := texts[h[1]]
			switch {
			case isTest && names(text, number):
				named++
			case isTest:
				t.Errorf("%s holds %s and doesn't name it", h[1], number)
			case !cells[h[1]]:
				t.Errorf("%s is held by %s, which is neither a test nor a cell", number, h[1])
			}
		}
		if named == 0 {
			t.Errorf("no test holds %s", number)
		}
	}
	if want := regressions(); !slices.Equal(numbers, want) {
		t.Errorf("the page has\n%v\nwant\n%v", numbers, want)
	}
}

// names says whether a test's text has a number: W1 is W01 in a test's name.
func names(text, number string) bool {
	if len(number) == 2 {
		number = number[:1] + "0?" + number[1:]
	}
	return regexp.MustCompile(`(^|[^A-Za-z0-9]|Test|And)` + number + `([^0-9a-z]|$)`).MatchString(text)
}

// testTexts are the tests of the module by name: the text of each with its
// comment. Tests of one name in several packages are one text.
func testTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	walk(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			from := f.Pos()
			if f.Doc != nil {
				from = f.Doc.Pos()
			}
			texts[f.Name.Name] += string(source[set.Position(from).Offset:set.Position(f.End()).Offset])
		}
	})
	return texts
}
