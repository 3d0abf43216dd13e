package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/journaltest"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
)

func TestStore(t *testing.T) {
	journaltest.Store(t, func(t *testing.T) journal.Opener {
		return sqlite.Opener(filepath.Join(t.TempDir(), "log", "journal.db"), sqlite.Options{Namespace: "test"})
	})
}
