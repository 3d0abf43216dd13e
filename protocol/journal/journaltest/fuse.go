package journaltest

import (
	"encoding/binary"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// ServedDisk mounts a file system that a process serves, this one, which has
// nothing but an empty directory of mode 0700: what a network's looks like to a
// store. It skips the test where it may not mount.
func ServedDisk(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no file system can be served here: %v", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd, os.Getuid(), os.Getgid())
	if err := syscall.Mount("journaltest", dir, "fuse", 0, options); err != nil {
		syscall.Close(fd)
		t.Skipf("no file system can be served here: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve(fd)
	}()
	t.Cleanup(func() {
		syscall.Unmount(dir, syscall.MNT_DETACH) // the kernel then ends what is read from fd
		<-done
		syscall.Close(fd)
	})
	return dir
}

// Operations of the FUSE protocol, see linux/fuse.h. Integers are the host's.
const (
	fuseGetattr = 3
	fuseStatfs  = 17
	fuseInit    = 26
)

// serve answers until the file system is gone.
func serve(fd int) {
	host := binary.NativeEndian
	request := make([]byte, 1<<17)
	for {
		n, err := syscall.Read(fd, request)
		if err == syscall.EINTR || err == syscall.ENOENT {
			continue
		}
		if err != nil || n < 40 {
			return
		}
		answer, failed := []byte(nil), int32(0)
		switch host.Uint32(request[4:]) {
		case fuseInit:
			answer = make([]byte, 64)
			host.PutUint32(answer, 7)                             // major
			host.PutUint32(answer[4:], host.Uint32(request[44:])) // the kernel's minor
			host.PutUint32(answer[20:], 1<<16)                    // the most that is written at once
		case fuseGetattr:
			answer = make([]byte, 16+88)
			host.PutUint64(answer[16:], 1)                        // inode
			host.PutUint32(answer[16+60:], syscall.S_IFDIR|0o700) // mode
			host.PutUint32(answer[16+64:], 2)                     // links
			host.PutUint32(answer[16+68:], uint32(os.Getuid()))
			host.PutUint32(answer[16+72:], uint32(os.Getgid()))
		case fuseStatfs:
			answer = make([]byte, 80)
		default:
			failed = -int32(syscall.ENOSYS)
		}
		reply := make([]byte, 16, 16+len(answer))
		host.PutUint32(reply, uint32(16+len(answer)))
		host.PutUint32(reply[4:], uint32(failed))
		copy(reply[8:16], request[8:16]) // which request it is
		syscall.Write(fd, append(reply, answer...))
	}
}
