package experiments

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// maxFile bounds a file of results or a kept trial, in bytes.
const maxFile = 256 << 20

// ErrFile is returned for what can't be a file of results: a pipe, a device, a
// folder, more bytes than any run writes.
var ErrFile = errors.New("experiments: not a file of results")

// openRegular opens a file to read. It waits for nobody at the other end of a
// pipe. Errors are ErrFile and those of the file system.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%w: %s is no regular file", ErrFile, path)
	case info.Size() > maxFile:
		err = fmt.Errorf("%w: %s has %d bytes, more than %d", ErrFile, path, info.Size(), maxFile)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readRegular reads a whole file; see openRegular.
func readRegular(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}
