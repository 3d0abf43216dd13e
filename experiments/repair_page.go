package experiments

import (
	"fmt"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/svg"
	"github.com/interlock-bench/interlock-bench/experiments/table"
)

// repairSweep are the mixes by how many cases are refunded by hand.
var repairSweep = []plotPoint{{"no_hands", 0}, {"reference", 17}, {"many_hands", 34}}

const repairAxis = "cases of 100 that are refunded by hand meanwhile"

var repairLines = []plotLine{
	{repairNone, "wrong", "wrong payouts, no-gate", svg.Bad, true},
	{repairGate, "persons", "needing a person, gate", svg.Accent, false},
	{repairRepair, "persons", "needing a person, gate+repair", svg.Good, false},
}

// repairPlot draws results/repair.svg.
func repairPlot(records []Record) string {
	return daysOf(records).plot("Cases that need a person, and wrong payouts", repairAxis, repairSweep, 60, repairLines)
}

// repairPage renders results/repair.md.
func repairPage(records []Record) string {
	d := daysOf(records)
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	m := repairMixes[0]

	p("# Repairing what was refused")
	p("Made by `interlock-bench repair --seed %s`. The day is drawn with its own, %d. **The mix is an assumption**, and the agent is a script, not a model.", indexRecords(records).seed(), daySeed)
	t := table.Table{Header: []string{"column", "cases that need no person", "wrong payouts", "paid beyond what was approved", "senders killed"}}
	for _, c := range Repair().Columns {
		t.Rows = append(t.Rows, []string{"`" + c.Name + "`", fmt.Sprint(100 - d.count("reference", c.Name, "persons")), fmt.Sprint(d.count("reference", c.Name, "wrong")),
			Money(int64(d.count("reference", c.Name, "over"))), fmt.Sprint(d.count("reference", c.Name, "killed"))})
	}
	b.WriteString(t.Markdown() + "\n")
	for _, c := range Repair().Columns {
		fmt.Fprintf(&b, "- `%s`: %s.\n", c.Name, c.What)
	}
	p("\n## The mix")
	p("Each of 100 cases approves $%d in all. %d are routine; of %d a person refunds $5 to $15 by hand between the agent's decision and its call, of %d the whole $%d; in %d the model decides $%d and, after a refusal, what is left; in %d it decides $%d whatever it hears; in %d the process is killed as the refund lands; in %d the call is delivered twice. The agent has %d decisions a case.",
		repairCase/100, m.routine, m.partial, m.full, repairCase/100, m.overshoot, repairOver/100, m.stubborn, repairOver/100, m.crashing, m.duplicate, repairTries)
	p("## By kind")
	k := table.Table{Header: []string{"kind", "cases"}}
	for _, c := range Repair().Columns {
		k.Header = append(k.Header, c.Name)
	}
	for _, kind := range []struct {
		name string
		n    int
	}{
		{"routine", m.routine}, {"partial_hand", m.partial}, {"full_hand", m.full}, {"overshoot", m.overshoot},
		{"stubborn", m.stubborn}, {"crash", m.crashing}, {"duplicate", m.duplicate},
	} {
		line := []string{"`" + kind.name + "`", fmt.Sprint(kind.n)}
		for _, c := range Repair().Columns {
			of := d.counts("reference", c.Name, "kinds")
			line = append(line, fmt.Sprintf("%d to a person, %d wrong", of[kind.name+" person"], of[kind.name+" wrong"]))
		}
		k.Rows = append(k.Rows, line)
	}
	b.WriteString(k.Markdown() + "\n")
	p("## Against the reference")
	persons := d.counts("reference", repairGate, "kinds")
	p("The first implementation of the idea measured 100, 97, 83 and 97 cases that need no person, with 40, 0, 13 and 0 wrong payouts. The gate here has %d and %d in the third. The difference is %d cases: the %d of `overshoot` and the %d of `stubborn`, whose first decision is of $%d. There a premise says what must not change and not how much is allowed, so those were paid. Here the lease covers $%d: they are refused, and without repair a person has each. The others of the third column are the same %d, whose facts changed.",
		100-d.count("reference", repairGate, "persons"), d.count("reference", repairGate, "wrong"),
		persons["overshoot person"]+persons["stubborn person"], persons["overshoot person"], persons["stubborn person"], repairOver/100, repairCase/100,
		persons["partial_hand person"]+persons["full_hand person"])
	var over []string
	for _, r := range m.cases() {
		if r.Kind == "overshoot" || r.Kind == "stubborn" {
			over = append(over, "`"+strings.TrimPrefix(r.ID, "case-")+"`")
		}
	}
	p("By case they are %s.", strings.Join(over, ", "))
	p("## A sweep of the mix")
	s := table.Table{Header: []string{"mix"}}
	for _, c := range Repair().Columns {
		s.Header = append(s.Header, c.Name)
	}
	for _, r := range Repair().Rows {
		line := []string{"`" + r.Name + "`"}
		for _, c := range Repair().Columns {
			line = append(line, fmt.Sprintf("%d need no person, %d wrong", 100-d.count(r.Name, c.Name, "persons"), d.count(r.Name, c.Name, "wrong")))
		}
		s.Rows = append(s.Rows, line)
	}
	b.WriteString(s.Markdown() + "\n")
	for _, r := range Repair().Rows {
		fmt.Fprintf(&b, "- `%s`: %s.\n", r.Name, r.What)
	}
	p("\n![Cases that need a person, and wrong payouts, by how many are refunded by hand](repair.svg)")
	b.WriteString("```\n" + d.text(repairAxis, repairSweep, repairLines) + "```\n\n")
	p("## What to make of it")
	p("A careful hand check needs as few people as the gate that repairs, and pays as little wrong. It bounds the amount by what the case has left, in one line; the gate's lease bounds it by a constant, and what is left after a refund by hand is the agent's arithmetic, on facts that must still be so when it is sent.")
	p("In the gate a payload that was decided again is a conflict until it is accepted as a correction: a new effect, after the old one is known not to have landed. Here the lease's own rule accepts two of a case. What it accepted is in the receipt of the revision, with why the original counts as not landed.")
	p("A wrong payout is a case that got more than it approves. A case that ended with a person may still be owed.")
	return strings.TrimSuffix(b.String(), "\n")
}
