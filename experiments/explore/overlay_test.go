package explore_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments/mutant"
)

// TestOverlaysAreFound takes a guard out of the gate or the journal, by patches
// laid over the source at build time, and sees TestSmall fail.
func TestOverlaysAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a gate for each fault")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutant.Broken {
		rule, ok := found[m.Name]
		if !ok {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			overlay, err := m.Overlay(root, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-count=1", "-run", "^TestSmall$", "./experiments/explore")
			cmd.Dir = root
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Run(); err == nil || !strings.Contains(out.String(), rule) {
				t.Errorf("want %s broken, have %v\n%s", rule, err, out.String())
			}
		})
	}
}

// found are the mutants that the explorer finds within its small bounds, and the
// rule that each breaks.
var found = map[string]string{
	"no-sync":          "intent-first",
	"no-premise-check": "not-eligible",
	"no-lease-check":   "lease-not-live",
	"no-payload-check": "not-approved",
	"no-landing-bound": "may-still-land",
}
