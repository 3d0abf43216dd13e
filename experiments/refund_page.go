package experiments

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/baselines"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// refundPage renders results/refund.md. Every figure and every list of cells in
// it is taken from the records.
func refundPage(records []Record) string {
	r := indexRecords(records)
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }

	p("# One approved $20 refund, %d ways to go wrong", len(faults.Reference))
	p("Made by `interlock-bench refund --seed %s`. Every cell is real processes killed by SIGKILL, judged from the service's own ledger; `results/refund.jsonl` holds one record per cell, with the line that replays it.", r.seed())
	p("✅ held · ❌ violated · ⚠️ held, and a person must look · — not judged, or the fault did not fire")

	p("## The reference table")
	b.WriteString(refundDesk.table(r, "", faults.Reference, referenceColumns).Markdown() + "\n")

	p("## What a careful engineer writes by hand")
	p("The hand check sends a stable key, asks the service what landed, reads lease and facts again before every send and writes a synced line for each step. At t3, where the service offers neither key nor lookup, it stops for a person when its log holds a send without a result; the unmarked variant doesn't.")
	b.WriteString(refundDesk.table(r, "", faults.Reference, handChecks).Markdown() + "\n")
	b.WriteString(linesTable().Markdown() + "\n")

	p("## When the service can't say how late a request may land")
	p("The same rows and services, with the landing bound undeclared. A service that doesn't say how late a request may still land makes \"not found\" worthless until it can fence.")
	b.WriteString(refundDesk.table(r, tableUnbounded, faults.Reference, unboundedColumns()).Markdown() + "\n")

	p("## Beside the money")
	p("`answer`: cells in which what the caller was told disagrees with the ledger. `record`: cells whose own artefacts show who acted, what was done, which checks held and every attempt, the killed one included. Requests and model calls are sums over the cells' worst trials.")
	b.WriteString(r.besideMoney().Markdown() + "\n")
	if wrong := r.wrongAnswers(); wrong != "" {
		p("What the caller was told disagrees with the ledger in %s.", wrong)
	}

	p("## What happens in each row")
	for _, row := range faults.Reference {
		fmt.Fprintf(&b, "- `%s`: %s\n", row.Name, row.What)
	}
	b.WriteString("\n")

	p("## How to read a cell")
	p("`COMMITTED_ON_QUERY $20 ✅`: the column's last word to its caller, the money that left the service for this case by whatever hand, and the judge's mark. $20 is right, or $0 where the authority or the order's eligibility went away before anything landed. The reference order was paid $100, so a second partial refund can't hide behind a full one.")
	p("A column that writes a journal runs each row twice: on a plain file, where a kill keeps what was written, and on a file that loses what was not synced. The cell is the worse of the two.")
	p("t1 absorbs a repeated key for 24 h, can be asked what landed, and applies a request within 30 s or never. t2 can be asked and has the same bound. t3 does neither.")

	p("## Findings")
	p("The third, that a premise's granularity is a dial with a floor, is [coding.md](coding.md)'s.")
	for _, f := range r.findings() {
		p("%s", f)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (r recordIndex) at(tableName, row, column string) (Record, bool) {
	return refundDesk.at(r, tableName, row, column)
}

// linesTable says how long the baselines are.
func linesTable() table.Table {
	t := table.Table{Header: []string{"column", "lines of the check", "lines of its file"}}
	for _, s := range baselines.Sizes() {
		t.Rows = append(t.Rows, []string{"`" + s.Name + "`", fmt.Sprint(s.Check), fmt.Sprint(s.File)})
	}
	return t
}

func (r recordIndex) besideMoney() table.Table {
	t := table.Table{Header: []string{"column", "cells", "violated", "to look at", "answer disagrees", "record full", "requests", "model calls"}}
	for _, c := range refundColumns {
		var cells, bad, look, wrong, full, requests, calls int
		for _, row := range faults.Reference {
			record, ok := r.at("", row.Name, c.Name)
			if !ok {
				continue
			}
			cells++
			switch record.Class().Word() {
			case "BAD":
				bad++
			case "look":
				look++
			}
			if record.Answer == "disagrees" {
				wrong++
			}
			if record.Record == recordFull {
				full++
			}
			requests += record.Requests
			calls += record.ModelCalls
		}
		t.Rows = append(t.Rows, append([]string{"`" + c.Name + "`"}, ints(cells, bad, look, wrong, full, requests, calls)...))
	}
	return t
}

// wrongAnswers names the cells whose caller was told otherwise than the ledger
// says; "" is none.
func (r recordIndex) wrongAnswers() string {
	var parts []string
	for _, c := range refundColumns {
		if rows := r.rows("", c.Name, func(r Record) bool { return r.Answer == "disagrees" }); len(rows) > 0 {
			parts = append(parts, "`"+c.Name+"`: "+list(rows))
		}
	}
	return strings.Join(parts, "; ")
}

// rows names the rows in which the record of a column satisfies f.
func (r recordIndex) rows(tableName, column string, f func(Record) bool) []string {
	var rows []string
	for _, row := range faults.Reference {
		if record, ok := r.at(tableName, row.Name, column); ok && f(record) {
			rows = append(rows, row.Name)
		}
	}
	return rows
}

// findings are the sentences that the cells of this run support, numbered as the
// project's findings are; the third belongs to another experiment.
func (r recordIndex) findings() []string {
	return []string{r.findingTarget(), r.findingKeys(), r.findingRecovery(), r.findingBound(), r.findingHandCheck()}
}

func (r recordIndex) findingTarget() string {
	t1, t2, t3 := r.rows("", "gate@t1", isClass(oracle.Correct)), r.rows("", "gate@t2", isClass(oracle.Correct)), r.rows("", "gate@t3", isClass(oracle.Correct))
	looks := r.rows("", "gate@t3", isClass(oracle.Ambiguous))
	bad := len(r.rows("", "gate@t1", isBad)) + len(r.rows("", "gate@t2", isBad)) + len(r.rows("", "gate@t3", isBad))
	return fmt.Sprintf("**1. Whether an effect can happen exactly once is the target's to offer.** The gate ends right in %d of %d rows at t1 and %d of %d at t2, where the service absorbs repeats or can be asked; at t3 it ends right in %d and says AMBIGUOUS in %d (%s), with %d violated. No client can close that gap from its side: it is the Two Generals problem. What is left there is at most once, and an uncertainty that is said aloud.",
		len(t1), len(faults.Reference), len(t2), len(faults.Reference), len(t3), len(looks), list(looks), bad)
}

func (r recordIndex) findingKeys() string {
	bad := r.rows("", "idempotency-key@t1", isBad)
	naive := r.rows("", "naive", isBad)
	saved := slices.DeleteFunc(slices.Clone(naive), func(row string) bool { return slices.Contains(bad, row) })
	return fmt.Sprintf("**2. Keys are necessary and not sufficient.** A stable idempotency key turns %d of the %d rows that plain retry violates (%s). It leaves %d violated (%s): a key sees neither that the authority went away nor that the facts changed, and the service forgets it.",
		len(saved), len(naive), list(saved), len(bad), list(bad))
}

func (r recordIndex) findingRecovery() string {
	var outage []string
	for _, row := range faults.Reference {
		if len(row.Outage) > 0 {
			outage = append(outage, row.Name)
		}
	}
	in := func(column string) int {
		return len(slices.DeleteFunc(r.rows("", column, isBad), func(row string) bool { return !slices.Contains(outage, row) }))
	}
	return fmt.Sprintf("**4. Recovery is when the world moves, so a resend is a new dispatch.** In the %d rows where something changes while the process is dead (%s) `naive` is violated in %d, `idempotency-key@t1` in %d and `durable-replay@t1` in %d; the gate, which reads lease and facts again before it sends again, in %d at t1, %d at t2 and %d at t3.",
		len(outage), list(outage), in("naive"), in("idempotency-key@t1"), in("durable-replay@t1"), in("gate@t1"), in("gate@t2"), in("gate@t3"))
}

func (r recordIndex) findingBound() string {
	var moved []string
	for _, c := range []string{"gate@t1", "gate@t2", "gate@t3"} {
		for _, row := range faults.Reference {
			known, ok1 := r.at("", row.Name, c)
			unknown, ok2 := r.at(tableUnbounded, row.Name, c)
			if ok1 && ok2 && known.Class() != unknown.Class() {
				moved = append(moved, fmt.Sprintf("`%s` at `%s`", row.Name, c))
			}
		}
	}
	return fmt.Sprintf("**5. \"Not found\" is worth nothing while the request may still land.** Without a declared landing bound %d of the gate's cells change their mark: %s. That is what a service costs its callers when it can't say how late a request may take effect.",
		len(moved), orNone(strings.Join(moved, ", ")))
}

func (r recordIndex) findingHandCheck() string {
	var parts []string
	for _, profile := range []string{"t1", "t2", "t3"} {
		ties := 0
		var differ []string
		for _, row := range faults.Reference {
			gate, ok1 := r.at("", row.Name, "gate@"+profile)
			hand, ok2 := r.at("", row.Name, "hand-check@"+profile)
			if !ok1 || !ok2 {
				continue
			}
			if gate.Class() == hand.Class() && gate.Money() == hand.Money() {
				ties++
				continue
			}
			differ = append(differ, fmt.Sprintf("`%s`: hand check %s %s, gate %s %s", row.Name, hand.Cell, hand.Class().Mark(), gate.Cell, gate.Class().Mark()))
		}
		parts = append(parts, fmt.Sprintf("at %s it ties in %d of %d rows%s", profile, ties, len(faults.Reference), listed(differ)))
	}
	unmarked := r.rows("", "hand-check-unmarked@t3", isBad)
	return fmt.Sprintf("**6. A careful hand check ties the gate on these rows.** By money and mark, %s. Without its marker the hand check at t3 is violated in %d rows (%s). These rows have one process, one request at a time and a service that applies at once; a tie here says nothing of rows in which requests land late or two processes act.",
		strings.Join(parts, "; "), len(unmarked), list(unmarked))
}

// RefundTable is the reference table as Markdown, for pages beside the
// experiment's own.
func RefundTable(records []Record) string {
	return refundDesk.table(indexRecords(records), "", faults.Reference, referenceColumns).Markdown()
}

// RefundWhy says, with the cells that say so, what other ways of doing it come
// to: the cells of the refund experiment, and those of the faults experiment for
// what its rows don't show.
func RefundWhy(records, faulty []Record) string {
	r := indexRecords(records)
	var b strings.Builder
	bad := func(column string) []string { return r.rows("", column, isBad) }
	cell := func(row, column string) string {
		record, _ := r.at("", row, column)
		return fmt.Sprintf("`%s` %s %s", row, record.Cell, record.Class().Mark())
	}
	look := r.rows("", "hand-check@t3", isClass(oracle.Ambiguous))
	fmt.Fprintf(&b, "**… log more?** A line written after the send dies with the process; one written before says that something may have been sent, and not whether it was. That line is what the hand check has at t3, where it stops for a person in %d of %d rows (%s); without looking at it: %s.\n\n",
		len(look), len(faults.Reference), list(look), cell("crash_before_ack", "hand-check-unmarked@t3"))
	fmt.Fprintf(&b, "**… use idempotency keys?** Do: plain retry is violated in %d of %d rows and a stable key in %d. Those it leaves are %s.\n\n",
		len(bad("naive")), len(faults.Reference), len(bad("idempotency-key@t1")), list(bad("idempotency-key@t1")))
	fmt.Fprintf(&b, "**… use a workflow engine?** It remembers that a step was started and runs it again, under the same key: %s. It doesn't ask whether the step is still allowed, or still right; `durable-replay@t1` is violated in %d rows (%s).\n\n",
		cell("crash_before_ack", "durable-replay@t1"), len(bad("durable-replay@t1")), list(bad("durable-replay@t1")))
	fmt.Fprintf(&b, "**… write the check yourself?** On these rows a careful one holds as often as the gate: it is violated in %d, %d and %d rows at t1, t2 and t3, the gate in %d, %d and %d. **A hand-written check is enough** where one process at a time acts on one host, the service applies a request when it answers or not at all and can be asked what landed. These rows are of that kind.\n\n",
		len(bad("hand-check@t1")), len(bad("hand-check@t2")), len(bad("hand-check@t3")), len(bad("gate@t1")), len(bad("gate@t2")), len(bad("gate@t3")))
	violated := func(column string) (rows []string, of int) {
		for _, record := range faulty {
			if record.Column != column || record.Table() != "" {
				continue
			}
			of++
			if isBad(record) {
				rows = append(rows, record.Row)
			}
		}
		return rows, of
	}
	var parts []string
	for _, profile := range []string{"t1", "t2", "t3"} {
		hand, ofHand := violated("hand-check@" + profile)
		gate, ofGate := violated("gate@" + profile)
		parts = append(parts, fmt.Sprintf("at %s the hand check is violated in %d of %d (%s), the gate in %d of %d (%s)", profile, len(hand), ofHand, list(hand), len(gate), ofGate, list(gate)))
	}
	fmt.Fprintf(&b, "`results/faults.md` has further rows, in which requests land late, answers are lost, lookups lag, a middle repeats what it was given, two processes are at work at once, several cases share a cap, the journal's disk fails or a clock is wrong: %s. `docs/findings.md` names every row in which a hand check ties or loses, and what was found wrong in the gate; `results/scoreboard.md` has all columns of all experiments side by side.\n", strings.Join(parts, "; "))
	return b.String()
}
