package experiments

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// CrashPoints is the whole sweep: every column of the refund experiment, killed
// at every point that it passes, and the world changed at each of them.
func CrashPoints() *Experiment {
	return crashSweep("crash-points", "a kill, and a change of the world, at every point that a column passes (the whole sweep; minutes)", true, refundColumns, 0)
}

// CrashPointsSlice is a part of the sweep that the seed fixes, small enough to be
// run again by every check.
func CrashPointsSlice() *Experiment {
	return crashSweep(sliceName, "a part of the crash-point sweep, fixed by the seed", false, refundColumns, perTable)
}

// CrashPointsProfiles is a larger part of the sweep for the gate at services that
// check premises themselves or can fence.
func CrashPointsProfiles() *Experiment {
	return crashSweep(profilesName, "a part of the sweep for the gate at conditional and fenced services", false, furtherGates, perProfile)
}

// The experiments that run a part of the sweep.
const (
	sliceName    = "crash-points-slice"
	profilesName = "crash-points-profiles"
)

// The tables of the sweep: what happens in the trials of each.
const (
	sweepShared  = ""        // one kill at a point that every column passes
	sweepOwn     = "own"     // one kill at a point of the gate or its journal
	sweepPairs   = "pairs"   // and a second kill at any point after the restart
	sweepChanges = "changes" // one change of the world at any point
	sweepOutage  = "outage"  // one change after a kill, before the restarted process opens anything
)

// sweepKinds are all tables, in the order of the page.
var sweepKinds = []string{sweepShared, sweepOwn, sweepPairs, sweepChanges, sweepOutage}

// unboundedTable is the table of the same trials at a service that doesn't say
// how late a request may land.
func unboundedTable(kind string) string {
	if kind == "" {
		return tableUnbounded
	}
	return kind + "-" + tableUnbounded
}

// sweepKind is the inverse of unboundedTable, and says whether there was need
// for one.
func sweepKind(table string) (kind string, unbounded bool) {
	kind, unbounded = strings.CutSuffix(table, tableUnbounded)
	return strings.TrimSuffix(kind, "-"), unbounded
}

// sweepRows are the rows swept, without their own kills: one that goes well, one
// with a second request, one with a second decision, and two that end in a
// refusal.
var sweepRows = []string{"happy_path", "duplicate_submit", "model_redecides", "lease_revoked", "stale_eligibility"}

// changes of the world, each with its acts. The last is for outages only: a
// process that stands still for a day between its last look and its first byte
// is outside of what any client can promise.
var changes = [][]string{{"revoke"}, {"make-ineligible"}, {"refund-by-hand"}, {"forget-keys", "wait:25h"}}

// sharedPoints are those that every column passes: around the column, and at the
// service.
func sharedPoints() []trace.Point {
	return slices.Concat([]trace.Point{pointStarted, pointDecided, sim.BeforeSend}, sim.Points(), []trace.Point{sim.ReplyReceived, pointTold})
}

// ownPoints are those that only the gate and its journal pass.
func ownPoints() []trace.Point { return slices.Concat(protocol.Points(), journal.Points()) }

