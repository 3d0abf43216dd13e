package experiments

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// group is a kind of thing that goes wrong.
type group struct{ name, about string }

var faultGroups = []group{
	{"crash", "The process is killed. The points are those that every column passes, the service's own, and, where a row speaks of a durable decision or outcome, each column's own record of it."},
	{"delivery", "Nobody dies, or the service does: answers are lost, late, wrong or refused."},
	{"decision", "The same decision comes again in another shape, or a wrong one comes first."},
	{"authority", "The approval ends, is too narrow, is replaced, or was never there."},
	{"world", "The facts that the decision rests on change, or only seem to."},
	{"time", "Clocks are wrong, and windows are over."},
	{"budget", "Several approved cases share a cap. Only the gate and the hand checks are told of it in a form that they can use; a hand check adds up the sends that its log shows."},
	{"after", "The refund is committed. What becomes of its money later is its settlement, which decides nothing: a refund that came back is not sent again."},
	{"journal", "The log itself fails: the disk under it, or what is read back. Every column that writes a log writes it in the same format, with the same store."},
	{"wire", "Nothing is wrong with column and service. A proxy between them reads every request whole, and where it delivers it the whole answer, and then misbehaves: what was done is certain, and the column can't know it."},
	{"realities", "Four things that can have happened. What the column sees is silence, and the same in all of them."},
}

func inGroup(rows []faults.Row, name string) (in []faults.Row) {
	for _, r := range rows {
		if r.Group == name {
			in = append(in, r)
		}
	}
	return in
}

// moreLines is what the hand check would take in rows in which it does worse
// than the gate at the same service.
var moreLines = map[string]string{
	"crash_after_propose":           "Two lines and a sync: a line for the decision before the \"sending\" line, which alone says that something may have left.",
	"crash_after_propose_redecides": "One line: take the amount from the log's own \"sending\" line where there is one, not from the model.",
	"crash_on_the_wire":             "About eight lines and a clock that doesn't jump: note when this process began or its last send ended, and count \"not found\" only once landing bound, lag and clock margin have passed since.",
	"crash_on_the_wire_unbounded":   "Two lines: where the service states no bound, stop for a person instead of sending after \"not found\".",
	"crash_in_recovery":             "The wait of `crash_on_the_wire`; begun anew by every process, since a dead one may have sent last.",
	"late_landing":                  "The wait of `crash_on_the_wire`, counted from the end of the send that timed out.",
	"lookup_forgot":                 "Three lines: compare the time of the log's first \"sending\" line with the windows of key and lookup, and stop for a person behind them.",
	"lookup_lags":                   "The wait of `crash_on_the_wire`, with the lag in it.",
	"lookup_other_amount":           "One line: answer that a person must look, not that nothing was done.",
	"lease_renewed":                 "Two lines: read the lease that the desk names as the renewal, and check that it grants no more.",
	"one_approval_two_effects":      "About four lines: count the requests that the log shows under this lease, inside the lock. At t1 and t2 it is the first refund, seen in the order, that stops the second.",
	"clock_ahead":                   "The wait of `crash_on_the_wire`, by a clock that doesn't jump.",
	"clock_behind":                  "The wait of `crash_on_the_wire`, by a clock that doesn't jump.",
	"wire_late":                     "The wait of `crash_on_the_wire`.",
	"still_working":                 "The wait of `crash_on_the_wire`, counted from the end of the send that timed out.",
	"concurrent_submit":             "At t2 the file lock of `hand-check-locked`, held over check and send: about fifteen lines with the wait for it.",
	"sender_paused":                 "The file lock, likewise; a lock that ends by a timer would not do, since the sender is alive.",
	"torn_tail":                     "At t3 about four lines: have the log say that its opening cut something, and then stop for a person.",
	"restored_backup":               "At t3 three lines: where an operator says that the log comes from a backup, stop for a person.",
	"key_expired_no_lookup":         "Three lines: compare the time of the log's first \"sending\" line with the key's window, less a margin, and stop for a person behind it.",
}

