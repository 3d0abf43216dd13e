package experiments

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/svg"
	"github.com/interlock-bench/interlock-bench/experiments/table"
)

// days are the records of one experiment of days, by row and column.
type days map[string]Record

func daysOf(records []Record) days {
	d := days{}
	for _, r := range records {
		d[r.Row+"/"+r.Column] = r
	}
	return d
}

func (d days) count(row, column, what string) int { return extraCount(d[row+"/"+column], what) }

// counts is a map of counts in a record's extra.
func (d days) counts(row, column, what string) map[string]int {
	out := map[string]int{}
	switch m := d[row+"/"+column].Extra[what].(type) {
	case map[string]int:
		return m
	case map[string]any:
		for k, v := range m {
			n := 0
			fmt.Sscan(fmt.Sprint(v), &n)
			out[k] = n
		}
	}
	return out
}

// plotLine is one line of a plot: a figure of one column over the rows of a sweep.
type plotLine struct {
	column, what, label string
	style               svg.Style
	dashed              bool
}

// point is a row of a sweep, and where it stands on its axis.
type plotPoint struct {
	row string
	x   int
}

// plot draws sweeps over an axis.
func (d days) plot(title, axis string, points []plotPoint, most int, lines []plotLine) string {
	const left, right, top, bottom, width, height = 60.0, 220.0, 40.0, 60.0, 680.0, 360.0
	desc := title + ": " + strings.ReplaceAll(strings.TrimSpace(d.text(axis, points, lines)), "\n", "; ")
	g := svg.New(width, height, title, desc)
	last := points[len(points)-1].x
	x := func(v int) float64 { return left + float64(v)/float64(last)*(width-left-right) }
	y := func(v int) float64 { return height - bottom - float64(v)/float64(most)*(height-top-bottom) }
	g.Text(left, 22, svg.Start, svg.Strong, title)
	for v := 0; v <= most; v += most / 4 {
		g.Line(left, y(v), width-right, y(v), svg.Plane)
		g.Text(left-8, y(v)+4, svg.End, svg.Quiet, fmt.Sprint(v))
	}
	for _, p := range points {
		g.Text(x(p.x), height-bottom+18, svg.Middle, svg.Quiet, fmt.Sprint(p.x))
	}
	g.Text((left+width-right)/2, height-18, svg.Middle, svg.Ink, axis)
	taken := map[int]bool{}
	for _, l := range lines {
		for i, p := range points {
			v := d.count(p.row, l.column, l.what)
			g.Dot(x(p.x), y(v), 3, l.style)
			if i == 0 {
				continue
			}
			from := d.count(points[i-1].row, l.column, l.what)
			if l.dashed {
				g.Dashed(x(points[i-1].x), y(from), x(p.x), y(v), l.style)
			} else {
				g.Line(x(points[i-1].x), y(from), x(p.x), y(v), l.style)
			}
		}
		at := int(y(d.count(points[len(points)-1].row, l.column, l.what))) / 14
		for taken[at] {
			at--
		}
		taken[at] = true
		g.Text(width-right+10, float64(at*14)+10, svg.Start, l.style, l.label)
	}
	return g.String()
}

// text is the plot in letters: a bar for each figure.
func (d days) text(axis string, points []plotPoint, lines []plotLine) string {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%s, by %s\n", l.label, axis)
		for _, p := range points {
			v := d.count(p.row, l.column, l.what)
			fmt.Fprintf(&b, "%4d %s %d\n", p.x, strings.Repeat("#", (v+1)/2), v)
		}
	}
	return b.String()
}

// approvalSweep are the mixes by how many requests are refunded by hand.
var approvalSweep = []plotPoint{{"changed_0", 0}, {"reference", 10}, {"changed_20", 20}, {"changed_30", 30}}

const approvalAxis = "requests of 100 that are refunded by hand meanwhile"

var approvalLines = []plotLine{
	{policyGate, "reviews", "reviews, rules+gate", svg.Accent, false},
	{policyRules, "reviews", "reviews, rules", svg.Quiet, false},
	{policyRules, "wrong", "wrong payouts, rules", svg.Bad, true},
	{policyGate, "wrong", "wrong payouts, rules+gate", svg.Good, true},
}

// approvalsPlot draws results/approvals.svg.
func approvalsPlot(records []Record) string {
	return daysOf(records).plot("Reviews and wrong payouts of a day", approvalAxis, approvalSweep, 60, approvalLines)
}