// crashSweep is a sweep of columns. Of the trials that follow from one it takes per
// for each table, or all where per is 0.
func crashSweep(name, short string, once bool, columns []column, per int) *Experiment {
	e := &Experiment{
		Name:  name,
		Short: short,
		Long: `Each row is first run without a kill; what it passed is then swept. Shared points
are passed by every column, own points by the gate. Tables: a kill at a shared
point, at an own point (own), a second kill after the restart (pairs), a change of
the world at a point (changes), and one after a kill (outage), each also at a
service that doesn't declare its landing bound (unbounded).

A record is a cell: how many trials, how many of each verdict, and the line that
replays the worst.`,
		Example: fmt.Sprintf("  interlock-bench %s\n  interlock-bench %[1]s --row happy_path --column gate@t2\n  interlock-bench replay '%[1]s.pairs/happy_path/gate@t2 \\\n    file=lossy kill@sim/applied#1 kill@gate/looked-up#1 seed=1'", name),
		Columns: desk{columns: columns}.columnInfo(),
		Run:     runCrashPoint,
		Child:   work,
		More:    func(o Outcome) []faults.Trial { return slice(per, follow(o)) },
		Sum:     sumSweep,
		Once:    once,
		Page:    func(records []Record) string { return crashPage(name, per, records) },
	}
	for _, row := range faults.Reference {
		if !slices.Contains(sweepRows, row.Name) {
			continue
		}
		what := row.What
		if base := undying(row.Faults); len(base) < len(row.Faults) {
			what = "The model, asked again, says $30."
		}
		e.Rows = append(e.Rows, Row{Name: row.Name, Group: row.Group, What: what})
		for _, unbounded := range []bool{false, true} {
			for _, kind := range sweepKinds {
				e.Cells = append(e.Cells, sweepCells(name, kind, unbounded, row, columns)...)
			}
		}
	}
	return e
}

// sweepCells are the cells of one row in one table. Those of the main tables name
// the trials without a kill; all others follow from them.
func sweepCells(name, kind string, unbounded bool, row faults.Row, columns []column) (cells []Cell) {
	for _, c := range columns {
		profile, _ := sim.ProfileNamed(profileOf(c.Name))
		if !c.gate && (unbounded || kind == sweepOwn || kind == sweepPairs) || unbounded && profile.BoundUnknown {
			continue
		}
		cell := Cell{Table: kind, Row: row.Name, Column: c.Name}
		if unbounded {
			cell.Table = unboundedTable(kind)
		}
		if kind == sweepShared {
			for _, t := range sweepDesk.trials(cell.Table, row, c) {
				t.Experiment, t.Faults = name, undying(row.Faults)
				cell.Trials = append(cell.Trials, t)
			}
		}
		cells = append(cells, cell)
	}
	return cells
}

// undying are the faults that aren't kills.
func undying(of []faults.Fault) (rest []faults.Fault) {
	for _, f := range of {
		if f.What != faults.Kill {
			rest = append(rest, f)
		}
	}
	return rest
}

// sweepDesk is the desk of the refund experiment with every column.
var sweepDesk = desk{name: refundDesk.name, rows: faults.Reference, columns: deskColumns}

// runCrashPoint runs one trial of the sweep.
func runCrashPoint(ctx context.Context, t faults.Trial) (Outcome, error) {
	if _, unbounded := sweepKind(t.Table); unbounded {
		t.Table = tableUnbounded
	} else {
		t.Table = ""
	}
	o, err := sweepDesk.run(ctx, t)
	o.Extra = map[string]any{"passed": passedIn(o.History)}
	return o, err
}

// passedIn are the points of a history, each once, in the order of its first
// passage.
func passedIn(h history.History) (points []trace.Point) {
	seen := map[trace.Point]bool{}
	for _, e := range h {
		if e.Kind == history.Passed && !seen[e.Point] {
			seen[e.Point] = true
			points = append(points, e.Point)
		}
	}
	return points
}

// swept are the faults that the sweep put into a trial, without those of its row.
func swept(t faults.Trial) []faults.Fault {
	at := slices.IndexFunc(faults.Reference, func(r faults.Row) bool { return r.Name == t.Row })
	if at < 0 {
		return t.Faults
	}
	return t.Faults[min(len(undying(faults.Reference[at].Faults)), len(t.Faults)):]
}

