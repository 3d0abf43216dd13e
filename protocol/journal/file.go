package journal

// File is one segment as the store uses it: the seam at which a caller can put
// every disk fault. Five methods, the semantics of *os.File.
//
// A File may also have DropCache and Allocate; the real one does, and one that
// wraps it should pass them on.
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

// dropper is a File whose cached pages can be dropped, so that the next read
// shows what the disk holds.
type dropper interface{ DropCache() error }

func dropCache(f File) error {
	if d, ok := f.(dropper); ok {
		return d.DropCache()
	}
	return nil
}
