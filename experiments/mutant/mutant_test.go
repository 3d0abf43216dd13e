package mutant_test

import (
	"bytes"
	"cmp"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments/mutant"
)

// TestMutantsAreCaught builds each broken gate and sees it turn red: what is
// green in the tables is green because the guard is there.
func TestMutantsAreCaught(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutant.Broken {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			overlay, err := m.Overlay(root, dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Cells)+len(m.Tests) == 0 {
				t.Fatalf("nothing is said to catch %s", m.Name)
			}
			if len(m.Cells) > 0 {
				binary := filepath.Join(dir, "interlock-bench")
				if out, err := command(root, "go", "build", "-overlay", overlay, "-o", binary, "./cmd/interlock-bench"); err != nil {
					t.Fatalf("the mutant doesn't build: %v\n%s", err, out)
				}
				for _, c := range m.Cells {
					experiment := cmp.Or(c.Experiment, "refund")
					out, err := command(root, binary, experiment, "--row", c.Row, "--column", c.Column, "--words")
					var exit *exec.ExitError
					if !errors.As(err, &exit) || exit.ExitCode() != 1 {
						t.Errorf("%s in %s: want exit code 1, have %v\n%s", c.Row, c.Column, err, out)
						continue
					}
					red := "broken promise: " + experiment + "/" + c.Row + "/" + c.Column
					if !strings.Contains(out, red) || !strings.Contains(out, c.Shows) {
						t.Errorf("want %q and %q in:\n%s", red, c.Shows, out)
					}
				}
			}
			for _, test := range m.Tests {
				out, err := command(root, "go", "test", "-overlay", overlay, "-count=1", "-run", "^"+test.Name+"$", test.Package)
				if err == nil || !strings.Contains(out, "--- FAIL: "+test.Name) {
					t.Errorf("%s in %s should fail, have %v\n%s", test.Name, test.Package, err, out)
				}
			}
		})
	}
}

func command(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func TestPatchThatDoesntFit(t *testing.T) {
	m := mutant.Mutant{Name: "nowhere", Patches: []mutant.Patch{{File: "go.mod", Old: "no such line", New: ""}}}
	if _, err := m.Overlay("../..", t.TempDir()); !errors.Is(err, mutant.ErrPatch) {
		t.Errorf("want ErrPatch, have %v", err)
	}
}
