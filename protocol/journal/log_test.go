package journal_test

import (
	"path/filepath"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/journaltest"
)

func TestFileStore(t *testing.T) {
	journaltest.Store(t, func(t *testing.T) journal.Opener {
		return journal.FileOpener(filepath.Join(t.TempDir(), "journal"), journal.Options{Namespace: "test"})
	})
}
