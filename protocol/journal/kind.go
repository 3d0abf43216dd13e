package journal

import "fmt"

// Kind says what an entry records. The numbers are part of the file format: one
// is never changed or used again.
type Kind uint16

// The kinds. Those of the journal come first, those of the authority log next,
// those of the log itself last.
const (
	Proposed   Kind = 1  // a decision: payload, lease, premises
	Authorized Kind = 2  // lease and premises held; appended together with Dispatched
	Dispatched Kind = 3  // an attempt may leave from now on (I1)
	NotSent    Kind = 4  // an attempt is closed as certainly not sent, or declared not executed
	Committed  Kind = 5  // it landed, with the target's evidence
	Refused    Kind = 6  // it was refused, by whom and why
	Ambiguous  Kind = 7  // nobody can tell whether it landed
	Unresolved Kind = 8  // recovery of this one failed; it stays open
	Fenced     Kind = 9  // a fence is about to be asked for; its position is the token
	TakenOver  Kind = 10 // a claim changed hands without proof of death
	Resolved   Kind = 11 // a person settled what was ambiguous
	Conflicted Kind = 12 // a proposal was turned away: other content, or too late; settles nothing
	Escalated  Kind = 13 // it waits for a person: rule, group, deadline and the facts to decide on
	Decided    Kind = 14 // a person approved or rejected it
	Corrected  Kind = 15 // it is closed: a corrected payload is the next revision

	Granted  Kind = 32 // a principal granted a lease
	Revoked  Kind = 33 // a principal revoked one
	Budgeted Kind = 34 // a principal set a budget, or changed one
	Grouped  Kind = 35 // a principal said who belongs to a group
	Ruled    Kind = 36 // a principal said which effects go to which group

	Opened  Kind = 64 // first entry of a log: names its namespace and format
	Suspect Kind = 65 // a cut tail may have held an attempt of this effect
	Seal    Kind = 66 // proves that everything before it is durable
)

var kindNames = map[Kind]string{
	Proposed: "PROPOSED", Authorized: "AUTHORIZED", Dispatched: "DISPATCHED", NotSent: "NOT_SENT",
	Committed: "COMMITTED", Refused: "REFUSED", Ambiguous: "AMBIGUOUS", Unresolved: "UNRESOLVED",
	Fenced: "FENCED", TakenOver: "TAKEN_OVER", Resolved: "RESOLVED",
	Conflicted: "CONFLICTED", Escalated: "ESCALATED", Decided: "DECIDED", Corrected: "CORRECTED",
	Granted: "GRANTED", Revoked: "REVOKED", Budgeted: "BUDGETED", Grouped: "GROUPED", Ruled: "RULED",
	Opened: "OPENED", Suspect: "SUSPECT", Seal: "SEAL",
}

// Known reports whether this version knows the kind. Whoever folds a log refuses
// one that it doesn't know: it may take back what an older kind said.
func (k Kind) Known() bool { return kindNames[k] != "" }

// Proposes reports whether an entry of this kind opens its effect.
func (k Kind) Proposes() bool { return k == Proposed }

// Attempts reports whether an entry of this kind says that a request of its
// effect may be on its way.
func (k Kind) Attempts() bool { return k == Dispatched || k == Suspect }

// Settles reports whether an entry of this kind is an outcome of its effect:
// without a new proposal no attempt follows it.
func (k Kind) Settles() bool {
	return k == Committed || k == Refused || k == Ambiguous || k == Resolved || k == Corrected
}

// Reserved reports whether an entry of this kind may use the reserve of a full
// disk: all may but those on the way to a new effect.
func (k Kind) Reserved() bool {
	switch k {
	case Proposed, Authorized, Dispatched, Conflicted, Granted:
		return false
	}
	return true
}

// String is the kind's word, or KIND(n) for a number this version doesn't know.
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return fmt.Sprintf("KIND(%d)", uint16(k))
}

// MarshalText is String; UnmarshalText takes only known words.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

func (k *Kind) UnmarshalText(text []byte) error {
	for kind, name := range kindNames {
		if name == string(text) {
			*k = kind
			return nil
		}
	}
	return fmt.Errorf("journal: no entry kind is called %q", text)
}
