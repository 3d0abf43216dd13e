package experiments

import (
	"slices"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// steps are where a column passes what rows call by other names, in the first
// passage that means it.
type steps struct {
	intent   faults.Fault // what the send rests on is about to be written
	decision faults.Fault // its record of the decision is durable
	outcome  faults.Fault // and that of the outcome
	settling trace.Point  // passed by every start while the effect isn't settled
}

// What the columns pass. The first entry of a log is its own.
var (
	forgets = steps{settling: sim.ReplyReceived}
	replays = steps{settling: sim.ReplyReceived, intent: faults.Fault{At: pointDecided, Passage: 1}, decision: faults.Fault{At: journal.Synced, Passage: 2}, outcome: faults.Fault{At: journal.Synced, Passage: 3}}
	checks  = steps{settling: pointDecided, intent: replays.intent, decision: replays.decision, outcome: replays.outcome}
	gates   = steps{
		settling: protocol.PointClaimed,
		intent:   faults.Fault{At: protocol.PointLeaseShared, Passage: 1},
		decision: faults.Fault{At: protocol.PointProposed, Passage: 1},
		outcome:  faults.Fault{At: protocol.PointOutcomeDurable, Passage: 1},
	}
)

// places are the faults of a row where a column meets them.
func (s steps) places(of []faults.Fault) []faults.Fault {
	var placed []faults.Fault
	for _, f := range of {
		switch f.At {
		case "intent":
			f.At, f.Passage = s.intent.At, s.intent.Passage
		case "decision-durable":
			f.At, f.Passage = s.decision.At, s.decision.Passage
		case "outcome-durable":
			f.At, f.Passage = s.outcome.At, s.outcome.Passage
		case "settling":
			if f.At = s.settling; f.Passage == 1 { // nothing is unsettled before an answer was on its way
				f.At = sim.ReplyReceived
			}
		}
		placed = append(placed, f)
	}
	return placed
}

// everyStep are the trials that follow from o in a row that kills at every step
// of the restart: one for each step that the restart passed, and behind it one
// in which the next start is killed at the same step, where it passes that. A
// column that writes a journal is swept on the file that forgives less.
func everyStep(row faults.Row, o Outcome) (trials []faults.Trial) {
	if len(o.Trial.Axes) > 0 && fileOf(o.Trial) != fileLossy {
		return nil
	}
	had := o.Trial.Faults
	last := had[len(had)-1]
	for _, f := range passages(o.History, true, true) {
		again := len(had) == len(row.Faults)+1 && f.At == last.At && f.Passage == last.Passage+1
		if len(had) == len(row.Faults) || again {
			t := o.Trial
			t.Faults = slices.Concat(had, []faults.Fault{f})
			trials = append(trials, t)
		}
	}
	return trials
}

// has says whether a column has what a row needs to mean something.
func (c column) has(need string) bool {
	switch need {
	case "":
		return true
	case "journal":
		return c.journaled
	case "keys":
		profile, _ := sim.ProfileNamed(profileOf(c.Name))
		return profile.DedupWindow > 0
	case "gate", "payload", "premises": // it is given them as bytes, and as names
		return c.gate
	}
	return false
}
