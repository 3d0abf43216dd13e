package experiments_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
)

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestSaveLeavesTwoFilesAndNothingElse(t *testing.T) {
	dir, _ := saved(t, tiny(right))
	if got := names(t, dir); len(got) != 2 || got[0] != "tiny_one.jsonl" || got[1] != "tiny_one.md" {
		t.Errorf("the folder has %v", got)
	}
}

func TestSaveThatFailsLeavesWhatWasThere(t *testing.T) {
	e := tiny(right)
	dir := t.TempDir()
	files := experiments.FilesOf(dir, e)
	// Nothing can be renamed over a folder that isn't empty.
	if err := os.MkdirAll(filepath.Join(files.Records, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := experiments.Save(dir, e, run(t, e)); !errors.Is(err, experiments.ErrOut) {
		t.Errorf("saved over a folder: %v", err)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("the folder has %v", got)
	}
}

func TestWritable(t *testing.T) {
	dir := t.TempDir()
	if err := experiments.Writable(filepath.Join(dir, "new")); err != nil {
		t.Error(err)
	}
	if got := names(t, filepath.Join(dir, "new")); len(got) != 0 {
		t.Errorf("it left %v", got)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{file, filepath.Join(file, "below")} {
		if err := experiments.Writable(bad); !errors.Is(err, experiments.ErrOut) {
			t.Errorf("%s can be written: %v", bad, err)
		}
	}
}
