package experiments

import (
	"errors"
	"fmt"
	"io/fs"
)

// ReadResults reads the records that the experiments of all have in dir, in their
// order. An experiment without a file there has none. Errors are ErrRecord,
// ErrFile and those of the file system.
func ReadResults(dir string, all []*Experiment) ([]Record, error) {
	var records []Record
	for _, e := range all {
		path := FilesOf(dir, e).Records
		encoded, err := readRegular(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var of []Record
		if err == nil {
			of, err = DecodeRecords(encoded)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		records = append(records, of...)
	}
	return records, nil
}

// Derive writes the page of an experiment that is one over the records of others,
// which are read from dir. Errors are ErrOut and those of ReadResults.
func Derive(dir string, e *Experiment) error {
	records, err := ReadResults(dir, All())
	if err != nil {
		return err
	}
	if err := replace(FilesOf(dir, e).Page, []byte(e.Over(records))); err != nil {
		return fmt.Errorf("%w: %w", ErrOut, err)
	}
	return nil
}

// checkDerived holds such a page against the records in dir.
func checkDerived(dir string, e *Experiment) []Finding {
	file := FilesOf(dir, e).Page
	records, err := ReadResults(dir, All())
	if err != nil {
		return []Finding{{Drift, dir, "records", err.Error()}}
	}
	page, err := readRegular(file)
	if err != nil {
		return []Finding{{Drift, file, "a file that can be read", err.Error()}}
	}
	return comparePages(file, string(page), e.Over(records))
}
