package mutant

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Guarded are the packages that machine mutants are made of, from the module's
// root.
var Guarded = []string{"protocol", "protocol/journal", "protocol/wire"}

// guarded are their files in which it is decided whether something is sent, what
// counts as an outcome, who may be at it, and what is durable.
var guarded = map[string][]string{
	"protocol":         {"attempt.go", "authority.go", "gate.go", "guard.go", "recover.go", "resolve.go", "state.go", "submit.go"},
	"protocol/journal": {"claim.go", "drain.go", "flush.go", "lock.go", "open.go", "seal.go"},
	"protocol/wire":    {"conn.go"},
}

// sided are the files of guards and nothing else, in which sides of conditions are
// dropped too. Elsewhere a side is mostly there to keep the other from a nil.
var sided = []string{"protocol/guard.go", "protocol/resolve.go"}

// Kind is what a machine mutant does to the source.
type Kind string

const (
	ForceFalse Kind = "force-false" // the condition of an if, a case, a loop or a returned bool is asked, and false whatever it is
	DropLeft   Kind = "drop-left"   // the left side of && or || has no say, in files of guards
	DropRight  Kind = "drop-right"  // the right side
	DropCall   Kind = "drop-call"   // a call, deferred or not, whose results nobody takes isn't made
)

// Kinds are all of them.
var Kinds = []Kind{ForceFalse, DropLeft, DropRight, DropCall}

// Spot is one machine mutant.
type Spot struct {
	Name     string // FILE:FUNCTION:KIND:N, with N counted from 1 in the function, by kind
	File     string // from the module's root
	Number   int    // picks it in the instrumented source, from 1
	Text     string // what is changed, on one line
	Function string // digest of the function's source, which N is counted in
}

// Package is the package that the spot is in, from the module's root.
func (s Spot) Package() string { return filepath.ToSlash(filepath.Dir(s.File)) }

// Picked is the environment variable with the number of the mutant that
// instrumented source shall be. Unset, it is none.
const Picked = "INTERLOCK_MUTANT"

// ErrSource is returned for source that can't be read or doesn't parse.
var ErrSource = errors.New("mutant: the source can't be mutated")

// Instrument writes the guarded sources into dir with all machine mutants in them,
// and returns the mutants, in the order of the files and their text, and the path
// of a file for the go command's -overlay flag. A program that is built with it is
// the original until Picked says otherwise: each change is a switch, so one build
// serves all.
//
// Left alone are conditions that only ask whether there is an error, words for
// people (String and Error methods), reports to an observer, the release of a
// context, which vet watches, and locks, which the race detector does.
func Instrument(root, dir string) ([]Spot, string, error) {
	var spots []Spot
	replace := map[string]string{}
	add := func(file string, text []byte) error {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		replace[filepath.Join(root, file)] = to
		return os.WriteFile(to, text, 0o600)
	}
	for _, pkg := range Guarded {
		name := ""
		for _, base := range guarded[pkg] {
			file := pkg + "/" + base
			text, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				return nil, "", fmt.Errorf("%w: %w", ErrSource, err)
			}
			m := &mutator{file: file, text: text, files: token.NewFileSet(), from: len(spots)}
			f, err := m.parse()
			if err != nil {
				return nil, "", fmt.Errorf("%w: %w", ErrSource, err)
			}
			name = f.Name.Name
			spots = append(spots, m.spots...)
			if err := add(file, m.instrumented()); err != nil {
				return nil, "", err
			}
		}
		if err := add(pkg+"/mutant_switch.go", fmt.Appendf(nil, switchSource, name, Picked)); err != nil {
			return nil, "", err
		}
	}
	overlay, err := writeOverlay(dir, replace)
	return spots, overlay, err
}

// switchSource is what the instrumented packages ask.
const switchSource = `package %s

import (
	"os"
	"strconv"
)

var mutantOn = func() int { n, _ := strconv.Atoi(os.Getenv(%q)); return n }()
`

func writeOverlay(dir string, replace map[string]string) (string, error) {
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}

// mutator makes the mutants of one file. Each is text put around a piece of the
// source, so that they don't disturb one another.
type mutator struct {
	file  string
	text  []byte
	files *token.FileSet
	from  int // spots of earlier files

	spots    []Spot
	put      []insertion
	function string // name of the one that is walked
	digest   string
	counts   map[Kind]int
}

type insertion struct {
	at    int
	text  string
	opens bool
}

func (m *mutator) parse() (*ast.File, error) {
	f, err := parser.ParseFile(m.files, m.file, m.text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body == nil || slices.Contains(words, d.Name.Name) {
				continue
			}
			m.begin(receiver(d)+d.Name.Name, d)
			m.walk(d.Body, returnsBool(d.Type))
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok && d.Tok == token.VAR {
					m.begin(v.Names[0].Name, v)
					for _, value := range v.Values {
						m.walk(value, false)
					}
				}
			}
		}
	}
	return f, nil
}

// words are functions that say something to people.
var words = []string{"String", "Error", "about"}

func (m *mutator) begin(function string, n ast.Node) {
	sum := sha256.Sum256(m.source(n))
	m.function, m.digest, m.counts = function, hex.EncodeToString(sum[:4]), map[Kind]int{}
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}

// returnsBool says whether a function's one result is a bool.
func returnsBool(t *ast.FuncType) bool {
	if t.Results == nil || len(t.Results.List) != 1 || len(t.Results.List[0].Names) > 1 {
		return false
	}
	id, ok := t.Results.List[0].Type.(*ast.Ident)
	return ok && id.Name == "bool"
}