// faultsNotes are what a reader must know of single rows.
var faultsNotes = []string{
	"`lookup_other_amount`: the gate leaves the effect unresolved, for a person: other money than it asked for stands under its own reference. The hand check says that its $20 did not go, where they did: its answer disagrees with the ledger.",
	"`unrelated_change_total_premise`: a premise that counts everybody's refunds refuses for a change that has nothing to do with the case. That is the price of the coarser premise; attributed to the case it completes.",
	"`aba_premise_versioned`: a version can't go back, so the same history refuses. Both are right: eligibility had been gone for a while.",
	"`clock_ahead_at_expiry` and `clock_behind_at_expiry`: no landing depends on the wall clock, but the end of a lease does. The gate judges it by its own clock, and promises it only while clocks differ by no more than the declared margin of one second. With an hour's difference it refuses an hour early, or sends up to an hour late. The hand check asks the desk, whose clock is right here.",
	"`changed_between_check_and_send`: nothing that reads first and sends then can close this window; a service that checks the facts together with the effect does.",
	"`clock_behind_within_margin`: by as much as clocks may differ, declared as one second, the gate takes a lease to be over early. Where a log has an entry from behind the lease's end, that counts too.",
	"In rows with two processes a cell shows the last word of each, the first one's first. The process that is stopped is stopped with SIGSTOP; it keeps its locks and its timers wait, so that what it was about to do it does, however late.",
	"`concurrent_submit`, `sender_paused`: over SQLite the second process is told IN_FLIGHT, with the name of the owner, and never takes over. With the file store, `…_one_owner`, it can't open the journal and is told whose it is. `durable-replay` has that store too. `hand-check-locked` waits a minute for its lock and then says that somebody has it.",
	"`cap_race`: the second process is told who holds what. `hand-check-locked` has one lock over all cases: while its holder stands still nobody else gets on, so the second request is never answered; a lock for each case and one for the sum would do, in about six lines. `cap_spent_outside`: what a person spends is not seen by a budget, nor by a log that is added up; a premise that covers it sees it, `cap_spent_outside_total_premise`.",
	"`bit_flip`: every column that keeps a log refuses to start, with the byte that is damaged, and sends nothing until a person has mended it.",
	"`sync_error`: nothing is sent. Opened again, the log may hold the entry or not; the cell shows the worse of both files.",
	"`wire_doubled`: every column sent once. What a middle repeats only the service can absorb; a key lets it. Neither fence nor premise does: both deliveries are of one attempt, and an effect's own money is no change by others.",
	"`same_value_other_bytes`, and premises by name, mean something only to a column that is given them; the baselines get typed values.",
}

// faultsPage renders results/faults.md. Every figure and every list of cells in
// it is taken from the records.
func faultsPage(records []Record) string {
	d, r := faultsDesk, indexRecords(records)
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }

	p("# One approved $20 refund, %d further ways to go wrong", len(d.rows))
	p("Made by `interlock-bench faults --seed %s`. Rows, columns and marks are read as in `refund.md`; `results/faults.jsonl` holds one record per cell, with the line that replays it. An own control voids nothing: refusing it is a false refusal. Two further columns are the gate at a service of profile t2 that checks premises together with the effect (`conditional`), and at one that refuses older attempts once it is told of a newer (`fenced`).", r.seed())
	p("✅ held · ❌ violated · ⚠️ held, and a person must look · — not judged, or the fault did not fire · n/a the row means nothing for this column")

	p("## Counts")
	p("Cells by verdict; the verdict is that of the cell's worst trial. `wrong answer`: what the caller was told last disagrees with the ledger. `record missing`: the column's own artefacts show nothing; `in part`: not who, what, which checks and every attempt. `window`: refunds that were right at the last look and no longer when they landed.")
	b.WriteString(d.counts(r).Markdown() + "\n")

	for _, g := range faultGroups {
		rows := inGroup(d.rows, g.name)
		p("## %s", strings.ToUpper(g.name[:1])+g.name[1:])
		p("%s", g.about)
		for _, row := range rows {
			fmt.Fprintf(&b, "- `%s`: %s\n", row.Name, row.What)
		}
		b.WriteString("\n" + d.table(r, "", rows, slices.Concat(referenceColumns, furtherGates)).Markdown() + "\n")
		b.WriteString(d.table(r, "", rows, handChecks).Markdown() + "\n")
		switch g.name {
		case "wire":
			p("Requests for money that the proxy read, against how often the column sent. In `one_request_per_send` an HTTP library may repeat by itself; one that does shows more requests than sends.")
			b.WriteString(d.requestsPerSend(r, rows).Markdown() + "\n")
		case "after":
			p("What the service says at the end of the case's money. In the Stripe experiment the same stands beside a receipt.")
			b.WriteString(d.settlements(r, rows).Markdown() + "\n")
		case "realities":
			p("A digest of everything that the column did and saw up to its first word to its caller:")
			b.WriteString(d.seen(r, rows).Markdown() + "\n")
		}
		if lost := d.handCheckLoses(r, rows); lost != "" {
			p("Where the hand check does worse than the gate at the same service, and what it would take:")
			p("%s", lost)
		}
	}

	p("## Where the hand check ties")
	p("%s", d.ties(r))
	p("## Landings in the window")
	p("%s", d.windows(r))
	p("## Notes")
	for _, n := range faultsNotes {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	return b.String()
}

