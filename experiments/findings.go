package experiments

import (
	"fmt"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// Violated is a line for each experiment and column: in how many of its rows it was
// violated, in how many a person must look, and how often its answer was wrong.
// Tables of an experiment are counted together.
func Violated(records []Record) string {
	type key struct{ experiment, column string }
	var order []key
	of := map[key]*score{}
	rows := map[key]int{}
	for _, r := range records {
		k := key{r.Experiment, r.Column}
		if of[k] == nil {
			order, of[k] = append(order, k), new(score)
		}
		of[k].add(r)
		rows[k]++
	}
	t := table.Table{Header: []string{"experiment", "column", "cells", "violated", "a person must look", "wrong answers", "full records"}}
	for _, k := range order {
		t.Rows = append(t.Rows, append([]string{k.experiment, "`" + k.column + "`"}, ints(rows[k], of[k].violated, of[k].look, of[k].wrong, of[k].full)...))
	}
	return t.Markdown()
}

// HandChecks says, for each hand check beside the gate of the same experiment at
// the same service, in which rows it ties and in which it loses.
func HandChecks(records []Record) string {
	var b strings.Builder
	for _, m := range matches(records) {
		if !strings.HasPrefix(family(m.column), "hand-check") {
			continue
		}
		_, _, loses, wins := m.outcome()
		apart := map[string]bool{}
		for _, row := range append(append([]string{}, loses...), wins...) {
			apart[row] = true
		}
		var ties []string
		for _, c := range m.cells {
			name := c.it.Row
			if t := c.it.Table(); t != "" {
				name = t + "/" + name
			}
			if !apart[name] {
				ties = append(ties, name)
			}
		}
		fmt.Fprintf(&b, "- %s, `%s` beside `%s`. Ties in %d of %d: %s. Loses in %d: %s. Does better in %d: %s.\n",
			m.experiment, m.column, m.gate, len(ties), len(m.cells), list(ties), len(loses), list(loses), len(wins), list(wins))
	}
	return b.String()
}

// Exception is a cell of a gate that isn't ✅ although the service could be asked,
// and why.
type Exception struct {
	Class   oracle.Class
	Row     string
	Columns []string
	Why     string
}

// Exceptions are all of them, for the refund at the simulated service: rows of the
// experiments refund and faults. What isn't here is broken. A cell AMBIGUOUS at a
// service that can't be asked, or that doesn't say how late a request may land, is
// the contract's own answer and no exception.
var Exceptions = []Exception{
	{oracle.Duplicate, "wire_doubled", []string{"gate@t2", "gate@t3", "gate@conditional", "gate@fenced"},
		"A middle delivers one request twice. The gate sent it once; a service that dedupes absorbs the second, no other can tell it from the first."},
	{oracle.Unauthorized, "clock_behind_at_expiry", []string{"gate@t1", "gate@t2", "gate@t3", "gate@conditional", "gate@fenced"},
		"The worker's clock is an hour behind, clocks may differ by a second, and no log has an entry from behind the lease's end: nothing that the gate can read says that the lease is over."},
	{oracle.FalseRefusal, "clock_ahead_at_expiry", []string{"gate@t1", "gate@t2", "gate@t3", "gate@conditional", "gate@fenced"},
		"The worker's clock is an hour ahead, and to believe the later clock is the safe side."},
	{oracle.FalseRefusal, "unrelated_change_total_premise", []string{"gate@t1", "gate@t2", "gate@conditional", "gate@fenced"},
		"The premise is the order's total, which anybody's refund changes: the caller asked for that. Attributed to the case it completes."},
	{oracle.Ambiguous, "lookup_forgot", []string{"gate@t1", "gate@t2", "gate@conditional", "gate@fenced"},
		"The windows of key and lookup are over: whoever is asked has forgotten."},
	{oracle.Ambiguous, "lookup_other_amount", []string{"gate@t1", "gate@t2", "gate@conditional", "gate@fenced"},
		"Other money than was asked for stands under the effect's own id: a person settles it."},
	{oracle.Ambiguous, "key_expired_no_lookup", []string{"gate@t1"},
		"The key is forgotten and the service can't be asked."},
	{oracle.Ambiguous, "crash_on_the_wire_unbounded", []string{"gate@t2", "gate@conditional"},
		"The service doesn't say how late a request may land."},
}

// exceptions renders them.
func exceptions() string {
	var b strings.Builder
	for _, e := range Exceptions {
		fmt.Fprintf(&b, "- `%s`, %s in %s: %s\n", e.Row, e.Class, list(e.Columns), e.Why)
	}
	return b.String()
}

// FindingsBlocks are the generated parts of docs/findings.md, by name.
func FindingsBlocks(records []Record) map[string]string {
	return map[string]string{"violated": Violated(records), "hand-checks": HandChecks(records), "exceptions": exceptions()}
}
