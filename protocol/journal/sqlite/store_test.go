package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/journaltest"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
)

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "log", "journal.db") }

var suite = journaltest.Suite{
	Place:  newPath,
	Open:   func(place string) journal.Opener { return sqlite.Opener(place, sqlite.Options{Namespace: "test"}) },
	Shared: true,
	Small:  func(t testing.TB) string { return filepath.Join(journaltest.SmallDisk(t, "6m"), "log", "journal.db") },
	ReadOnly: func(t testing.TB, place string) func() {
		return journaltest.ReadOnlyDisk(t, filepath.Dir(filepath.Dir(place)))
	},
	Served: func(t testing.TB) string { return filepath.Join(journaltest.ServedDisk(t), "journal.db") },
}

func TestStore(t *testing.T) { suite.Run(t) }
