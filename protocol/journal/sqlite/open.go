package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	driver "modernc.org/sqlite"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

const (
	applicationID = 0x494C4A4E // "ILJN"
	format        = 1          // the user version that is written, and the only one that is read
	maxNamespace  = 255
)

const schema = `
CREATE TABLE log (namespace TEXT NOT NULL) STRICT;
CREATE TABLE opening (number INTEGER PRIMARY KEY, time INTEGER NOT NULL, who TEXT NOT NULL) STRICT;
CREATE TABLE entry (
	seq INTEGER PRIMARY KEY, segment INTEGER NOT NULL, time INTEGER NOT NULL, kind INTEGER NOT NULL,
	effect BLOB NOT NULL, prev BLOB NOT NULL, before BLOB NOT NULL, hash BLOB NOT NULL,
	durable INTEGER NOT NULL, body BLOB
) STRICT;`

// Open opens the log in the database at path and feeds its entries to apply. With
// a namespace it makes directory and database where they are missing.
//
// A gate whose decisions and grants are to be in one database opens it twice,
// once as its journal and once as its authority, and needs no drain: a dispatch
// reads the grants inside its transaction, a revocation is a transaction of its
// own, and SQLite lets one of them at a time commit. So a dispatch that doesn't
// see a revocation is durable before it, and is found in doubt by it (I4).
//
// Errors: ErrFormat for a database that isn't a log or is one of a newer version,
// ErrNamespace, ErrUnsafe for a directory that isn't 0700, a file that isn't a
// plain 0600 one of this user or a file system of a network, *CorruptError,
// *HeldError where another process doesn't end its turn or Restored finds one
// that has the log open, ErrFull, ErrMode for a reader that finds a damaged tail,
// fs.ErrNotExist, and apply's own, wrapped. After an error nothing is held.
func Open(path string, o Options, apply func(journal.Entry) error) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	s := &Store{path: path, o: o, apply: apply, lead: make(chan struct{}, 1), trails: map[journal.ID]trail{}, version: -1}
	if s.o.Now == nil {
		s.o.Now = time.Now
	}
	if s.o.Patience == 0 {
		s.o.Patience = 10 * time.Second
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.shut())
	}
	return s, nil
}

// open reads and refuses before it changes anything. It begins alone, where
// nobody else has the log open: then what SQLite finds at the end of the WAL was
// left by a process that died.
func (s *Store) open() error {
	if len(s.o.Namespace) > maxNamespace {
		return fmt.Errorf("%w: a namespace has at most %d bytes, this one has %d", journal.ErrNamespace, maxNamespace, len(s.o.Namespace))
	}
	if s.o.Restored && s.o.Reader {
		return fmt.Errorf("%w: a reader can't open a log as restored", journal.ErrMode)
	}
	makes := !s.o.Reader && !s.o.Restored && s.o.Namespace != ""
	if err := journal.CheckDir(filepath.Dir(s.path), makes); err != nil {
		return err
	}
	if _, err := os.Lstat(s.path); err != nil && !(makes && errors.Is(err, fs.ErrNotExist)) {
		return fmt.Errorf("journal: %w", err)
	}
	alone, err := s.live()
	if err != nil {
		return err
	}
	synced, loose, err := s.readHeads()
	if err != nil {
		return err
	}
	if !s.o.Restored {
		s.expect = []head{synced, loose}
	}
	if err := s.findFile(makes); err != nil {
		return err
	}
	torn, offset := synced.torn || s.o.Restored, int64(0) // one that dies as it opens a backup is gone on with, too
	if alone {
		if err := s.refresh(); err != nil {
			return err
		}
		at, damaged, err := damagedTail(s.path + "-wal")
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		torn, offset = torn || damaged, at
	}
	if torn && s.o.Reader {
		return fmt.Errorf("%w: the end of %s is damaged and may hide an attempt; open it to append first", journal.ErrMode, s.path)
	}
	if err := s.connect(); err != nil {
		return err
	}
	if err := s.patiently(context.Background(), func() error { return s.recognize(makes) }); err != nil {
		return err
	}
	if err := s.readAll(); err != nil {
		return err
	}
	// From here on this connection waits as patiently says.
	if _, err := s.conn.ExecContext(context.Background(), "PRAGMA busy_timeout = 0"); err != nil {
		return s.failed("open", err)
	}
	if !s.o.Reader {
		if s.wal, err = openRoom(s.path + "-wal"); err != nil {
			return err
		}
		if err := s.raise(synced, torn, offset); err != nil {
			return err
		}
	}
	if _, err := s.claims.file.Lock(lifeByte, true); err != nil {
		return err
	}
	return s.check()
}

