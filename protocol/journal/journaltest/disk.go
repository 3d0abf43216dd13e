package journaltest

import (
	"syscall"
	"testing"
)

// SmallDisk mounts a file system of so many bytes, for stores that keep their
// log in a directory of this host. It skips the test where it may not mount.
func SmallDisk(t testing.TB, bytes string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("journaltest", dir, "tmpfs", 0, "mode=0700,size="+bytes); err != nil {
		t.Skipf("a small file system can't be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// ReadOnlyDisk lets nothing be written to what SmallDisk mounted, until writable
// is called.
func ReadOnlyDisk(t testing.TB, dir string) (writable func()) {
	t.Helper()
	remount := func(flags uintptr) {
		t.Helper()
		if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|flags, ""); err != nil {
			t.Fatalf("%s can't be mounted again: %v", dir, err)
		}
	}
	remount(syscall.MS_RDONLY)
	return func() { remount(0) }
}
