// Package mutant is the gate with a guard taken out, to show that somebody
// notices.
//
// A mutant is laid over the source at build time; the tree is never touched. Some
// are planted by design, each a way in which a gate was, or could be, written
// wrong. The others are made by machine, of every guard there is. A Bench builds
// them and tries who catches them.
package mutant

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Mutant is one planted fault.
type Mutant struct {
	Name    string
	Source  string  // who got it wrong that way
	Why     string  // what the guard is for, or what goes wrong without it
	Patches []Patch // all are applied
	Cells   []Cell  // cells that turn red
	Tests   []Test  // tests that fail
}

// Patch replaces the one place in a file that reads Old.
type Patch struct {
	File string // from the module's root
	Old  string
	New  string
}

// Cell is a cell that a mutant turns red: the command exits with 1 and names it.
type Cell struct {
	Experiment string // "" is refund
	Row        string
	Column     string
	Shows      string // part of what the cell says instead, "$40"; "" is not looked at
}

// Test is a test that a mutant makes fail.
type Test struct {
	Package string // from the module's root, "./protocol"
	Name    string
}

// ErrPatch is returned where a patch doesn't fit the source any more.
var ErrPatch = errors.New("mutant: a patch doesn't fit")

// Overlay writes the patched files of m into dir and returns the path of a file
// for the go command's -overlay flag. root is the module's root. A patch whose
// old text is not in its file exactly once is ErrPatch.
func (m Mutant) Overlay(root, dir string) (string, error) {
	text := map[string]string{}
	for _, p := range m.Patches {
		path := filepath.Join(root, p.File)
		if _, ok := text[path]; !ok {
			b, err := os.ReadFile(path)
			if err != nil {
				return "", fmt.Errorf("%w: %s: %w", ErrPatch, m.Name, err)
			}
			text[path] = string(b)
		}
		if n := strings.Count(text[path], p.Old); n != 1 {
			return "", fmt.Errorf("%w: %s: %s has %d places that read %q", ErrPatch, m.Name, p.File, n, p.Old)
		}
		text[path] = strings.Replace(text[path], p.Old, p.New, 1)
	}
	replace := map[string]string{}
	for path, patched := range text {
		to := filepath.Join(dir, fmt.Sprintf("%d_%s", len(replace), filepath.Base(path)))
		if err := os.WriteFile(to, []byte(patched), 0o600); err != nil {
			return "", err
		}
		replace[path] = to
	}
	return writeOverlay(dir, replace)
}