// live opens the claims file and locks the byte that says that the log is open,
// alone where nobody else has it.
func (s *Store) live() (alone bool, err error) {
	file, err := journal.OpenLockFile(s.claimsPath())
	if err != nil {
		return false, err
	}
	s.claims = &claims{file: file, mine: map[journal.ID]*note{}, held: map[int64]int{}}
	if alone, err = file.Lock(lifeByte, false); alone || err != nil {
		return alone, errors.Join(err, file.Check())
	}
	if s.o.Restored {
		return false, s.heldBy("journal "+s.path, s.writer())
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Patience)
	defer cancel()
	if err := file.Wait(ctx, lifeByte, true); err != nil {
		return false, errors.Join(s.heldBy("journal "+s.path, s.writer()), err)
	}
	return false, file.Check()
}

// findFile makes the database's file where it is missing, and refuses one that
// isn't safe. It makes it without opening it: closing it again would lose the
// locks that another opening in this process has on it.
func (s *Store) findFile(makes bool) error {
	if makes {
		err := syscall.Mknod(s.path, syscall.S_IFREG|0o600, 0)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return journal.Full(fmt.Errorf("journal: make %s: %w", s.path, err))
		}
	}
	for _, name := range []string{"-wal", "-shm", "-journal"} {
		if _, err := journal.CheckFile(s.path + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	var err error
	s.id, err = journal.CheckFile(s.path)
	return err
}

// refresh syncs directory, database and WAL, and drops them from the page cache.
// It is called alone: no other opening has locks on these files that closing
// them would lose.
func (s *Store) refresh() error {
	dir := filepath.Dir(s.path)
	for _, path := range []string{filepath.Dir(dir), dir, s.path, s.path + "-wal"} {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue // no WAL; a directory above that isn't ours, and isn't new
		}
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		const dontNeed = 4 // POSIX_FADV_DONTNEED
		err = f.Sync()
		if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); errno != 0 && path != dir && path != filepath.Dir(dir) {
			err = errors.Join(err, os.NewSyscallError("fadvise", errno))
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return journal.Full(fmt.Errorf("journal: sync %s: %w", path, err))
		}
	}
	return nil
}

func (s *Store) connect() error {
	dsn := url.URL{Scheme: "file", Path: s.path, RawQuery: fmt.Sprintf(
		"mode=rw&_pragma=busy_timeout(%d)&_pragma=synchronous(FULL)&_pragma=trusted_schema(OFF)&_pragma=cell_size_check(ON)", s.o.Patience.Milliseconds())}
	connector, err := driver.NewConnector(dsn.String())
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	s.db = sql.OpenDB(connector)
	s.conn, err = s.db.Conn(context.Background())
	if err != nil {
		return s.failed("open", err)
	}
	return nil
}

// recognize refuses a database that isn't this log, and makes an empty one the
// log.
func (s *Store) recognize(makes bool) error {
	ctx := context.Background()
	var id, version, tables int64
	for _, q := range []struct {
		text string
		into *int64
	}{
		{"PRAGMA application_id", &id}, {"PRAGMA user_version", &version}, {"SELECT count(*) FROM sqlite_schema", &tables},
	} {
		if err := s.conn.QueryRowContext(ctx, q.text).Scan(q.into); err != nil {
			return s.failed("read", err)
		}
	}
	switch {
	case id == 0 && version == 0 && tables == 0 && makes:
		if s.expect[0].seq > 0 || s.expect[1].seq > 0 {
			return s.corrupt(1, "the database is empty, and the claims file beside it says that it was not")
		}
		return s.create()
	case id == 0 && version == 0 && tables == 0:
		return fmt.Errorf("journal: no log is in %s: %w", s.path, fs.ErrNotExist)
	case id != applicationID:
		return fmt.Errorf("%w: %s is a database of another application (id %#x)", journal.ErrFormat, s.path, id)
	case version != format:
		return fmt.Errorf("%w: %s has format %d, format %d is read; use the version that wrote it", journal.ErrFormat, s.path, version, format)
	}
	var namespace string
	if err := s.conn.QueryRowContext(ctx, "SELECT namespace FROM log").Scan(&namespace); err != nil {
		return s.failed("read", err)
	}
	if s.o.Namespace == "" {
		s.o.Namespace = namespace
	}
	if namespace != s.o.Namespace {
		return fmt.Errorf("%w: %s is the journal of %q, not of %q; open the right database", journal.ErrNamespace, s.path, namespace, s.o.Namespace)
	}
	return nil
}

