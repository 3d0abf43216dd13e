package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Inspection is what a copy of a log shows by itself.
type Inspection struct {
	Namespace string
	Segment   uint64 // where the consistent part ends: the segment,
	Byte      int64  // the offset behind its last entry there,
	Seq       Seq    // that entry, 0 for none,
	Hash      Hash   // and its hash
	Proven    Seq    // highest entry that a later record proves durable
	// Damage is where what must be whole isn't; nil where nothing is damaged. What
	// is behind it was not read.
	Damage *CorruptError
	// Tails are what the next opening would cut, with the effects that it would mark
	// SUSPECT.
	Tails []Cut
}

// Inspect reads the log in dir, which may be a copy that nobody trusts, and calls
// apply for every entry of its consistent part; apply may be nil. It takes no
// lock and opens for reading only: neither owner nor mode matters, and nothing is
// changed. A log that is written meanwhile may show a tail that its owner has yet
// to finish.
//
// A nil error says that the inspection is complete, not that the log is: a log
// that ends early between two entries can't be told from a shorter one. Errors
// are fs.ErrNotExist where no segment is, ErrFormat, ErrNamespace for segments of
// two logs, ErrUnsafe for a segment that is no plain file, apply's, wrapped, and
// those of reading. It keeps a few words for every effect and nothing for an entry.
func Inspect(dir string, apply func(Entry) error) (Inspection, error) {
	l := &Log{path: filepath.Clean(dir), dir: copied(dir), o: Options{Mode: Reader}, apply: apply, trails: map[ID]trail{}}
	defer l.shut()
	var in Inspection
	err := l.list(false)
	if err == nil && len(l.chain) == 0 {
		return in, fmt.Errorf("journal: no segment with entries is in %s: %w", l.path, fs.ErrNotExist)
	}
	var d *damage
	if err == nil {
		l.dropEmpty()
		d, err = l.follow()
	}
	var tails []tail
	if err == nil {
		tails, err = l.tails(d)
	}
	if !errors.As(err, &in.Damage) && err != nil {
		return in, err
	}
	l.suspects(tails)
	for _, t := range tails {
		in.Tails = append(in.Tails, Cut{filepath.Join(l.path, segmentName(t.segment)), t.off, t.bytes, t.why, t.suspects})
	}
	in.Namespace, in.Seq, in.Hash, in.Proven = l.o.Namespace, l.seq, l.hash, l.proven
	if l.cur != nil {
		in.Segment, in.Byte = l.cur.segment, l.cur.off
	}
	return in, nil
}

// copied is a directory that is only read.
type copied string

func (d copied) List() (map[string]int64, error) { return realDir(d).List() }
func (d copied) Remove(string) error             { return ErrMode }
func (d copied) Sync() error                     { return ErrMode }

func (d copied) Open(name string, create bool) (File, error) {
	if create {
		return nil, ErrMode
	}
	path := filepath.Join(string(d), name)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, unsafeOpen(path, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is not a plain file; take it away", ErrUnsafe, path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return realFile{f}, nil
}
