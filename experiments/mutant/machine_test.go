package mutant_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments/mutant"
)

// TestMachineMutants makes all of them, twice.
func TestMachineMutants(t *testing.T) {
	a, _, err := mutant.Instrument("../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := mutant.Instrument("../..", t.TempDir())
	if err != nil || !slices.Equal(a, b) {
		t.Errorf("made again the mutants are others: %v", err)
	}
	names := map[string]bool{}
	for i, s := range a {
		if names[s.Name] || s.Number != i+1 {
			t.Errorf("%s is there twice, or has the number %d in place %d", s.Name, s.Number, i)
		}
		names[s.Name] = true
	}
	if len(a) < 300 {
		t.Errorf("there are only %d mutants", len(a))
	}
}

// TestNamesStayWhereTheyAre puts lines above a guard and renames nothing.
func TestNamesStayWhereTheyAre(t *testing.T) {
	names := func(root string) (list []string) {
		spots, _, err := mutant.Instrument(root, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range spots {
			list = append(list, s.Name)
		}
		return list
	}
	moved := t.TempDir()
	for _, pkg := range mutant.Guarded {
		if err := os.MkdirAll(filepath.Join(moved, pkg), 0o755); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join("../..", pkg, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			text = append([]byte("// A line.\n\n// Another.\n\n"), text...)
			if err := os.WriteFile(filepath.Join(moved, pkg, filepath.Base(f)), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if was, is := names("../.."), names(moved); !slices.Equal(was, is) {
		t.Error("lines above a guard change the names of its mutants")
	}
}
