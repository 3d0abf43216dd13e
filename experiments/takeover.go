package experiments

import (
	"fmt"
	"strings"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// takeoverRows are what may have become of a sender when somebody else wants its
// effect.
var takeoverRows = []faults.Row{
	{Name: "dead_after_commit", Group: "dead", What: "The sender is killed when the service has applied the refund; another process takes over.", Faults: []faults.Fault{{What: faults.Kill, At: sim.Applied, Passage: 1}}, Submits: faults.Amounts(approved)},
	{Name: "dead_before_send", Group: "dead", What: "The sender is killed before the first byte leaves; another process takes over.", Faults: []faults.Fault{{What: faults.Kill, At: sim.BeforeSend, Passage: 1}}, Submits: faults.Amounts(approved)},
	{Name: "still_working", Group: "dead", What: "The sender is killed when its bytes have left; the service applies the request 2 s later, whoever has taken over.", Before: []string{"delay-next:2s"}, Faults: []faults.Fault{{What: faults.Kill, At: sim.Accepted, Passage: 1}}, Submits: faults.Amounts(approved)},
	{Name: "slow", Group: "alive", What: "The sender takes five seconds over its send; another process submits the same request, and then the sender goes on.", Faults: stoppedFor("5s"), Submits: faults.Amounts(approved)},
	{Name: "hung", Group: "alive", What: "The sender hangs before its send for an hour, past every time to live; another process submits the same request, and then the sender wakes up.", Faults: stoppedFor("1h"), Submits: faults.Amounts(approved)},
	{Name: "hung_and_killed", Group: "alive", What: "The same, and somebody kills the sender when the other process has said that it hangs; a third takes over.", Faults: append(stoppedFor("1h"), faults.Fault{What: faults.Kill, At: sim.BeforeSend, Passage: 1}), Submits: faults.Amounts(approved)},
}

// stoppedFor stops the sender before its send; when so much time has passed
// another process acts, whole, and then the sender goes on.
func stoppedFor(d string) []faults.Fault {
	return []faults.Fault{{What: faults.Other, At: sim.BeforeSend, Passage: 1}, {What: "wait:" + d, At: pointStarted, Passage: 2}}
}

var takeoverDesk = desk{
	name: "takeover", rows: takeoverRows, plain: true, declared: declaredTakeover,
	columns: append(named(deskColumns, "naive", "hand-check@t2", "hand-check-locked@t2", "gate@t2"), sharedGate),
}

// named picks columns by their names.
func named(from []column, names ...string) (picked []column) {
	for _, name := range names {
		c, ok := findColumn(from, name)
		if !ok {
			panic("experiments: no column is called " + name)
		}
		picked = append(picked, c)
	}
	return picked
}

// declaredTakeover is what is prescribed for the gate: it takes over from the
// dead at once, from the living never, and one refund lands.
func declaredTakeover(_, row, column string) string {
	if !strings.HasPrefix(column, "gate") {
		return ""
	}
	second := "LOCKED_OUT:" + column // by the journal's owner
	if column == sharedGate.Name {
		second = "IN_FLIGHT"
	}
	return map[string]string{
		"dead_after_commit": "COMMITTED_ON_QUERY $20 ok",
		"dead_before_send":  "REAPPLIED_AFTER_QUERY $20 ok",
		"still_working":     "COMMITTED_ON_QUERY $20 ok",
		"slow":              "COMMITTED+" + second + " $20 ok",
		"hung":              "COMMITTED+" + second + " $20 ok",
		"hung_and_killed":   "NOTHING_SAID+" + second + "+REAPPLIED_AFTER_QUERY $20 ok",
	}[row]
}

// Takeover is who may go on with an effect when its sender is dead, slow or hung.
func Takeover() *Experiment {
	return &Experiment{
		Name:  "takeover",
		Short: "who may go on with an effect whose sender is dead, slow or hung",
		Long: `A sender stops in the middle of a refund: killed, slow or hung. A second process
has the same request. It must go on where the sender is dead, and must not where
it lives. The service can be asked what landed, absorbs no repeats, and applies a
request within 30 s or never. Counts are compared; how long a takeover takes is
in the results of bench.`,
		Example: "  interlock-bench takeover\n  interlock-bench takeover --row hung --words",
		Rows:    takeoverDesk.rowInfo(),
		Columns: takeoverDesk.columnInfo(),
		Cells:   takeoverDesk.cells("", takeoverDesk.columns),
		Run:     takeoverDesk.run,
		Child:   work,
		Page:    takeoverPage,
	}
}

// takeoverPage renders results/takeover.md.
func takeoverPage(records []Record) string {
	r := indexRecords(records)
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	p("# A sender that is dead, slow or hung")
	p("Made by `interlock-bench takeover --seed %s`. Every cell is real processes; the kills are SIGKILL. One $20 refund is approved.", r.seed())
	b.WriteString(takeoverDesk.table(r, "", takeoverRows, takeoverDesk.columns).Markdown() + "\n")
	for _, row := range takeoverRows {
		fmt.Fprintf(&b, "- `%s`: %s\n", row.Name, row.What)
	}
	p("\nWhere two processes were at work a cell has the last word of each, in the order of their starts. LOCKED_OUT names who owns the journal; IN_FLIGHT comes with who is at the effect and since when; LOCKED is the hand check's, which waited a minute and a bit for its lock. Any other word of the second process is its own answer to its caller, and it sent a refund of its own.")
	taken := 0
	for _, row := range takeoverRows {
		for _, c := range takeoverDesk.columns {
			record, _ := takeoverDesk.at(r, "", row.Name, c.Name)
			words := strings.Split(record.Cell, "+")
			if row.Group == "alive" && c.gate && !(len(words) > 1 && (strings.HasPrefix(words[1], "LOCKED_OUT:") || strings.HasPrefix(words[1], "IN_FLIGHT"))) {
				taken++
			}
		}
	}
	p("Takeovers from a living sender by the gate: %d.", taken)
	p("## How to read it")
	p("`still_working` is why \"not found\" is not enough: a takeover that asks at once and sends again lands a second refund, whoever holds which lock, because the first is the service's to apply. The gate waits for the landing bound that the service declares. The virtual clock passes it; nobody sleeps.")
	p("A lock in a file that the kernel frees with its process does as well as the gate where the sender lives. It doesn't where the service is still at work for a dead one.")
	return strings.TrimSuffix(b.String(), "\n")
}
