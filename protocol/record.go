package protocol

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// recordVersion is written into every body. A gate doesn't open a journal that
// holds a greater one: an effect in flight keeps its meaning across upgrades.
//
// A body that says nothing which version 1 doesn't know is written in version 1,
// byte for byte as before. Version 2 has budgets, symbols, secrets and what people
// decide: a gate that would read over them doesn't open the journal.
const recordVersion = 2

// versioned is a body that needs more than version 1, or may.
type versioned interface{ version() int }

func (b proposedBody) version() int {
	return since2(b.Proposal.Budget != "" || len(b.Proposal.Symbols) > 0 || len(b.Proposal.Secrets) > 0 || b.Rule != "" || b.Corrects != nil)
}
func (b authorizedBody) version() int { return since2(b.Grant.Budget != "" || b.Grant.Corrections > 0) }
func (b dispatchedBody) version() int { return since2(b.Draw != nil || b.Decision != nil) }
func (b refusedBody) version() int    { return since2(len(b.Held) > 0) }
func (b notSentBody) version() int    { return since2(b.Absence != nil) }
func (b grantedBody) version() int    { return since2(b.Lease.Budget != "" || b.Lease.Corrections > 0) }
func (b budgetedBody) version() int   { return 2 }

func since2(needed bool) int {
	if needed {
		return 2
	}
	return 1
}

// Position is an entry of a log, with the hash that proves it.
type Position struct {
	Segment uint64       `json:"segment"`
	Seq     journal.Seq  `json:"seq"`
	Hash    journal.Hash `json:"hash"`
}

// Reading is one premise as it was read for one attempt.
type Reading struct {
	Name  string          `json:"name"`
	Whose string          `json:"whose,omitempty"`
	Value json.RawMessage `json:"value"`
	At    time.Time       `json:"at"` // when the answer was in
}

// Absence is why "not found" counted (I10).
type Absence struct {
	Basis   string         `json:"basis"`             // "fenced" or "bound"
	Token   *journal.Token `json:"token,omitempty"`   // of the fence
	Bound   time.Duration  `json:"bound,omitempty"`   // landing bound that passed
	Assumed string         `json:"assumed,omitempty"` // whose assumption the bound is; "" is the target's promise
	Lag     time.Duration  `json:"lag,omitempty"`     // of the lookup, passed as well
	Asked   time.Time      `json:"asked"`             // when the lookup began
}

