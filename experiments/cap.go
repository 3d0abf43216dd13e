package experiments

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-bench/interlock-bench/baselines"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// bot is who else refunds on the order.
type bot struct{ agent, lease, request string }

var secondBot = bot{"agent-9", "L-second", "case-4472"}

func (b bot) approval() history.Approval {
	return history.Approval{Request: b.request, Order: orderID, Case: b.request, Amount: approved, Agent: b.agent, Lease: b.lease}
}

const capOfBoth = 30_00

// secondActs lets the second bot ask for its refund, unless it has its answer. One
// that found the lock taken asks again. The hand check without a lock shares
// nothing: its log is the second bot's own.
func (w *refundWorld) secondActs(string) error {
	if n := len(w.seconds); n > 0 && w.seconds[n-1].Says != baselines.Pending {
		return nil
	}
	t := task{
		Column: w.column.Name, Network: w.network, Address: w.address, State: w.stage.State(), File: filePlain,
		Profile: w.on.profile, Premises: w.on.premises, Cap: w.on.cap, Order: orderID,
		Agent: secondBot.agent, Lease: secondBot.lease, Case: secondBot.request, Request: secondBot.request,
	}
	if strings.HasPrefix(w.column.Name, "hand-check@") {
		t.State = filepath.Join(t.State, "second")
		if err := os.MkdirAll(t.State, 0o700); err != nil {
			return err
		}
	}
	return w.startSecond(t)
}

// capRows are where the first bot is killed.
var capRows = []faults.Row{
	{Name: "after_commit", Group: "cap", What: "The first bot is killed when its refund has landed and the answer is in its memory.", With: []string{"cap:" + strconv.Itoa(capOfBoth), "second-bot"}, Faults: []faults.Fault{{What: faults.Kill, At: sim.ReplyReceived, Passage: 1}}, Submits: faults.Amounts(approved)},
	{Name: "before_send", Group: "cap", What: "The first bot is killed when it has made its record, before the first byte leaves.", With: []string{"cap:" + strconv.Itoa(capOfBoth), "second-bot"}, Faults: []faults.Fault{{What: faults.Kill, At: sim.BeforeSend, Passage: 1}}, Submits: faults.Amounts(approved)},
}

var capDesk = desk{
	name: "cap", rows: capRows, plain: true,
	columns: append(named(deskColumns, "naive", "hand-check@t2", "hand-check-locked@t2"), sharedGate),
}

const (
	capRuns = 20
	capSeed = 4471
)

// capTrials are the runs of one cell. When the second bot acts is drawn for each
// run: while the first stands between its checks and its send, or when the first
// is dead. It acts in the outage in any case, where it has no answer yet.
func capTrials(r faults.Row, column string) (trials []faults.Trial) {
	for n := range capRuns {
		t := faults.Trial{Experiment: "cap", Row: r.Name, Column: column, Axes: []faults.Axis{{Name: "run", Value: strconv.Itoa(n + 1)}, {Name: "outage", Value: "second-bot"}}}
		if rand.New(rand.NewPCG(capSeed, uint64(n))).IntN(2) == 0 {
			t.Faults = append(t.Faults, faults.Fault{What: "second-bot", At: sim.BeforeSend, Passage: 1})
		}
		t.Faults = append(t.Faults, r.Faults...)
		trials = append(trials, t)
	}
	return trials
}

// Cap is a cap that two bots share.
func Cap() *Experiment {
	e := &Experiment{
		Name:  "cap",
		Short: "two bots, $20 each, one cap of $30, and the first is killed",
		Long: `Two bots have an approval for $20 each on one order, whose refunds may come to $30
together. The first is killed after its refund has landed, or before it was sent,
and started again; the second asks while the first stands between its checks and
its send, or while it is dead. Both are real processes. Twenty runs each. The hand
check adds up the sends in its own log; with a lock, the bots share lock and log.
The gate's budget is held from the dispatch on.`,
		Example: "  interlock-bench cap\n  interlock-bench cap --column gate-shared@t2 --words",
		Rows:    capDesk.rowInfo(),
		Columns: capDesk.columnInfo(),
		Run:     runCap,
		Sum:     sumCap,
		Child:   work,
		Page:    capPage,
	}
	for _, r := range capRows {
		for _, c := range capDesk.columns {
			cell := Cell{Row: r.Name, Column: c.Name, Trials: capTrials(r, c.Name)}
			if c.gate {
				cell.Declared = "HELD $20 ok"
			}
			e.Cells = append(e.Cells, cell)
		}
	}
	return e
}

