package journal

import "sort"

// mark is where an entry begins.
type mark struct {
	seq     Seq
	segment uint64
	off     int64
}

// marks are where every sixteenth entry begins, and the first of each segment, in
// order: an entry is found without reading its segment from the start. A million
// entries take a megabyte and a half.
type marks []mark

const markEvery = 16

// note is called for each entry in order.
func (m *marks) note(n Seq, segment uint64, off int64) {
	if k := len(*m); k == 0 || (*m)[k-1].segment != segment || n%markEvery == 0 {
		*m = append(*m, mark{n, segment, off})
	}
}

// before is the last mark that isn't behind entry n; the zero mark is none.
func (m marks) before(n Seq) mark {
	k := sort.Search(len(m), func(k int) bool { return m[k].seq > n })
	if k == 0 {
		return mark{}
	}
	return m[k-1]
}
