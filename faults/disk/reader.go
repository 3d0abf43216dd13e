package disk

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
)

// Reading is what the documented format says of a log's files. Read is written
// from that document and shares no code with the journal: it is the other
// opinion.
type Reading struct {
	Frames []Frame
	// Refused says why the log can't be opened, with the file and the byte; "" is
	// a log that can.
	Refused string
	File    string
	Byte    int64
	Cut     bool // something behind the last frame is to be cut
	// Suspects are the effects that may have had an attempt in what is to be cut.
	Suspects map[[32]byte]bool
}

// Frame is one entry as it lies in a file.
type Frame struct {
	Segment, Seq, Durable uint64
	Kind                  uint16
	Effect                [32]byte
	Time                  int64
	Prev, Before, Hash    [32]byte
	Body                  []byte
	Size                  int64
}

// Numbers of the format that a reader needs, see the package comment of the
// journal.
const (
	kindProposed, kindDispatched, kindNotSent               = 1, 3, 4
	kindCommitted, kindRefused, kindAmbiguous, kindResolved = 5, 6, 7, 11
	kindOpened, kindSuspect                                 = 64, 65
	bodyAt                                                  = 176
	headEnd                                                 = 72
	longest                                                 = 16 << 20
)

type segmentHead struct {
	name                string
	bytes               []byte
	number, first, prev uint64
	end                 int64
	before              [32]byte
	namespace           string
}

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// Read reads the segments among files.
func Read(files Image) Reading {
	r := Reading{Suspects: map[[32]byte]bool{}}
	heads := map[uint64]segmentHead{}
	var numbers []uint64
	for name, b := range files {
		digits, ok := strings.CutSuffix(name, ".seg")
		n, err := strconv.ParseUint(digits, 10, 64)
		if !ok || err != nil || n == 0 || fmt.Sprintf("%010d", n) != digits {
			continue
		}
		numbers = append(numbers, n)
		h, ok := readHead(b)
		h.name = name
		if ok && h.number != n {
			return r.refuse(name, 16, "it is another segment's file")
		}
		if !ok && len(b) > sector {
			return r.refuse(name, 0, "its header doesn't read")
		}
		if ok {
			heads[n] = h
		}
	}
	slices.Sort(numbers)

	// The chain goes back from the newest header. An empty segment at its end is as
	// if it weren't there.
	var chain []segmentHead
	top := uint64(0)
	for n := range heads {
		top = max(top, n)
	}
	for n, by := top, uint64(0); n != 0; {
		h, ok := heads[n]
		if !ok || h.prev >= n {
			return r.refuse(fmt.Sprintf("%010d.seg", n), 0, fmt.Sprintf("segment %d needs it", by))
		}
		chain = append(chain, h)
		n, by = h.prev, n
	}
	for _, n := range numbers {
		h := heads[n]
		linked := slices.ContainsFunc(chain, func(c segmentHead) bool { return c.number == n })
		if len(h.bytes) > sector && !linked {
			return r.refuse(h.name, sector, "no segment names it")
		}
	}
	for len(chain) > 0 && len(chain[0].bytes) <= sector {
		chain = chain[1:]
	}
	slices.Reverse(chain)

	last := map[[32]byte][32]byte{}
	var before [32]byte
	var cut [][]Frame // headers in what is to be cut
	unread := false
	for i, s := range chain {
		if s.first != uint64(len(r.Frames))+1 || s.before != before || s.namespace != chain[0].namespace {
			return r.refuse(s.name, 32, "it doesn't go on where the one before ends")
		}
		end, final := int64(len(s.bytes)), i+1 == len(chain)
		if !final {
			end = chain[i+1].end
		}
		at := int64(sector)
		for at < end {
			f, ok := readFrame(s.bytes, at, s.number)
			seq := uint64(len(r.Frames)) + 1
			if !ok || f.Seq != seq || f.Durable >= seq || f.Before != before || f.Prev != last[f.Effect] {
				break
			}
			r.Frames = append(r.Frames, f)
			before = f.Hash
			if f.Effect != [32]byte{} {
				last[f.Effect] = f.Hash
			}
			at += f.Size
		}
		if !final && at != end {
			return r.refuse(s.name, at, "it ends otherwise than the next segment says")
		}
		if at >= int64(len(s.bytes)) {
			continue
		}
		r.Cut = true
		heads, all := survey(s.bytes, at, s.number)
		for _, h := range heads {
			if final && h.Durable > uint64(len(r.Frames)) {
				return r.refuse(s.name, at, fmt.Sprintf("entry %d was durable when entry %d was written", h.Durable, h.Seq))
			}
		}
		cut = append(cut, heads)
		unread = unread || !all
	}
	for _, heads := range cut {
		for _, h := range heads {
			if h.Kind == kindDispatched || h.Kind == kindSuspect || unread && h.Kind == kindProposed {
				r.Suspects[h.Effect] = true
			}
		}
	}
	if unread {
		for effect, s := range Effects(r.Frames) {
			if s.Proposed && !s.Settled {
				r.Suspects[effect] = true
			}
		}
	}
	return r
}

