package journal

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// Mode is how a log is opened.
type Mode int

const (
	Owner    Mode = iota // exclusive for life; cuts a torn tail; a segment per start
	Appender             // an append lock per update; cuts only under it; no segment per start
	Reader               // no lock, cuts nothing; an incomplete frame is not yet there
)

// File is one segment as the store uses it: the seam at which a caller can put
// every disk fault. Five methods, the semantics of *os.File.
type File interface {
	ReadAt(p []byte, off int64) (int, error)
	WriteAt(p []byte, off int64) (int, error)
	Sync() error
	Truncate(size int64) error
	Close() error
}

// Dir is the directory that a log lives in. Lock files do not pass through it.
type Dir interface {
	// List names the files in the directory with their sizes.
	List() (map[string]int64, error)
	// Open opens a file for reading and writing; create makes it, and fails with
	// fs.ErrExist where it is already there.
	Open(name string, create bool) (File, error)
	// Remove takes a file away.
	Remove(name string) error
	// Sync makes creations and removals durable.
	Sync() error
}

// Options are how a file log is opened. The zero value opens an owner on the
// real file system for namespace "".
type Options struct {
	Mode      Mode
	Namespace string           // written in a new log; another one found is ErrNamespace. "" means whatever is there, and can't create
	Now       func() time.Time // stamps entries; nil is time.Now
	Dir       Dir              // nil is the real directory
	Trace     trace.Func
	Identity  string // for people, in the lock file: what this owner is; "" is the command's name
}

var _ = fs.ErrExist

// FileOpener returns an Opener for OpenFile, for callers that choose the store.
func FileOpener(dir string, o Options) Opener {
	return func(apply func(Entry) error) (Store, error) { return OpenFile(dir, o, apply) }
}

// OpenFile opens the log in dir.
func OpenFile(dir string, o Options, apply func(Entry) error) (*Log, error) {
	return nil, errors.New("being written")
}

// Log is the file store.
type Log struct{ Store }

// Drain is the file of lease bytes beside an authority log: a dispatch holds its
// lease's byte shared from its last look at the authority to its sync; a
// revocation takes it exclusively once, after it is durable, so that when it
// returns no dispatch that saw the lease alive is still under way (I4).
type Drain struct{}

// OpenDrain opens or makes the drain file in the authority log's directory.
func OpenDrain(dir string) (*Drain, error) { return nil, errors.New("being written") }

// Share takes byte n shared and does not wait: callers of one process are
// counted, the kernel's lock is taken once. ok is false where a revocation is
// draining that byte right now.
func (d *Drain) Share(n Seq) (release func(), ok bool, err error) { panic("being written") }

// Exclude waits until nobody shares byte n, then lets it go again. ctx bounds
// the wait; its error means that some dispatch is undecided.
func (d *Drain) Exclude(ctx context.Context, n Seq) error { panic("being written") }

// Close closes the file.
func (d *Drain) Close() error { panic("being written") }
