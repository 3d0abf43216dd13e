package journal

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"
)

// memory is a File of bytes.
type memory []byte

func (m memory) ReadAt(p []byte, off int64) (int, error) { return bytes.NewReader(m).ReadAt(p, off) }
func (memory) WriteAt([]byte, int64) (int, error)        { return 0, errors.ErrUnsupported }
func (memory) Sync() error                               { return errors.ErrUnsupported }
func (memory) Truncate(int64) error                      { return errors.ErrUnsupported }
func (memory) Close() error                              { return nil }

func seedEntry(seq Seq, body string) Entry {
	e := Entry{Segment: 3, Seq: seq, Kind: Proposed, Effect: ID{1}, Time: time.Unix(1_796_000_000, 5).UTC(), Body: []byte(body)}
	e.Hash = e.Sum()
	return e
}

// FuzzFrame: whatever bytes are read as a frame are exactly those that its entry
// is written as.
func FuzzFrame(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, sector))
	f.Add(appendFrame(nil, seedEntry(7, `{"amount":20}`), 6))
	f.Add(appendFrame(nil, seedEntry(1, ``), 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := parseHeader(b, 3)
		if !ok || h.flags != 0 || int64(len(b)) < h.size() {
			return
		}
		e, ok := parseEntry(h, b[:h.size()])
		if !ok {
			return
		}
		if again := appendFrame(nil, e, h.durable); !bytes.Equal(again, b[:h.size()]) {
			t.Errorf("read and written again:\n%x\nwas\n%x", again, b[:h.size()])
		}
	})
}

// FuzzHeader: the same for a segment's header.
func FuzzHeader(f *testing.F) {
	f.Add([]byte{})
	f.Add(segment{number: 1, first: 1, namespace: "n", created: time.Unix(1, 2)}.encode())
	f.Add(segment{number: 9, epoch: 1, first: 70, prev: 7, prevEnd: 4096, before: Hash{9}, namespace: ""}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok, err := parseSegment(b)
		if ok && err == nil && !bytes.Equal(s.encode(), b) {
			t.Errorf("read and written again:\n%x\nwas\n%x", s.encode(), b)
		}
	})
}

// FuzzSegment: reading a segment ends, stays within the file, and is stable: the
// entries of what was read whole are those of every longer file that begins so.
func FuzzSegment(f *testing.F) {
	whole := make([]byte, sector)
	for i := Seq(1); i < 4; i++ {
		whole = appendFrame(whole, seedEntry(i, `"`+string(bytes.Repeat([]byte("x"), int(i)*300))+`"`), i-1)
	}
	f.Add(whole, uint16(0))
	f.Add(whole[:len(whole)-600], uint16(3))
	f.Add(append(bytes.Clone(whole), whole[600:]...), uint16(700))
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		entries, end := readAll(t, b)
		if end > int64(len(b)) && len(entries) > 0 {
			t.Fatalf("read to %d of %d bytes", end, len(b))
		}
		shorter := b[:len(b)-min(int(cut), len(b))]
		fewer, _ := readAll(t, shorter)
		if len(fewer) > len(entries) {
			t.Fatalf("%d entries, and %d of the longer file", len(fewer), len(entries))
		}
		for i := range fewer {
			if fewer[i].Hash != entries[i].Hash {
				t.Fatalf("entry %d differs", i)
			}
		}
	})
}

func readAll(t *testing.T, b []byte) (entries []Entry, end int64) {
	c := newCursor(memory(b), 3)
	for {
		e, _, err := c.next()
		if d := (*damage)(nil); errors.As(err, &d) {
			s, err := c.survey(d.off)
			if err != nil || s.bytes > int64(len(b))-d.off {
				t.Fatalf("survey from %d of %d bytes: %+v, %v", d.off, len(b), s, err)
			}
			return entries, c.off
		}
		if err == io.EOF || errors.Is(err, ErrFormat) {
			return entries, c.off
		}
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
}

// FuzzBody: the bodies that the log itself reads, and those that a caller gives
// it. What is accepted is one JSON value, and comes back byte for byte.
func FuzzBody(f *testing.F) {
	for _, b := range []string{``, `{}`, `{"namespace":"n","format":1,"epoch":3}`, `{"namespace":"n","epoch":-1}`, `{"epoch":18446744073709551616}`,
		`{"segment":1,"offset":512,"why":"x","token":{"segment":1,"seq":2}}`, "\"\\u001b[31m\"", `[1,2`, "{}\x00"} {
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e := Entry{Segment: 3, Seq: 1, Kind: Proposed, Effect: ID{1}, Body: b}
		if epoch, err := EpochOf(e); err == nil {
			if again, err := EpochOf(FirstEntry("n", epoch)); err != nil || again != epoch {
				t.Errorf("epoch %d comes back as %d, %v", epoch, again, err)
			}
		}
		if Writable(e) != nil {
			return
		}
		e.Time = time.Unix(1_796_000_000, 5).UTC()
		e.Hash = e.Sum()
		frame := appendFrame(nil, e, 0)
		h, ok := parseHeader(frame, 3)
		if !ok {
			t.Fatal("its header doesn't read")
		}
		if got, ok := parseEntry(h, frame); !ok || !bytes.Equal(got.Body, b) {
			t.Errorf("the body comes back as %q", got.Body)
		}
	})
}
