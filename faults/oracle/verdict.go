package oracle

import (
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
)

// Verdict is what the judge says of one history.
type Verdict struct {
	Class Class
	Money int64    // cents that left for the approved cases, by whomever
	Shown string   // what the trial came to, one word, where that isn't money
	Broke []string // names of the rules that found something, in the order of Rules
	Why   []string // a sentence for each finding, with event numbers

	Answer     string        // Agrees or Disagrees: what the caller was told, against the ledger
	Attempts   int           // requests by the column that asked for money, as the service read them, resends included
	Requests   int           // everything the column sent to the service
	ModelCalls int           // answers of the model
	Unfired    int           // planned faults that never happened
	Window     int           // landings that were right at the last look and wrong when applied; counted, not held against the column
	Settled    time.Duration // from the first death to the last answer, virtual; 0 where nobody died
}

// What a Verdict's Answer can be.
const (
	Agrees    = "agrees"
	Disagrees = "disagrees"
)

// Judge holds a history against its own declaration. It is a pure function.
//
// The history's assumptions come first: one that breaks them, that has a fault
// which never happened, or in which a process failed by itself, is Unknown
// whatever else is in it. Otherwise the class is the worst that a rule found,
// and Correct where none found anything. The figures are given either way, as
// far as the history can be read.
func Judge(h history.History) Verdict {
	r, flaws := read(h)
	v := Verdict{
		Money:      r.money(),
		Answer:     r.agreement(),
		Attempts:   len(r.requests),
		Requests:   len(r.requests) + r.asked,
		ModelCalls: r.modelled,
		Unfired:    r.unfired,
		Window:     r.window(),
		Settled:    r.settled(),
	}
	if len(flaws) > 0 {
		v.Why = flaws
		return v
	}
	v.Class = Correct
	for _, rule := range Rules {
		found := rule.Find(r)
		if len(found) == 0 {
			continue
		}
		v.Class = max(v.Class, rule.Class)
		v.Broke = append(v.Broke, rule.Name)
		v.Why = append(v.Why, found...)
	}
	return v
}
