package sqlite

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// head is what the claims file says about the log:
//
//	0    8  1E 'I' 'L' 'H' 'E' 'A' 'D' 0A
//	8    8  sequence of an entry that is durable, with all before it
//	16  32  its hash
//	48   8  highest number of a segment
//	56   1  1 while effects are being marked SUSPECT for a damaged tail
//	508  4  CRC-32C of bytes 0 to 507
type head struct {
	seq     journal.Seq
	hash    journal.Hash
	segment uint64
	torn    bool
}

const headSize = 512

var (
	headMagic  = []byte{0x1e, 'I', 'L', 'H', 'E', 'A', 'D', '\n'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

func (h head) encode() []byte {
	b := make([]byte, headSize)
	copy(b, headMagic)
	binary.BigEndian.PutUint64(b[8:], uint64(h.seq))
	copy(b[16:], h.hash[:])
	binary.BigEndian.PutUint64(b[48:], h.segment)
	if h.torn {
		b[56] = 1
	}
	binary.BigEndian.PutUint32(b[508:], crc32.Checksum(b[:508], castagnoli))
	return b
}

// parseHead reports false where b is no head.
func parseHead(b []byte) (head, bool) {
	if len(b) != headSize || !bytes.Equal(b[:8], headMagic) ||
		crc32.Checksum(b[:508], castagnoli) != binary.BigEndian.Uint32(b[508:]) {
		return head{}, false
	}
	return head{
		seq:     journal.Seq(binary.BigEndian.Uint64(b[8:])),
		hash:    journal.Hash(b[16:48]),
		segment: binary.BigEndian.Uint64(b[48:]),
		torn:    b[56] == 1,
	}, true
}

// readHeads reads both heads. The synced one is there or was never written; the
// other may be torn by a power cut, and then says nothing.
func (s *Store) readHeads() (synced, loose head, err error) {
	var b [headSize]byte
	if err := s.claims.file.ReadAt(b[:], syncedHead); err != nil {
		return synced, loose, err
	}
	synced, ok := parseHead(b[:])
	if !ok && b != [headSize]byte{} {
		return synced, loose, &journal.CorruptError{File: s.claimsPath(), Why: "what it says about the log can't be read"}
	}
	if err := s.claims.file.ReadAt(b[:], looseHead); err != nil {
		return synced, loose, err
	}
	loose, _ = parseHead(b[:])
	return synced, loose, nil
}

// writeSyncedHead makes durable, outside the database, that the log reaches h.
// It is called with the write lock of the database held.
func (s *Store) writeSyncedHead(h head) error {
	if err := s.claims.file.WriteAt(h.encode(), syncedHead); err != nil {
		return err
	}
	return s.claims.file.Sync()
}
