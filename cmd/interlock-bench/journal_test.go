package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// TestAJournalCannotTalkToTheTerminal writes into every field that is shown what
// a terminal would obey. It is shown escaped, and an entry stays one line.
func TestAJournalCannotTalkToTheTerminal(t *testing.T) {
	const bad = "\u009b31m\u202e\u2028\x7f"
	dir := filepath.Join(t.TempDir(), "journal")
	l, err := journal.OpenFile(dir, journal.Options{Namespace: "n\x1b[2J\n" + bad}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Update(t.Context(), func(journal.Head) ([]journal.Entry, error) {
		return []journal.Entry{{Kind: journal.Proposed, Effect: journal.ID{1}, Body: []byte(`{"note":"` + bad + `\u001b[2J"}`)}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, args := range [][]string{
		{"journal", "dump", dir}, {"journal", "dump", dir, "--format", "json"},
		{"journal", "verify", dir}, {"journal", "verify", dir, "--format", "json"},
	} {
		var out, stderr bytes.Buffer
		if code := run(context.Background(), args, &out, &stderr); code != exitHeld {
			t.Errorf("%v: exit code %d: %s", args, code, &stderr)
		}
		if strings.ContainsAny(out.String(), "\u009b\u202e\u2028\x7f\x1b") {
			t.Errorf("%v prints it as it is: %q", args, out.String())
		}
		if lines := strings.Count(out.String(), "\n"); args[len(args)-1] == "json" && lines != 2 && lines != 1 {
			t.Errorf("%v prints %d lines", args, lines)
		}
	}
}