// approvalsPage renders results/approvals.md.
func approvalsPage(records []Record) string {
	d := daysOf(records)
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	reviews := func(column string) int { return d.count("reference", column, "reviews") }
	wrong := func(column string) int { return d.count("reference", column, "wrong") }

	p("# What still needs a person")
	p("Made by `interlock-bench approvals --seed %s`. The day is drawn with its own, %d. **The mix is an assumption**, and so are the reviewers: nobody has measured either.", indexRecords(records).seed(), daySeed)
	p("The gate adds reviews while it removes wrong payouts: on this mix %d reviews become %d, and %d wrong payouts become %d. The cut from %d reviews to %d is made by the rules, which need no gate.",
		reviews(policyRules), reviews(policyGate), wrong(policyRules), wrong(policyGate), reviews(policyEveryone), reviews(policyRules))
	t := table.Table{Header: []string{"policy", "reviews a person did", "orders that got the wrong amount", "paid beyond what was approved", "senders killed"}}
	for _, c := range Approvals().Columns {
		t.Rows = append(t.Rows, []string{"`" + c.Name + "`", fmt.Sprint(reviews(c.Name)), fmt.Sprint(wrong(c.Name)),
			Money(int64(d.count("reference", c.Name, "over"))), fmt.Sprint(d.count("reference", c.Name, "killed"))})
	}
	b.WriteString(t.Markdown() + "\n")
	for _, c := range Approvals().Columns {
		fmt.Fprintf(&b, "- `%s`: %s.\n", c.Name, c.What)
	}
	m := dayMixes[0]
	p("\n## The mix")
	p("%d routine requests of $5 to $%d, %d over that limit, up to $300, %d whose customer is flagged, %d whose order isn't eligible, %d second deliveries of a routine one, %d whose sender is killed as the refund lands, %d routine ones that a person refunds by hand between the agent's decision and its send. Of those over the limit %d are refunded by hand whole and %d by a third, between the approval and the send. Every order is of $%d, so that the service itself refuses no refund.",
		m.routine, dayLimit, m.over, m.flagged, m.ineligible, m.duplicate, m.crash, m.byHand, m.stale, m.partial, dayPaid/100)
	p("A request arrives every 5 minutes. A question is answered after an exponential time of 90 minutes in the mean, by a group that has 4 hours; then the next group is asked. People reject what is flagged, not eligible or refunded already, approve the rest of what was refunded in part, and approve everything else. The generator and its seed are those of the reference, so its day is this day, request for request.")
	p("## Where the %d reviews come from", reviews(policyGate))
	kinds := d.counts("reference", policyGate, "kinds")
	for _, k := range []struct{ kind, what string }{
		{"over_limit", "over the limit"}, {"flagged", "flagged"}, {"ineligible", "not eligible"}, {"refunded_by_hand", "refunded by hand before the send: a premise changed, and a person sees it"},
	} {
		fmt.Fprintf(&b, "- %d: %s\n", kinds[k.kind], k.what)
	}
	again := d.counts("reference", policyGate, "again")
	var names []string
	for _, name := range slices.Sorted(maps.Keys(again)) {
		names = append(names, fmt.Sprintf("`%s` %d times", name, again[name]))
	}
	p("\nReviewed more than once: %s. Each of them changed between its approval and its send. The one that was reviewed three times was above $%d, and a third of it was refunded by hand: the rest is another group's to approve than the one that accepted the correction.", strings.Join(names, ", "), largeLimit)
	p("## A sweep of the mix")
	s := table.Table{Header: []string{"mix"}}
	for _, c := range Approvals().Columns {
		s.Header = append(s.Header, c.Name)
	}
	for _, r := range Approvals().Rows {
		line := []string{"`" + r.Name + "`"}
		for _, c := range Approvals().Columns {
			line = append(line, fmt.Sprintf("%d reviews, %d wrong", d.count(r.Name, c.Name, "reviews"), d.count(r.Name, c.Name, "wrong")))
		}
		s.Rows = append(s.Rows, line)
	}
	b.WriteString(s.Markdown() + "\n")
	for _, r := range Approvals().Rows {
		fmt.Fprintf(&b, "- `%s`: %s.\n", r.Name, r.What)
	}
	p("\n![Reviews and wrong payouts by how many requests are refunded by hand](approvals.svg)")
	b.WriteString("```\n" + d.text(approvalAxis, approvalSweep, approvalLines) + "```\n\n")
	p("## What to make of it")
	p("Each wrong payout that the gate removes costs a review, because what changed is a person's to judge: a premise can't tell a refund by hand that replaces this one from one that has nothing to do with it.")
	p("The hand check has the same figures. It reads the same facts before each send and puts what changed before a person; here the queue of questions is kept for it, outside the process that is killed. What it doesn't have is a record: who decided on which facts, under which membership, is nowhere but in that queue, and an answer is whatever arrives. In the gate each question, answer and correction is an entry, an answer counts for the question that it names, and a receipt shows all of them.")
	p("The service of these days takes an idempotency key, so a killed sender is repeated safely under every policy, and no crash reaches a person.")
	return strings.TrimSuffix(b.String(), "\n")
}
