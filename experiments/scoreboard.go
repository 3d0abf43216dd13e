package experiments

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/baselines"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// Scoreboard holds the gate against every other column, over the records of all
// experiments that there are. It runs nothing.
func Scoreboard() *Experiment {
	return &Experiment{
		Name:  "scoreboard",
		Short: "the gate against every other column, over the records of all experiments",
		Long: `Scoreboard reads the records in the folder of results and writes one page: in
each experiment, each column beside the gate on the cells that both have, with
money, answers, records, model calls, requests and lines of code. An experiment
whose records are there is on it. It runs nothing; run what it reads first.`,
		Example: "  interlock-bench scoreboard\n  interlock-bench scoreboard --out /tmp/results\n  interlock-bench scoreboard --check",
		Over:    scoreboardPage,
	}
}

// family is what a column is, without the service that it speaks to:
// "hand-check-locked". Every gate is "gate", whatever its premises are.
func family(column string) string {
	if strings.HasPrefix(column, "gate") {
		return "gate"
	}
	if i := strings.IndexAny(column, "@/+"); i >= 0 {
		return column[:i]
	}
	return column
}

// match is a column beside a gate in one experiment: the cells that both have.
type match struct {
	experiment   string
	column, gate string
	cells        []pairing
}

type pairing struct{ it, gate Record }

// drawn are experiments whose trials are drawn for each column apart, from those of
// another that is here whole.
var drawn = []string{sliceName, profilesName}

// matches pairs every column that is no gate with the gate of the same experiment
// at the same service. Where gates differ in something else it is paired with each.
func matches(records []Record) (list []match) {
	type place struct{ table, row string }
	var experiments []string
	columns := map[string][]string{}
	cells := map[string]map[string]map[place]Record{}
	for _, r := range records {
		if slices.Contains(drawn, r.Experiment) {
			continue
		}
		if cells[r.Experiment] == nil {
			experiments = append(experiments, r.Experiment)
			cells[r.Experiment] = map[string]map[place]Record{}
		}
		if cells[r.Experiment][r.Column] == nil {
			columns[r.Experiment] = append(columns[r.Experiment], r.Column)
			cells[r.Experiment][r.Column] = map[place]Record{}
		}
		cells[r.Experiment][r.Column][place{r.Table(), r.Row}] = r
	}
	for _, e := range experiments {
		for _, column := range columns[e] {
			for _, gate := range columns[e] {
				if family(column) == "gate" || family(gate) != "gate" || profileOf(column) != profileOf(gate) {
					continue
				}
				m := match{experiment: e, column: column, gate: gate}
				for _, r := range records {
					if r.Experiment != e || r.Column != column {
						continue
					}
					if g, ok := cells[e][gate][place{r.Table(), r.Row}]; ok {
						m.cells = append(m.cells, pairing{r, g})
					}
				}
				if len(m.cells) > 0 {
					list = append(list, m)
				}
			}
		}
	}
	return list
}

// score is what one side of some matches came to.
type score struct {
	violated, look, wrong, full, calls, requests int
	overpaid                                     int
}

func (s *score) add(r Record) {
	switch r.Class().Word() {
	case "BAD":
		s.violated++
	case "look":
		s.look++
	}
	if r.Class() == oracle.Duplicate {
		s.overpaid++
	}
	if r.Answer == oracle.Disagrees {
		s.wrong++
	}
	if r.Record == recordFull {
		s.full++
	}
	s.calls += r.ModelCalls
	s.requests += r.Requests
}

// outcome sorts the cells of a match: in which the column does worse than the
// gate, and in which better.
func (m match) outcome() (it, gate score, loses, wins []string) {
	for _, c := range m.cells {
		it.add(c.it)
		gate.add(c.gate)
		name := c.it.Row
		if t := c.it.Table(); t != "" {
			name = t + "/" + name
		}
		switch {
		case worse(c.it, c.gate):
			loses = append(loses, name)
		case worse(c.gate, c.it):
			wins = append(wins, name)
		}
	}
	return it, gate, loses, wins
}

