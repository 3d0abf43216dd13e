package premise

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
)

// Signature is what a symbol promises to whoever references it: a function's type
// without the names of its parameters; a type with its exported fields and its
// type parameters; the type of a variable or a constant. Its error is ErrSymbol.
func (m *Module) Signature(symbol string) (string, error) {
	d, err := m.find(symbol)
	if err != nil {
		return "", err
	}
	return signature(d.obj), nil
}

func signature(obj types.Object) string {
	qualified := func(p *types.Package) string { return p.Path() }
	switch obj := obj.(type) {
	case *types.Func:
		sig := obj.Signature()
		plain := types.NewSignatureType(nil, nil, nil, unnamed(sig.Params()), unnamed(sig.Results()), sig.Variadic())
		head := ""
		if recv := sig.Recv(); recv != nil {
			head = "(" + types.TypeString(recv.Type(), qualified) + ") "
		}
		return head + typeParams(sig.TypeParams(), qualified) + types.TypeString(plain, qualified)
	case *types.TypeName:
		if obj.IsAlias() {
			return "type = " + types.TypeString(types.Unalias(obj.Type()), qualified)
		}
		named := obj.Type().(*types.Named)
		head := "type" + typeParams(named.TypeParams(), qualified) + " "
		fields, ok := named.Underlying().(*types.Struct)
		if !ok {
			return head + types.TypeString(named.Underlying(), qualified)
		}
		var list []string
		for f := range fields.Fields() {
			switch {
			case f.Embedded():
				list = append(list, types.TypeString(f.Type(), qualified))
			case f.Exported():
				list = append(list, f.Name()+" "+types.TypeString(f.Type(), qualified))
			}
		}
		comparable := ""
		if !types.Comparable(named) {
			comparable = ", not comparable"
		}
		return head + "struct{" + strings.Join(list, "; ") + "}" + comparable
	case *types.Const:
		return "const " + types.TypeString(obj.Type(), qualified)
	}
	return "var " + types.TypeString(obj.Type(), qualified)
}

// unnamed is a list of parameters without their names.
func unnamed(t *types.Tuple) *types.Tuple {
	var plain []*types.Var
	for v := range t.Variables() {
		plain = append(plain, types.NewVar(v.Pos(), v.Pkg(), "", v.Type()))
	}
	return types.NewTuple(plain...)
}

func typeParams(list *types.TypeParamList, qualified types.Qualifier) string {
	if list.Len() == 0 {
		return ""
	}
	var names []string
	for p := range list.TypeParams() {
		names = append(names, fmt.Sprintf("%s %s", p.Obj().Name(), types.TypeString(p.Constraint(), qualified)))
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// constraintOf is the build constraint of a file that declares name at its top;
// "" where it doesn't, or has none.
func constraintOf(file, name string) string {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return ""
	}
	first, second, _ := strings.Cut(name, ".")
	declares := false
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			declares = declares || n.Name.Name == first && n.Recv == nil || n.Name.Name == second && n.Recv != nil
			return false
		case *ast.TypeSpec:
			declares = declares || n.Name.Name == first
		case *ast.ValueSpec:
			for _, id := range n.Names {
				declares = declares || id.Name == first
			}
		}
		return true
	})
	if !declares {
		return ""
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if constraint.IsGoBuild(c.Text) {
				return c.Text
			}
		}
	}
	return ""
}
