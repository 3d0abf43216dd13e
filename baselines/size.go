package baselines

import (
	"embed"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
)

//go:embed *.go
var source embed.FS

// Size is how many lines of code a baseline is: lines that hold a token, so
// neither blank lines nor comments count.
type Size struct {
	Name  string
	Check int // the body of its Submit
	File  int // its whole file
}

// sized says which file holds which baseline.
var sized = []struct{ name, file string }{
	{"naive", "naive.go"},
	{"idempotency-key", "idempotency_key.go"},
	{"durable-replay", "durable_replay.go"},
	{"hand-check", "hand_check.go"},
	{"hand-check-locked", "hand_check_locked.go"},
}

// Sizes counts the baselines as they were compiled.
func Sizes() []Size {
	var sizes []Size
	for _, s := range sized {
		text, err := source.ReadFile(s.file)
		if err != nil {
			panic(err) // the file is embedded in this package
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, s.file, text, 0)
		if err != nil {
			panic(err) // it compiled
		}
		size := Size{Name: s.name, File: codeLines(text, 0, len(text))}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Submit" {
				size.Check = codeLines(text, fset.Position(f.Body.Lbrace).Offset+1, fset.Position(f.Body.Rbrace).Offset)
			}
		}
		sizes = append(sizes, size)
	}
	return sizes
}

// Lines counts the lines of a Go file that hold a token.
func Lines(text []byte) int { return codeLines(text, 0, len(text)) }

// codeLines counts the lines between two offsets that hold a token.
func codeLines(text []byte, from, to int) int {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if offset := file.Offset(pos); offset >= from && offset < to && !(tok == token.SEMICOLON && lit == "\n") {
			lines[file.Line(pos)] = true
		}
	}
}