// counts are the figures of each column over all its cells.
func (d desk) counts(r recordIndex) table.Table {
	classes := []oracle.Class{
		oracle.Correct, oracle.Ambiguous, oracle.FalseRefusal, oracle.Stuck, oracle.Stale,
		oracle.Unauthorized, oracle.Lost, oracle.Duplicate, oracle.Unknown,
	}
	t := table.Table{Header: []string{"column", "cells"}}
	for _, c := range classes {
		t.Header = append(t.Header, c.String())
	}
	t.Header = append(t.Header, "wrong answer", "record missing", "in part", "window")
	for _, c := range d.columns {
		var cells, wrong, missing, partial, window int
		by := map[oracle.Class]int{}
		for _, row := range d.rows {
			record, ok := d.at(r, "", row.Name, c.Name)
			if !ok {
				continue
			}
			cells++
			by[record.Class()]++
			if record.Answer == oracle.Disagrees {
				wrong++
			}
			switch record.Record {
			case recordNone:
				missing++
			case recordPartial:
				partial++
			}
			if record.Extra["window"] != nil {
				window++
			}
		}
		line := []string{"`" + c.Name + "`", fmt.Sprint(cells)}
		for _, class := range classes {
			line = append(line, fmt.Sprint(by[class]))
		}
		t.Rows = append(t.Rows, append(line, ints(wrong, missing, partial, window)...))
	}
	return t
}

// against calls f for every row in which a hand check and the gate stand at the
// same service.
func (d desk) against(r recordIndex, rows []faults.Row, hand string, f func(row faults.Row, profile string, hand, gate Record)) {
	for _, row := range rows {
		for _, profile := range []string{"t1", "t2", "t3"} {
			h, ok1 := d.at(r, "", row.Name, hand+"@"+profile)
			g, ok2 := d.at(r, "", row.Name, "gate@"+profile)
			if ok1 && ok2 {
				f(row, profile, h, g)
			}
		}
	}
}

// requestsPerSend counts what was on the wire (I14).
func (d desk) requestsPerSend(r recordIndex, rows []faults.Row) table.Table {
	t := table.Table{Header: []string{"column", "sends in one_request_per_send", "requests", "sends in all rows of this group", "requests"}}
	for _, c := range d.columns {
		var one, all [2]int
		for _, row := range rows {
			record, _ := d.at(r, "", row.Name, c.Name)
			for i, name := range []string{"sends", "on_the_wire"} {
				n, _ := strconv.Atoi(fmt.Sprint(record.Extra[name])) // read back, it is a json.Number
				all[i] += n
				if row.Name == "one_request_per_send" {
					one[i] = n
				}
			}
		}
		t.Rows = append(t.Rows, append([]string{"`" + c.Name + "`"}, ints(one[0], one[1], all[0], all[1])...))
	}
	return t
}

