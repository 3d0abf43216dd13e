package experiments

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// unpassed are the declared points that no trial of the sweep passes, and why.
var unpassed = []struct {
	point trace.Point
	why   string
}{
	{protocol.PointTakenOver, "one process at a time: every death is proved by the lock it held"},
	{protocol.PointFenceDurable, "no profile of this sweep can fence; `results/crash_points_profiles.md` has one that can"},
	{protocol.PointFenced, "no profile of this sweep can fence; `results/crash_points_profiles.md` has one that can"},
	{protocol.PointEscalated, "no rule asks a person"},
	{protocol.PointDecided, "no rule asks a person"},
	{protocol.PointResolved, "no person settles anything"},
	{protocol.PointGranted, "passed in the principal's process, which is not under test"},
	{protocol.PointRevoked, "passed in the principal's process, which is not under test"},
	{protocol.PointRuled, "passed in the principal's process, which is not under test"},
	{protocol.PointSealed, "passed in the principal's process, which is not under test"},
	{protocol.PointDrained, "passed in the principal's process, which is not under test"},
	{protocol.PointJournalRead, "passed in the principal's process, which is not under test"},
	{journal.SuspectsMarked, "a kill between two points tears no record in half"},
	{journal.TailCut, "a kill between two points tears no record in half"},
}

// sweepExtra is the extra of a record of the sweep.
type sweepExtra struct {
	Passed []trace.Point             `json:"passed"` // in declared order
	At     map[string]map[string]int `json:"at"`     // point: class: trials
	Money  map[string]int            `json:"money"`  // amount: trials
	Window map[string]int            `json:"window"` // point: landings right at the last look and wrong when applied
	Made   string                    `json:"made"`   // of a run that is not repeated
}

func sweepExtraOf(r Record) (x sweepExtra) {
	text, err := json.Marshal(r.Extra)
	if err == nil {
		err = json.Unmarshal(text, &x)
	}
	if err != nil {
		return sweepExtra{} // a record of something else shows nothing
	}
	return x
}

// crashPage renders the records of a sweep.
func crashPage(name string, per int, records []Record) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	total := sweepCount(records)
	if per == 0 {
		p("# Every crash point")
		p("Made by `interlock-bench %s --seed %s`: %s. A run of all %d trials is not repeated by a check; `results/crash_points_slice.md` is a part of it that is.",
			name, indexRecords(records).seed(), madeOf(records), total.trials)
	} else {
		p("# Every crash point: the part that every check runs again")
		p("Made by `interlock-bench %s --seed %s`: of the trials that follow from one, the seed picks %d for each table; there are %d in all. The whole sweep is `results/crash_points.md`.",
			name, indexRecords(records).seed(), per, total.trials)
	}
	p("A row is run once without a kill; then it is run again for every point that it passed, with a kill there (SIGKILL, while the process stands at the point), and for every change of the world there: the lease revoked, the order made ineligible, $20 refunded by hand. After each single kill each change is also made before the restart, and one more: the service forgets its keys and 25 hours pass. For the gate every single kill is followed by a second at every point passed after the restart, so that recovery is killed too. Everything that writes a journal runs on both kinds of file, one that keeps what was written at a kill and one that loses what was not synced. The gate also runs at services that don't declare their landing bound, which t3 never does.")
	p("✅ held · ❌ violated · ⚠️ held, and a person must look · — not judged, or the fault did not fire")

	p("## What came of it")
	for _, s := range crashFindings(records) {
		p("%s", s)
	}
	b.WriteString(sweepSummary(records).Markdown() + "\n")

	p("## A kill at each point that every column passes")
	p("All rows together. A cell counts the trials of each verdict.")
	b.WriteString(pointTable(records, sweepShared, sharedPoints()).Markdown() + "\n")

	p("## A change of the world at each of them")
	p("All rows and changes together.")
	b.WriteString(pointTable(records, sweepChanges, sharedPoints()).Markdown() + "\n")

	p("## The gate at its own points")
	p("`kill`: one kill there. `second`: the second of two kills. `change`: a change of the world. All rows, profiles and kinds of file together; where the bound is declared, and where it is not.")
	b.WriteString(ownTable(records).Markdown() + "\n")

	p("## Points declared and passed")
	by := passedBy(records)
	declared, passed := len(sharedPoints())+len(ownPoints()), len(by)
	p("%d points are declared and %d were passed. Declared and not passed:", declared, passed)
	for _, u := range unpassed {
		if !by[u.point] {
			fmt.Fprintf(&b, "- `%s`: %s\n", u.point, u.why)
		}
	}
	b.WriteString("\n")

	p("## Row by row")
	p("All tables together, the gate's with the bound declared and without.")
	b.WriteString(sweepRowTable(records).Markdown())
	return b.String()
}

func madeOf(records []Record) string {
	for _, r := range records {
		if made := sweepExtraOf(r).Made; made != "" {
			return made
		}
	}
	return "nobody noted when"
}

// tally is what many trials came to.
type tally struct {
	trials, unfired, window int
	of                      map[string]int // class: trials
}