// walk makes the mutants of n, in the order of the text. boolean says that the
// function around it returns a bool.
func (m *mutator) walk(n ast.Node, boolean bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			m.walk(n.Body, returnsBool(n.Type))
			return false
		case *ast.IfStmt:
			if reports(n) {
				return false
			}
			m.force(n.Cond)
		case *ast.ForStmt:
			if n.Cond != nil {
				m.force(n.Cond)
			}
		case *ast.SwitchStmt:
			if n.Tag == nil {
				for _, c := range n.Body.List {
					for _, x := range c.(*ast.CaseClause).List {
						m.force(x)
					}
				}
			}
		case *ast.ReturnStmt:
			if boolean && len(n.Results) == 1 {
				if id, ok := n.Results[0].(*ast.Ident); !ok || id.Name != "true" && id.Name != "false" {
					m.force(n.Results[0])
				}
			}
		case *ast.BinaryExpr:
			if slices.Contains(sided, m.file) && (n.Op == token.LAND || n.Op == token.LOR) {
				m.drop(DropLeft, n.X, n.Op)
				m.drop(DropRight, n.Y, n.Op)
			}
		case *ast.BlockStmt:
			m.calls(n.List)
		case *ast.CaseClause:
			m.calls(n.Body)
		case *ast.CommClause:
			m.calls(n.Body)
		}
		return true
	})
}

// reports says whether an if leads to nothing but a report to an observer.
func reports(n *ast.IfStmt) bool {
	if len(n.Body.List) != 1 || n.Else != nil || n.Init != nil {
		return false
	}
	s, ok := n.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	c, ok := s.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := c.Fun.(*ast.SelectorExpr)
	return ok && observes(f)
}

// observes says whether a method is how a step is reported.
func observes(f *ast.SelectorExpr) bool { return strings.EqualFold(f.Sel.Name, "at") }

// force makes a condition false.
func (m *mutator) force(cond ast.Expr) {
	if !tellsError(cond) {
		m.wrap(ForceFalse, cond, "((", ") && mutantOn != %d)")
	}
}

// drop takes the say of one side of && or ||.
func (m *mutator) drop(k Kind, side ast.Expr, op token.Token) {
	switch {
	case tellsError(side):
	case op == token.LAND:
		m.wrap(k, side, "((", ") || mutantOn == %d)")
	default:
		m.wrap(k, side, "((", ") && mutantOn != %d)")
	}
}

// tellsError says whether a condition is err != nil or err == nil.
func tellsError(cond ast.Expr) bool {
	b, ok := cond.(*ast.BinaryExpr)
	if !ok {
		return false
	}
	x, isX := b.X.(*ast.Ident)
	y, isY := b.Y.(*ast.Ident)
	return isX && isY && y.Name == "nil" && (strings.HasSuffix(x.Name, "err") || slices.Contains(errorNames, x.Name))
}

// errorNames are what errors are called besides err.
var errorNames = []string{"failed", "left", "refused", "undecided"}

// calls drops the calls among statements.
func (m *mutator) calls(list []ast.Stmt) {
	for _, s := range list {
		var call *ast.CallExpr
		switch s := s.(type) {
		case *ast.ExprStmt:
			call, _ = s.X.(*ast.CallExpr)
		case *ast.DeferStmt:
			call = s.Call
		}
		if call != nil && !spares(call) {
			m.wrap(DropCall, s, "if mutantOn != %d { ", " }")
		}
	}
}

// spares says whether a call is left alone: a panic ends its function, the race
// detector watches locks, and neither an observer nor the release of a context
// guards anything.
func spares(c *ast.CallExpr) bool {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name == "panic" || f.Name == "cancel"
	case *ast.SelectorExpr:
		return observes(f) || f.Sel.Name == "Lock" || f.Sel.Name == "Unlock"
	}
	return false
}

// wrap makes one mutant: its number goes where before or after have a %d.
func (m *mutator) wrap(k Kind, n ast.Node, before, after string) {
	m.counts[k]++
	number := m.from + len(m.spots) + 1
	m.spots = append(m.spots, Spot{
		Name:   fmt.Sprintf("%s:%s:%s:%d", m.file, m.function, k, m.counts[k]),
		File:   m.file,
		Number: number,
		Text:   strings.Join(strings.Fields(string(m.source(n))), " "), Function: m.digest,
	})
	put := func(at token.Pos, text string, opens bool) {
		if strings.Contains(text, "%d") {
			text = fmt.Sprintf(text, number)
		}
		m.put = append(m.put, insertion{m.files.Position(at).Offset, text, opens})
	}
	put(n.Pos(), before, true)
	put(n.End(), after, false)
}

func (m *mutator) source(n ast.Node) []byte {
	return m.text[m.files.Position(n.Pos()).Offset:m.files.Position(n.End()).Offset]
}

// instrumented is the file's text with everything put in. At one place, what
// closes stands before what opens, the outer opens first and the inner closes
// first; an outer piece is always wrapped before an inner one.
func (m *mutator) instrumented() []byte {
	var opens, closes []insertion
	for _, p := range m.put {
		if p.opens {
			opens = append(opens, p)
		} else {
			closes = append(closes, p)
		}
	}
	slices.Reverse(closes)
	put := append(closes, opens...)
	slices.SortStableFunc(put, func(a, b insertion) int { return a.at - b.at })
	var b bytes.Buffer
	at := 0
	for _, p := range put {
		b.Write(m.text[at:p.at])
		b.WriteString(p.text)
		at = p.at
	}
	b.Write(m.text[at:])
	return b.Bytes()
}
