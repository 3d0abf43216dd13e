package premise

import (
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"crypto/sha256"
)

// Body names what a symbol means, as far as the module says it: the syntax tree
// of its declaration and of everything in the module that this uses, directly or
// not, without comments and layout. Of other modules it holds the version, and of
// the language the version that go.mod names. Where a method of an interface is
// called, every method of the module that may be meant is in it. Not in it is who
// else writes to a variable at run time. Its error is ErrSymbol.
func (m *Module) Body(symbol string) (string, error) {
	d, err := m.find(symbol)
	if err != nil {
		return "", err
	}
	trees := map[string]string{}
	m.close(d, trees)
	var names []string
	for name := range trees {
		names = append(names, name)
	}
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		fmt.Fprintf(h, "%s %s\n", name, trees[name])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// close adds the trees of d and of all that it uses.
func (m *Module) close(d *decl, trees map[string]string) {
	if _, ok := trees[d.name]; ok {
		return
	}
	trees[d.name] = d.tree()
	used, outside := m.uses(d)
	for _, version := range outside {
		trees[version] = ""
	}
	for _, name := range used {
		if next, ok := m.decls[name]; ok {
			m.close(next, trees)
		}
	}
	for i, of := range m.inits[d.pkg.PkgPath] {
		named := *of
		named.name = fmt.Sprintf("%s#%d", of.name, i)
		m.close(&named, trees)
	}
	if d.pkg.Module != nil {
		trees["go "+d.pkg.Module.GoVersion] = ""
	}
}

// calledFromOutside are methods that the standard library calls by itself on
// whatever has them.
var calledFromOutside = []string{
	"Error", "String", "GoString", "Format", "Unwrap", "Is", "As", "Len", "Less", "Swap", "Push", "Pop", "Scan", "Value",
	"Read", "Write", "Close", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "MarshalBinary", "UnmarshalBinary",
}

// uses are the symbols of the module that d uses, in order, and the versions of
// the modules outside whose packages it uses.
func (m *Module) uses(d *decl) (names, outside []string) {
	note := func(list *[]string, name string) {
		if name != "" && !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	mine := func(obj types.Object) bool {
		return obj != nil && obj.Pkg() != nil && (obj.Pkg().Path() == m.Path || strings.HasPrefix(obj.Pkg().Path(), m.Path+"/") || strings.HasSuffix(obj.Pkg().Path(), "_test"))
	}
	reference := func(obj types.Object) {
		if obj == nil || obj.Pkg() == nil {
			return
		}
		if !mine(obj) {
			if p := d.pkg.Imports[obj.Pkg().Path()]; p != nil && p.Module != nil {
				version := p.Module.Path + "@" + p.Module.Version
				if r := p.Module.Replace; r != nil {
					version += " => " + r.Path + "@" + r.Version
				}
				note(&outside, version)
			}
		}
		if f, ok := obj.(*types.Func); ok && f.Signature().Recv() != nil && types.IsInterface(f.Signature().Recv().Type()) {
			for _, name := range m.implementers(f) {
				note(&names, name)
			}
		}
		if !mine(obj) {
			return
		}
		note(&names, nameOf(obj))
		if t, ok := obj.(*types.TypeName); ok {
			for _, method := range calledFromOutside {
				if name := nameOf(t) + "." + method; m.decls[name] != nil {
					note(&names, name)
				}
			}
		}
	}
	if t, ok := d.obj.(*types.TypeName); ok {
		reference(t)
	}
	ast.Inspect(d.part(), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			reference(d.pkg.TypesInfo.Uses[n])
		case *ast.SelectorExpr:
			if s := d.pkg.TypesInfo.Selections[n]; s != nil {
				t := types.Unalias(s.Recv())
				if p, ok := t.(*types.Pointer); ok {
					t = types.Unalias(p.Elem())
				}
				if named, ok := t.(*types.Named); ok {
					reference(named.Origin().Obj())
				}
			}
		}
		return true
	})
	names = slices.DeleteFunc(names, func(name string) bool { return name == d.name })
	return names, outside
}

