package experiments

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/table"
)

var (
	// ErrOut is returned where results, or histories, can't be written.
	ErrOut = errors.New("experiments: nothing can be written")
	// ErrNoFolder is the ErrOut of a folder that takes no file: another one would.
	ErrNoFolder = errors.New("give a folder that can be written")
)

// Files are where an experiment's results lie.
type Files struct{ Records, Page, Drawing string }

// FilesOf names e's files in dir.
func FilesOf(dir string, e *Experiment) Files {
	base := filepath.Join(dir, strings.ReplaceAll(e.Name, "-", "_"))
	return Files{Records: base + ".jsonl", Page: base + ".md", Drawing: base + ".svg"}
}

// Writable makes dir where it is missing, and returns ErrNoFolder where no file can
// be put in it. It leaves none behind.
func Writable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("%w to %s: %w; %w", ErrOut, dir, err, ErrNoFolder)
	}
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return fmt.Errorf("%w to %s: %w; %w", ErrOut, dir, err, ErrNoFolder)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// PageOf is e's page of records: what the experiment renders, and then a line for
// each cell with its id, its anchor and what replays it.
func PageOf(e *Experiment, records []Record) string {
	t := table.Table{Header: []string{"cell", "result", "replay"}}
	for _, r := range records {
		t.Rows = append(t.Rows, []string{
			fmt.Sprintf("<a id=%q></a>`%s`", r.Anchor(), r.ID), r.Cell + " " + r.Class().Mark(), "`" + r.Replay + "`",
		})
	}
	return e.Page(records) + "\n## Every cell\n\nThe id of a cell and its anchor stay as they are. `interlock-bench cite ID` quotes one, and `interlock-bench replay 'LINE'` runs its worst trial again.\n\n" + t.Markdown()
}

// Save writes e's records, page and drawing into dir. Each file is replaced whole: it is
// what it was, or what it shall be. A nil error means that all are in place and
// durable; other errors are ErrOut or ErrRecord.
func Save(dir string, e *Experiment, records []Record) error {
	encoded, err := EncodeRecords(records)
	if err != nil {
		return err
	}
	files := FilesOf(dir, e)
	type file struct {
		path    string
		content []byte
	}
	all := []file{{files.Records, encoded}, {files.Page, []byte(PageOf(e, records))}}
	if e.Drawing != nil {
		all = append(all, file{files.Drawing, []byte(e.Drawing(records))})
	}
	for _, file := range all {
		if err := replace(file.path, file.content); err != nil {
			return fmt.Errorf("%w: %w", ErrOut, err)
		}
	}
	return nil
}

// replace puts content at path by renaming a synced file over it.
func replace(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name()) // nothing more can be done about a leftover
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
