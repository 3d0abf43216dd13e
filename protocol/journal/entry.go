package journal

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// ID names an effect: SHA-256 over namespace, request id and revision. The zero
// ID stands on entries that belong to no effect.
type ID [32]byte

// String is the ID as 64 hex digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether id names no effect.
func (id ID) IsZero() bool { return id == ID{} }

// MarshalText and UnmarshalText use the 64 hex digits of String.
func (id ID) MarshalText() ([]byte, error)     { return []byte(id.String()), nil }
func (id *ID) UnmarshalText(text []byte) error { return unhex(id[:], text) }

// Hash is a SHA-256 digest; the zero Hash means none.
type Hash [32]byte

// String is the Hash as 64 hex digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText and UnmarshalText use the 64 hex digits of String.
func (h Hash) MarshalText() ([]byte, error)     { return []byte(h.String()), nil }
func (h *Hash) UnmarshalText(text []byte) error { return unhex(h[:], text) }

func unhex(dst, text []byte) error {
	if len(text) != hex.EncodedLen(len(dst)) {
		return fmt.Errorf("journal: want %d hex digits, have %d characters", hex.EncodedLen(len(dst)), len(text))
	}
	_, err := hex.Decode(dst, text)
	return err
}

// Seq is a position in a log, counted from 1 without gaps; 0 is before the
// first entry.
type Seq uint64

// Token is the position of a DISPATCHED or FENCED entry, the fencing token of
// an attempt. A segment number is never used twice, so neither is a token, not
// even when a crash cut the entry that first carried it (C29).
type Token struct {
	Segment uint64 `json:"segment"`
	Seq     Seq    `json:"seq"`
}

// Less orders tokens by the time of their attempts.
func (t Token) Less(u Token) bool {
	return t.Segment < u.Segment || t.Segment == u.Segment && t.Seq < u.Seq
}

// String is "segment.seq", with both padded so that strings sort like tokens.
func (t Token) String() string { return fmt.Sprintf("%010d.%012d", t.Segment, t.Seq) }

// Entry is one record of the log.
type Entry struct {
	// Stamped by the store.
	Segment uint64    `json:"segment"`
	Seq     Seq       `json:"seq"`
	Time    time.Time `json:"time"`   // wall time of the append, UTC
	Prev    Hash      `json:"prev"`   // hash of the effect's previous entry; zero for its first and for entries without effect
	Before  Hash      `json:"before"` // hash of the log's previous entry; zero for the first
	Hash    Hash      `json:"hash"`   // over everything else in the entry, as Sum says

	// Given by the caller.
	Kind   Kind            `json:"kind"`
	Effect ID              `json:"effect"`
	Body   json.RawMessage `json:"body,omitempty"` // one JSON value, kept byte for byte; nil means none
}

// Token is the entry's position as a fencing token.
func (e Entry) Token() Token { return Token{Segment: e.Segment, Seq: e.Seq} }
