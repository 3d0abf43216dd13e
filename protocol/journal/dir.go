package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// RealDir is the directory at path on the real file system. Its files are made
// with mode 0600 and opened without following links; one that is not a regular
// file of mode 0600 with one link, owned by this user, is ErrUnsafe.
func RealDir(path string) Dir { return realDir(path) }

type realDir string

type realFile struct{ *os.File }

func (d realDir) List() (map[string]int64, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	sizes := make(map[string]int64, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		if err != nil {
			return nil, err
		}
		sizes[e.Name()] = info.Size()
	}
	return sizes, nil
}

func (d realDir) Open(name string, create bool) (File, error) {
	path := filepath.Join(string(d), name)
	flags := os.O_RDWR | syscall.O_NOFOLLOW | syscall.O_NONBLOCK // NONBLOCK: a FIFO must not hang us
	if create {
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, unsafeOpen(path, err)
	}
	if err := checkFile(int(f.Fd()), path); err != nil {
		f.Close()
		return nil, err
	}
	return realFile{f}, nil
}

func (d realDir) Remove(name string) error { return os.Remove(filepath.Join(string(d), name)) }

func (d realDir) Sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// DropCache drops the file's clean pages from the page cache.
func (f realFile) DropCache() error {
	const dontNeed = 4 // POSIX_FADV_DONTNEED
	if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); errno != 0 {
		return os.NewSyscallError("fadvise", errno)
	}
	return nil
}

// Allocate allocates blocks up to size; the file's size stays.
func (f realFile) Allocate(size int64) error {
	const keepSize = 1 // FALLOC_FL_KEEP_SIZE
	for {
		err := syscall.Fallocate(int(f.Fd()), keepSize, 0, size)
		if err != syscall.EINTR {
			return os.NewSyscallError("fallocate", err)
		}
	}
}

// unsafeOpen tells the errors of opening something that is no plain file from
// the others.
func unsafeOpen(path string, err error) error {
	switch {
	case errors.Is(err, syscall.ELOOP):
		return fmt.Errorf("%w: %s is a symbolic link; put a plain file there", ErrUnsafe, path)
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENXIO):
		return fmt.Errorf("%w: %s is not a plain file; take it away", ErrUnsafe, path)
	}
	return err
}

// checkFile refuses an open file that others could read, write or swap.
func checkFile(fd int, path string) error {
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	return checkPlain(&st, path)
}

// checkPlain is checkFile for what the kernel said of it.
func checkPlain(st *syscall.Stat_t, path string) error {
	switch {
	case st.Mode&syscall.S_IFMT != syscall.S_IFREG:
		return fmt.Errorf("%w: %s is not a plain file; take it away", ErrUnsafe, path)
	case st.Nlink != 1:
		return fmt.Errorf("%w: %s has %d links; it must have one", ErrUnsafe, path, st.Nlink)
	}
	return checkOwner(st, path, 0o600)
}

// user is this process's, asked for once: a system call.
var user = os.Geteuid()

func checkOwner(st *syscall.Stat_t, path string, want uint32) error {
	if int(st.Uid) != user {
		return fmt.Errorf("%w: %s belongs to user %d, this process is user %d; run as its owner", ErrUnsafe, path, st.Uid, user)
	}
	if mode := uint32(st.Mode) & 0o7777; mode&^want != 0 {
		return fmt.Errorf("%w: %s has mode %04o; set it to %04o", ErrUnsafe, path, mode, want)
	}
	return nil
}

// checkDir refuses a directory that others could write or look into; create
// makes one that is missing.
func checkDir(path string, create bool) error {
	if create {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("journal: %w", err)
		}
	}
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return fmt.Errorf("journal: %w", &fs.PathError{Op: "open", Path: path, Err: err})
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		return fmt.Errorf("%w: %s is not a directory, or a link to one; give the directory itself", ErrUnsafe, path)
	}
	if err := checkOwner(&st, path, 0o700); err != nil {
		return err
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return os.NewSyscallError("statfs", err)
	}
	if name, ok := remote[uint32(fs.Type)]; ok {
		return fmt.Errorf("%w: %s is on %s, where locks and syncs can't be relied on; use a local file system", ErrUnsafe, path, name)
	}
	return nil
}

// remote are the file systems that are refused, by the magic number of statfs(2):
// those of networks, and those that a process of this or another host serves.
var remote = map[uint32]string{
	0x00006969: "NFS", 0x0000517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB2",
	0x65735546: "FUSE", 0x01021997: "9P", 0x00c36400: "Ceph", 0x5346414f: "AFS",
	0x6b414653: "AFS", 0x73757245: "Coda", 0x7461636f: "OCFS2", 0x01161970: "GFS2",
	0x0bd00bd0: "Lustre", 0x786f4256: "a VirtualBox folder", 0x20030528: "OrangeFS",
	0x19830326: "BeeGFS", 0x47504653: "GPFS",
}
