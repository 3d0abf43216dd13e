package experiments

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/disk"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// diskKind is a column: one kind of state, or of damage, and what makes all of
// them.
type diskKind struct {
	name, what string
	rot        bool // only for workloads whose end is left to rot
	all        func(dir string, w disk.Workload, seed uint64) (disk.Count, error)
}

// diskKinds are the columns, in the order of the page.
func diskKinds() []diskKind {
	var all []diskKind
	for _, k := range disk.Kinds {
		all = append(all, diskKind{k.String(), k.What(), false, func(dir string, w disk.Workload, seed uint64) (disk.Count, error) {
			return disk.Crash(dir, w, k, seed)
		}})
	}
	return append(all,
		diskKind{"faults", "each call of the disk fails in turn, with EIO and ENOSPC: writes in eight lengths, syncs with four ways in which the cache lies after; then a crash, at every point from there on", false, disk.Faults},
		diskKind{"flips", "each bit of what the workload leaves is flipped", true, func(dir string, w disk.Workload, _ uint64) (disk.Count, error) { return disk.Flips(dir, w) }},
		diskKind{"truncations", "each file that the workload leaves ends at each byte", true, func(dir string, w disk.Workload, _ uint64) (disk.Count, error) { return disk.Truncations(dir, w) }},
	)
}

// DiskStates opens the journal on every legal state that a crash may leave of a
// disk. Its trials are no processes: they are enumerations within this one.
func DiskStates() *Experiment {
	e := &Experiment{
		Name:  "disk-states",
		Short: "the journal on every state that a crash may leave of a disk, and on a damaged one",
		Long: `A workload writes a journal on a disk in memory that is crashed before every
change. The journal is opened on every state that this may leave, goes on, loses
its power and is opened again. A reader of the documented format that shares no
code with the journal says whether it did right. Nothing here is a process or a
real disk; a cell is an enumeration, and its seed makes the garbage.`,
		Example: "  interlock-bench disk-states\n  interlock-bench disk-states --row suspects --words",
		Run:     runDiskStates,
		Page:    diskPage,
	}
	for _, k := range diskKinds() {
		e.Columns = append(e.Columns, Column{Name: k.name, What: k.what, Holds: true})
	}
	for _, w := range disk.Workloads {
		e.Rows = append(e.Rows, Row{Name: w.Name, Group: "workloads", What: w.What})
		for _, k := range diskKinds() {
			if k.rot && !w.Rot {
				continue
			}
			t := faults.Trial{Experiment: e.Name, Row: w.Name, Column: k.name}
			e.Cells = append(e.Cells, Cell{Row: w.Name, Column: k.name, Trials: []faults.Trial{t}, Declared: "HELD $0 ok"})
		}
	}
	return e
}

func runDiskStates(_ context.Context, t faults.Trial) (Outcome, error) {
	w := slices.IndexFunc(disk.Workloads, func(w disk.Workload) bool { return w.Name == t.Row })
	kinds := diskKinds()
	k := slices.IndexFunc(kinds, func(k diskKind) bool { return k.name == t.Column })
	if w < 0 || k < 0 {
		return Outcome{}, fmt.Errorf("experiments: no workload %q with states %q", t.Row, t.Column)
	}
	dir, remove, err := disk.LockDir()
	if err != nil {
		return Outcome{}, err
	}
	defer remove()
	// Every state is garbage as soon as it is judged and next to nothing stays, so
	// the collector would run all the time.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	c, err := kinds[k].all(dir, disk.Workloads[w], t.Seed)
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Status: "HELD", Record: "full", Verdict: oracle.Verdict{Class: oracle.Correct, Answer: oracle.Agrees}}
	o.Extra = map[string]any{"states": c.States, "violations": c.Violations}
	if c.Points > 0 {
		o.Extra["crashes"] = c.Points
	}
	if kinds[k].rot {
		o.Extra["refused"], o.Extra["cut"], o.Extra["opened"] = c.Refused, c.Cut, c.Opened
	}
	if c.First != nil {
		o.Status, o.Verdict.Class = "LOST", oracle.Lost
		o.Verdict.Why = []string{c.First.Error()}
		o.Extra["first"] = c.First.Error()
	}
	return o, nil
}