func sweepCount(records []Record) tally {
	t := tally{of: map[string]int{}}
	for _, r := range records {
		t.trials += r.Trials
		t.unfired += r.Unfired
		for class, n := range r.Counts {
			t.of[class] += n
		}
		for _, n := range sweepExtraOf(r).Window {
			t.window += n
		}
	}
	return t
}

// count is the trials of a class.
func (t tally) count(c oracle.Class) int { return t.of[c.String()] }

// classes lists all classes, the best first and the unjudged last.
func classes() []oracle.Class {
	var list []oracle.Class
	for c := oracle.Correct; c <= oracle.Duplicate; c++ {
		list = append(list, c)
	}
	return append(list, oracle.Unknown)
}

// marks says how many trials came to which class: "12 ✅ 3 ❌ DUPLICATE".
func marks(of map[string]int) string {
	var parts []string
	for _, c := range classes() {
		n := of[c.String()]
		switch {
		case n == 0:
		case c == oracle.Correct:
			parts = append(parts, fmt.Sprintf("%d %s", n, c.Mark()))
		default:
			parts = append(parts, fmt.Sprintf("%d %s %s", n, c.Mark(), c))
		}
	}
	if len(parts) == 0 {
		return "·"
	}
	return strings.Join(parts, ", ")
}

// where filters records.
func where(records []Record, keep func(Record) bool) []Record {
	return slices.DeleteFunc(slices.Clone(records), func(r Record) bool { return !keep(r) })
}

func isGate(r Record) bool {
	c, ok := findColumn(deskColumns, r.Column)
	return ok && c.gate
}

func isUnbounded(r Record) bool { _, unbounded := sweepKind(r.Table()); return unbounded }

func ofKind(kind string) func(Record) bool {
	return func(r Record) bool { k, _ := sweepKind(r.Table()); return k == kind }
}

// crashFindings are the sentences that the records support.
func crashFindings(records []Record) []string {
	gate := sweepCount(where(records, isGate))
	bad := 0
	var named []string
	for _, c := range classes() {
		if c.Word() == "BAD" {
			bad += gate.count(c)
			named = append(named, fmt.Sprintf("%d %s", gate.count(c), c))
		}
	}
	said := []string{fmt.Sprintf("**The gate**, in %d trials: %s, %d FALSE_REFUSAL, %d not fired, %d not judged. %d end AMBIGUOUS: %s.",
		gate.trials, strings.Join(named, ", "), gate.count(oracle.FalseRefusal), gate.unfired, gate.count(oracle.Unknown),
		gate.count(oracle.Ambiguous), ambiguousBy(records))}

	windows := map[string]int{}
	for _, r := range where(records, isGate) {
		for point, n := range sweepExtraOf(r).Window {
			windows[point] += n
		}
	}
	var at []string
	for _, point := range slices.Sorted(maps.Keys(windows)) {
		at = append(at, fmt.Sprintf("%d at `%s`", windows[point], point))
	}
	said = append(said, fmt.Sprintf("**The window.** At a service that checks nothing itself, a change may fall between the gate's last look and the landing. %d of its landings were right at the last look and no longer right when they were applied: %s. They are counted here and not held against it, nor against any other column.",
		gate.window, orNone(strings.Join(at, ", "))))

	exact := func(profile string) string {
		n, of := 0, 0
		for _, r := range records {
			kind, unbounded := sweepKind(r.Table())
			if r.Column != "gate@"+profile || unbounded || r.Row != "happy_path" && r.Row != "duplicate_submit" || kind == sweepChanges || kind == sweepOutage {
				continue
			}
			of += r.Trials
			n += sweepExtraOf(r).Money["$20"]
		}
		return fmt.Sprintf("%d of %d", n, of)
	}
	var once []string
	for _, c := range deskColumns {
		profile := profileOf(c.Name)
		if !c.gate || profile == "t3" || sweepCount(where(records, func(r Record) bool { return r.Column == c.Name })).trials == 0 {
			continue
		}
		trials := ""
		if len(once) == 0 {
			trials = "trials "
		}
		once = append(once, fmt.Sprintf("%s %sat `%s`", exact(profile), trials, c.Name))
	}
	said = append(said, fmt.Sprintf("**$20, once.** Where nothing changes but that processes die, once or twice, and the one decision stands (`happy_path`, `duplicate_submit`), exactly $20 left in %s.", strings.Join(once, " and ")))

	var beaten []string
	for _, c := range deskColumns {
		of := sweepCount(where(records, func(r Record) bool { return r.Column == c.Name }))
		n := 0
		for _, class := range classes() {
			if class.Word() == "BAD" {
				n += of.count(class)
			}
		}
		if !c.gate && of.trials > 0 {
			beaten = append(beaten, fmt.Sprintf("`%s` %d of %d", c.Name, n, of.trials))
		}
	}
	if len(beaten) == 0 { // the gate is swept alone
		return said
	}
	said = append(said, "**Violated**, of the trials at shared points: "+strings.Join(beaten, ", ")+".")

	var differs []string
	late := ""
	for _, c := range deskColumns {
		if !strings.HasPrefix(c.Name, "hand-check") {
			continue
		}
		for _, p := range sharedPoints() {
			of := atPoint(where(records, func(r Record) bool { return r.Column == c.Name && r.Table() == sweepShared }), p)
			n := 0
			for _, class := range classes() {
				if class.Word() == "BAD" {
					n += of[class.String()]
				}
			}
			if n > 0 {
				if c.Name == "hand-check@t2" && p == sim.Accepted {
					late = " At t2, killed there, it restarts, asks, hears that nothing landed, and sends again, while the service still holds the first request; the gate asks again once the landing bound has passed."
				}
				differs = append(differs, fmt.Sprintf("`%s` at `%s` %d", c.Name, p, n))
			}
		}
	}
	return append(said, "**The hand check**, killed once, is violated here: "+orNone(strings.Join(differs, ", "))+"."+late+" It is not swept at points of its own.")
}