// settlements shows what became of the money.
func (d desk) settlements(r recordIndex, rows []faults.Row) table.Table {
	t := table.Table{Header: []string{"column"}}
	for _, row := range rows {
		t.Header = append(t.Header, row.Name)
	}
	for _, c := range d.columns {
		line := []string{"`" + c.Name + "`"}
		for _, row := range rows {
			record, _ := d.at(r, "", row.Name, c.Name)
			line = append(line, fmt.Sprint(record.Extra["settlement"]))
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// seen shows what each column saw in rows that it can't tell apart.
func (d desk) seen(r recordIndex, rows []faults.Row) table.Table {
	t := table.Table{Header: []string{"column"}}
	for _, row := range rows {
		t.Header = append(t.Header, row.Name)
	}
	t.Header = append(t.Header, "the same")
	for _, c := range d.columns {
		line := []string{"`" + c.Name + "`"}
		for _, row := range rows {
			record, _ := d.at(r, "", row.Name, c.Name)
			line = append(line, fmt.Sprint(record.Extra["seen"]))
		}
		same := "yes"
		if len(slices.Compact(slices.Clone(line[1:]))) != 1 {
			same = "no"
		}
		t.Rows = append(t.Rows, append(line, same))
	}
	return t
}

// worse says whether a hand check did worse than the gate: by its verdict, by
// telling its caller what is not so, or by leaving undone what the gate did.
func worse(hand, gate Record) bool {
	return hand.Class() > gate.Class() || hand.Answer == oracle.Disagrees && gate.Answer == oracle.Agrees || undone(hand, gate)
}

// undone says that the one left undone what the other did. Cells of many trials
// may show different ones, which can't be held against each other.
func undone(hand, gate Record) bool {
	const alike = 2 // both kinds of file
	return max(hand.Trials, gate.Trials) <= alike && hand.Class() == oracle.Correct && gate.Class() == oracle.Correct && hand.Money() < gate.Money()
}

// handCheckLoses lists the rows in which the hand check does worse than the
// gate, with the lines that it would take.
func (d desk) handCheckLoses(r recordIndex, rows []faults.Row) string {
	lost := map[string][]string{}
	d.against(r, rows, "hand-check", func(row faults.Row, profile string, hand, gate Record) {
		if !worse(hand, gate) {
			return
		}
		what := fmt.Sprintf("at %s %s %s, the gate %s %s", profile, hand.Cell, hand.Class().Mark(), gate.Cell, gate.Class().Mark())
		if hand.Answer == oracle.Disagrees {
			what += ", and its caller was told what is not so"
		}
		if undone(hand, gate) {
			what += ", so that the approved refund is not made"
		}
		lost[row.Name] = append(lost[row.Name], what)
	})
	var lines []string
	for _, row := range rows {
		if len(lost[row.Name]) > 0 {
			lines = append(lines, fmt.Sprintf("- `%s`: %s. %s", row.Name, strings.Join(lost[row.Name], "; "), moreLines[row.Name]))
		}
	}
	return strings.Join(lines, "\n")
}

// ties says in how many rows the hand check does as well as the gate, or better.
func (d desk) ties(r recordIndex) string {
	var sentences []string
	for _, hand := range []string{"hand-check", "hand-check-locked"} {
		cells, loses := map[string]int{}, map[string]int{}
		better := map[string][]string{}
		d.against(r, d.rows, hand, func(row faults.Row, profile string, h, g Record) {
			cells[profile]++
			switch {
			case worse(h, g):
				loses[profile]++
			case h.Class() < g.Class():
				better[profile] = append(better[profile], row.Name)
			}
		})
		for _, profile := range []string{"t1", "t2", "t3"} {
			n := len(better[profile])
			sentence := fmt.Sprintf("- `%s@%s`: of %d rows it ties with the gate in %d, does worse in %d and better in %d",
				hand, profile, cells[profile], cells[profile]-loses[profile]-n, loses[profile], n)
			if n > 0 {
				sentence += " (" + list(better[profile]) + ")"
			}
			sentences = append(sentences, sentence+".")
		}
	}
	return strings.Join(sentences, "\n")
}

// windows names the cells in which something went away between last look and
// landing.
func (d desk) windows(r recordIndex) string {
	var named []string
	for _, row := range d.rows {
		var columns []string
		for _, c := range d.columns {
			if record, ok := d.at(r, "", row.Name, c.Name); ok && record.Extra["window"] != nil {
				columns = append(columns, c.Name)
			}
		}
		if len(columns) > 0 {
			named = append(named, fmt.Sprintf("- `%s`: %d cells (%s)", row.Name, len(columns), list(columns)))
		}
	}
	return orNone(strings.Join(named, "\n"))
}