// diskPage renders results/disk_states.md.
func diskPage(records []Record) string {
	r := map[string]Record{}
	for _, record := range records {
		r[record.Row+"/"+record.Column] = record
	}
	count := func(row, column, what string) int { return extraCount(r[row+"/"+column], what) }
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }

	legal, rotten, violations := 0, 0, 0
	counts := table.Table{Header: []string{"workload"}}
	spoilt := table.Table{Header: []string{"workload", "damage", "logs", "refused", "a tail cut", "opened as it is"}}
	for _, k := range diskKinds() {
		if !k.rot {
			counts.Header = append(counts.Header, k.name)
		}
	}
	for _, w := range disk.Workloads {
		line := []string{"`" + w.Name + "`"}
		for _, k := range diskKinds() {
			n := count(w.Name, k.name, "states")
			violations += count(w.Name, k.name, "violations")
			switch {
			case !k.rot:
				legal += n
				line = append(line, fmt.Sprint(n))
			case w.Rot:
				rotten += n
				spoilt.Rows = append(spoilt.Rows, []string{"`" + w.Name + "`", k.name, fmt.Sprint(n),
					fmt.Sprint(count(w.Name, k.name, "refused")), fmt.Sprint(count(w.Name, k.name, "cut")), fmt.Sprint(count(w.Name, k.name, "opened"))})
			}
		}
		counts.Rows = append(counts.Rows, line)
	}

	p("# The journal on %d states of a disk", legal+rotten)
	p("Made by `interlock-bench disk-states --seed %s`. Legal states after a crash: %d. Damaged logs: %d. Violations: %d.", indexRecords(records).seed(), legal, rotten, violations)
	p("The disk is in memory: a directory behind the journal's file seam that knows what a sync has made durable. States are different from each other in their bytes or in what had been told by then. Nothing here is a real disk; `go test ./protocol/journal` opens real files.")
	p("## States by workload and kind")
	b.WriteString(counts.Markdown() + "\n")
	for _, w := range disk.Workloads {
		fmt.Fprintf(&b, "- `%s`: %s\n", w.Name, w.What)
	}
	b.WriteString("\n")
	for _, k := range diskKinds() {
		fmt.Fprintf(&b, "- **%s**: %s\n", k.name, k.what)
	}
	b.WriteString("\n## Damage\n\n")
	b.WriteString(spoilt.Markdown() + "\n")
	p("Opened as it is: a log that ends between two entries is a shorter log, and one whose only segment ends within its header is none yet; nobody can tell without a head that was kept elsewhere. The flips among them are in a segment without entries.")
	p("## What is judged")
	p("On every state the journal is opened, appends an entry, loses its power with everything unsynced, and is opened again. What was said to be durable must be there, in its place and by its hash. Nothing may be there that it was not given. What it feeds must be what the independent reader finds. Every effect whose request may be on the wire must be in doubt or have an outcome, and so must every one whose attempt the cut may hide. A segment number that held an entry must not come back. The second opening must give what the first gave, and the appended entry. Damage to what a later record proves durable must be refused, at the byte, with nothing changed. After a failed write or sync nothing more may be acknowledged.")
	p("A group of sixteen unsynced sectors gives every one of its 65536 subsets. With failing calls, of more than eight unsynced sectors the prefixes, each alone and each missing are taken. In the workloads whose opening is crashed again, states that end at any byte are crashed again by sectors.")
	return strings.TrimSuffix(b.String(), "\n")
}

// extraCount is a count in a record's extra, as it was made or as it was read.
func extraCount(r Record, name string) int {
	n := 0
	fmt.Sscan(fmt.Sprint(r.Extra[name]), &n)
	return n
}
