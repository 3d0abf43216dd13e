package experiments

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
	"github.com/interlock-bench/interlock-bench/targets/git/premise"
)

// codingPage renders results/coding.md. Every figure in it is taken from the
// records.
func codingPage(records []Record) string {
	r := indexRecords(records)
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }

	p("# Two agents, one Go repository")
	p("Made by `interlock-bench coding --seed %s`. Agent B reads a git repository and decides; agent A's change lands; then B's is submitted, by a real process that is killed by SIGKILL where the row says so. What is on the branch at the end is compiled and run. The agents are scripted: no model took part, and model calls count the script's. `results/coding.jsonl` holds one record per cell, with the line that replays it.", r.seed())
	p("✅ held · ❌ violated · ⚠️ held, and refused although B's change would have been right · — not judged, or the fault did not fire")

	p("## The table")
	b.WriteString(r.codingTable(func(row codingRow) bool { return row.Group == "" }).Markdown() + "\n")
	p("`landed_ok`: the program prints B's report, once, as B's task says. `landed_BROKEN`: it doesn't, or it doesn't compile. `landed_twice`: the change is on the branch twice. `N_impl`: how many implementations of the function there are. A refusal is ⚠️ where the program would have printed the right thing with B's change: that was compiled and run, too.")

	p("## Finding 3: premises are a dial, and every setting has its floor")
	for _, f := range r.codingFindings() {
		p("%s", f)
	}

	p("## What the refusals say")
	p("As the gate's journal has it. A premise is a fact in one of the four forms, with what was seen and what was found.")
	why := table.Table{Header: []string{"row", "columns", "why"}}
	for _, row := range codingRows {
		var said []string
		by := map[string][]string{}
		for _, c := range codingColumns {
			record, ok := r.coding(row.Name, c.Name)
			if !ok || record.Extra["why"] == nil || row.Group != "" || !c.gate {
				continue
			}
			text := fmt.Sprint(record.Extra["why"])
			if by[text] == nil {
				said = append(said, text)
			}
			by[text] = append(by[text], codingHeader(c.Name))
		}
		for _, text := range said {
			why.Rows = append(why.Rows, []string{"`" + row.Name + "`", strings.Join(by[text], ", "), text})
		}
	}
	b.WriteString(why.Markdown() + "\n")

	p("## What a notice saves")
	p("In these rows A's rename lands after B has planned and before it has written; the script plans, writes and reviews, one model call each. What B's work rests on so far is known from what it read and tried, so B can be told. **A notice saves work, and keeps nothing right:** the gate lands the right thing whether B hears or not, and pays for silence with a decision made twice. Where nothing is checked, what lands is right only if the message came in time.")
	b.WriteString(r.noticeTable().Markdown() + "\n")

	p("## Beside the table")
	p("Model calls are the script's; the gate makes none of its own: it has no model to call. `answer`: cells in which B's last word disagrees with the branch. `record`: cells whose own artefacts show who acted, what was done, which checks held and every attempt. Attempts are moves of the ref that were tried.")
	b.WriteString(r.besideCoding().Markdown() + "\n")

	p("## What happens in each row")
	for _, row := range codingRows {
		fmt.Fprintf(&b, "- `%s`: %s\n", row.Name, row.What)
	}
	b.WriteString("\n## What each column does\n\n")
	for _, c := range codingColumns {
		fmt.Fprintf(&b, "- %s: %s\n", codingHeader(c.Name), c.What)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (r recordIndex) coding(row, column string) (Record, bool) {
	record, ok := r[CellID(CodingName, "", row, column)]
	return record, ok
}

// codingHeader is a column's name as the page has it: the gate's with its premises
// behind a slash, which an id has no room for.
func codingHeader(name string) string {
	if g, ok := strings.CutPrefix(name, "gate-"); ok {
		return "gate/" + g
	}
	return name
}

func (r recordIndex) codingTable(of func(codingRow) bool) table.Table {
	t := table.Table{Header: []string{"row"}}
	for _, c := range codingColumns {
		t.Header = append(t.Header, codingHeader(c.Name))
	}
	for _, row := range codingRows {
		if !of(row) {
			continue
		}
		cells := []string{"`" + row.Name + "`"}
		for _, c := range codingColumns {
			cells = append(cells, r.codingCell(row.Name, c.Name))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

func (r recordIndex) codingCell(row, column string) string {
	record, ok := r.coding(row, column)
	if !ok {
		return "—"
	}
	status, shown, _ := strings.Cut(record.Cell, " ")
	if holder := record.Extra["holder"]; holder != nil {
		status += fmt.Sprintf(" (held by %v)", holder)
	}
	return status + " " + shown + " " + record.Class().Mark()
}

// codingIn are the rows of the table in which the cell of a column satisfies f.
func (r recordIndex) codingIn(column string, f func(Record) bool) (rows []string) {
	for _, row := range codingRows {
		if record, ok := r.coding(row.Name, column); ok && row.Group == "" && f(record) {
			rows = append(rows, row.Name)
		}
	}
	return rows
}

// codingFindings are the sentences that the cells support.
func (r recordIndex) codingFindings() []string {
	column := func(g premise.Granularity) string { return "gate-" + string(g) }
	refused := func(g premise.Granularity) []string { return r.codingIn(column(g), isClass(oracle.FalseRefusal)) }
	broken := func(g premise.Granularity) []string { return r.codingIn(column(g), isBad) }
	none := func(rows []string) string {
		if len(rows) == 0 {
			return "none"
		}
		return list(rows)
	}
	var settings []string
	for _, g := range premise.Granularities {
		settings = append(settings, fmt.Sprintf("`%s`: refused for nothing %s, landed and broke %s", g, none(refused(g)), none(broken(g))))
	}
	neither := 0
	for _, g := range premise.Granularities {
		if len(refused(g))+len(broken(g)) == 0 {
			neither++
		}
	}
	var everywhere []string
	for _, row := range r.codingIn(column(premise.File), isClass(oracle.Correct)) {
		if !slices.ContainsFunc(premise.Granularities, func(g premise.Granularity) bool {
			record, ok := r.coding(row, column(g))
			return !ok || record.Class() != oracle.Correct
		}) {
			everywhere = append(everywhere, row)
		}
	}
	both := 0
	for _, row := range []string{"semantic_only", "benign_reformat", "refactor_same_meaning"} {
		if record, ok := r.coding(row, column(premise.Behaviour)); ok && record.Class() == oracle.Correct {
			both++
		}
	}
	naive := r.codingIn("naive", isBad)
	same := 0
	for _, row := range codingRows {
		a, okA := r.coding(row.Name, "naive")
		m, okM := r.coding(row.Name, "message-only")
		if okA && okM && row.Group == "" && a.Cell == m.Cell && a.Class() == m.Class() {
			same++
		}
	}
	hand, files := r.codingIn("hand-check", isBad), r.codingIn("hand-check-files", isClass(oracle.FalseRefusal))
	return []string{
		fmt.Sprintf("**No setting is right in every row; each is right about what it can see.** In the %d rows: %s. Turning the dial trades refusals of harmless changes for changes of meaning that are let through; %d of its %d settings have neither.", len(r.codingIn("naive", func(Record) bool { return true })), strings.Join(settings, "; "), neither, len(premise.Granularities)),
		fmt.Sprintf("**Past the reference table's boundary.** The observed behaviour admits the harmless edit and the rewrite and refuses the change of meaning: `gate/behaviour` is right in %d of `semantic_only`, `benign_reformat` and `refactor_same_meaning`. Its floor is what B never tried (%s). The syntax tree has the other floor: it lets nothing in these rows break (%d), and refuses a rewrite that means the same (%s). Neither sees what isn't in the repository.", both, none(broken(premise.Behaviour)), len(broken(premise.Body)), none(refused(premise.Body))),
		fmt.Sprintf("**Who landed, how often, and by whose leave, is not the dial's.** %d rows are right at every setting (%s): landing once, under a live lease and with one implementation for one name comes from the journal and the branch. Without any of it %d of %d rows are violated (%s).", len(everywhere), list(everywhere), len(naive), len(r.codingIn("naive", func(Record) bool { return true })), list(naive)),
		fmt.Sprintf("**Messages between agents don't keep what lands right.** With the message late, `message-only` is as `naive` is, in %d rows.", same),
		fmt.Sprintf("**A careful hand check ties the finest setting.** Building the merged tree and running one's own tests before a push that compares and swaps is violated in %d (%s): its tests are the calls that were tried, and so is its floor. Comparing the files' hashes alone refuses for nothing in %d (%s). Either pays with a build each time and leaves no record of what was checked.", len(hand), none(hand), len(files), none(files)),
	}
}

// noticeTable compares what B's work cost with what came of it.
func (r recordIndex) noticeTable() table.Table {
	t := table.Table{Header: []string{"row"}}
	var columns []codingColumn
	for _, c := range codingColumns {
		if !c.quiet {
			columns = append(columns, c)
			t.Header = append(t.Header, codingHeader(c.Name))
		}
	}
	for _, row := range codingRows {
		if row.Group != groupNotice {
			continue
		}
		cells := []string{"`" + row.Name + "`"}
		for _, c := range columns {
			cell := "—"
			if record, ok := r.coding(row.Name, c.Name); ok {
				cell = fmt.Sprintf("%s, %d model calls %s", record.Shown(), record.ModelCalls, record.Class().Mark())
			}
			cells = append(cells, cell)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

func (r recordIndex) besideCoding() table.Table {
	t := table.Table{Header: []string{"column", "cells", "violated", "refused for nothing", "answer disagrees", "record full", "attempts", "model calls"}}
	for _, c := range codingColumns {
		var cells, bad, look, wrong, full, attempts, calls int
		for _, row := range codingRows {
			record, ok := r.coding(row.Name, c.Name)
			if !ok || row.Group != "" {
				continue
			}
			cells++
			switch {
			case record.Class().Word() == "BAD":
				bad++
			case record.Class() == oracle.FalseRefusal:
				look++
			}
			if record.Answer == oracle.Disagrees {
				wrong++
			}
			if record.Record == recordFull {
				full++
			}
			attempts += record.Attempts
			calls += record.ModelCalls
		}
		t.Rows = append(t.Rows, slices.Concat([]string{codingHeader(c.Name)}, ints(cells, bad, look, wrong, full, attempts, calls)))
	}
	return t
}
