package premise

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Options say how a module is read. The zero value reads it as a build does.
type Options struct {
	Tags  []string // build tags
	Tests bool     // test files, too
}

// Module is one Go module as it lies in a folder, type-checked. Packages outside
// of it are taken from what the go command compiled of them.
type Module struct {
	Path   string
	Broken string // the first error, where it doesn't build; what there is may be incomplete then
	dir    string
	decls  map[string]*decl
	named  []*decl // in the order of files
	inits  map[string][]*decl
	pkgs   map[string]*packages.Package
	count  map[string]int  // declarations by name
	wrong  map[string]bool // names of declarations that have a type error in them
	opts   Options
}

// decl is one declaration at the top of a package, or a method.
type decl struct {
	name string // import/path.Name or import/path.Type.Method
	file string // below the module's folder
	obj  types.Object
	node ast.Node // *ast.FuncDecl, *ast.TypeSpec, *ast.ValueSpec
	doc  *ast.CommentGroup
	pkg  *packages.Package
}

// Load reads the module in dir. A module that doesn't build is no error: it says
// so, and names the first thing that is wrong. Errors are ErrModule and
// ErrToolchain.
func Load(ctx context.Context, dir string, o Options) (*Module, error) {
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return nil, fmt.Errorf("%w: there is no go.mod at its root", ErrModule)
	}
	cfg := &packages.Config{
		Context: ctx, Dir: dir, Env: goEnvironment(), Tests: o.Tests,
		Mode: packages.LoadSyntax | packages.NeedModule | packages.NeedEmbedFiles,
	}
	if len(o.Tags) > 0 {
		cfg.BuildFlags = []string{"-tags=" + strings.Join(o.Tags, ",")}
	}
	loaded, err := packages.Load(cfg, "./...")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrToolchain, err)
	}
	m := &Module{dir: dir, opts: o, decls: map[string]*decl{}, inits: map[string][]*decl{},
		pkgs: map[string]*packages.Package{}, wrong: map[string]bool{}, count: map[string]int{}}
	slices.SortFunc(loaded, func(a, b *packages.Package) int { return strings.Compare(a.ID, b.ID) })
	for _, p := range loaded {
		if p.Module != nil && m.Path == "" {
			m.Path = p.Module.Path
		}
		for _, e := range p.Errors {
			said := m.scrub(strings.TrimSpace(e.Msg))
			if e.Pos != "" && e.Pos != "-" {
				said = m.scrub(e.Pos) + ": " + said
			}
			if m.Broken == "" || strings.HasPrefix(m.Broken, "# ") && !strings.HasPrefix(said, "# ") { // the compiler's heading
				m.Broken = said
			}
		}
		if strings.HasSuffix(p.ID, ".test") {
			continue // the program that runs tests
		}
		m.index(p)
	}
	if m.Path == "" {
		return nil, fmt.Errorf("%w: it has no package", ErrModule)
	}
	return m, nil
}

// scrub takes the folder out of a message.
func (m *Module) scrub(s string) string {
	s = strings.ReplaceAll(s, m.dir+string(filepath.Separator), "")
	if first, _, more := strings.Cut(s, "\n"); more {
		s = first
	}
	return s
}

// index notes the declarations of a package. A package with its tests comes after
// the one without and takes its place.
func (m *Module) index(p *packages.Package) {
	if strings.Contains(p.ID, " [") {
		for name, d := range m.decls {
			if d.pkg.PkgPath == p.PkgPath {
				delete(m.decls, name)
			}
		}
		m.named = slices.DeleteFunc(m.named, func(d *decl) bool { return d.pkg.PkgPath == p.PkgPath })
		delete(m.inits, p.PkgPath)
	}
	m.pkgs[p.PkgPath] = p
	for i, f := range p.Syntax {
		file, err := filepath.Rel(m.dir, p.CompiledGoFiles[min(i, len(p.CompiledGoFiles)-1)])
		if pos := p.Fset.Position(f.FileStart); pos.IsValid() {
			file, err = filepath.Rel(m.dir, pos.Filename)
		}
		if err != nil {
			continue
		}
		add := func(id *ast.Ident, node ast.Node, doc *ast.CommentGroup) {
			if f, ok := node.(*ast.FuncDecl); !ok || f.Recv == nil {
				m.count[p.PkgPath+"."+id.Name]++
			}
			obj := p.TypesInfo.Defs[id]
			if obj == nil {
				return
			}
			d := &decl{nameOf(obj), filepath.ToSlash(file), obj, node, doc, p}
			switch {
			case id.Name == "init" && d.name == "":
				d.name = p.PkgPath + ".init"
				m.inits[p.PkgPath] = append(m.inits[p.PkgPath], d)
			case id.Name == "_":
				d.name = p.PkgPath + "._"
				m.inits[p.PkgPath] = append(m.inits[p.PkgPath], d)
			case d.name == "":
				return
			default:
				m.decls[d.name] = d
			}
			m.named = append(m.named, d)
			for _, e := range p.TypeErrors {
				if node.Pos() <= e.Pos && e.Pos <= node.End() {
					m.wrong[d.name] = true
				}
			}
		}
		for _, top := range f.Decls {
			switch top := top.(type) {
			case *ast.FuncDecl:
				add(top.Name, top, top.Doc)
			case *ast.GenDecl:
				for _, spec := range top.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						add(spec.Name, spec, top.Doc)
					case *ast.ValueSpec:
						for _, id := range spec.Names {
							add(id, spec, orDoc(spec.Doc, top.Doc))
						}
					}
				}
			}
		}
	}
}

