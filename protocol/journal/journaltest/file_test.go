package journaltest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/journaltest"
)

// file is the file store with one owning process.
var file = journaltest.Suite{
	Place: func(t testing.TB) string { return filepath.Join(t.TempDir(), "journal") },
	Open: func(place string) journal.Opener {
		return journal.FileOpener(place, journal.Options{Namespace: "test"})
	},
	Small: func(t testing.TB) string { return filepath.Join(journaltest.SmallDisk(t, "4m"), "journal") },
	ReadOnly: func(t testing.TB, place string) func() {
		return journaltest.ReadOnlyDisk(t, filepath.Dir(place))
	},
	Served: func(t testing.TB) string { return journaltest.ServedDisk(t) },
}

func TestMain(m *testing.M) { os.Exit(file.Main(m)) }

func TestFileStore(t *testing.T) { file.Run(t) }
