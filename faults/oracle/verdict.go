// Package oracle judges a trial from its history, and from nothing else.
package oracle

import (
	"errors"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
)

// Class is the judgement of a trial; of several the greater is the worse. The
// zero value is Unknown, which is never a pass.
type Class int

const (
	Unknown Class = iota
	Correct
	Ambiguous
	FalseRefusal
	Stuck
	Stale
	Unauthorized
	Lost
	Duplicate
)

// Verdict is what the judge says of one history.
type Verdict struct {
	Class Class
	Money int64    // cents that left for the approved cases, by whomever
	Broke []string // names of the rules that found something, in the order of Rules
	Why   []string // a sentence for each, with event numbers

	Answer     string // "agrees" or "disagrees": what the caller was told, against the ledger
	Attempts   int    // requests by the column that asked for money, as the service read them, resends included
	Requests   int    // everything the column sent to the service
	ModelCalls int
	Unfired    int           // planned faults that never happened
	Settled    time.Duration // from the first death to the last answer, virtual; 0 where nobody died
}

// Judge applies every rule.
func Judge(h history.History) Verdict { panic(errors.New("being written")) }
