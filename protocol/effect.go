package protocol

import (
	"encoding/json"
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
}

// Limit bounds one payload field. A payload without the field is not covered.
type Limit struct {
	Field  string          `json:"field"`            // top-level name, or names joined with dots
	Max    string          `json:"max,omitempty"`    // decimal number, inclusive; the field must be a finite JSON number
	Equals json.RawMessage `json:"equals,omitempty"` // JSON value the field must equal
}

// EffectID is the id of request's effect at the given revision: SHA-256 over the
// length-prefixed namespace, request id and revision. It is also the idempotency
// key. No model output takes part in it.
func EffectID(namespace, request string, revision uint64) journal.ID { panic("being written") }
