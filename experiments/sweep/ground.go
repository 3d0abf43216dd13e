package sweep

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/disk"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

const namespace = "desk"

// ground is what a gate and its principals stand on. One process after the other
// uses it; the principals live on.
type ground interface {
	owner(now func() time.Time, at trace.Func) journal.Opener // of the gate's journal
	reader(now func() time.Time) journal.Opener               // of the same
	principal(now func() time.Time) journal.Opener            // appends to the authority
	follower(now func() time.Time) journal.Opener             // of the same, for the gate
	drain() (*journal.Drain, error)                           // nil where a dispatch needs none
	// freeze keeps what a kill at this instant leaves.
	freeze() error
	// resume makes that the ground. lost says how many of so many unsynced bytes at
	// a file's end are gone.
	resume(lost func(unsynced int) int) error
	fail(in int, after disk.After) bool // the in-th call of the disk from now; false where it can't
	damaged() bool                      // a tail may have been torn, so that effects may be suspect
	moves() bool                        // principals have to open it again after resume
	close()
}

// files is the file store: the journal on a disk in memory that a kill of the
// gate leaves as it is or without what was not synced, the authority on another
// one that nobody kills. Only locks are on a real file system.
type files struct {
	dir              string
	remove           func()
	decided, granted *disk.Disk
	cached, synced   disk.Image
	torn             bool
}

func newFiles() (ground, error) {
	dir, remove, err := disk.LockDir()
	if err != nil {
		return nil, err
	}
	f := &files{dir: dir, remove: remove, decided: &disk.Disk{}, granted: &disk.Disk{}}
	for _, path := range []string{f.decisions(), f.grants()} {
		if err := os.Mkdir(path, 0o700); err != nil {
			remove()
			return nil, err
		}
	}
	return f, nil
}

func (f *files) decisions() string { return filepath.Join(f.dir, "journal") }
func (f *files) grants() string    { return filepath.Join(f.dir, "authority") }

func (f *files) owner(now func() time.Time, at trace.Func) journal.Opener {
	return journal.FileOpener(f.decisions(), journal.Options{Namespace: namespace, Now: now, Dir: f.decided, Trace: at})
}

func (f *files) reader(now func() time.Time) journal.Opener {
	return journal.FileOpener(f.decisions(), journal.Options{Mode: journal.Reader, Namespace: namespace, Now: now, Dir: f.decided})
}

func (f *files) principal(now func() time.Time) journal.Opener {
	return journal.FileOpener(f.grants(), journal.Options{Mode: journal.Appender, Namespace: namespace, Now: now, Dir: f.granted})
}

func (f *files) follower(now func() time.Time) journal.Opener {
	return journal.FileOpener(f.grants(), journal.Options{Mode: journal.Reader, Namespace: namespace, Now: now, Dir: f.granted})
}

func (f *files) drain() (*journal.Drain, error) { return journal.OpenDrain(f.grants()) }

func (f *files) freeze() error {
	f.cached, f.synced = maps.Clone(f.decided.Cached()), maps.Clone(f.decided.Synced())
	return nil
}

func (f *files) resume(lost func(unsynced int) int) error {
	image := disk.Image{}
	for _, name := range slices.Sorted(maps.Keys(f.cached)) {
		b, durable := f.cached[name], f.synced[name]
		switch unsynced := len(b) - len(durable); {
		case unsynced > 0:
			gone := lost(unsynced)
			b = slices.Concat(durable, b[len(durable):len(b)-gone])
			f.torn = f.torn || 0 < gone && gone < unsynced
		case unsynced == 0: // after a failed sync the cache shows what the disk doesn't hold
			b = durable
		}
		if _, named := f.synced[name]; named || len(b) > 0 {
			image[name] = b
		}
	}
	for name, b := range f.synced { // removed, and the directory wasn't synced
		if _, there := image[name]; !there {
			image[name] = b
		}
	}
	f.decided = disk.Of(image)
	return nil
}

func (f *files) fail(in int, after disk.After) bool {
	if f.decided.Fault != nil {
		return false
	}
	f.torn = true
	f.decided.Fault = &disk.Fault{Op: f.decided.Ops() + in, Err: fmt.Errorf("sweep: the disk is broken"), After: after}
	return true
}

func (f *files) damaged() bool { return f.torn }
func (f *files) moves() bool   { return false }
func (f *files) close()        { f.remove() }

// database is one SQLite database for decisions and grants.
type database struct {
	root   string
	remove func()
	starts int
}

func newDatabase() (ground, error) {
	root, remove, err := disk.LockDir()
	if err != nil {
		return nil, err
	}
	d := &database{root: root, remove: remove}
	return d, os.Mkdir(d.dir(), 0o700)
}

func (d *database) dir() string  { return filepath.Join(d.root, fmt.Sprint(d.starts)) }
func (d *database) path() string { return filepath.Join(d.dir(), "desk.db") }

func (d *database) open(o sqlite.Options) journal.Opener {
	o.Namespace = namespace
	return sqlite.Opener(d.path(), o)
}

func (d *database) owner(now func() time.Time, at trace.Func) journal.Opener {
	return d.open(sqlite.Options{Now: now, Trace: at})
}

func (d *database) reader(now func() time.Time) journal.Opener {
	return d.open(sqlite.Options{Now: now, Reader: true})
}

func (d *database) principal(now func() time.Time) journal.Opener {
	return d.open(sqlite.Options{Now: now})
}
func (d *database) follower(now func() time.Time) journal.Opener {
	return d.open(sqlite.Options{Now: now})
}
func (d *database) drain() (*journal.Drain, error) { return nil, nil }

// freeze copies the files into the next start's folder. What SQLite shares in
// memory dies with a process, so that its file is left out.
func (d *database) freeze() error {
	from := d.dir()
	d.starts++
	to := d.dir()
	d.starts--
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".db-shm" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), b, fs.FileMode(0o600)); err != nil {
			return err
		}
	}
	return nil
}

func (d *database) resume(func(int) int) error {
	old := d.dir()
	d.starts++
	return os.RemoveAll(old)
}

func (d *database) fail(int, disk.After) bool { return false }
func (d *database) damaged() bool             { return false }
func (d *database) moves() bool               { return true }
func (d *database) close()                    { d.remove() }
