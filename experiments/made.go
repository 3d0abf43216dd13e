package experiments

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// Made says when and on what a run was made that is not repeated: date, commit,
// Go, machine, where temporary files lay, and duration. It is no part of what is
// compared.
func Made(took time.Duration) string {
	commit := "unknown"
	changed := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value[:min(len(s.Value), 12)]
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = " with uncommitted changes"
			}
		}
	}
	return fmt.Sprintf("%s, commit %s%s, %s, %s, state on %s, in %s", time.Now().UTC().Format(time.DateOnly), commit, changed,
		runtime.Version(), machine(), storage(), took.Round(time.Second))
}

// machine is what the kernel says of it.
func machine() string {
	m := fmt.Sprintf("%s/%s, %d CPUs", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return m
	}
	for line := range bytes.Lines(info) {
		name, value, ok := strings.Cut(string(line), ":")
		if ok && strings.TrimSpace(name) == "model name" {
			return m + ", " + strings.TrimSpace(value)
		}
	}
	return m
}

// storage says whether what a trial writes goes to a disk.
func storage() string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(os.TempDir(), &s); err == nil && s.Type == tmpfs {
		return "tmpfs"
	}
	return "disk"
}

const tmpfs = 0x01021994 // as statfs names it
