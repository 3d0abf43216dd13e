package sqlite

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
)

// damagedTail reports whether the WAL shows a commit behind the last one that
// SQLite will read: a frame of this WAL whose header says that a transaction
// ends with it. SQLite cuts there and says nothing. What a process that was
// killed left unfinished has no such frame, or the file ends within it.
//
// The format is in SQLite's documentation, "WAL-mode File Format". A frame whose
// header lost one of its two salts still counts; stale frames of the WAL's
// earlier use have neither.
func damagedTail(path string) (offset int64, damaged bool, err error) {
	wal, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil || len(wal) < 32 {
		return 0, false, err
	}
	be := binary.BigEndian
	var order binary.ByteOrder = binary.LittleEndian
	if be.Uint32(wal)&1 == 1 {
		order = be
	}
	size := int(be.Uint32(wal[8:])) + 24
	salt1, salt2 := be.Uint32(wal[16:]), be.Uint32(wal[20:])
	s0, s1 := walSum(order, wal[:24], 0, 0)
	if s0 != be.Uint32(wal[24:]) || s1 != be.Uint32(wal[28:]) || size < 512+24 {
		return 0, false, nil // no WAL yet; had there been one, the head in the claims file tells
	}
	good, intact := 32, true
	for at := 32; at+24 <= len(wal); at += size {
		f := wal[at:min(at+size, len(wal))]
		ends := be.Uint32(f[4:]) != 0
		same1, same2 := be.Uint32(f[8:]) == salt1, be.Uint32(f[12:]) == salt2
		if intact = intact && len(f) == size && same1 && same2; intact {
			s0, s1 = walSum(order, f[:8], s0, s1)
			s0, s1 = walSum(order, f[24:], s0, s1)
			intact = s0 == be.Uint32(f[16:]) && s1 == be.Uint32(f[20:])
		}
		switch {
		case intact && ends:
			good = at + size
		case !intact && ends && len(f) == size && (same1 || same2):
			return int64(good), true, nil
		}
	}
	return 0, false, nil
}

// walSum goes on with the checksum of the WAL, over pairs of words.
func walSum(order binary.ByteOrder, b []byte, s0, s1 uint32) (uint32, uint32) {
	for ; len(b) >= 8; b = b[8:] {
		s0 += order.Uint32(b) + s1
		s1 += order.Uint32(b[4:]) + s0
	}
	return s0, s1
}
