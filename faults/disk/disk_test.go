package disk_test

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"

	"github.com/interlock-bench/interlock-bench/faults/disk"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

func create(t *testing.T, d *disk.Disk, name string) journal.File {
	t.Helper()
	f, err := d.Open(name, true)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func write(t *testing.T, f journal.File, b []byte, at int64) {
	t.Helper()
	if n, err := f.WriteAt(b, at); n != len(b) || err != nil {
		t.Fatalf("WriteAt: %d, %v", n, err)
	}
}

func count(d *disk.Disk, k disk.Kind) (n int) {
	for range d.States(k, 1) {
		n++
	}
	return n
}

// TestStates counts the states of a file of one synced sector with three more
// behind it, the last of them half, under a name that is not synced.
func TestStates(t *testing.T) {
	d := &disk.Disk{}
	f := create(t, d, "a")
	write(t, f, bytes.Repeat([]byte("s"), 512), 0)
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	write(t, f, bytes.Repeat([]byte("u"), 1280), 512)
	for _, c := range []struct {
		kind disk.Kind
		want int
		why  string
	}{
		{disk.Sectors, 8, "subsets of three"},
		{disk.Garbage, 8, "subsets of three"},
		{disk.Short, 1 + 2 + 4, "subsets of none, one and two"},
		{disk.Bytes, 1281, "none to all bytes"},
		{disk.Entries, 1, "the name is lost"},
		{disk.Killed, 1, "what the process saw"},
	} {
		if got := count(d, c.kind); got != c.want {
			t.Errorf("%v: %d states, want %d: %s", c.kind, got, c.want, c.why)
		}
	}
	for s := range d.States(disk.Garbage, 1) {
		if b := s.Synced()["a"]; !bytes.Equal(b[:512], bytes.Repeat([]byte("s"), 512)) {
			t.Error("a synced sector changed")
		}
	}
	for s := range d.States(disk.Killed, 1) {
		if b := s.Cached()["a"]; len(b) != 1792 || len(s.Synced()) != 0 {
			t.Errorf("the cache has %d bytes, the disk %d files", len(b), len(s.Synced()))
		}
	}
	if err := errors.Join(f.Sync(), d.Sync()); err != nil {
		t.Fatal(err)
	}
	for _, k := range disk.Kinds {
		if k != disk.Entries && count(d, k) != 1 || k == disk.Entries && count(d, k) != 0 {
			t.Errorf("%v: %d states, and everything is synced", k, count(d, k))
		}
	}
}

// TestLyingCache: after a failed sync the next one says yes, reads show what was
// written and the disk doesn't hold it; writing again in place doesn't help, and
// cutting the file does.
func TestLyingCache(t *testing.T) {
	for _, after := range []disk.After{disk.Zeros, disk.Old, disk.Half} {
		d := &disk.Disk{}
		f := create(t, d, "a")
		data := bytes.Repeat([]byte("x"), 1024)
		write(t, f, data, 0)
		d.Fault = &disk.Fault{Op: d.Ops() + 1, Err: syscall.EIO, After: after}
		if err := f.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatalf("Sync: %v", err)
		}
		lies := func(why string) {
			t.Helper()
			if err := errors.Join(f.Sync(), d.Sync()); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 1024)
			if n, err := f.ReadAt(got, 0); n != 1024 || err != nil && err != io.EOF || !bytes.Equal(got, data) {
				t.Errorf("after %d, %s: the cache doesn't show what was written", after, why)
			}
			if b := d.Synced()["a"]; bytes.Equal(b, data) {
				t.Errorf("after %d, %s: the disk holds it", after, why)
			}
		}
		lies("synced again")
		write(t, f, data, 0)
		lies("written again")
		if err := f.Truncate(0); err != nil {
			t.Fatal(err)
		}
		write(t, f, data, 0)
		if err := f.Sync(); err != nil || !bytes.Equal(d.Synced()["a"], data) {
			t.Errorf("after %d: cut and written again, the disk doesn't hold it: %v", after, err)
		}
	}
}

// TestWorkloads opens the journal on the states that are few. The experiment
// disk-states has them all.
func TestWorkloads(t *testing.T) {
	for _, w := range disk.Workloads {
		t.Run(w.Name, func(t *testing.T) {
			dir, remove, err := disk.LockDir()
			if err != nil {
				t.Fatal(err)
			}
			defer remove()
			for _, k := range []disk.Kind{disk.Sectors, disk.Short, disk.Entries, disk.Killed} {
				if w.Name == "group" && k != disk.Killed {
					continue
				}
				c, err := disk.Crash(dir, w, k, 1)
				if err != nil || c.Violations > 0 || c.Points == 0 {
					t.Errorf("%v: %+v, %v: %v", k, c, err, c.First)
				}
			}
			c, err := disk.Faults(dir, w, 1)
			if err != nil || c.Violations > 0 || c.States == 0 {
				t.Errorf("faults: %+v, %v: %v", c, err, c.First)
			}
		})
	}
}
