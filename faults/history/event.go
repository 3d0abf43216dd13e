// Package history is what happened in one trial, in one order.
//
// The supervisor writes it: every message of a child and every step of the
// service and the world is recorded before its sender goes on, so the order of
// events is the order in which they happened. The judge reads nothing else.
package history

import (
	"encoding/json"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// Event is one thing that happened.
type Event struct {
	N       int             `json:"n"`                 // from 1, without gaps
	At      time.Duration   `json:"at"`                // virtual monotonic time since the trial began, ns
	Who     string          `json:"who"`               // "worker#1" is the first start of the column; "service", "principal", "person", "supervisor"
	Kind    Kind            `json:"kind"`              //
	Point   trace.Point     `json:"point,omitempty"`   // Passed
	Subject string          `json:"subject,omitempty"` // effect id, request id or order, where there is one
	Body    json.RawMessage `json:"body,omitempty"`    // the type that Kind names
}

// History is the events of one trial in order.
type History []Event

// Kind says what an event is, and with it the type of its body.
type Kind string

const (
	Declared  Kind = "declared"  // Declaration: what the judge holds the trial to
	Started   Kind = "started"   // a process began; Who numbers it
	Passed    Kind = "passed"    // a point; Point says which
	Modelled  Kind = "modelled"  // Decision: the model was called and answered
	Told      Kind = "told"      // Answer: what the column told its caller
	Finished  Kind = "finished"  // a process says that it is done
	Killed    Kind = "killed"    // a process died of the supervisor's SIGKILL, as asserted
	Stopped   Kind = "stopped"   // a process stands still since the supervisor's SIGSTOP, as asserted
	Continued Kind = "continued" // and goes on, after SIGCONT
	Exited    Kind = "exited"    // Exit: a process ended by itself
	Hung      Kind = "hung"      // Exit: a process did not come to an end; Text has its stacks

	Acted    Kind = "acted"    // Action: something in the world was done; its effects follow as events of their own
	Granted  Kind = "granted"  // Lease
	Revoking Kind = "revoking" // Lease: a principal began to revoke
	Revoked  Kind = "revoked"  // Lease: the revocation returned
	Changed  Kind = "changed"  // Order: the facts of an order are now these
	Forgot   Kind = "forgot"   // the service forgot its idempotency keys

	Requested Kind = "requested" // Request: the service read a whole request to do something
	Applied   Kind = "applied"   // Landing: money moved
	Discarded Kind = "discarded" // Request: too old to be applied any more
	Answered  Kind = "answered"  // Reply: the service's answer, sent or withheld
	Asked     Kind = "asked"     // Question: the service was asked something that changes nothing

	Unfired Kind = "unfired" // Fault: a planned fault never came to its point
)

// Declaration opens a history: who approved what, and what the service can do.
type Declaration struct {
	Approved []Approval `json:"approved"`
	Service  Service    `json:"service"`
	Caps     []Cap      `json:"caps,omitempty"`
}

// Cap is what several cases may take together.
type Cap struct {
	Name  string   `json:"name"`
	Max   int64    `json:"max"` // cents
	Cases []string `json:"cases"`
}

// Approval is one approved request: exactly one effect of this content may land.
type Approval struct {
	Request string `json:"request"`
	Order   string `json:"order"`
	Case    string `json:"case"`
	Amount  int64  `json:"amount"` // cents
	Agent   string `json:"agent"`
	Lease   string `json:"lease"`
}

// Service is what the judge needs to know of the target's capabilities. Zero
// means the service can't, doesn't or doesn't know.
type Service struct {
	DedupWindow  time.Duration `json:"dedup_window,omitempty"`
	Lookup       bool          `json:"lookup,omitempty"`
	LookupWindow time.Duration `json:"lookup_window,omitempty"`
	LandingBound time.Duration `json:"landing_bound,omitempty"`
	Conditional  bool          `json:"conditional,omitempty"`
	Fencing      bool          `json:"fencing,omitempty"`
}

// Decision is one answer of the model.
type Decision struct {
	Request string `json:"request"`
	Amount  int64  `json:"amount"`
}

// Answer is what a column told its caller about one request.
type Answer struct {
	Request string `json:"request"`
	Amount  int64  `json:"amount"` // of the payload the caller had asked for
	Status  string `json:"status"` // the column's own word
	Says    Says   `json:"says"`   // what that word claims
	During  string `json:"during"` // "submit" or "recover"
}

// Says is what an answer claims about the world.
type Says string

const (
	SaysDone    Says = "done"    // it happened
	SaysNot     Says = "not"     // it did not and will not happen by this answer
	SaysUnknown Says = "unknown" // nobody can tell; a person must look
	SaysPending Says = "pending" // not settled yet
)

// Exit is how a process ended.
type Exit struct {
	Code int    `json:"code"`
	Text string `json:"text,omitempty"` // last lines of its standard error, or its stacks
}

// Action is a named act of the world.
type Action struct {
	Action string `json:"action"`
}

// Lease is an event in the life of a lease.
type Lease struct {
	Lease    string        `json:"lease"`
	Holder   string        `json:"holder,omitempty"`
	Case     string        `json:"case,omitempty"`
	Max      int64         `json:"max,omitempty"`     // cents
	Expires  time.Duration `json:"expires,omitempty"` // since the trial began, by true wall time; 0: never
	Uses     int           `json:"uses,omitempty"`    // 0: no limit
	Replaces string        `json:"replaces,omitempty"`
	Doubt    int           `json:"doubt,omitempty"` // Revoked: effects in doubt under it that the principal was told of
}

// Order is the state of one order in the service.
type Order struct {
	Order    string `json:"order"`
	Eligible bool   `json:"eligible"`
	Paid     int64  `json:"paid"`     // cents
	Refunded int64  `json:"refunded"` // cents, all refunds
}

// Request is one request as the service read it.
type Request struct {
	Order  string `json:"order"`
	Case   string `json:"case"`
	Amount int64  `json:"amount"`
	Effect string `json:"effect,omitempty"` // the client's reference, where it sent one
	Key    string `json:"key,omitempty"`    // idempotency key, where it sent one
	Token  string `json:"token,omitempty"`  // fencing token, where it sent one
	Anchor string `json:"anchor,omitempty"`
	Number int    `json:"number"` // of this request at the service, from 1
}

// Landing is one line of the service's ledger.
type Landing struct {
	ID      string `json:"id"` // of the refund
	Order   string `json:"order"`
	Case    string `json:"case"`
	Amount  int64  `json:"amount"`
	Effect  string `json:"effect,omitempty"`
	Request int    `json:"request,omitempty"` // number of the request that did it; 0: a person's hand
}

// Reply is what the service answered, or would have.
type Reply struct {
	Request  int    `json:"request"`
	Code     int    `json:"code"`
	Word     string `json:"word"`               // "ok", "already_processed", …
	Withheld bool   `json:"withheld,omitempty"` // never left the service
}

// Question is a read: a lookup, an order, a lease.
type Question struct {
	What   string `json:"what"`
	Answer string `json:"answer"`
	Wrong  bool   `json:"wrong,omitempty"`  // the service showed money that its ledger doesn't have
	Effect string `json:"effect,omitempty"` // what the asker says it asks for, where it says so
}