// follow are the trials that follow from one: from a run without a kill, a kill
// and each change at everything that it passed; from a run with one kill, a
// change before the restart and, for the gate, a second kill at everything that
// was passed behind the first.
func follow(o Outcome) (next []faults.Trial) {
	kind, unbounded := sweepKind(o.Trial.Table)
	c, ok := findColumn(deskColumns, o.Trial.Column)
	if !ok {
		return nil
	}
	add := func(kind string, f ...faults.Fault) {
		t := o.Trial
		t.Table = kind
		if unbounded {
			t.Table = unboundedTable(kind)
		}
		t.Faults = slices.Concat(t.Faults, f)
		next = append(next, t)
	}
	switch faulted := swept(o.Trial); {
	case len(faulted) == 0:
		for _, f := range passages(o.History, c.gate, false) {
			if slices.Contains(sharedPoints(), f.At) {
				add(sweepShared, f)
			} else {
				add(sweepOwn, f)
			}
			for _, change := range changes[:len(changes)-1] {
				f.What = change[0]
				if !slices.ContainsFunc(o.Trial.Faults, func(of faults.Fault) bool { return of.What == f.What }) {
					add(sweepChanges, f)
				}
			}
		}
	case (kind == sweepShared || kind == sweepOwn) && len(faulted) == 1:
		for _, change := range changes {
			var acts []faults.Fault
			for _, act := range change {
				acts = append(acts, faults.Fault{What: act, At: pointStarted, Passage: 2})
			}
			add(sweepOutage, acts...)
		}
		if c.gate {
			for _, f := range passages(o.History, true, true) {
				add(sweepPairs, f)
			}
		}
	}
	return next
}

// passages are kills at everything that was passed in h while a process lived,
// or while one lived behind the first death.
func passages(h history.History, own, behindDeath bool) (kills []faults.Fault) {
	count := map[trace.Point]int{}
	lives, died := false, false
	for _, e := range h {
		switch e.Kind {
		case history.Started:
			lives = true
		case history.Killed:
			lives, died = false, true
		case history.Finished, history.Exited, history.Hung:
			lives = false
		}
		if e.Kind != history.Passed {
			continue
		}
		count[e.Point]++
		if !lives || behindDeath && !died || !own && !slices.Contains(sharedPoints(), e.Point) {
			continue
		}
		kills = append(kills, faults.Fault{What: faults.Kill, At: e.Point, Passage: count[e.Point]})
	}
	return kills
}

// How many of the trials that follow from one a slice takes for each table.
const (
	perTable   = 1
	perProfile = 2
)

// slice takes, of each table, the n trials that come first when they are ordered
// by a digest of their lines, which the seed is a part of; all where n is 0.
func slice(n int, trials []faults.Trial) (taken []faults.Trial) {
	if n == 0 {
		return trials
	}
	digest := func(t faults.Trial) uint64 {
		sum := sha256.Sum256([]byte(t.String()))
		return binary.BigEndian.Uint64(sum[:])
	}
	shuffled := slices.Clone(trials)
	slices.SortStableFunc(shuffled, func(a, b faults.Trial) int { return cmp.Compare(digest(a), digest(b)) })
	count := map[string]int{}
	for _, t := range shuffled {
		if count[t.Table]++; count[t.Table] <= n {
			taken = append(taken, t)
		}
	}
	return taken
}

// sumSweep is the extra of a cell of the sweep.
func sumSweep(of []Outcome) map[string]any {
	points := slices.Concat(sharedPoints(), ownPoints())
	passed := map[trace.Point]bool{}
	at, money, window := map[string]map[string]int{}, map[string]int{}, map[string]int{}
	for _, o := range of {
		if list, ok := o.Extra["passed"].([]trace.Point); ok {
			for _, p := range list {
				passed[p] = true
				if !slices.Contains(points, p) {
					points = append(points, p) // nobody declared it, and the page says so
				}
			}
		}
		where := "none"
		if f := swept(o.Trial); len(f) > 0 {
			kind, _ := sweepKind(o.Trial.Table)
			where = string(f[0].At)
			if kind == sweepPairs {
				where = string(f[len(f)-1].At)
			}
		}
		if at[where] == nil {
			at[where] = map[string]int{}
		}
		at[where][o.Verdict.Class.String()]++
		money[Money(o.Verdict.Money)]++
		if o.Verdict.Window > 0 {
			window[where] += o.Verdict.Window
		}
	}
	var names []string
	for _, p := range points {
		if passed[p] {
			names = append(names, string(p))
		}
	}
	return map[string]any{"passed": names, "at": at, "money": money, "window": window}
}
