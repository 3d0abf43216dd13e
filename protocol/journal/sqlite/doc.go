// Package sqlite is the journal's store for many processes on one host: one
// SQLite database in WAL mode, each commit synced, and a claims file beside it.
//
// It runs on Linux, on a local file system, in a directory of mode 0700 with
// files of mode 0600. Beside the database NAME are SQLite's own NAME-wal and
// NAME-shm, and NAME-claims. None of the four may be removed, replaced or copied
// alone while a process has the log open.
//
// # Format 1
//
// The database has the application id 0x494C4A4E and the user version 1. Its
// table log has one row, the namespace. A row of opening is one opening: its
// number, its time and who it was. A row of entry is one journal.Entry as it was
// stamped, with the same hashes as in the file store, and with durable, the last
// entry that was committed before its transaction began.
//
// # Segments
//
// There are no files to number. Each opening that may append raises the number
// of the segment, and entries of all processes carry the number raised last, so
// that tokens grow along the log whoever appends (C29). The number is kept in
// the claims file as well, synced before it is used: it does not fall when the
// database loses its end.
//
// # One step
//
// An update catches up, decides, inserts and commits in one IMMEDIATE
// transaction. Callers of one process that are at work at the same time share
// it: the first that gets to it runs what all of them want to decide, one after
// another, and syncs once. Processes take turns. A look takes no write lock.
//
// # What is durable, and what is a tear
//
// A commit is synced before anybody sees it. Damage to the end of the WAL is cut
// by SQLite itself, without a word. The claims file says what was there: on each
// append the last entry committed before it, and, synced, at each opening and
// before each SEAL, everything up to there. An opening that doesn't find these
// entries is ErrCorrupt. Where the last commit alone is damaged, as far as the
// WAL still shows that there was one, every effect without an outcome is SUSPECT
// before anything is appended (C27, C28); a tail that was zeroed altogether can't
// be told from one that never was.
//
// An opening that is alone syncs database and WAL, drops them from the page
// cache and only then has them read: after a failed sync the cache shows what
// the disk doesn't hold.
//
// # Claims
//
// A claim is a lock on one byte of the claims file, at the offset that the first
// 62 bits of the effect's id make, of the open file description: the kernel
// frees it when the process dies, and nothing else does. There is no time after
// which it ends. Beside the locks the file says who took them and when, for
// people; nothing is decided on that. Effects that share their first 62 bits
// exclude each other between processes: one waits, and is never sent twice.
package sqlite