func runCap(ctx context.Context, t faults.Trial) (Outcome, error) {
	o, err := capDesk.run(ctx, t)
	if err != nil {
		return o, err
	}
	o.Status = "HELD"
	if slices.Contains(o.Verdict.Broke, "over-cap") {
		o.Status = "OVER"
	}
	return o, nil
}

// sumCap counts in how many runs the cap held, and what the second bot was told.
func sumCap(of []Outcome) map[string]any {
	held, told := 0, map[string]int{}
	for _, o := range of {
		if o.Status == "HELD" && o.Verdict.Unfired == 0 {
			held++
		}
		told[fmt.Sprint(o.Extra["second"])]++
	}
	return map[string]any{"held": held, "second": told}
}

// capPage renders results/cap.md.
func capPage(records []Record) string {
	r := indexRecords(records)
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	p("# Two bots and one cap")
	p("Made by `interlock-bench cap --seed %s`. Two bots have an approval for %s each on one order, whose refunds may come to %s together. The first is killed by SIGKILL and started again. Each cell is %d runs of real processes.", r.seed(), Money(approved), Money(capOfBoth), capRuns)
	p("## Runs in which the cap held")
	t := table.Table{Header: []string{"row"}}
	total := []string{"both"}
	for _, c := range capDesk.columns {
		t.Header = append(t.Header, c.Name)
		n := 0
		for _, row := range capRows {
			record, _ := capDesk.at(r, "", row.Name, c.Name)
			n += extraCount(record, "held")
		}
		total = append(total, fmt.Sprintf("%d of %d", n, capRuns*len(capRows)))
	}
	for _, row := range capRows {
		line := []string{"`" + row.Name + "`"}
		for _, c := range capDesk.columns {
			record, _ := capDesk.at(r, "", row.Name, c.Name)
			line = append(line, fmt.Sprintf("%d of %d, worst %s %s", extraCount(record, "held"), record.Trials, Money(record.Money()), record.Class().Mark()))
		}
		t.Rows = append(t.Rows, line)
	}
	t.Rows = append(t.Rows, total)
	b.WriteString(t.Markdown() + "\n")
	for _, row := range capRows {
		fmt.Fprintf(&b, "- `%s`: %s\n", row.Name, row.What)
	}
	p("\nWhen the second bot asks is drawn for each run from seed %d: while the first stands between its checks and its send, or while the first is dead. Where the first has the lock it waits a minute and a bit, is told so, and asks again when the first is dead.", capSeed)
	p("## What shows afterwards")
	shown := table.Table{Header: []string{"column", "record"}}
	for _, c := range capDesk.columns {
		worst := len(grades) - 1
		for _, row := range capRows {
			record, _ := capDesk.at(r, "", row.Name, c.Name)
			worst = min(worst, max(0, slices.Index(grades, record.Record)))
		}
		shown.Rows = append(shown.Rows, []string{"`" + c.Name + "`", grades[worst]})
	}
	b.WriteString(shown.Markdown() + "\n")
	p("The record is the first bot's: who acted, what was done, which checks held, and every attempt, the killed one included.")
	p("The hand check without anything shared can't know what the other bot sent. A lock and a log that both use close that on one host. So does the gate's journal, without a lock around the send: the second bot is refused in the step in which it would dispatch, because the first bot's dispatch holds its amount, dead or alive, until it is known not to have landed.")
	return strings.TrimSuffix(b.String(), "\n")
}
