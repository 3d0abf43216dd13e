package faults_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// TestFailingDir: what is said to fail fails and does nothing, and what was
// allocated before the disk was full can still be written.
func TestFailingDir(t *testing.T) {
	path := t.TempDir()
	fails := map[string]error{}
	d := faults.FailingDir(journal.RealDir(path), func(op string) error { return fails[op] })
	f, err := d.Open("log", true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.(interface{ Allocate(int64) error }).Allocate(8); err != nil {
		t.Fatal(err)
	}
	fails["write"] = syscall.ENOSPC
	if _, err := f.WriteAt([]byte("in room."), 0); err != nil {
		t.Errorf("a write into allocated blocks: %v", err)
	}
	if _, err := f.WriteAt([]byte("x"), 8); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a write behind them: %v", err)
	}
	if err := f.(interface{ Allocate(int64) error }).Allocate(16); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("an allocation: %v", err)
	}
	fails["sync"] = syscall.EIO
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("a sync: %v", err)
	}
	if err := d.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("a sync of the directory: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(path, "log")); err != nil || string(text) != "in room." {
		t.Errorf("the file is %q, %v", text, err)
	}
}