func orDoc(a, b *ast.CommentGroup) *ast.CommentGroup {
	if a != nil {
		return a
	}
	return b
}

// nameOf is the name of an object at the top of a package, or of a method; "" for
// everything else.
func nameOf(obj types.Object) string {
	if obj == nil || obj.Pkg() == nil {
		return ""
	}
	if f, ok := obj.(*types.Func); ok {
		f = f.Origin()
		if recv := f.Signature().Recv(); recv != nil {
			t := types.Unalias(recv.Type())
			if p, ok := t.(*types.Pointer); ok {
				t = types.Unalias(p.Elem())
			}
			n, ok := t.(*types.Named)
			if !ok {
				return "" // of an interface without a name
			}
			return nameOf(n.Origin().Obj()) + "." + f.Name()
		}
	}
	if obj.Parent() != obj.Pkg().Scope() || obj.Name() == "init" && isFunc(obj) {
		return ""
	}
	return obj.Pkg().Path() + "." + obj.Name()
}

func isFunc(obj types.Object) bool { _, ok := obj.(*types.Func); return ok }

// Symbols are the names of everything that the module declares.
func (m *Module) Symbols() (names []string) {
	for name := range m.decls {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Reaches says whether a package, its tests included where they were loaded, is
// compiled from any of the files, directly or by what it imports in the module.
func (m *Module) Reaches(pkg string, files map[string]bool) bool {
	seen := map[string]bool{}
	var reaches func(p *packages.Package) bool
	reaches = func(p *packages.Package) bool {
		if p == nil || seen[p.ID] {
			return false
		}
		seen[p.ID] = true
		for _, list := range [][]string{p.CompiledGoFiles, p.OtherFiles, p.EmbedFiles} {
			for _, name := range list {
				if below, err := filepath.Rel(m.dir, name); err == nil && files[filepath.ToSlash(below)] {
					return true
				}
			}
		}
		for _, next := range p.Imports {
			if reaches(m.pkgs[next.PkgPath]) {
				return true
			}
		}
		return false
	}
	return reaches(m.pkgs[pkg]) || reaches(m.pkgs[pkg+"_test"])
}

// Declared is how many declarations of a symbol there are, methods aside; more
// than one is a module that doesn't build.
func (m *Module) Declared(symbol string) int { return m.count[symbol] }

// FileOf is the file that declares a symbol.
func (m *Module) FileOf(symbol string) (string, bool) {
	d, ok := m.decls[symbol]
	if !ok {
		return "", false
	}
	return d.file, true
}

// holds says whether the module has a symbol. Where it has it under other build
// tags only, the error says so.
func (m *Module) find(symbol string) (*decl, error) {
	if d, ok := m.decls[symbol]; ok {
		return d, nil
	}
	dot := strings.LastIndex(symbol, "/")
	path, name, _ := strings.Cut(symbol[dot+1:], ".")
	path = symbol[:dot+1] + path
	below, inside := strings.CutPrefix(path, m.Path)
	why := ""
	if inside {
		ignored, _ := filepath.Glob(filepath.Join(m.dir, filepath.FromSlash(below), "*.go"))
		for _, file := range ignored {
			if line := constraintOf(file, name); line != "" {
				why = fmt.Sprintf("; %s declares it behind %q: give its build tags", filepath.Base(file), line)
			}
		}
	}
	return nil, fmt.Errorf("%w: %s is not declared in %s%s", ErrSymbol, symbol, m.Path, why)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
