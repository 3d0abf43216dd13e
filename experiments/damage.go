package experiments

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// journalDisk is what the journal's disk does to the process that writes to it.
type journalDisk struct {
	full  bool
	syncs int // how many of the next syncs fail
}

// meets says what an operation of the journal's meets; 0 is nothing.
func (d *journalDisk) meets(op string) syscall.Errno {
	switch {
	case op == "write" && d.full:
		return syscall.ENOSPC
	case op == "sync" && d.syncs > 0:
		d.syncs--
		return syscall.EIO
	}
	return 0
}

// damages are what rows can have happen to the journal of the process under test
// while that is dead or stands still, by name. They know of the format no more
// than that segments sort by their name, and what a frame begins with.
var damages = map[string]func(w *refundWorld, _ string) error{
	"fill-disk": func(w *refundWorld, _ string) error { w.disk.full = true; return nil },
	"free-disk": func(w *refundWorld, _ string) error { w.disk.full = false; return nil },
	"fail-sync": func(w *refundWorld, _ string) error { w.disk.syncs = 1; return nil },

	"fill-disk-for:": func(w *refundWorld, d string) error {
		w.disk.full = true
		return w.later(d, "the disk has room", func() error { w.disk.full = false; return nil })
	},
	"flip-journal-for:": func(w *refundWorld, d string) error {
		mend := func() error { return flip(journalDir(w.stage.State())) }
		return errors.Join(mend(), w.later(d, "the journal is mended", mend))
	},
	"tear-journal":    func(w *refundWorld, _ string) error { return tear(journalDir(w.stage.State())) },
	"flip-journal":    func(w *refundWorld, _ string) error { return flip(journalDir(w.stage.State())) },
	"mend-journal":    func(w *refundWorld, _ string) error { return flip(journalDir(w.stage.State())) },
	"back-up-journal": (*refundWorld).backUp,
	"restore-journal": (*refundWorld).restore,
}

// segments are the files of a journal that hold entries, the oldest first.
func segments(dir string) ([]string, error) {
	all, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("experiments: no segment is in %s", dir)
	}
	slices.Sort(all)
	return all, err
}

// sector is what headers and frames begin on.
const sector = 512

// tear cuts the last entry off behind its header, as a write that a power cut
// stopped.
func tear(dir string) error {
	all, err := segments(dir)
	if err != nil {
		return err
	}
	last := all[len(all)-1]
	text, err := os.ReadFile(last)
	if err != nil {
		return err
	}
	at := (len(text) - 1) / sector * sector
	for !bytes.HasPrefix(text[at:], []byte("\x1eILF")) {
		if at -= sector; at <= 0 {
			return fmt.Errorf("experiments: no entry is in %s", last)
		}
	}
	return os.Truncate(last, int64(at+200))
}

// flip flips one bit in the middle of the first entry, which later ones prove
// durable; doing so again mends it.
func flip(dir string) error {
	all, err := segments(dir)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(all[0], os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	const inFirstEntry = sector + 100
	var b [1]byte
	if _, err := f.ReadAt(b[:], inFirstEntry); err != nil {
		return err
	}
	b[0] ^= 1 << 3
	_, err = f.WriteAt(b[:], inFirstEntry)
	return err
}

// later has something happen when so much time has passed.
func (w *refundWorld) later(d, what string, do func() error) error {
	after, err := time.ParseDuration(d)
	if err != nil {
		return err
	}
	w.stage.After(after, what, func() {
		if err := do(); err != nil {
			w.failed = err
		}
	})
	return nil
}

func (w *refundWorld) backup() string { return filepath.Join(w.stage.State(), "backup") }

// backUp copies the journal as it stands.
func (w *refundWorld) backUp(string) error {
	return os.CopyFS(w.backup(), os.DirFS(journalDir(w.stage.State())))
}

// restore puts the copy in the journal's place. An operator says that it is one.
func (w *refundWorld) restore(string) error {
	dir := journalDir(w.stage.State())
	if err := errors.Join(os.RemoveAll(dir), os.Rename(w.backup(), dir), os.Chmod(dir, 0o700)); err != nil {
		return err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		err = errors.Join(err, os.Chmod(filepath.Join(dir, f.Name()), 0o600))
	}
	return errors.Join(err, os.WriteFile(filepath.Join(w.stage.State(), backupMark), nil, 0o600))
}