// implementers are the methods of the module that a call of an interface's method
// may reach.
func (m *Module) implementers(f *types.Func) (names []string) {
	i, ok := f.Signature().Recv().Type().Underlying().(*types.Interface)
	if !ok {
		return nil
	}
	for _, name := range m.Symbols() {
		method, ok := m.decls[name].obj.(*types.Func)
		if !ok || method.Name() != f.Name() || method.Signature().Recv() == nil {
			continue
		}
		t := method.Signature().Recv().Type()
		if types.Implements(t, i) || types.Implements(types.NewPointer(t), i) {
			names = append(names, name)
		}
	}
	return names
}

// part is what of a declaration belongs to its name: of "a, b = f(), g()" the one.
func (d *decl) part() ast.Node {
	v, ok := d.node.(*ast.ValueSpec)
	if !ok || len(v.Names) != len(v.Values) {
		return d.node
	}
	i := slices.IndexFunc(v.Names, func(id *ast.Ident) bool { return d.pkg.TypesInfo.Defs[id] == d.obj })
	one := &ast.ValueSpec{Names: v.Names[i : i+1], Type: v.Type, Values: v.Values[i : i+1]}
	return one
}

// tree is the digest of a declaration's syntax tree.
func (d *decl) tree() string {
	h := sha256.New()
	if c, ok := d.obj.(*types.Const); ok { // what iota made of it
		fmt.Fprintf(h, "const %s %s", types.TypeString(c.Type(), nil), c.Val().ExactString())
		return hex.EncodeToString(h.Sum(nil))
	}
	writeTree(h, reflect.ValueOf(d.part()), d.pkg.TypesInfo)
	if f, ok := d.node.(*ast.FuncDecl); ok && f.Body == nil {
		writeFiles(h, d.pkg.OtherFiles) // it is in another language
	}
	if d.doc != nil && slices.ContainsFunc(d.doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") }) {
		writeFiles(h, d.pkg.EmbedFiles)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func writeFiles(w io.Writer, names []string) {
	for _, name := range names {
		content, err := os.ReadFile(name)
		fmt.Fprintf(w, "file %x %v\n", sha256.Sum256(content), err != nil)
	}
}

var (
	positions = reflect.TypeFor[token.Pos]()
	comments  = reflect.TypeFor[*ast.CommentGroup]()
)

// writeTree writes a syntax tree without positions and comments. An identifier
// of another package, or of the top of its own, stands with its package.
func writeTree(w io.Writer, v reflect.Value, info *types.Info) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			io.WriteString(w, "-")
			return
		}
		if id, ok := v.Interface().(*ast.Ident); ok {
			io.WriteString(w, identity(id, info)+" ")
			return
		}
		if paren, ok := v.Interface().(*ast.ParenExpr); ok {
			writeTree(w, reflect.ValueOf(&paren.X).Elem(), info)
			return
		}
		writeTree(w, v.Elem(), info)
	case reflect.Slice:
		fmt.Fprintf(w, "[%d ", v.Len())
		for i := range v.Len() {
			writeTree(w, v.Index(i), info)
		}
		io.WriteString(w, "]")
	case reflect.Struct:
		fmt.Fprintf(w, "(%s ", v.Type().Name())
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch f.Type {
			case comments:
			case positions:
				if f.Name == "Ellipsis" || f.Name == "Assign" { // f(x...), type A = B
					fmt.Fprintf(w, "%v ", v.Field(i).Int() != 0)
				}
			default:
				writeTree(w, v.Field(i), info)
			}
		}
		io.WriteString(w, ")")
	default:
		fmt.Fprintf(w, "%v ", v.Interface())
	}
}

func identity(id *ast.Ident, info *types.Info) string {
	obj := info.ObjectOf(id)
	if p, ok := obj.(*types.PkgName); ok {
		return p.Imported().Path()
	}
	if name := nameOf(obj); name != "" {
		return name
	}
	return id.Name
}
