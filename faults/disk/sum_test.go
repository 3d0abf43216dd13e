package disk

import (
	"bytes"
	"testing"
)

// TestSum holds the digest against what it stands for: equal where two disks are
// alike, however they came to be, and another one where they differ in anything
// that a crash or a sync could show.
func TestSum(t *testing.T) {
	write := func(d *Disk, name string, at int64, b []byte) *handle {
		f, err := d.Open(name, d.names[name] == nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
		return f.(*handle)
	}
	long := bytes.Repeat([]byte("x"), 3*sector)
	base := func() *Disk {
		d := &Disk{}
		write(d, "a", 0, long).Sync()
		d.Sync()
		return d
	}
	d := base()
	if d.Sum() != base().Sum() || d.Sum() != d.Clone().Sum() || d.Sum() != Of(d.Synced()).Sum() {
		t.Error("disks that hold the same have different sums")
	}
	sums := map[[16]byte]string{d.Sum(): "nothing"}
	for _, c := range []struct {
		what string
		do   func(*Disk)
	}{
		{"an unsynced write", func(d *Disk) { write(d, "a", 2*sector, []byte("y")) }},
		{"the same write, synced", func(d *Disk) { write(d, "a", 2*sector, []byte("y")).Sync() }},
		{"the write elsewhere", func(d *Disk) { write(d, "a", sector, []byte("y")) }},
		{"an unsynced cut", func(d *Disk) { f, _ := d.Open("a", false); f.Truncate(sector) }},
		{"a new name", func(d *Disk) { write(d, "b", 0, nil) }},
		{"a new name, synced", func(d *Disk) { write(d, "b", 0, nil); d.Sync() }},
		{"a removed name", func(d *Disk) { d.Remove("a") }},
		{"a removed name, synced", func(d *Disk) { d.Remove("a"); d.Sync() }},
		{"a failed sync", func(d *Disk) {
			h := write(d, "a", 2*sector, []byte("z"))
			d.Fault = &Fault{Op: d.Ops() + 1, Err: bytes.ErrTooLarge, After: Old}
			h.Sync()
		}},
	} {
		d := base()
		before := d.Sum()
		c.do(d)
		sum := d.Sum()
		if other, ok := sums[sum]; ok {
			t.Errorf("%s has the sum of %s", c.what, other)
		}
		sums[sum] = c.what
		if base().Sum() != before {
			t.Errorf("%s: the sum isn't the same twice", c.what)
		}
		again := base()
		c.do(again)
		if again.Sum() != sum {
			t.Errorf("%s: a disk that was summed before has another sum than one that wasn't", c.what)
		}
	}
}