// The bodies of the journal's entries, one per kind.
type (
	proposedBody struct {
		Namespace string   `json:"namespace"`
		Revision  uint64   `json:"revision"`
		Proposal  Proposal `json:"proposal"`             // canonical, with digests in the place of secrets
		SecretKey string   `json:"secret_key,omitempty"` // id of the key that they were made with
		// Rule is what it needed a person by when it was recorded. From then on it
		// does, so that a journal without its decisions doesn't look like one that
		// needed none.
		Rule     string     `json:"rule,omitempty"`
		Corrects *corrected `json:"corrects,omitempty"` // revision above 0
	}
	authorizedBody struct {
		Grant   Lease       `json:"grant"` // the lease as granted
		Granted journal.Seq `json:"granted"`
		Held    []string    `json:"held"` // the guards that were asked, and held
	}
	dispatchedBody struct {
		Proposed  journal.Seq `json:"proposed"`         // the decision it carries out
		Lease     string      `json:"lease"`            // that it runs under
		Holds     string      `json:"holds"`            // the first lease of its line, whose uses are counted
		Authority Position    `json:"authority"`        // head of the authority log (I4)
		Read      []Reading   `json:"read"`             // premises (I3)
		Resend    bool        `json:"resend,omitempty"` // under the same key while an earlier attempt may land (R2)
		Absence   *Absence    `json:"absence,omitempty"`
		// Decision is the approval that it rests on (I7): the hash of a DECIDED entry,
		// or the digest of a correction whose person accepted it.
		Decision *journal.Hash `json:"decision,omitempty"`
		Bound    duration      `json:"bound,omitempty"` // landing bound declared at the time
		Assumed  string        `json:"assumed,omitempty"`
		Window   duration      `json:"window,omitempty"` // dedup window
		Margin   duration      `json:"margin,omitempty"`
		Draw     *Draw         `json:"draw,omitempty"` // what the effect holds of a budget from here on (I9)
	}
	notSentBody struct {
		Attempt journal.Token `json:"attempt"`
		Unsent  bool          `json:"unsent"` // certainly no byte left; false: the target declared it not executed
		Why     string        `json:"why"`
		Absence *Absence      `json:"absence,omitempty"` // settled as not landed, and nobody brought what a new attempt needs
	}
	committedBody struct {
		Attempt *journal.Token  `json:"attempt,omitempty"` // whose answer it is; none after a lookup
		Way     Way             `json:"way,omitempty"`
		Result  json.RawMessage `json:"result,omitempty"` // the target's evidence, whole
	}
	refusedBody struct {
		Reason   Reason         `json:"reason"`
		Attempt  *journal.Token `json:"attempt,omitempty"`
		Agent    string         `json:"agent"`
		Lease    string         `json:"lease"`
		Effect   *Effect        `json:"effect,omitempty"` // what was turned away
		Digest   journal.Hash   `json:"digest"`           // of its content
		Why      string         `json:"why"`
		Read     []Reading      `json:"read,omitempty"`
		Absence  *Absence       `json:"absence,omitempty"`
		Rejected bool           `json:"rejected,omitempty"` // by the target, for good
		Held     []Holding      `json:"held,omitempty"`     // who holds what it needs
	}
	ambiguousBody struct {
		Why string `json:"why"`
	}
	unresolvedBody struct {
		Reason Reason          `json:"reason"`
		Found  json.RawMessage `json:"found,omitempty"`
	}
	fencedBody    struct{}
	takenOverBody struct{}
	escalatedBody struct {
		Escalation Escalation `json:"escalation"`
	}
	decidedBody struct {
		Decision Decision          `json:"decision"`
		Key      ed25519.PublicKey `json:"key,omitempty"` // that the signature was checked with; none: attested only
	}
	correctedBody struct {
		corrected
		Effect journal.ID `json:"effect"` // the next revision
	}
	// corrected is a correction as accepted, on the entry that closes the original
	// and on the one that proposes the next revision.
	corrected struct {
		Correction Correction        `json:"correction"`
		Key        ed25519.PublicKey `json:"key,omitempty"`
		Basis      string            `json:"basis"` // why the original counts as not landed
	}
	groupedBody struct {
		Group Group `json:"group"`
	}
	ruledBody struct {
		Rule Rule `json:"rule"`
	}
	grantedBody struct {
		Lease Lease `json:"lease"`
	}
	revokedBody struct {
		Lease string `json:"lease"`
	}
	budgetedBody struct {
		Budget Budget `json:"budget"`
	}
)

type duration = time.Duration

// record makes an entry of a body.
func record(kind journal.Kind, effect journal.ID, body any) (journal.Entry, error) {
	v := 1
	if b, ok := body.(versioned); ok {
		v = b.version()
	}
	raw, err := encode(struct {
		V    int `json:"v"`
		Body any `json:"body"`
	}{v, body})
	return journal.Entry{Kind: kind, Effect: effect, Body: raw}, err
}

// decoded is an entry whose body is decoded once, for the fold and for the
// receipt.
type decoded struct {
	journal.Entry
	body any // nil until somebody asks
}

// read is bodyOf for an entry that may have been decoded before.
func read[T any](e *decoded) (T, error) {
	if b, ok := e.body.(T); ok {
		return b, nil
	}
	b, err := bodyOf[T](e.Entry)
	if err == nil {
		e.body = b
	}
	return b, err
}

// bodyOf reads what record wrote.
func bodyOf[T any](e journal.Entry) (T, error) {
	var box struct {
		V    int `json:"v"`
		Body T   `json:"body"`
	}
	if err := json.Unmarshal(e.Body, &box); err != nil {
		return box.Body, fmt.Errorf("protocol: entry %d, %v: %w: %w", e.Seq, e.Kind, journal.ErrFormat, err)
	}
	if box.V < 1 || box.V > recordVersion {
		return box.Body, fmt.Errorf("protocol: entry %d, %v, has version %d: %w", e.Seq, e.Kind, box.V, journal.ErrFormat)
	}
	return box.Body, nil
}

// saying names what a refusal turned away, so that it is recorded once.
func (b refusedBody) saying() journal.Hash {
	said := prefixed(make([]byte, 0, 512), string(b.Reason))
	said = prefixed(said, b.Agent)
	said = prefixed(said, b.Lease)
	return sha256.Sum256(append(said, b.Digest[:]...))
}
