package protocol

import (
	"fmt"
	"slices"
	"strings"
)

// Status is where an effect stands after a submit or a recovery. The zero value
// is no status at all.
type Status struct {
	Final  Final
	Way    Way
	Reason Reason
}

// Final is the state of an effect.
type Final string

const (
	Committed  Final = "COMMITTED"
	Refused    Final = "REFUSED"
	Ambiguous  Final = "AMBIGUOUS"
	InFlight   Final = "IN_FLIGHT"  // not final: somebody is at it, or recovery decides
	NotYetSent Final = "NOT_SENT"   // not final: certainly not sent, still open
	Unresolved Final = "UNRESOLVED" // not final: recovery failed or found other content
)

// Way says how a committed effect came to be known as such.
type Way string

const (
	Directly  Way = ""                      // COMMITTED
	ByRetry   Way = "COMMITTED_BY_RETRY"    // the same key again, which the target absorbed or applied
	OnQuery   Way = "COMMITTED_ON_QUERY"    // a lookup found it
	Reapplied Way = "REAPPLIED_AFTER_QUERY" // honest absence, then a new attempt
	Duplicate Way = "DUPLICATE_IGNORED"     // it was committed before; nothing was done
	// Settled is a person's word that it landed; its string is COMMITTED.
	Settled Way = "COMMITTED_BY_PERSON"
)

// Reason says why an effect was refused or stays unresolved.
type Reason string

const (
	ConflictingPayload Reason = "conflicting_payload"
	Closed             Reason = "closed"
	TargetRejected     Reason = "target_rejected"
	DuplicateSymbol    Reason = "duplicate_symbol"
	LeaseDead          Reason = "lease"
	FalseAtDecision    Reason = "premise_false_at_decision"
	StalePremise       Reason = "stale_premise"
	OverBudget         Reason = "over_budget"
	LeaseAtRecovery    Reason = "lease_at_recovery"
	StaleAtRecovery    Reason = "stale_premise_at_recovery"
	ResolvedNotLanded  Reason = "resolved_not_landed"
	Mismatch           Reason = "mismatch"

	// A person's part (I7, I8).
	AwaitingDecision   Reason = "awaiting_decision"    // still open: a person was asked
	RejectedByPerson   Reason = "rejected"             // a person said no
	Undecided          Reason = "undecided"            // nobody on the route answered in time
	ApprovalAtRecovery Reason = "approval_at_recovery" // the approval didn't count any more when it was recovered
)

// String is the word that people and tables see: a committed effect's way, a
// refusal or an unresolved effect with its reason, else the state alone. The
// zero Status is "".
func (s Status) String() string {
	switch {
	case s.Final == Committed && s.Way != Directly && s.Way != Settled:
		return string(s.Way)
	case s.Reason != "":
		return string(s.Final) + ":" + string(s.Reason)
	}
	return string(s.Final)
}

// ParseStatus reads what String wrote. A commit by a person's word reads as
// COMMITTED, as it prints.
func ParseStatus(word string) (Status, error) {
	for _, way := range []Way{ByRetry, OnQuery, Reapplied, Duplicate} {
		if word == string(way) {
			return Status{Final: Committed, Way: way}, nil
		}
	}
	final, reason, _ := strings.Cut(word, ":")
	s := Status{Final: Final(final), Reason: Reason(reason)}
	if !slices.Contains(reasons[s.Final], s.Reason) || s.String() != word {
		return Status{}, fmt.Errorf("protocol: no status is called %q", word)
	}
	return s, nil
}

// reasons are what may stand behind each state.
var reasons = map[Final][]Reason{
	"":         {""},
	Committed:  {""},
	Ambiguous:  {""},
	InFlight:   {""},
	NotYetSent: {""},
	Unresolved: {"", Mismatch},
	Refused: {
		ConflictingPayload, Closed, TargetRejected, DuplicateSymbol, LeaseDead, FalseAtDecision, StalePremise, OverBudget,
		LeaseAtRecovery, StaleAtRecovery, ResolvedNotLanded,
		AwaitingDecision, RejectedByPerson, Undecided, ApprovalAtRecovery,
	},
}

// Statuses lists every status there is, in the order of the states above.
func Statuses() (all []Status) {
	for _, way := range []Way{Directly, ByRetry, OnQuery, Reapplied, Duplicate, Settled} {
		all = append(all, Status{Final: Committed, Way: way})
	}
	for _, final := range []Final{Refused, Ambiguous, InFlight, NotYetSent, Unresolved} {
		for _, reason := range reasons[final] {
			all = append(all, Status{Final: final, Reason: reason})
		}
	}
	return all
}

// MarshalText is String; UnmarshalText is ParseStatus.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *Status) UnmarshalText(text []byte) (err error) {
	*s, err = ParseStatus(string(text))
	return err
}
