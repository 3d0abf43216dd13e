package journal_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"hash/crc32"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/journaltest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// tiny writes the log that the golden file pins: three segments' worth of
// everything the format has, by a clock that stands still.
func tiny(t *testing.T) string {
	path := newPath(t)
	o := fast(path)
	o.Now = func() time.Time { return time.Unix(1_796_000_000, 123) }
	l, _ := mustOpen(t, path, o)
	e := journaltest.Effect(1)
	add(t, l, journal.Entry{Kind: journal.Proposed, Effect: e, Body: []byte(`{"amount": 20}`)})
	add(t, l, journal.Entry{Kind: journal.Authorized, Effect: e}, journal.Entry{Kind: journal.Dispatched, Effect: e, Body: []byte(`{}`)})
	l.Close()
	l, _ = mustOpen(t, path, o)
	add(t, l, journal.Entry{Kind: journal.Committed, Effect: e, Body: []byte(`{"id":"re_1"}`)})
	l.Close()
	return path
}

func TestFormatIsPinned(t *testing.T) {
	path := tiny(t)
	var b strings.Builder
	for _, name := range segments(t, path) {
		b.WriteString(name + "\n")
		for i, line := range strings.SplitAfter(hex.Dump(read(t, path, name)), "\n") {
			if i == 0 || !strings.Contains(line, "  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  ") {
				b.WriteString(line)
			}
		}
	}
	const golden = "testdata/format1.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("the bytes on the disk changed: that is a new format, with a new number (-want +got):\n%s", diff)
	}
}

// TestFormat1IsRead reads a log that an earlier build wrote.
func TestFormat1IsRead(t *testing.T) {
	if *update {
		path := tiny(t)
		for _, name := range segments(t, path) {
			write(t, "testdata/format1", name, read(t, path, name))
		}
	}
	path := newPath(t)
	if err := os.CopyFS(path, os.DirFS("testdata/format1")); err != nil {
		t.Fatal(err)
	}
	restrict(t, path)
	_, entries := mustOpen(t, path, journal.Options{})
	want := []journal.Kind{journal.Opened, journal.Proposed, journal.Authorized, journal.Dispatched, journal.Committed}
	if diff := cmp.Diff(want, kinds(*entries)); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if got := string((*entries)[1].Body); got != `{"amount": 20}` {
		t.Errorf("body %s", got)
	}
}

// reseal sets a field of a segment's header and the checksum behind it.
func reseal(t *testing.T, path, name string, set func(b []byte)) {
	b := read(t, path, name)
	set(b)
	binary.BigEndian.PutUint32(b[508:], crc32.Checksum(b[:508], crc32.MakeTable(crc32.Castagnoli)))
	write(t, path, name, b)
}

func TestRefusedHeaders(t *testing.T) {
	for _, c := range []struct {
		why  string
		set  func(b []byte)
		want error
	}{
		{"a newer version wrote it", func(b []byte) { b[11] = 2 }, journal.ErrFormat},
		{"a flag that isn't known", func(b []byte) { b[15] = 1 }, journal.ErrFormat},
		{"another segment's file under this name", func(b []byte) { b[23] = 9 }, journal.ErrCorrupt},
		{"its first sequence was skipped to", func(b []byte) { b[39]++ }, journal.ErrCorrupt},
		{"a predecessor that isn't there", func(b []byte) { b[47] = 7; b[23] = 8 }, journal.ErrCorrupt},
		{"the good end is behind the file's", func(b []byte) { b[54]++ }, journal.ErrCorrupt},
		{"the good end is before an entry", func(b []byte) { b[54] -= 2 }, journal.ErrCorrupt},
		{"the chain of hashes", func(b []byte) { b[60]++ }, journal.ErrCorrupt},
	} {
		path := tiny(t)
		reseal(t, path, "0000000002.seg", c.set)
		before := snapshot(t, path)
		for _, mode := range []journal.Mode{journal.Owner, journal.Appender, journal.Reader} {
			_, err := journal.OpenFile(path, journal.Options{Mode: mode}, nil)
			if !errors.Is(err, c.want) {
				t.Errorf("%s, as %v: %v, want %v", c.why, mode, err, c.want)
			}
		}
		if diff := cmp.Diff(before, snapshot(t, path)); diff != "" {
			t.Errorf("%s: the refusal changed something:\n%s", c.why, diff)
		}
	}
}

// snapshot is the contents of all segments.
func snapshot(t *testing.T, path string) map[string]string {
	files := map[string]string{}
	for _, name := range segments(t, path) {
		files[name] = string(read(t, path, name))
	}
	return files
}

func TestNewerFrame(t *testing.T) {
	path := tiny(t)
	b := read(t, path, "0000000002.seg")
	b[512+35] = 1
	binary.BigEndian.PutUint32(b[512+68:], crc32.Checksum(b[512:512+68], crc32.MakeTable(crc32.Castagnoli)))
	write(t, path, "0000000002.seg", b)
	for _, mode := range []journal.Mode{journal.Owner, journal.Appender, journal.Reader} {
		if _, err := journal.OpenFile(path, journal.Options{Mode: mode}, nil); !errors.Is(err, journal.ErrFormat) {
			t.Errorf("%v: %v, want ErrFormat", mode, err)
		}
	}
}

func TestC23OneNamespaceOneJournal(t *testing.T) {
	path := tiny(t)
	for _, mode := range []journal.Mode{journal.Owner, journal.Appender, journal.Reader} {
		if _, err := journal.OpenFile(path, journal.Options{Mode: mode, Namespace: "other"}, nil); !errors.Is(err, journal.ErrNamespace) {
			t.Errorf("%v: %v, want ErrNamespace (C23)", mode, err)
		}
	}
	if _, err := journal.OpenFile(newPath(t), journal.Options{Namespace: strings.Repeat("n", 256)}, nil); !errors.Is(err, journal.ErrNamespace) {
		t.Errorf("a namespace of 256 bytes: %v", err)
	}
	mustOpen(t, newPath(t), journal.Options{Namespace: strings.Repeat("n", 255)})
}

func TestMissingLog(t *testing.T) {
	for _, mode := range []journal.Mode{journal.Owner, journal.Appender, journal.Reader} {
		path := newPath(t)
		if _, err := journal.OpenFile(path, journal.Options{Mode: mode}, nil); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v without a namespace: %v, want ErrNotExist", mode, err)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v without a namespace made %s", mode, path)
		}
	}
}
