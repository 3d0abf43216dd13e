package disk

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
)

// Sum is a digest of d: its names, what the cache shows and the disk holds of
// each file, and what is on the way from the one to the other. Disks with one sum
// go on alike, whatever is done with them. It costs as much as what changed since
// the last call.
func (d *Disk) Sum() [16]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.summed {
		return d.sum
	}
	number := map[*file]byte{nil: 0}
	b := make([]byte, 0, 512)
	known := func(f *file) byte {
		n, ok := number[f]
		if !ok {
			n = byte(len(number))
			number[f] = n
			b = f.describe(b)
		}
		return n
	}
	for _, names := range []map[string]*file{d.names, d.synced} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			n := known(names[name])
			b = append(append(b, name...), 0, n)
		}
		b = append(b, 1)
	}
	for _, e := range d.entries {
		n := known(e.file)
		b = append(append(b, e.name...), 0, n)
	}
	sum := sha256.Sum256(b)
	d.sum, d.summed = [16]byte(sum[:16]), true
	return d.sum
}

// describe appends what there is to know of a file.
func (f *file) describe(b []byte) []byte {
	f.shown.take(f.cache)
	f.held.take(f.disk)
	for _, s := range []uint64{
		f.shown.first, f.shown.second, uint64(len(f.cache)),
		f.held.first, f.held.second, uint64(len(f.disk)), uint64(len(f.pending)), uint64(len(f.refused)),
	} {
		b = binary.LittleEndian.AppendUint64(b, s)
	}
	for _, c := range f.pending {
		b = binary.LittleEndian.AppendUint64(b, uint64(c.at))
		b = binary.LittleEndian.AppendUint64(b, uint64(len(c.data)))
	}
	for _, at := range slices.Sorted(maps.Keys(f.refused)) {
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
	}
	return b
}

// content is the digest of some bytes: the sum of those of their sectors, so that
// a change costs the sectors it changes.
type content struct {
	bytes         []byte // what first and second are of; never changed in place
	first, second uint64
}

// take makes c the digest of b.
func (c *content) take(b []byte) {
	was := c.bytes
	if len(was) == len(b) && (len(b) == 0 || &was[0] == &b[0]) {
		return
	}
	for at := 0; at < max(len(was), len(b)); at += sector {
		before := was[min(at, len(was)):min(at+sector, len(was))]
		after := b[min(at, len(b)):min(at+sector, len(b))]
		if bytes.Equal(before, after) {
			continue
		}
		x, y := ofSector(at, before)
		c.first, c.second = c.first-x, c.second-y
		x, y = ofSector(at, after)
		c.first, c.second = c.first+x, c.second+y
	}
	c.bytes = b
}

// ofSector is the digest of the bytes at an offset, nothing for no bytes.
func ofSector(at int, b []byte) (first, second uint64) {
	if len(b) == 0 {
		return 0, 0
	}
	var in [sector + 8]byte
	binary.LittleEndian.PutUint64(in[:], uint64(at))
	sum := sha256.Sum256(in[:8+copy(in[8:], b)])
	return binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])
}