// strongest are the hand checks that do best beside each gate of each experiment:
// the least part of their cells violated, then the least that they lose, then the
// plainer one.
func strongest(list []match) map[string]string {
	best := map[string]string{}
	held := map[string][2]float64{}
	for _, m := range list {
		if !strings.HasPrefix(family(m.column), "hand-check") {
			continue
		}
		at := m.experiment + "/" + m.gate
		it, _, loses, _ := m.outcome()
		now := [2]float64{float64(it.violated) / float64(len(m.cells)), float64(len(loses)) / float64(len(m.cells))}
		if had, ok := held[at]; !ok || slices.Compare(now[:], had[:]) < 0 {
			held[at], best[at] = now, m.column
		}
	}
	return best
}

//go:embed gate.go
var gateSource []byte

// linesOf are the lines of code of a column's own file, where the experiment has it
// from there.
func linesOf(experiment, column string) string {
	desk := experiment == refundDesk.name || experiment == faultsDesk.name || strings.HasPrefix(experiment, "crash-points")
	switch {
	case !desk && experiment != StripeName:
		return "—"
	case family(column) == "gate" && desk:
		return fmt.Sprint(baselines.Lines(gateSource))
	}
	for _, s := range baselines.Sizes() {
		if strings.HasPrefix(family(column), s.Name) && (family(column) == s.Name || s.Name == "hand-check" && family(column) == "hand-check-unmarked") {
			return fmt.Sprint(s.File)
		}
	}
	return "—"
}

// scoreboardPage renders results/scoreboard.md.
func scoreboardPage(records []Record) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	list := matches(records)
	best := strongest(list)

	p("# Scoreboard")
	p("Made by `interlock-bench scoreboard` from the records in `results/*.jsonl`; it runs nothing. Each column stands beside the gate of the same experiment at the same service, on the cells that both have. Every figure is of those cells, `it / gate`.")
	p("`violated`: cells judged ❌. `paid twice`: those in which more left than was approved. `look`: cells in which a person must look. `wrong answer`: what the caller was told last disagrees with the ledger. `full record`: the column's own artefacts show who, what, which checks and every attempt. `model calls` and `requests` are of each cell's worst trial. `lines`: code of the column's own file, without blanks and comments; of the gate that is the adapter to this service, `experiments/gate.go`, in front of a library. `—`: the column's code is the experiment's own.")

	p("The parts of the crash-point sweep that a check runs again are not here: their trials are drawn for each column apart. The whole sweep is.")

	p("## The strongest hand check")
	p("Of the hand checks beside each gate, the one with the least part of its cells violated, then the least in which it does worse; where two are equal, the plainer.")
	var strong []match
	for _, m := range list {
		if best[m.experiment+"/"+m.gate] == m.column {
			strong = append(strong, m)
		}
	}
	b.WriteString(scores(strong).Markdown() + "\n")
	for _, m := range strong {
		b.WriteString(m.sentence())
	}

	p("\n## Every column")
	b.WriteString(scores(list).Markdown() + "\n")
	for _, m := range list {
		b.WriteString(m.sentence())
	}
	return b.String()
}

// scores has a line for each match.
func scores(list []match) table.Table {
	t := table.Table{Header: []string{"experiment", "column", "gate", "cells", "violated", "paid twice", "look", "wrong answer", "full record", "model calls", "requests", "lines"}}
	for _, m := range list {
		it, gate, _, _ := m.outcome()
		both := func(a, b int) string { return fmt.Sprintf("%d / %d", a, b) }
		t.Rows = append(t.Rows, []string{
			m.experiment, "`" + m.column + "`", "`" + m.gate + "`", fmt.Sprint(len(m.cells)),
			both(it.violated, gate.violated), both(it.overpaid, gate.overpaid), both(it.look, gate.look), both(it.wrong, gate.wrong),
			both(it.full, gate.full), both(it.calls, gate.calls), both(it.requests, gate.requests), linesOf(m.experiment, m.column) + " / " + linesOf(m.experiment, m.gate),
		})
	}
	return t
}

// sentence says in how many cells the column ties, loses and wins, and which.
func (m match) sentence() string {
	_, _, loses, wins := m.outcome()
	s := fmt.Sprintf("- %s, `%s` beside `%s`: of %d cells it ties in %d", m.experiment, m.column, m.gate, len(m.cells), len(m.cells)-len(loses)-len(wins))
	named := func(what string, rows []string) string {
		if len(rows) == 0 {
			return fmt.Sprintf(", does %s in none", what)
		}
		return fmt.Sprintf(", does %s in %d (%s)", what, len(rows), list(rows))
	}
	return s + named("worse", loses) + " and" + strings.TrimPrefix(named("better", wins), ",") + ".\n"
}
