package premise_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-bench/interlock-bench/targets/git/premise"
)

func TestMain(m *testing.M) {
	premise.ServeSandbox()
	os.Exit(m.Run())
}

// confinedProgram tries to do what its argument says.
const confinedProgram = `package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
)

func main() {
	switch os.Args[1] {
	case "socket":
		_, err := net.Dial("udp", "127.0.0.1:9")
		fmt.Println(err == nil)
	case "listen":
		_, err := net.Listen("unix", filepath.Join(os.TempDir(), "socket"))
		fmt.Println(err == nil)
	case "memory":
		var all [][]byte
		for range 64 {
			block := make([]byte, 64<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			all = append(all, block)
		}
		fmt.Println(len(all))
	case "file":
		fmt.Println(os.WriteFile("large", make([]byte, 65<<20), 0o644) == nil)
	case "talk":
		for range 1 << 20 {
			fmt.Println("much too much")
		}
	case "forever":
		for {
		}
	}
}
`

// module writes files into a folder.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if _, ok := files["go.mod"]; !ok {
		files["go.mod"] = "module shop\n\ngo 1.21\n"
	}
	for name, text := range files {
		to := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func load(t *testing.T, files map[string]string, tags ...string) *premise.Module {
	t.Helper()
	m, err := premise.Load(t.Context(), module(t, files), premise.Options{Tags: tags})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const money = `package money

// Format formats.
func Format(cents int64) string { return sign(cents) + digits(cents) }

func sign(c int64) string { if c < 0 { return "-" }; return "" }
func digits(c int64) string { return string(rune('0' + c%Base)) }

const Base = 10

type Amount struct { Cents int64; note string }

func (a *Amount) Add(b Amount) { a.Cents += b.Cents }
func (a Amount) String() string { return Format(a.Cents) }

type Number interface { ~int | ~int64 }

func Sum[T Number](list ...T) (total T) { for _, v := range list { total += v }; return total }

type List[T any] struct { Items []T }

func (l *List[T]) Put(v T) { l.Items = append(l.Items, v) }

type Printer interface { Print(Amount) string }
type plain struct{}
func (plain) Print(a Amount) string { return a.String() }
func Show(p Printer, a Amount) string { return p.Print(a) }

var Zero, One = Amount{}, Amount{Cents: 100}

type Alias = Amount
`

func TestSignatures(t *testing.T) {
	m := load(t, map[string]string{"money/money.go": money})
	for symbol, want := range map[string]string{
		"Format":        "func(int64) string",
		"Amount":        "type struct{Cents int64}",
		"Amount.Add":    "(*shop/money.Amount) func(shop/money.Amount)",
		"Amount.String": "(shop/money.Amount) func() string",
		"Sum":           "[T shop/money.Number]func(...T) T",
		"List":          "type[T any] struct{Items []T}, not comparable",
		"List.Put":      "(*shop/money.List[T]) func(T)",
		"Printer.Print": "",
		"Printer":       "type interface{Print(shop/money.Amount) string}",
		"Base":          "const untyped int",
		"Zero":          "var shop/money.Amount",
		"Alias":         "type = shop/money.Amount",
	} {
		got, err := m.Signature("shop/money." + symbol)
		if want == "" {
			if !errors.Is(err, premise.ErrSymbol) {
				t.Errorf("%s: %q, %v", symbol, got, err)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", symbol, got, err, want)
		}
	}
}

// What each granularity sees of one edit: the dial, edit by edit.
func TestTheDial(t *testing.T) {
	was := load(t, map[string]string{"money/money.go": money})
	for _, test := range []struct {
		why, symbol, from, to string
		signature, body       bool // whether it sees the edit
	}{
		{"a comment", "Format", "// Format formats.", "// Format formats cents.\n\n// More.", false, false},
		{"layout and parentheses", "Format", "return sign(cents) + digits(cents)", "return (sign(cents) +\n\t\tdigits(cents))", false, false},
		{"a parameter's name", "Format", "Format(cents int64) string { return sign(cents) + digits(cents)", "Format(c int64) string { return sign(c) + digits(c)", false, true},
		{"a parameter's type", "Format", "Format(cents int64) string { return sign(cents) + digits(cents)", "Format(cents int32) string { return sign(int64(cents)) + digits(int64(cents))", true, true},
		{"the own body", "Format", "sign(cents) + digits(cents)", "digits(cents) + sign(cents)", false, true},
		{"what it calls", "Format", `return "-"`, `return "~"`, false, true},
		{"a constant that what it calls uses", "Format", "Base = 10", "Base = 8", false, true},
		{"a function that it doesn't use", "Format", "total += v", "total -= v", false, false},
		{"a new function beside it", "Format", "const Base", "func More() {}\n\nconst Base", false, false},
		{"its name", "Format", "func Format", "func Render", true, true},
		{"a field", "Amount", "Cents int64; note", "Cents int64; Currency string; note", true, true},
		{"a private field", "Amount", "note string", "note, more string", false, true},
		{"a method that fmt calls by itself", "Amount", "Format(a.Cents)", `"?"`, false, true},
		{"a method that nobody calls by itself", "Amount", "a.Cents += b.Cents", "a.Cents -= b.Cents", false, false},
		{"a generic function's body", "Sum", "total += v", "total = v", false, true},
		{"a constraint", "Sum", "~int | ~int64", "~int", false, true},
		{"a generic method's body", "List.Put", "append(l.Items, v)", "append(l.Items, v, v)", false, true},
		{"what an interface's method may reach", "Show", "return a.String()", `return "?"`, false, true},
		{"a method's receiver", "Amount.Add", "(a *Amount) Add", "(a Amount) Add", true, true},
		{"an initial value", "One", "Amount{Cents: 100}", "Amount{Cents: 1}", false, true},
		{"the initial value beside it", "Zero", "Amount{Cents: 100}", "Amount{Cents: 1}", false, false},
		{"an alias", "Alias", "Alias = Amount", "Alias = int", true, true},
	} {
		text := strings.ReplaceAll(money, test.from, test.to)
		if test.why == "its name" {
			text = strings.ReplaceAll(text, "Format(a.Cents)", "Render(a.Cents)")
		}
		if test.why == "a parameter's type" {
			text = strings.ReplaceAll(text, "Format(a.Cents)", "Format(int32(a.Cents))")
		}
		if text == money {
			t.Fatalf("%s: nothing was edited", test.why)
		}
		now := load(t, map[string]string{"money/money.go": text})
		if now.Broken != "" {
			t.Fatalf("%s: %s", test.why, now.Broken)
		}
		changed := func(read func(*premise.Module, string) (string, error)) bool {
			a, errA := read(was, "shop/money."+test.symbol)
			b, errB := read(now, "shop/money."+test.symbol)
			return errA != nil || errB != nil || a != b
		}
		if got := changed((*premise.Module).Signature); got != test.signature {
			t.Errorf("%s: the signature of %s changed: %v", test.why, test.symbol, got)
		}
		if got := changed((*premise.Module).Body); got != test.body {
			t.Errorf("%s: the body of %s changed: %v", test.why, test.symbol, got)
		}
	}
}

func TestWhatAModuleBringsAlong(t *testing.T) {
	files := func() map[string]string {
		return map[string]string{
			"a/a.go":     "package a\n\nimport _ \"embed\"\n\n//go:embed text.txt\nvar text string\n\nvar n = 1\n\nfunc init() { n = 2 }\n\nfunc Text() string { return text }\nfunc N() int { return n }\n",
			"a/text.txt": "one",
		}
	}
	was := load(t, files())
	for _, test := range []struct{ why, symbol, file, from, to string }{
		{"an embedded file", "shop/a.Text", "a/text.txt", "one", "two"},
		{"what init does", "shop/a.N", "a/a.go", "n = 2", "n = 3"},
		{"the version of the language", "shop/a.N", "go.mod", "1.21", "1.22"},
	} {
		edited := files()
		edited["go.mod"] = "module shop\n\ngo 1.21\n"
		edited[test.file] = strings.Replace(edited[test.file], test.from, test.to, 1)
		a, errA := was.Body(test.symbol)
		b, errB := load(t, edited).Body(test.symbol)
		if errA != nil || errB != nil || a == b {
			t.Errorf("%s is not seen: %v, %v", test.why, errA, errB)
		}
	}
}

func TestBuildTags(t *testing.T) {
	files := func() map[string]string {
		return map[string]string{
			"a/a.go":     "package a\n\nfunc Free() string { return \"free\" }\n",
			"a/pro.go":   "//go:build pro\n\npackage a\n\nfunc Pro() string { return \"pro\" }\n",
			"a/plain.go": "//go:build !pro\n\npackage a\n\nfunc Both() int { return 1 }\n",
			"a/both.go":  "//go:build pro\n\npackage a\n\nfunc Both() string { return \"2\" }\n",
		}
	}
	without, with := load(t, files()), load(t, files(), "pro")
	_, err := without.Signature("shop/a.Pro")
	if !errors.Is(err, premise.ErrSymbol) || !strings.Contains(err.Error(), "//go:build pro") {
		t.Errorf("without its tag: %v", err)
	}
	if got, err := with.Signature("shop/a.Pro"); err != nil || got != "func() string" {
		t.Errorf("with its tag: %q, %v", got, err)
	}
	one, _ := without.Signature("shop/a.Both")
	two, _ := with.Signature("shop/a.Both")
	if one != "func() int" || two != "func() string" {
		t.Errorf("two declarations under two tags: %q, %q", one, two)
	}
}

func TestModulesThatCantBeRead(t *testing.T) {
	if _, err := premise.Load(t.Context(), t.TempDir(), premise.Options{}); !errors.Is(err, premise.ErrModule) {
		t.Errorf("no module: %v", err)
	}
	for why, files := range map[string]map[string]string{
		"a type error":         {"a/a.go": "package a\n\nfunc F() int { return \"\" }\n"},
		"a syntax error":       {"a/a.go": "package a\n\nfunc F( {\n"},
		"an import from afar":  {"a/a.go": "package a\n\nimport _ \"example.com/none\"\n"},
		"an import of nothing": {"a/a.go": "package a\n\nimport _ \"shop/none\"\n"},
	} {
		m, err := premise.Load(t.Context(), module(t, files), premise.Options{})
		if err != nil || m.Broken == "" {
			t.Errorf("%s: %v", why, err)
		}
		if err == nil && strings.Contains(m.Broken, os.TempDir()) {
			t.Errorf("%s: its folder is in %q", why, m.Broken)
		}
	}
}

func TestObserve(t *testing.T) {
	dir := module(t, map[string]string{
		"money/money.go": money,
		"calls/calls.go": `package calls

import ("errors"; "fmt"; "os"; "time")

type Pair struct { A int; B string }

func Two(s string) (Pair, error) { if s == "" { return Pair{}, errors.New("empty") }; fmt.Println("noise"); return Pair{1, s}, nil }
func Panics() int { panic("no") }
func Exits() int { os.Exit(3); return 0 }
func Hangs() int { for { time.Sleep(time.Hour) } }
func Now() int64 { return time.Now().UnixNano() }
func None() {}
`,
		"internal/deep/deep.go": "package deep\n\nfunc F(list ...int) map[string]int { return map[string]int{\"b\": len(list), \"a\": 0} }\n",
	})
	calls := []string{
		"shop/money.Format(5)", "shop/money.Sum[int](1, 2)", `shop/calls.Two("x")`, `shop/calls.Two("")`, "shop/calls.Panics()",
		"shop/internal/deep.F(1, 2)", "shop/money.Gone(1)", "shop/calls.None()",
	}
	got, err := premise.Observe(t.Context(), dir, premise.Options{}, premise.Limits{}, calls)
	want := []string{
		`"5"`, "3", `calls.Pair{A:1, B:"x"}, <nil>`, `calls.Pair{A:0, B:""}, error "empty"`, "panic: no",
		`map[string]int{"a":0, "b":2}`, "doesn't build", "doesn't build",
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, call := range []string{"shop/calls.Exits()", "shop/calls.Hangs()"} {
		got, err := premise.Observe(t.Context(), dir, premise.Options{}, premise.Limits{Time: time.Second}, []string{call})
		if err != nil || len(got) != 1 || !strings.Contains(got[0], "ended") {
			t.Errorf("%s: %q, %v", call, got, err)
		}
	}
	for _, call := range []string{"", "Format(5)", "shop/money.Format", "shop/money.Format(5); os.Exit(1)", "shop/money.format(5)", "shop/money.Format(5) + 1", "os.Exit(1)\n"} {
		if _, err := premise.Observe(t.Context(), dir, premise.Options{}, premise.Limits{}, []string{call}); !errors.Is(err, premise.ErrCall) {
			t.Errorf("%q: %v", call, err)
		}
	}
}

func TestConfined(t *testing.T) {
	dir := module(t, map[string]string{"go.mod": "module program\n\ngo 1.22\n", "main.go": confinedProgram})
	program := filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := func(what string, l premise.Limits) (string, error) {
		out, err := premise.Confined(t.Context(), l, t.TempDir(), append(os.Environ(), "GOTRACEBACK=none"), program, what)
		return strings.TrimSpace(string(out)), err
	}
	for _, what := range []string{"socket", "listen"} {
		if out, err := run(what, premise.Limits{}); err != nil || out != "false" {
			t.Errorf("%s: %q, %v", what, out, err)
		}
	}
	if out, err := run("memory", premise.Limits{Memory: 1 << 30}); err == nil {
		t.Errorf("four gigabytes under a limit of one: %q", out)
	}
	if out, err := run("file", premise.Limits{}); err == nil && out != "false" {
		t.Errorf("a file beyond the limit: %q", out)
	}
	if out, err := run("forever", premise.Limits{Time: time.Second}); err == nil {
		t.Errorf("a program that doesn't end: %q", out)
	}
	if out, err := run("talk", premise.Limits{Output: 1000}); err != nil || len(out) > 1000 {
		t.Errorf("%d bytes under a limit of 1000, %v", len(out), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := premise.Confined(ctx, premise.Limits{}, t.TempDir(), nil, program); err == nil {
		t.Error("a context that has ended")
	}
}

func TestFacts(t *testing.T) {
	for _, f := range []premise.Fact{
		{Kind: premise.File, Of: "a.go", Is: "abc"},
		{Kind: premise.Symbol, Of: "shop/a.F", Is: "func()", Tags: []string{"pro"}},
		{Kind: premise.Body, Of: "shop/a.F", Gone: true},
		{Kind: premise.Behaviour, Of: "shop/a.F(1)", Gone: true, Broken: "a.go:1: no"},
	} {
		text, err := json.Marshal(f)
		var again premise.Fact
		if err == nil {
			err = json.Unmarshal(text, &again)
		}
		if diff := cmp.Diff(f, again); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
	for _, text := range []string{`{}`, `{"is":"x"}`, `{"file":"a","symbol":"b","is":"x"}`, `[]`} {
		var f premise.Fact
		if err := json.Unmarshal([]byte(text), &f); !errors.Is(err, premise.ErrKind) {
			t.Errorf("%s: %v", text, err)
		}
	}
	long := premise.Fact{Kind: premise.Behaviour, Of: "shop/a.F(\"" + strings.Repeat("ä", 200) + "\")"}
	other := long
	other.Of = strings.Replace(long.Of, "ää\")", "äö\")", 1)
	if len(long.Name()) > 128 || long.Name() == other.Name() || strings.ContainsFunc(long.Name(), func(r rune) bool { return r > '~' }) {
		t.Errorf("%q", long.Name())
	}
	if got := slices.Index(premise.Granularities, premise.Body); got != 2 {
		t.Error("the dial is in another order")
	}
}

func FuzzFact(f *testing.F) {
	f.Add([]byte(`{"symbol":"shop/a.F","is":"func()"}`))
	f.Add([]byte(`{"call":"shop/a.F(1)","tags":["x"],"is":null,"broken":"no"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var v, again premise.Fact
		if json.Unmarshal(text, &v) != nil {
			return
		}
		out, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(out, &again)
		}
		if diff := cmp.Diff(v, again); err != nil || diff != "" {
			t.Errorf("%s became %s: %v\n%s", text, out, err, diff)
		}
		if name := v.Name(); len(name) > 128 {
			t.Errorf("%q has %d characters", name, len(name))
		}
	})
}