func (r Reading) refuse(file string, at int64, why string) Reading {
	r.Refused, r.File, r.Byte = why, file, at
	return r
}

func readHead(b []byte) (segmentHead, bool) {
	h := segmentHead{bytes: b}
	if len(b) < sector || string(b[:8]) != "\x1eILJRNL\n" || crc32.Checksum(b[:508], crcTable) != binary.BigEndian.Uint32(b[508:]) ||
		binary.BigEndian.Uint32(b[8:]) != 1 || binary.BigEndian.Uint32(b[12:]) != 0 {
		return h, false
	}
	h.number, h.first = binary.BigEndian.Uint64(b[16:]), binary.BigEndian.Uint64(b[32:])
	h.prev, h.end = binary.BigEndian.Uint64(b[40:]), int64(binary.BigEndian.Uint64(b[48:]))
	copy(h.before[:], b[56:])
	h.namespace = string(b[97 : 97+int(b[96])])
	return h, true
}

// readFrameHead reads the part of a frame that has a checksum of its own.
func readFrameHead(b []byte, at int64, segment uint64) (Frame, bool) {
	if at+headEnd > int64(len(b)) {
		return Frame{}, false
	}
	h := b[at : at+headEnd]
	n := binary.BigEndian.Uint32(h[4:])
	f := Frame{
		Segment: binary.BigEndian.Uint64(h[8:]), Seq: binary.BigEndian.Uint64(h[16:]), Durable: binary.BigEndian.Uint64(h[24:]),
		Kind: binary.BigEndian.Uint16(h[32:]), Size: (bodyAt + int64(n) + sector - 1) / sector * sector,
	}
	copy(f.Effect[:], h[36:])
	ok := string(h[:4]) == "\x1eILF" && crc32.Checksum(h[:68], crcTable) == binary.BigEndian.Uint32(h[68:]) && f.Segment == segment && n <= longest
	return f, ok
}

// readFrame reads a whole frame and checks its hash.
func readFrame(b []byte, at int64, segment uint64) (Frame, bool) {
	f, ok := readFrameHead(b, at, segment)
	if !ok || at+f.Size > int64(len(b)) {
		return f, false
	}
	whole := b[at : at+f.Size]
	n := int(binary.BigEndian.Uint32(whole[4:]))
	f.Time = int64(binary.BigEndian.Uint64(whole[72:]))
	copy(f.Prev[:], whole[80:])
	copy(f.Before[:], whole[112:])
	copy(f.Hash[:], whole[144:])
	f.Body = whole[bodyAt : bodyAt+n]
	sum := sha256.New()
	sum.Write([]byte("interlock-bench entry 1\n"))
	sum.Write(whole[8:24])  // segment, sequence
	sum.Write(whole[72:80]) // time
	sum.Write(whole[32:34]) // kind
	sum.Write(whole[36:68]) // effect
	sum.Write(whole[80:144])
	sum.Write(binary.BigEndian.AppendUint64(nil, uint64(n)))
	sum.Write(f.Body)
	padding := whole[bodyAt+n:]
	return f, bytes.Equal(sum.Sum(nil), f.Hash[:]) && len(bytes.Trim(padding, "\x00")) == 0 && whole[34] == 0 && whole[35] == 0 &&
		(n == 0 || json.Valid(f.Body))
}

// survey finds the headers from a byte to the end, and says whether there is one
// wherever a frame could begin.
func survey(b []byte, at int64, segment uint64) (heads []Frame, all bool) {
	all = true
	for at < int64(len(b)) {
		h, ok := readFrameHead(b, at, segment)
		if !ok {
			all = false
			at += sector
			continue
		}
		heads = append(heads, h)
		at += h.Size
	}
	return heads, all
}

// Effect is how one effect stands at the end of a log.
type Effect struct {
	Proposed bool // a decision is recorded
	InDoubt  bool // an attempt was recorded, or may have been, and no outcome behind it
	Closed   bool // the last attempt was closed, by an outcome or as not sent
	Settled  bool // an outcome was recorded last
}

// Effects are the effects of a log.
func Effects(frames []Frame) map[[32]byte]Effect {
	all := map[[32]byte]Effect{}
	for _, f := range frames {
		if f.Effect == [32]byte{} {
			continue
		}
		e := all[f.Effect]
		switch f.Kind {
		case kindProposed:
			e.Proposed, e.Settled = true, false
		case kindDispatched, kindSuspect:
			e.InDoubt, e.Closed = true, false
		case kindNotSent:
			e.InDoubt, e.Closed = false, true
		case kindCommitted, kindRefused, kindAmbiguous, kindResolved:
			e.InDoubt, e.Closed, e.Settled = false, true, true
		}
		all[f.Effect] = e
	}
	return all
}
