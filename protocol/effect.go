package protocol

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Effect is what is to be done at a target.
type Effect struct {
	Action  string          `json:"action"`  // names a registered target
	Payload json.RawMessage `json:"payload"` // JSON; equal values are equal payloads (I5)
}

// Proposal is a decision on its way to becoming an effect.
type Proposal struct {
	Request  string    `json:"request"` // request id from the system of record, never from a model
	Agent    string    `json:"agent"`
	Lease    string    `json:"lease"`
	Premises []Premise `json:"premises,omitempty"`
	Effect   Effect    `json:"effect"`
	// Budget names the budget that the effect draws on; "" is the one that the
	// lease requires, where it requires one.
	Budget string `json:"budget,omitempty"`
	// Symbols are names that the effect defines and no other effect may (I6). The
	// gate compares them byte for byte; that they are those of the payload is up to
	// the caller.
	Symbols []string `json:"symbols,omitempty"`
	// Secrets are fields of the payload, as in a Limit, that hold a string or a
	// number which nothing may keep. A digest under Config.SecretKeys stands in
	// their place everywhere but in the request itself, so that only a caller who
	// brings the payload again can have it sent again.
	Secrets []string `json:"secrets,omitempty"`
}

// Premise is a named fact the decision rests on.
type Premise struct {
	Name  string          `json:"name"`            // what the target is asked to observe
	Whose string          `json:"whose,omitempty"` // whose changes count, in the target's words; "" means everybody's
	Seen  json.RawMessage `json:"seen"`            // value when the agent decided
	At    time.Time       `json:"at"`              // when it was seen
	Holds Holds           `json:"holds"`           // what must hold later
	Want  json.RawMessage `json:"want,omitempty"`  // the expected value, for Equals
	// MaxAge limits how old Seen may be when the effect is dispatched; 0 sets no limit.
	MaxAge time.Duration `json:"max_age,omitempty"`
	// BeforeConnect lets the premise be read before the connection stands, for
	// reads that may hang.
	BeforeConnect bool `json:"before_connect,omitempty"`
}

// Holds says what must hold of a premise when the effect lands.
type Holds string

const (
	Unchanged Holds = "unchanged" // the value read later equals Seen
	Equals    Holds = "equals"    // the value read later equals Want
	ByTarget  Holds = "by_target" // the target checks it with the effect (Capabilities.Conditional)
)

// Lease is a grant of authority by a principal to a holder.
type Lease struct {
	ID        string    `json:"id"`
	Principal string    `json:"principal"`
	Holder    string    `json:"holder"` // the agent it is for
	Actions   []string  `json:"actions"`
	Limits    []Limit   `json:"limits,omitempty"`
	Expires   time.Time `json:"expires"`
	Uses      int       `json:"uses,omitempty"`     // number of effects, not of attempts; 0 sets no limit
	Replaces  string    `json:"replaces,omitempty"` // the lease it renews: same principal and holder, not wider, not revoked
	Budget    string    `json:"budget,omitempty"`   // that every effect under it draws on, named by its proposal or not; "" requires none
	// Corrections is how many corrected revisions of one request the grant accepts
	// with nobody asked (I8); 0: a person accepts each.
	Corrections int `json:"corrections,omitempty"`
}

// Limit bounds one payload field. A payload without the field is not covered.
type Limit struct {
	Field  string          `json:"field"`            // top-level name, or names joined with dots
	Max    string          `json:"max,omitempty"`    // decimal number, inclusive; the field must be a finite JSON number and not negative
	Equals json.RawMessage `json:"equals,omitempty"` // JSON value the field must equal
}

// EffectID is the id of request's effect at the given revision: SHA-256 over the
// length-prefixed namespace, request id and revision. It is also the idempotency
// key. No model output takes part in it.
func EffectID(namespace, request string, revision uint64) journal.ID {
	b := prefixed(make([]byte, 0, 512), namespace)
	b = prefixed(b, request)
	return sha256.Sum256(prefixed(b, strconv.FormatUint(revision, 10)))
}

// digest names the content of an effect: two effects are the same to the gate
// exactly when their digests are (I5). The payload is canonical.
func (e Effect) digest() journal.Hash {
	b := prefixed(make([]byte, 0, 512), e.Action)
	return sha256.Sum256(prefixed(b, e.Payload))
}

// digest names the content of what is proposed. Where nothing in it is secret it
// is the effect's.
func (p Proposal) digest() journal.Hash {
	if len(p.Secrets) == 0 {
		return p.Effect.digest()
	}
	b := prefixed(make([]byte, 0, 512), p.Effect.Action)
	b = prefixed(b, p.Effect.Payload)
	b = prefixed(b, "secrets")
	for _, field := range p.Secrets {
		b = prefixed(b, field)
	}
	return sha256.Sum256(b)
}

// prefixed appends a part with its length in front.
func prefixed[T string | json.RawMessage](b []byte, part T) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(part))), part...)
}

