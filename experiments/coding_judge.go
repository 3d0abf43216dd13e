package experiments

import (
	"fmt"
	"slices"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
	"github.com/interlock-bench/interlock-bench/targets/git"
)

// The kinds of events that only this experiment records.
const (
	codingDeclared history.Kind = "declared-code" // codingDeclaration: what the judge holds the trial to
	otherLanded    history.Kind = "other-landed"  // agent A's change is on the branch
	inspected      history.Kind = "inspected"     // inspection: the branch at the end, compiled and run
)

// codingDeclaration opens a history: what agent B may do.
type codingDeclaration struct {
	Request string
	Lease   string
	Defines string // the function that both agents implement; "" is none
	Retries bool   // B decides anew after a refusal
}

// inspection is what the branch holds at the end.
type inspection struct {
	Commits         int      `json:"commits"` // of B's request
	Implementations int      `json:"implementations"`
	Builds          bool     `json:"builds"`
	Lines           []string `json:"lines"`     // that the program prints of B's report; null where it fails
	Otherwise       []string `json:"otherwise"` // that it would print with B's change, where that isn't on the branch; null likewise
}

// judgeCoding judges a trial from its history: landed or not, once or twice, right
// or broken, allowed or not, and where it was refused, whether it would have been
// right. What is right is what the compiled program prints.
func judgeCoding(h history.History) oracle.Verdict {
	v := oracle.Verdict{Answer: oracle.Agrees}
	var d codingDeclaration
	var last *history.Answer
	var end *inspection
	var flaws []string
	landed, revoked, unauthorized := 0, false, false
	running := map[string]bool{}
	for i, e := range h {
		var err error
		switch e.Kind {
		case codingDeclared:
			d, err = history.Body[codingDeclaration](e)
		case history.Started:
			running[e.Who] = true
		case history.Killed, history.Finished:
			running[e.Who] = false
		case history.Exited:
			flaws = append(flaws, fmt.Sprintf("event %d: %s ended by itself", i+1, e.Who))
			running[e.Who] = false
		case history.Hung:
			v.Class, running[e.Who] = oracle.Stuck, false
			v.Why = append(v.Why, fmt.Sprintf("event %d: %s did not come to an end", i+1, e.Who))
		case history.Unfired:
			v.Unfired++
			flaws = append(flaws, fmt.Sprintf("event %d is a planned fault that never happened", i+1))
		case history.Modelled:
			v.ModelCalls++
		case history.Revoked:
			revoked = true
		case history.Passed:
			switch e.Point {
			case git.PointLanding:
				v.Attempts++
			case git.PointAsked:
				v.Requests++
			case git.PointLanded:
				landed++
				if revoked {
					unauthorized = true
					v.Why = append(v.Why, fmt.Sprintf("event %d: B's change landed under a revoked lease", i+1))
				}
			}
		case history.Told:
			var a history.Answer
			a, err = history.Body[history.Answer](e)
			last = &a
		case inspected:
			var s inspection
			s, err = history.Body[inspection](e)
			end = &s
		}
		if err != nil {
			flaws = append(flaws, fmt.Sprintf("event %d can't be read: %v", i+1, err))
		}
	}
	v.Requests += v.Attempts
	for who, alive := range running {
		if alive {
			flaws = append(flaws, "the history ends while "+who+" is running")
		}
	}
	if d.Request == "" || end == nil {
		flaws = append(flaws, "the history has no declaration, or nobody looked at the branch")
		end = &inspection{}
	}
	v.Shown = end.word(d)
	if last == nil {
		flaws = append(flaws, "agent B was told nothing")
	} else if (last.Says == history.SaysDone) != (end.Commits > 0) {
		v.Answer = oracle.Disagrees
	}
	if len(flaws) > 0 {
		slices.Sort(flaws)
		v.Class, v.Why = oracle.Unknown, flaws
		return v
	}
	class, why := end.class(d, *last, revoked)
	v.Class = max(v.Class, class)
	if unauthorized {
		v.Class = max(v.Class, oracle.Unauthorized)
	}
	if why != "" {
		v.Why = append(v.Why, why)
	}
	return v
}

// right says whether a program printed B's report as it should, once.
func right(lines []string) bool { return len(lines) == 1 && lines[0] == invoiceLine }

// word is what the branch came to.
func (s inspection) word(d codingDeclaration) string {
	switch {
	case d.Defines != "":
		return fmt.Sprintf("%d_impl", s.Implementations)
	case s.Commits == 0:
		return "not_landed"
	case s.Commits > 1 || len(s.Lines) > 1:
		return "landed_twice"
	case !right(s.Lines):
		return "landed_BROKEN"
	}
	return "landed_ok"
}

// class judges the end against what B was told last.
func (s inspection) class(d codingDeclaration, last history.Answer, revoked bool) (oracle.Class, string) {
	switch {
	case s.Implementations > 1:
		return oracle.Duplicate, fmt.Sprintf("the branch has %d implementations of %s", s.Implementations, d.Defines)
	case s.Commits > 1 || len(s.Lines) > 1:
		return oracle.Duplicate, fmt.Sprintf("B's change is on the branch in %d commits, and its report is printed %d times", s.Commits, len(s.Lines))
	case s.Commits > 0 && d.Defines == "" && !right(s.Lines):
		return oracle.Stale, fmt.Sprintf("what landed prints %q, not %q", s.Lines, invoiceLine)
	case s.Commits == 0 && last.Says == history.SaysDone:
		return oracle.Lost, "B was told that its change landed, and it is not on the branch"
	case last.Says == history.SaysPending || last.Says == history.SaysUnknown:
		return oracle.Stuck, "B was told " + last.Status + " last, and the repository could have been asked"
	case s.Commits == 0 && !revoked && d.Defines == "" && right(s.Otherwise):
		return oracle.FalseRefusal, "with B's change the program would print what it should"
	}
	return oracle.Correct, ""
}
