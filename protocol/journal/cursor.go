package journal

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// cursor reads the frames of one segment one after another.
type cursor struct {
	f       File
	segment uint64
	off     int64 // of the next frame
	limit   int64 // frames at or behind it don't count

	buf  []byte // bytes of the file from base on
	base int64
	eof  bool // the file ended behind them
}

// number is the segment's number, 0 for the cursor before the first.
func (c *cursor) number() uint64 {
	if c == nil {
		return 0
	}
	return c.segment
}

const noLimit = math.MaxInt64

func newCursor(f File, segment uint64) *cursor {
	return &cursor{f: f, segment: segment, off: sector, limit: noLimit}
}

// damage is where a cursor met bytes that are not a whole intact frame.
type damage struct {
	off int64
	why string
}

func (d *damage) Error() string { return fmt.Sprintf("journal: byte %d: %s", d.off, d.why) }

// next returns the frame at off with the durable field of its header, and moves
// behind it. At the end of the file, or at the limit, it returns io.EOF; where
// no whole intact frame is it returns a *damage and stays.
func (c *cursor) next() (Entry, Seq, error) {
	if c.off >= c.limit {
		return Entry{}, 0, io.EOF
	}
	b, err := c.peek(c.off, frameHead)
	if err != nil {
		return Entry{}, 0, err
	}
	if len(b) == 0 {
		return Entry{}, 0, io.EOF
	}
	h, ok := parseHeader(b, c.segment)
	if !ok {
		return Entry{}, 0, &damage{c.off, "no header of a frame can be read"}
	}
	if h.flags != 0 {
		return Entry{}, 0, fmt.Errorf("%w: entry %d in %s has flags %#x, none are read; use the version that wrote it", ErrFormat, h.seq, segmentName(c.segment), h.flags)
	}
	if b, err = c.peek(c.off, int(h.size())); err != nil {
		return Entry{}, 0, err
	}
	if int64(len(b)) < h.size() {
		return Entry{}, 0, &damage{c.off, fmt.Sprintf("entry %d ends too early", h.seq)}
	}
	e, ok := parseEntry(h, b)
	if !ok {
		return Entry{}, 0, &damage{c.off, fmt.Sprintf("entry %d doesn't match its hash", h.seq)}
	}
	c.off += h.size()
	return e, h.durable, nil
}

// survey is what can still be made out from an offset to the end of the file.
type survey struct {
	headers    []header
	unreadable bool // some place where a frame could begin holds no header
	bytes      int64
}

// survey looks for headers from off to the end of the file. Behind a header it
// goes on where its frame ends, behind anything else at the next sector.
func (c *cursor) survey(off int64) (survey, error) {
	s := survey{}
	for at := off; ; {
		b, err := c.peek(at, frameHead)
		if err != nil {
			return s, err
		}
		if len(b) == 0 {
			return s, nil
		}
		step := int64(sector)
		if h, ok := parseHeader(b, c.segment); ok {
			s.headers = append(s.headers, h)
			step = h.size()
		} else {
			s.unreadable = true
		}
		if b, err = c.peek(at, int(step)); err != nil {
			return s, err
		}
		s.bytes += int64(len(b))
		at += step
	}
}

// proves reports whether some readable header says that seq was durable.
func (s survey) proves(seq Seq) bool {
	for _, h := range s.headers {
		if h.durable >= seq {
			return true
		}
	}
	return false
}

// peek returns n bytes at off, or fewer at the end of the file. They are valid
// until the next call.
func (c *cursor) peek(off int64, n int) ([]byte, error) {
	have := c.base + int64(len(c.buf))
	if len(c.buf) == 0 || off < c.base || off > have || off+int64(n) > have && !c.eof {
		want := max(n, min(max(2*cap(c.buf), 4<<10), 64<<10)) // most logs that are read are short
		if cap(c.buf) < want {
			c.buf = make([]byte, want)
		}
		m, err := c.f.ReadAt(c.buf[:want], off)
		c.base, c.buf, c.eof = off, c.buf[:m], m < want
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("journal: read %s: %w", segmentName(c.segment), err)
		}
	}
	b := c.buf[off-c.base:]
	return b[:min(int64(n), int64(len(b)))], nil
}
