// Package journal is the write-ahead log that everything decided goes into
// before it is done, and the locks that keep its processes apart.
//
// A log is a directory: segments, a lock file, and beside an authority log the
// drain file. It runs on Linux, on a local file system, with directories of mode
// 0700 and files of mode 0600.
//
// # Format 1
//
// Integers are big-endian and of fixed width. A segment is the file
// NNNNNNNNNN.seg, its number in at least ten decimal digits. Everything in it
// begins on a sector of 512 bytes, so that one bad sector takes the header of
// one frame and no more, and so that no append rewrites a sector that was synced.
//
// The first sector is the segment's header. Bytes 0 to 11 and the checksum keep
// their place in every later format.
//
//	  0   8  1E 'I' 'L' 'J' 'R' 'N' 'L' 0A
//	  8   4  format, 1
//	 12   4  flags, 0; a bit that is set is a newer format
//	 16   8  segment number; it never falls and is never used twice (C29)
//	 24   8  epoch: 0, and one more at each opening as restored (C22)
//	 32   8  sequence of the segment's first entry
//	 40   8  number of the previous segment, 0 for none
//	 48   8  its good end: the offset behind its last entry; what is behind that was cut
//	 56  32  hash of the log's last entry before this segment
//	 88   8  wall time of its creation, nanoseconds since 1970 UTC, signed
//	 96   1  length of the namespace, n
//	 97   n  the namespace; zeros up to 508
//	508   4  CRC-32C of bytes 0 to 507
//
// A frame is one entry. Frames follow each other without gaps, those of several
// effects interleaved. The header's checksum is its own, so that a frame whose
// body was torn still says whose it was (C27).
//
//	  0   4  1E 'I' 'L' 'F'; JSON can't hold the byte 1E
//	  4   4  length of the body, n
//	  8   8  segment number
//	 16   8  sequence, one more than the frame before
//	 24   8  durable: the highest sequence known synced when this was written
//	 32   2  kind
//	 34   2  flags, 0; a bit that is set is a newer format
//	 36  32  effect id, zero for none
//	 68   4  CRC-32C of bytes 0 to 67
//	 72   8  wall time of the append, nanoseconds since 1970 UTC, signed
//	 80  32  prev: hash of the effect's previous entry
//	112  32  before: hash of the log's previous entry
//	144  32  hash of this entry, see Entry.Sum: the checksum of all but the header
//	176   n  the body, one JSON value or nothing; zeros up to the next sector
//
// The first entry of a log is OPENED with the body
// {"namespace":…,"format":1,"epoch":0}. A log opened as restored goes on with
// another OPENED whose epoch is raised.
//
// # What is durable, and what is a tear
//
// An entry is proven durable by a readable header of a later frame whose durable
// field reaches it, or by a later segment: that is begun only behind a synced
// one. Damage to what is proven durable stops the opening with a *CorruptError.
// Behind that lies the tail. Rot there can't be told from a torn write, so a
// damaged tail is cut from its first damaged frame, and every effect that may
// have had an attempt in it is marked SUSPECT in the next segment, durably,
// before anything is cut (C27, C28).
//
// # A full disk
//
// Blocks are allocated ahead of the segment's end, without growing it. Entries on
// the way to a new effect leave 256 KiB of them alone and are refused as ErrFull
// before anything is appended; outcomes of effects already sent use those.
//
// # Opening
//
// The owner's opening syncs the directory and the last segments, drops them from
// the page cache (after a failed sync the cache shows what the disk doesn't
// hold), reads and verifies everything, and begins a new segment. Only then are
// tails cut and empty segments removed; the new segment is the one that keeps
// the highest number used on the disk. An opening that dies on the way is
// repeated by the next one from what it left.
package journal
