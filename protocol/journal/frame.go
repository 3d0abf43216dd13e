package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

const (
	sector    = 512 // alignment of headers and frames
	frameHead = 72  // bytes of a frame under the header's checksum
	frameBody = 176 // offset of the body in a frame
)

// MaxBody is the greatest length of a body in bytes.
const MaxBody = 16 << 20

var (
	frameMagic = []byte{0x1e, 'I', 'L', 'F'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// Sum is the entry's hash: SHA-256 over the concatenation of
//
//	"interlock-bench entry 1\n"
//	segment, sequence   8 bytes each, big-endian
//	time                8 bytes, nanoseconds since 1970 UTC, signed, big-endian
//	kind                2 bytes, big-endian
//	effect, prev, before  32 bytes each
//	length of the body  8 bytes, big-endian
//	the body
func (e Entry) Sum() Hash {
	b := make([]byte, 0, 512)
	b = append(b, "interlock-bench entry 1\n"...)
	b = binary.BigEndian.AppendUint64(b, e.Segment)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Seq))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Time.UnixNano()))
	b = binary.BigEndian.AppendUint16(b, uint16(e.Kind))
	b = append(b, e.Effect[:]...)
	b = append(b, e.Prev[:]...)
	b = append(b, e.Before[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(len(e.Body)))
	return sha256.Sum256(append(b, e.Body...))
}

// header is the part of a frame that has a checksum of its own.
type header struct {
	length  int
	segment uint64
	seq     Seq
	durable Seq
	kind    Kind
	flags   uint16
	effect  ID
}

// size is the frame's length on the disk.
func (h header) size() int64 { return frameSize(h.length) }

func frameSize(body int) int64 {
	return (int64(frameBody+body) + sector - 1) / sector * sector
}

// parseHeader reads the header at the start of b. It reports false where there
// is none, or one of another segment.
func parseHeader(b []byte, segment uint64) (header, bool) {
	if len(b) < frameHead || !bytes.Equal(b[:4], frameMagic) ||
		crc32.Checksum(b[:68], castagnoli) != binary.BigEndian.Uint32(b[68:]) {
		return header{}, false
	}
	h := header{
		length:  int(binary.BigEndian.Uint32(b[4:])),
		segment: binary.BigEndian.Uint64(b[8:]),
		seq:     Seq(binary.BigEndian.Uint64(b[16:])),
		durable: Seq(binary.BigEndian.Uint64(b[24:])),
		kind:    Kind(binary.BigEndian.Uint16(b[32:])),
		flags:   binary.BigEndian.Uint16(b[34:]),
	}
	copy(h.effect[:], b[36:68])
	return h, h.segment == segment && h.length <= MaxBody
}

// appendFrame appends the frame of e to b.
func appendFrame(b []byte, e Entry, durable Seq) []byte {
	start := len(b)
	b = append(b, frameMagic...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.Body)))
	b = binary.BigEndian.AppendUint64(b, e.Segment)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Seq))
	b = binary.BigEndian.AppendUint64(b, uint64(durable))
	b = binary.BigEndian.AppendUint16(b, uint16(e.Kind))
	b = binary.BigEndian.AppendUint16(b, 0)
	b = append(b, e.Effect[:]...)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Time.UnixNano()))
	b = append(b, e.Prev[:]...)
	b = append(b, e.Before[:]...)
	b = append(b, e.Hash[:]...)
	b = append(b, e.Body...)
	pad := start + int(frameSize(len(e.Body))) - len(b)
	return append(b, zeros[:pad]...)
}

var zeros [sector]byte

// parseEntry reads the entry of a whole frame whose header is h. It reports
// false where the frame is not what was written.
func parseEntry(h header, b []byte) (Entry, bool) {
	e := Entry{
		Segment: h.segment, Seq: h.seq, Kind: h.kind, Effect: h.effect,
		Time:   time.Unix(0, int64(binary.BigEndian.Uint64(b[72:]))).UTC(),
		Prev:   Hash(b[80:112]),
		Before: Hash(b[112:144]),
		Hash:   Hash(b[144:176]),
	}
	end := frameBody + h.length
	if h.length > 0 {
		e.Body = bytes.Clone(b[frameBody:end])
	}
	return e, e.Sum() == e.Hash && bytes.Equal(b[end:], zeros[:len(b)-end])
}

// writable refuses what can't be an entry.
func writable(e Entry) error {
	switch {
	case e.Kind == 0 || e.Kind == Opened:
		return fmt.Errorf("journal: entries of kind %v are the store's own; nothing was appended", e.Kind)
	case len(e.Body) > MaxBody:
		return fmt.Errorf("journal: a body of %d bytes is longer than %d; nothing was appended", len(e.Body), MaxBody)
	case len(e.Body) > 0 && !json.Valid(e.Body):
		return errors.New("journal: the body of an entry must be one JSON value; nothing was appended")
	}
	return nil
}