// ambiguousBy says where the gate could not tell.
func ambiguousBy(records []Record) string {
	count := map[string]int{}
	for _, r := range where(records, isGate) {
		key := "`" + r.Column + "`"
		if isUnbounded(r) {
			key += " without a bound"
		}
		count[key] += r.Counts[oracle.Ambiguous.String()]
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%s %d", key, count[key]))
	}
	return orNone(strings.Join(parts, ", "))
}

// sweepSummary has a line for each column and bound.
func sweepSummary(records []Record) table.Table {
	t := table.Table{Header: []string{"column", "trials", "verdicts", "not fired", "in the window"}}
	for _, unbounded := range []bool{false, true} {
		for _, c := range deskColumns {
			of := sweepCount(where(records, func(r Record) bool { return r.Column == c.Name && isUnbounded(r) == unbounded }))
			if of.trials == 0 {
				continue
			}
			name := "`" + c.Name + "`"
			if unbounded {
				name += ", bound not declared"
			}
			t.Rows = append(t.Rows, []string{name, fmt.Sprint(of.trials), marks(of.of), fmt.Sprint(of.unfired), fmt.Sprint(of.window)})
		}
	}
	return t
}

// atPoint is what the trials at one point came to.
func atPoint(records []Record, point trace.Point) map[string]int {
	of := map[string]int{}
	for _, r := range records {
		for class, n := range sweepExtraOf(r).At[string(point)] {
			of[class] += n
		}
	}
	return of
}

// pointTable compares columns on the points they all pass.
func pointTable(records []Record, kind string, points []trace.Point) table.Table {
	t := table.Table{Header: []string{"column"}}
	for _, p := range points {
		t.Header = append(t.Header, "`"+string(p)+"`")
	}
	for _, c := range deskColumns {
		mine := where(records, func(r Record) bool { return r.Column == c.Name && r.Table() == kind })
		if len(mine) == 0 {
			continue
		}
		line := []string{"`" + c.Name + "`"}
		for _, p := range points {
			line = append(line, marks(atPoint(mine, p)))
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// ownTable is what came of the gate at each of its own points.
func ownTable(records []Record) table.Table {
	t := table.Table{Header: []string{"point", "kill", "second", "change", "kill, no bound", "second, no bound", "change, no bound"}}
	for _, p := range ownPoints() {
		line := []string{"`" + string(p) + "`"}
		empty := true
		for _, unbounded := range []bool{false, true} {
			for _, kind := range []string{sweepOwn, sweepPairs, sweepChanges} {
				of := atPoint(where(records, func(r Record) bool {
					return isGate(r) && isUnbounded(r) == unbounded && ofKind(kind)(r)
				}), p)
				empty = empty && len(of) == 0
				line = append(line, marks(of))
			}
		}
		if !empty {
			t.Rows = append(t.Rows, line)
		}
	}
	return t
}

// passedBy are the points that any trial passed.
func passedBy(records []Record) map[trace.Point]bool {
	passed := map[trace.Point]bool{}
	for _, r := range records {
		for _, p := range sweepExtraOf(r).Passed {
			passed[p] = true
		}
	}
	return passed
}

// sweepRowTable has a line for each row and column, all tables together.
func sweepRowTable(records []Record) table.Table {
	t := table.Table{Header: []string{"row", "column", "trials", "verdicts", "not fired", "points passed"}}
	for _, row := range sweepRows {
		for _, c := range deskColumns {
			mine := where(records, func(r Record) bool { return r.Row == row && r.Column == c.Name })
			if len(mine) == 0 {
				continue
			}
			declared := len(sharedPoints())
			if c.gate {
				declared += len(ownPoints())
			}
			passed := 0
			for p := range passedBy(mine) {
				if c.gate || slices.Contains(sharedPoints(), p) {
					passed++
				}
			}
			of := sweepCount(mine)
			t.Rows = append(t.Rows, []string{"`" + row + "`", "`" + c.Name + "`", fmt.Sprint(of.trials), marks(of.of), fmt.Sprint(of.unfired), fmt.Sprintf("%d of %d", passed, declared)})
		}
	}
	return t
}
