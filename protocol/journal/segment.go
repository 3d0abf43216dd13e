package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
)

// Format is the version of the file format that is written, and the only one
// that is read.
const Format = 1

var segmentMagic = []byte{0x1e, 'I', 'L', 'J', 'R', 'N', 'L', '\n'}

const maxNamespace = 255

// segment is a segment's header.
type segment struct {
	number    uint64
	epoch     uint64
	first     Seq    // of its first entry
	prev      uint64 // number of the segment before; 0 for none
	prevEnd   int64  // its good end
	before    Hash   // of the log's last entry before this segment
	created   time.Time
	namespace string

	size int64 // of the file, when it was listed; not part of the header
}

func segmentName(n uint64) string { return fmt.Sprintf("%010d.seg", n) }

// segmentNumber is the inverse of segmentName.
func segmentNumber(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, ".seg")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0 && segmentName(n) == name
}

// encode is the header's sector.
func (s segment) encode() []byte {
	b := make([]byte, 0, sector)
	b = append(b, segmentMagic...)
	b = binary.BigEndian.AppendUint32(b, Format)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint64(b, s.number)
	b = binary.BigEndian.AppendUint64(b, s.epoch)
	b = binary.BigEndian.AppendUint64(b, uint64(s.first))
	b = binary.BigEndian.AppendUint64(b, s.prev)
	b = binary.BigEndian.AppendUint64(b, uint64(s.prevEnd))
	b = append(b, s.before[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(s.created.UnixNano()))
	b = append(b, byte(len(s.namespace)))
	b = append(b, s.namespace...)
	b = append(b, zeros[:sector-4-len(b)]...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// parseSegment reads a header's sector. It reports false where b is damaged or
// none; its error is a header that was written by a newer version.
func parseSegment(b []byte) (segment, bool, error) {
	if len(b) != sector || !bytes.Equal(b[:8], segmentMagic) ||
		crc32.Checksum(b[:508], castagnoli) != binary.BigEndian.Uint32(b[508:]) {
		return segment{}, false, nil
	}
	if v, flags := binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:]); v != Format || flags != 0 {
		return segment{}, false, fmt.Errorf("%w: found format %d with flags %#x, format %d without flags is read; use the version that wrote it", ErrFormat, v, flags, Format)
	}
	s := segment{
		number:  binary.BigEndian.Uint64(b[16:]),
		epoch:   binary.BigEndian.Uint64(b[24:]),
		first:   Seq(binary.BigEndian.Uint64(b[32:])),
		prev:    binary.BigEndian.Uint64(b[40:]),
		prevEnd: int64(binary.BigEndian.Uint64(b[48:])),
		before:  Hash(b[56:88]),
		created: time.Unix(0, int64(binary.BigEndian.Uint64(b[88:]))).UTC(),
	}
	n := int(b[96])
	s.namespace = string(b[97 : 97+n])
	return s, bytes.Equal(b[97+n:508], zeros[:508-97-n]), nil
}
