package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// docTable is the rows of the table below a heading of docs/journal.md.
func docTable(t *testing.T, heading string) [][]string {
	t.Helper()
	b, err := os.ReadFile("../../docs/journal.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(b), "\n### "+heading+"\n")
	if !ok {
		t.Fatalf("the page has no part %q", heading)
	}
	var rows [][]string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "### ") || strings.HasPrefix(line, "## ") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if _, err := strconv.Atoi(strings.TrimSpace(cells[0])); err == nil {
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

// fields holds a table of the page against bytes: its fields follow each other
// without gaps, and each is what want says under the first word of its name.
func fields(t *testing.T, rows [][]string, b []byte, want map[string]string) {
	t.Helper()
	at := 0
	for _, r := range rows {
		if r[0] != strconv.Itoa(at) {
			t.Errorf("%q begins at byte %s, the field before it ends at %d", r[2], r[0], at)
		}
		n, err := strconv.Atoi(r[1])
		if err != nil {
			n = len(b) - at // the body
		}
		name := regexp.MustCompile(`^[^,:;(]*`).FindString(r[2])
		if w, ok := want[name]; !ok || fmt.Sprintf("%x", b[at:at+n]) != w {
			t.Errorf("%q at byte %d is %x, the code writes it elsewhere; want %s", name, at, b[at:at+n], w)
		}
		delete(want, name)
		at += n
	}
	if at != len(b) || len(want) > 0 {
		t.Errorf("the table ends at byte %d of %d; it has no %v", at, len(b), want)
	}
}

// TestDocsAreTheFormat takes the tables of docs/journal.md at their word.
func TestDocsAreTheFormat(t *testing.T) {
	hex := func(v any) string { return fmt.Sprintf("%x", v) }
	u64 := func(n uint64) string { return fmt.Sprintf("%016x", n) }
	h := func(c byte) (h [32]byte) {
		for i := range h {
			h[i] = c
		}
		return h
	}
	s := segment{number: 0x11, epoch: 0x12, first: 0x13, prev: 0x14, prevEnd: 0x15, before: h(0x16), created: time.Unix(0, 0x17), namespace: "space"}
	b := s.encode()
	fields(t, docTable(t, "The header of a segment"), b, map[string]string{
		"magic": hex(segmentMagic), "format": fmt.Sprintf("%08x", Format), "flags": "00000000",
		"segment number": u64(0x11), "epoch": u64(0x12), "sequence of the segment's first entry": u64(0x13),
		"number of the segment before": u64(0x14), "good end of the segment before": u64(0x15), "hash of the last entry before this segment": hex(h(0x16)),
		"time of creation": u64(0x17), "length of the namespace": "05", "the namespace": hex("space") + strings.Repeat("00", 411-5),
		"CRC-32C of bytes 0 to 507": hex(binary.BigEndian.AppendUint32(nil, crc32.Checksum(b[:508], castagnoli))),
	})

	e := Entry{Segment: 0x21, Seq: 0x22, Kind: Dispatched, Effect: h(0x23), Time: time.Unix(0, 0x24), Prev: h(0x25), Before: h(0x26), Body: []byte(`"body"`)}
	e.Hash = e.Sum()
	b = appendFrame(nil, e, 0x27)
	rows := docTable(t, "A frame")
	fields(t, rows, b, map[string]string{
		"magic": hex(frameMagic), "length of the body": "00000006", "segment number": u64(0x21), "sequence": u64(0x22), "durable": u64(0x27),
		"kind": "0003", "flags": "0000", "effect id": hex(h(0x23)),
		"CRC-32C of bytes 0 to 67": hex(binary.BigEndian.AppendUint32(nil, crc32.Checksum(b[:68], castagnoli))),
		"time of the append":       u64(0x24), "prev": hex(h(0x25)), "before": hex(h(0x26)), "hash of this entry": hex(e.Hash[:]),
		"the body": hex(`"body"`) + strings.Repeat("00", sector-frameBody-6),
	})
	if !strings.Contains(rows[1][2], strconv.Itoa(MaxBody)) {
		t.Errorf("%q: the greatest body has %d bytes", rows[1][2], MaxBody)
	}

	kinds := map[Kind]string{}
	for _, r := range docTable(t, "Kinds") {
		n, _ := strconv.Atoi(r[0])
		kinds[Kind(n)] = strings.Trim(r[1], "`")
	}
	for k, name := range kindNames {
		if kinds[k] != name {
			t.Errorf("kind %d is %q on the page and %s in the code", k, kinds[k], name)
		}
	}
	if len(kinds) != len(kindNames) {
		t.Errorf("the page has %d kinds, the code %d", len(kinds), len(kindNames))
	}
}