// unfitRequest says what is wrong with a request id; "" is nothing.
func unfitRequest(id string) string {
	if strings.HasPrefix(id, ".") {
		return "begins with a dot"
	}
	for _, r := range id {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-') {
			return "may hold only letters, digits, dot, hyphen and underscore"
		}
	}
	return unfitName(id)
}

// unfitName says what is wrong with the name of an agent, a lease, a principal,
// an action or a person; "" is nothing.
func unfitName(name string) string {
	if name == "" {
		return "is missing"
	}
	if len(name) > 128 {
		return "is longer than 128 characters"
	}
	for _, r := range name {
		if r < ' ' || r > '~' {
			return "may hold only printable ASCII"
		}
	}
	return ""
}

// doubles says whether o is about the same fact. A fact that the gate reads may
// also be checked by the target, in a premise of its own.
func (p Premise) doubles(o Premise) bool {
	return p.Name == o.Name && p.Whose == o.Whose && (p.Holds == ByTarget) == (o.Holds == ByTarget)
}

// canonical returns p with its payload and values in canonical form, or a
// *ProposalError.
func (p Proposal) canonical() (Proposal, error) {
	for _, f := range []struct{ field, why string }{
		{"the request id", unfitRequest(p.Request)},
		{"the agent", unfitName(p.Agent)},
		{"the lease", unfitName(p.Lease)},
		{"the action", unfitName(p.Effect.Action)},
	} {
		if f.why != "" {
			return p, &ProposalError{Field: f.field, Why: f.why}
		}
	}
	if why := unfitName(p.Budget); why != "" && p.Budget != "" {
		return p, &ProposalError{Field: "the budget", Why: why}
	}
	if why := unfitSymbols(p.Symbols); why != "" {
		return p, &ProposalError{Field: "the symbols", Why: why}
	}
	payload, err := Canonical(p.Effect.Payload)
	if err != nil {
		if len(p.Secrets) > 0 {
			err = nil // it may quote one
		}
		return p, &ProposalError{Field: "the payload", Why: "is no JSON object with one meaning", Err: err}
	}
	p.Effect.Payload = payload
	if why := p.unfitSecrets(); why != "" {
		return p, &ProposalError{Field: "the secrets", Why: why}
	}
	premises := make([]Premise, len(p.Premises))
	size := len(payload)
	for i, m := range p.Premises {
		if slices.ContainsFunc(premises[:i], m.doubles) {
			return p, &ProposalError{Field: m.about(), Why: "is there twice; one premise says what must hold of a fact"}
		}
		if premises[i], err = m.canonical(); err != nil {
			if bad := (*ProposalError)(nil); len(p.Secrets) > 0 && errors.As(err, &bad) {
				bad.Err = nil
			}
			return p, err
		}
		if size += len(premises[i].Seen) + len(premises[i].Want); size > maxProposal {
			return p, &ProposalError{Field: "the proposal", Why: fmt.Sprintf("is larger than %d bytes", maxProposal)}
		}
	}
	p.Premises = premises
	return p, nil
}

// maxProposal bounds payload and premises of one proposal together, in bytes.
const maxProposal = 4 << 20

// unfitTime says what is wrong with a time that is to be journaled; "" is
// nothing.
func unfitTime(t time.Time) string {
	if y := t.UTC().Year(); y < 1 || y > 9999 {
		return "lies outside the years 1 to 9999"
	}
	return ""
}

func (m Premise) canonical() (Premise, error) {
	field := fmt.Sprintf("premise %q", m.Name)
	if why := unfitName(m.Name); why != "" {
		return m, &ProposalError{Field: "the name of a premise", Why: why}
	}
	if why := unfitName(m.Whose); why != "" && m.Whose != "" {
		return m, &ProposalError{Field: field, Why: "names others by a text that " + why}
	}
	if m.MaxAge < 0 {
		return m, &ProposalError{Field: field, Why: "has a negative maximum age"}
	}
	if m.At.IsZero() {
		return m, &ProposalError{Field: field, Why: "doesn't say when it was seen"}
	}
	if why := unfitTime(m.At); why != "" {
		return m, &ProposalError{Field: field, Why: "was seen at a time that " + why}
	}
	switch m.Holds {
	case Unchanged, ByTarget:
	case Equals:
		if len(m.Want) == 0 {
			return m, &ProposalError{Field: field, Why: "must equal a value that is missing"}
		}
	default:
		return m, &ProposalError{Field: field, Why: fmt.Sprintf("says %q, which is no way to hold", m.Holds)}
	}
	m.At = m.At.UTC().Round(0)
	for _, value := range []*json.RawMessage{&m.Seen, &m.Want} {
		if value == &m.Want && len(m.Want) == 0 {
			continue
		}
		form, err := canonicalValue(*value)
		if err != nil {
			return m, &ProposalError{Field: field, Why: "has a value that is no JSON with one meaning", Err: err}
		}
		*value = form
	}
	return m, nil
}
