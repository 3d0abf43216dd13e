package experiments_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
)

// TestOnlyRegularFilesAreRead: a pipe would be waited for, a device read for
// ever.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "kept.jsonl")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	zero := filepath.Join(dir, "zero.jsonl")
	if err := os.Symlink("/dev/zero", zero); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, zero, dir} {
		if _, err := experiments.ReadTrial(path); !errors.Is(err, experiments.ErrFile) {
			t.Errorf("%s: want ErrFile, have %v", path, err)
		}
	}

	e := experiments.Refund()
	files := experiments.FilesOf(t.TempDir(), e)
	if err := syscall.Mkfifo(files.Records, 0o600); err != nil {
		t.Fatal(err)
	}
	findings, err := experiments.Check(context.Background(), e, filepath.Dir(files.Records), true, experiments.Options{})
	if err != nil || len(findings) != 1 || findings[0].Kind != experiments.Drift {
		t.Errorf("want one drift, have %v, %v", findings, err)
	}
}
