package experiments

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
)

// ErrNoLog is returned for a place that holds no log.
var ErrNoLog = errors.New("experiments: no journal")

// Log is a place where a journal or an authority log lies.
type Log struct {
	Path   string // a folder of segments, or a database
	SQLite bool
}

// FindLog finds the log at path: a folder of segments, a database of SQLite, or a
// folder with a journal of either kind in it, such as a kept trial's state.
// Errors are ErrNoLog.
func FindLog(path string) (Log, error) {
	for _, p := range []string{path, filepath.Join(path, "journal")} {
		segments, err := filepath.Glob(filepath.Join(p, "*.seg"))
		if err == nil && len(segments) > 0 {
			return Log{Path: p}, nil
		}
	}
	for _, p := range []string{path, filepath.Join(path, "journal.db")} {
		if isDatabase(p) {
			return Log{Path: p, SQLite: true}, nil
		}
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return Log{}, fmt.Errorf("%w: %s is not there", ErrNoLog, path)
	}
	return Log{}, fmt.Errorf("%w: %s has no segment of one, a file that ends in .seg, and is no database", ErrNoLog, path)
}

// isDatabase reports whether the file at path begins as SQLite's do.
func isDatabase(path string) bool {
	const magic = "SQLite format 3\x00"
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var b [len(magic)]byte
	_, err = f.ReadAt(b[:], 0)
	return err == nil && string(b[:]) == magic
}

// Read calls apply for every entry of the log's consistent part, in order. It
// changes nothing. A folder may be a copy that nobody trusts, see
// journal.Inspect; a database is opened as a reader, and one that is damaged is
// an error.
func (l Log) Read(apply func(journal.Entry) error) (journal.Inspection, error) {
	if !l.SQLite {
		in, err := journal.Inspect(l.Path, apply)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrNoLog, err)
		}
		return in, err
	}
	var in journal.Inspection
	s, err := sqlite.Open(l.Path, sqlite.Options{Reader: true}, func(e journal.Entry) error {
		in.Segment, in.Seq, in.Hash = e.Segment, e.Seq, e.Hash
		return apply(e)
	})
	if err != nil {
		return in, err
	}
	return in, s.Close()
}
