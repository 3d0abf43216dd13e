package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
)

// crashed copies the files of a log that is open and at rest: what a dead
// process leaves.
func crashed(t testing.TB, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "log", "journal.db")
	if err := os.Mkdir(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "-wal", "-claims"} {
		b, err := os.ReadFile(path + name)
		if name == "-wal" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(to+name, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func kinds(entries []journal.Entry) (list []journal.Kind) {
	for _, e := range entries {
		list = append(list, e.Kind)
	}
	return list
}

func count(entries []journal.Entry, k journal.Kind, effect journal.ID) (n int) {
	for _, e := range entries {
		if e.Kind == k && e.Effect == effect {
			n++
		}
	}
	return n
}

// TestDamagedWAL flips a bit in every frame of the WAL that a dead process left,
// in its header and in its page. A dispatch that was durable is never lost
// without a word: the log has it, or its effect is SUSPECT, or the opening is
// refused.
func TestDamagedWAL(t *testing.T) {
	path := newPath(t)
	s, _ := mustOpen(t, path, sqlite.Options{})
	add(t, s, journal.Entry{Kind: journal.Proposed, Effect: e1}, journal.Entry{Kind: journal.Proposed, Effect: e2})
	add(t, s, journal.Entry{Kind: journal.Committed, Effect: e2})
	last := add(t, s, journal.Entry{Kind: journal.Dispatched, Effect: e1, Body: []byte(`{"n":1}`)})[0]
	left := crashed(t, path)
	wal, err := os.ReadFile(left + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	const frame = 4096 + 24
	frames := (len(wal) - 32) / frame
	told := map[string]int{}
	for n := range frames {
		for _, at := range []int{9, 13, 17, 24 + 3, 24 + 4000} { // both salts, checksum, page
			path := crashed(t, left)
			b := bytes.Clone(wal)
			b[32+n*frame+at] ^= 4
			if err := os.WriteFile(path+"-wal", b, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := sqlite.Open(path, sqlite.Options{Reader: true}, nil); err == nil {
				t.Errorf("frame %d byte %d: a reader opened it", n, at)
			}
			var entries []journal.Entry
			s, err := sqlite.Open(path, sqlite.Options{Namespace: "test"}, func(e journal.Entry) error { entries = append(entries, e); return nil })
			switch {
			case errors.Is(err, journal.ErrCorrupt):
				told["refused"]++
			case err != nil:
				t.Errorf("frame %d byte %d: %v", n, at, err)
			case count(entries, journal.Dispatched, e1) == 0 && count(entries, journal.Suspect, e1) == 0:
				t.Errorf("frame %d byte %d: the dispatch is lost: %v", n, at, kinds(entries))
			default:
				told["suspect"]++
				if count(entries, journal.Suspect, e2) > 0 {
					t.Errorf("frame %d byte %d: what is committed is suspect", n, at)
				}
				if got := entries[len(entries)-1].Token(); !last.Token().Less(got) {
					t.Errorf("frame %d byte %d: token %v is used again after %v", n, at, got, last.Token())
				}
				s.Close()
			}
		}
	}
	if told["refused"] == 0 || told["suspect"] == 0 {
		t.Errorf("of %d frames: %v", frames, told)
	}
	t.Logf("%d frames: %v", frames, told)
}

// TestAKillIsNoDamage: what a killed process leaves of a transaction that it
// didn't commit makes nobody suspect.
func TestAKillIsNoDamage(t *testing.T) {
	path := newPath(t)
	s, _ := mustOpen(t, path, sqlite.Options{})
	add(t, s, journal.Entry{Kind: journal.Proposed, Effect: e1})
	left := crashed(t, path)
	add(t, s, journal.Entry{Kind: journal.Proposed, Effect: e2, Body: bytes.Repeat([]byte("1"), 20_000)})
	whole, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(left + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	for size := before.Size(); size < int64(len(whole)); size += 500 {
		path := crashed(t, left)
		if err := os.WriteFile(path+"-wal", whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		s, entries := mustOpen(t, path, sqlite.Options{})
		s.Close()
		if n := count(*entries, journal.Suspect, e1); n != 0 {
			t.Errorf("torn at %d of %d: %v", size, len(whole), kinds(*entries))
		}
	}
}

// TestAnOpeningThatDiesAmongSuspects is C28: what the first opening found is not
// forgotten with it.
func TestAnOpeningThatDiesAmongSuspects(t *testing.T) {
	path := newPath(t)
	s, _ := mustOpen(t, path, sqlite.Options{})
	add(t, s, journal.Entry{Kind: journal.Proposed, Effect: e1})
	add(t, s, journal.Entry{Kind: journal.Dispatched, Effect: e1})
	left := crashed(t, path)
	wal, err := os.ReadFile(left + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	wal[len(wal)-10] ^= 1
	if err := os.WriteFile(left+"-wal", wal, 0o600); err != nil {
		t.Fatal(err)
	}
	died := errors.New("died")
	if _, err := sqlite.Open(left, sqlite.Options{Namespace: "test"}, func(e journal.Entry) error {
		if e.Kind == journal.Suspect {
			return died
		}
		return nil
	}); !errors.Is(err, died) {
		t.Fatalf("the first opening: %v", err)
	}
	_, entries := mustOpen(t, left, sqlite.Options{})
	if count(*entries, journal.Suspect, e1) != 1 {
		t.Errorf("after the second opening: %v", kinds(*entries))
	}
}

// TestCorrupt changes a database behind the store's back. That a whole effect is
// gone shows (W5): each entry is linked to the log's, not only to its effect's.
func TestCorrupt(t *testing.T) {
	for _, c := range []struct{ why, statement string }{
		{"a body changed", `UPDATE entry SET body = CAST('{"n":2}' AS BLOB) WHERE seq = 3`},
		{"a kind changed", `UPDATE entry SET kind = 5 WHERE seq = 3`},
		{"an entry is missing", `DELETE FROM entry WHERE seq = 2`},
		{"the proven end is missing", `DELETE FROM entry WHERE seq >= 3`},
		{"everything is missing", `DELETE FROM entry`},
	} {
		path := newPath(t)
		s, _ := mustOpen(t, path, sqlite.Options{})
		add(t, s, journal.Entry{Kind: journal.Proposed, Effect: e1})
		revoked := add(t, s, journal.Entry{Kind: journal.Revoked, Body: []byte(`{"n":1}`)})[0]
		if err := journal.Prove(t.Context(), s, revoked.Seq); err != nil {
			t.Fatal(err)
		}
		s.Close()
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(c.statement); err != nil {
			t.Fatal(err)
		}
		db.Close()
		if _, err := sqlite.Open(path, sqlite.Options{Namespace: "test"}, nil); !errors.Is(err, journal.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", c.why, err)
		}
	}
	path := newPath(t)
	s, _ := mustOpen(t, path, sqlite.Options{})
	add(t, s, journal.Entry{Kind: journal.Granted})
	s.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(path, sqlite.Options{Namespace: "test"}, nil); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("the database is missing, its claims file is not: %v, want ErrCorrupt", err)
	}
}

// TestForeign: what isn't this log, or isn't read by this version, is refused
// and left as it is.
func TestForeign(t *testing.T) {
	for _, c := range []struct {
		why       string
		statement string // "" leaves a file of text
		want      error
	}{
		{"no database", "", journal.ErrFormat},
		{"a database of another application", "DROP TABLE log; DROP TABLE entry; PRAGMA application_id = 0; PRAGMA user_version = 0", journal.ErrFormat},
		{"another application id", "PRAGMA application_id = 7", journal.ErrFormat},
		{"a newer format", "PRAGMA user_version = 2", journal.ErrFormat},
		{"another namespace", "UPDATE log SET namespace = 'other'", journal.ErrNamespace},
	} {
		path := newPath(t)
		s, _ := mustOpen(t, path, sqlite.Options{})
		add(t, s, journal.Entry{Kind: journal.Granted})
		s.Close()
		if c.statement == "" {
			if err := os.WriteFile(path, bytes.Repeat([]byte("no database\n"), 1000), 0o600); err != nil {
				t.Fatal(err)
			}
		} else {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec(c.statement); err != nil {
				t.Fatal(err)
			}
			db.Close()
		}
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, reader := range []bool{false, true} {
			if _, err := sqlite.Open(path, sqlite.Options{Namespace: "test", Reader: reader}, nil); !errors.Is(err, c.want) {
				t.Errorf("%s, reader %v: %v, want %v", c.why, reader, err, c.want)
			}
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the file was changed (%v)", c.why, err)
		}
	}
}

func TestNoLog(t *testing.T) {
	for _, o := range []sqlite.Options{{}, {Reader: true, Namespace: "test"}, {Restored: true, Namespace: "test"}} {
		path := newPath(t)
		if _, err := sqlite.Open(path, o, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: %v, want ErrNotExist", o, err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlite.Open(path, o, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: %v, want ErrNotExist", o, err)
		}
		if left, _ := filepath.Glob(filepath.Dir(path) + "/*"); len(left) > 0 {
			t.Errorf("%+v: %v were made", o, left)
		}
	}
}

// TestRestored is C22: yesterday's copy is refused beside today's claims file,
// and opened as restored what may be missing is suspect.
func TestRestored(t *testing.T) {
	path := newPath(t)
	s, _ := mustOpen(t, path, sqlite.Options{})
	add(t, s, journal.Entry{Kind: journal.Proposed, Effect: e1}, journal.Entry{Kind: journal.Proposed, Effect: e2},
		journal.Entry{Kind: journal.Committed, Effect: e2})
	s.Close()
	backup, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, _ = mustOpen(t, path, sqlite.Options{})
	sent := add(t, s, journal.Entry{Kind: journal.Dispatched, Effect: e1})[0]
	if _, err := sqlite.Open(path, sqlite.Options{Restored: true}, nil); !errors.Is(err, journal.ErrHeld) {
		t.Errorf("restored beside a live process: %v, want ErrHeld", err)
	}
	add(t, s, journal.Entry{Kind: journal.Granted})
	s.Close()
	if err := os.WriteFile(path, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(path, sqlite.Options{}, nil); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("a backup beside today's claims file: %v, want ErrCorrupt", err)
	}
	died := errors.New("died")
	if _, err := sqlite.Open(path, sqlite.Options{Restored: true}, func(e journal.Entry) error {
		if e.Kind == journal.Suspect {
			return died
		}
		return nil
	}); !errors.Is(err, died) {
		t.Fatalf("an opening as restored that dies: %v", err)
	}
	between := crashed(t, path)
	s, entries := mustOpen(t, between, sqlite.Options{})
	if count(*entries, journal.Suspect, e1) != 1 {
		t.Errorf("opened after that: %v", kinds(*entries))
	}
	s.Close()
	s, entries = mustOpen(t, path, sqlite.Options{Restored: true})
	if count(*entries, journal.Suspect, e1) != 1 || count(*entries, journal.Suspect, e2) != 0 {
		t.Errorf("restored: %v", kinds(*entries))
	}
	end := (*entries)[len(*entries)-1]
	if epoch, err := journal.EpochOf(end); end.Kind != journal.Opened || err != nil || epoch != 1 || !sent.Token().Less(end.Token()) {
		t.Errorf("it goes on with %v of epoch %d at %v after %v", end.Kind, epoch, end.Token(), sent.Token())
	}
	s.Close()
	mustOpen(t, path, sqlite.Options{})
}

// TestSegments: the number rises with each opening that may append, of whomever,
// and entries carry the highest.
func TestSegments(t *testing.T) {
	path := newPath(t)
	var last journal.Token
	var stores []*sqlite.Store
	for range 3 {
		s, _ := mustOpen(t, path, sqlite.Options{})
		stores = append(stores, s)
		for _, s := range stores {
			e := add(t, s, journal.Entry{Kind: journal.Dispatched, Effect: e1})[0]
			if !last.Less(e.Token()) {
				t.Errorf("token %v follows %v", e.Token(), last)
			}
			last = e.Token()
		}
	}
	if last.Segment != 3 {
		t.Errorf("after three openings the segment is %d", last.Segment)
	}
	if _, err := stores[0].Claim(t.Context(), e3); err != nil {
		t.Error(err)
	}
	r, _ := mustOpen(t, path, sqlite.Options{Reader: true})
	if _, err := r.Claim(t.Context(), e2); !errors.Is(err, journal.ErrMode) {
		t.Errorf("a reader's claim: %v", err)
	}
	if _, err := r.Update(t.Context(), nil); !errors.Is(err, journal.ErrMode) {
		t.Errorf("a reader's update: %v", err)
	}
}
