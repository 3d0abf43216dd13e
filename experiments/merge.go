package experiments

import (
	"slices"

	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// merge makes the record of a cell from its judged trials, of which there is at
// least one. The worst gives cell, verdict, figures and replay; of equals it is
// the first. sum gives the extra; where it is nil, the worst does.
func merge(outcomes []Outcome, sum func([]Outcome) map[string]any) Record {
	var classes []oracle.Class
	counts := map[string]int{}
	broken := map[string]bool{}
	answer, record, unfired := oracle.Agrees, len(grades)-1, 0
	for _, o := range outcomes {
		v := o.Verdict
		classes = append(classes, v.Class)
		counts[v.Class.String()]++
		unfired += v.Unfired
		for _, rule := range v.Broke {
			broken[rule] = true
		}
		if v.Answer != oracle.Agrees {
			answer = oracle.Disagrees
		}
		record = min(record, max(0, slices.Index(grades, o.Record)))
	}
	class := oracle.Worst(classes...)
	worst := outcomes[slices.Index(classes, class)]
	broke := []string{}
	for _, rule := range oracle.Rules {
		if broken[rule.Name] {
			broke = append(broke, rule.Name)
		}
	}
	extra := worst.Extra
	if sum != nil {
		extra = sum(outcomes)
	}
	if extra == nil {
		extra = map[string]any{}
	}
	t := worst.Trial
	return Record{
		V:          version,
		ID:         CellID(t.Experiment, t.Table, t.Row, t.Column),
		Experiment: t.Experiment,
		Row:        t.Row,
		Column:     t.Column,
		Axes:       axes(t),
		Cell:       worst.Status + " " + shown(worst.Verdict),
		Verdict:    class.String(),
		Trials:     len(outcomes),
		Counts:     counts,
		Broke:      broke,
		Unfired:    unfired,
		Answer:     answer,
		Record:     grades[record],
		Attempts:   worst.Verdict.Attempts,
		Requests:   worst.Verdict.Requests,
		ModelCalls: worst.Verdict.ModelCalls,
		Replay:     t.String(),
		Extra:      extra,
	}
}