// create makes the tables. One that dies on the way leaves an empty database.
func (s *Store) create() error {
	ctx := context.Background()
	var mode string
	if err := s.conn.QueryRowContext(ctx, "PRAGMA journal_mode=WAL").Scan(&mode); err != nil {
		return s.failed("make", err)
	}
	if mode != "wal" {
		return fmt.Errorf("%w: %s can't be in WAL mode here", journal.ErrUnsafe, s.path)
	}
	if err := s.beginImmediate(); err != nil {
		return err
	}
	_, err := s.conn.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, format))
	if err == nil {
		_, err = s.conn.ExecContext(ctx, "INSERT INTO log VALUES (?)", s.o.Namespace)
	}
	if err == nil {
		_, err = s.conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		return s.failed("make", err)
	}
	return nil
}

// readAll feeds the log to apply, and finds out whether what the claims file
// knows of is there.
func (s *Store) readAll() error {
	for _, p := range []struct {
		text string
		into **sql.Stmt
	}{
		{"PRAGMA data_version", &s.stmts.version},
		{"SELECT max(number) FROM opening", &s.stmts.segment},
		{"SELECT " + columns + " FROM entry WHERE seq > ? ORDER BY seq", &s.stmts.entries},
		{"INSERT INTO entry (" + columns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", &s.stmts.insert},
	} {
		stmt, err := s.conn.PrepareContext(context.Background(), p.text)
		if err != nil {
			return s.failed("read", err)
		}
		*p.into = stmt
	}
	if err := s.patiently(context.Background(), s.catchUp); err != nil {
		return err
	}
	for _, h := range s.expect {
		if h.seq > s.at.seq {
			return s.corrupt(s.at.seq+1, fmt.Sprintf("the log ends before it, and entries up to %d were durable; if this is a backup, open it as restored", h.seq))
		}
	}
	s.expect = nil
	return nil
}

// raise begins a segment: from here on no token is one that was used before,
// though the end of the log be lost. What may be hidden in a damaged tail is
// known, durably, before anything is appended that could cover its traces (C28).
func (s *Store) raise(synced head, torn bool, offset int64) error {
	if err := s.patiently(context.Background(), s.beginImmediate); err != nil {
		return err
	}
	if err := s.catchUp(); err != nil {
		return err
	}
	s.segment = max(s.segment, synced.segment) + 1
	if s.o.Restored {
		// What was lost raised it fewer times than a million, and once a second.
		s.segment = max(s.segment+1_000_000, uint64(max(s.now().Unix(), 0)))
		s.epoch++
	}
	s.opening = s.segment
	if _, err := s.claims.file.Lock(lifeByte+int64(s.opening), false); err != nil {
		return err
	}
	if err := s.claims.file.WriteAt(note{opening: s.opening, since: s.now()}.encode(), writerNote); err != nil {
		return err
	}
	h := head{seq: s.at.seq, hash: s.at.hash, segment: s.segment, torn: torn}
	if err := s.writeSyncedHead(h); err != nil {
		return err
	}
	if err := s.claims.file.WriteAt(h.encode(), looseHead); err != nil {
		return err
	}
	who, err := json.Marshal(newHolder(s.o.Identity))
	if err != nil {
		return err
	}
	if _, err := s.conn.ExecContext(context.Background(), "INSERT INTO opening VALUES (?, ?, ?)", int64(s.opening), s.now().UnixNano(), string(who)); err != nil {
		return s.failed("open", err)
	}
	base := s.at
	if err := s.append(s.firstEntries(torn, offset), s.now(), base); err != nil {
		return err
	}
	if _, err := s.conn.ExecContext(context.Background(), "COMMIT"); err != nil {
		return s.failed("open", err)
	}
	s.proven, s.durable = max(s.proven, base.seq), s.at.seq
	if torn {
		h.torn = false
		return s.writeSyncedHead(h)
	}
	return nil
}

// firstEntries are what an opening appends: OPENED in a new log, SUSPECT for what
// may be hidden behind a damaged end or missing from a backup, and then, where it
// was one, OPENED with the raised epoch.
func (s *Store) firstEntries(torn bool, offset int64) (entries []journal.Entry) {
	if s.at.seq == 0 {
		return []journal.Entry{journal.FirstEntry(s.o.Namespace, s.epoch)}
	}
	if torn {
		why := "the end of the WAL is damaged"
		if s.o.Restored {
			why = "restored from a backup: entries may be missing"
		}
		for _, id := range s.unsettled() {
			entries = append(entries, journal.SuspectEntry(id, s.segment-1, offset, why))
		}
	}
	if s.o.Restored {
		entries = append(entries, journal.FirstEntry(s.o.Namespace, s.epoch))
	}
	return entries
}

// unsettled are the effects that were proposed, have no outcome and are not
// suspect already, in the order of their proposals.
func (s *Store) unsettled() (ids []journal.ID) {
	for id, t := range s.trails {
		if t.open != 0 && t.kind != journal.Suspect {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b journal.ID) int { return cmp.Compare(s.trails[a].open, s.trails[b].open) })
	return ids
}
