package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/interlock-bench/interlock-bench/experiments/svg"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
	"github.com/interlock-bench/interlock-bench/targets/git"
	"github.com/interlock-bench/interlock-bench/targets/git/premise"
)

// CodingHistoryName is the experiment on the history of a module.
const CodingHistoryName = "coding-history"

// historyModule is the module whose published versions are replayed, and which
// they are. They are pinned: what is published later is another history.
var (
	historyModule   = "github.com/Masterminds/semver/v3"
	historyVersions = []string{"v3.0.1", "v3.0.2", "v3.0.3", "v3.1.0", "v3.1.1", "v3.2.0", "v3.2.1", "v3.3.0", "v3.3.1", "v3.4.0"}
)

const historyRow = "semver-v3"

// CodingHistory measures the dial on a module that other people wrote.
func CodingHistory() *Experiment {
	e := &Experiment{
		Name:  CodingHistoryName,
		Short: "the dial of premises on real history: what each setting refuses, and what it lets break",
		Long: `Replays the published versions of ` + historyModule + `
as agent A's changes. What agent B wrote is each test of the version before; what it
rests on is read from the functions that it uses. A refusal is right where that test
no longer compiles or passes. The go command fetches the versions.

A repository of your own is replayed commit by commit by
"interlock-bench coding --repo PATH".`,
		Example: "  interlock-bench coding-history\n  interlock-bench coding --repo ../some/repository --commits 100",
		Rows:    []Row{{Name: historyRow, Group: "history", What: fmt.Sprintf("%s, %s to %s", historyModule, historyVersions[0], historyVersions[len(historyVersions)-1])}},
		Once:    true,
		Run:     runCodingHistory,
		Page:    codingHistoryPage,
		Drawing: codingHistoryDrawing,
	}
	for _, c := range codingColumns {
		if c.gate {
			c.Holds = false // every setting has its floor
			e.Columns = append(e.Columns, c.Column)
			e.Cells = append(e.Cells, Cell{Row: historyRow, Column: c.Name, Trials: []faults.Trial{{Experiment: e.Name, Row: historyRow, Column: c.Name}}})
		}
	}
	return e
}

// moduleReplay replays the pinned versions once in the life of this process: one
// replay gives every column.
var moduleReplay struct {
	sync.Mutex
	done *Replayed
}

func runCodingHistory(ctx context.Context, t faults.Trial) (Outcome, error) {
	moduleReplay.Lock()
	defer moduleReplay.Unlock()
	if moduleReplay.done == nil {
		var states []snapshot
		for _, version := range historyVersions {
			dir, err := moduleDir(ctx, historyModule+"@"+version)
			if err != nil {
				return Outcome{}, err
			}
			states = append(states, snapshot{version, func(_ context.Context, to string) error {
				return copyFiles(dir, to, func(string) bool { return true })
			}})
		}
		r, err := replay(ctx, historyModule, states, nil)
		if err != nil {
			return Outcome{}, err
		}
		moduleReplay.done = &r
	}
	r := *moduleReplay.done
	for _, by := range r.By {
		if "gate-"+string(by.Granularity) != t.Column {
			continue
		}
		o := Outcome{
			Trial: t, Record: recordNone, Status: fmt.Sprintf("REFUSED:%d", by.Refused),
			Verdict: oracle.Verdict{Class: by.class(), Shown: fmt.Sprintf("%d_broke", by.Broke), Answer: oracle.Agrees},
		}
		o.Extra = map[string]any{
			"of": r.Of, "states": r.States, "changes": r.Changes, "skipped": append([]string{}, r.Skipped...), "tests": r.Tests, "pairs": r.Pairs, "breaks": r.Breaks,
			"unknown": r.Unknown, "rests": by.Rests, "refused": by.Refused, "rightly": by.Rightly, "broke": by.Broke,
		}
		return o, nil
	}
	return Outcome{}, fmt.Errorf("experiments: no granularity belongs to the column %q", t.Column)
}

// class is the worst that a granularity did.
func (b ReplayedBy) class() oracle.Class {
	switch {
	case b.Broke > 0:
		return oracle.Stale
	case b.Refused > b.Rightly:
		return oracle.FalseRefusal
	}
	return oracle.Correct
}

// moduleDir has the go command fetch a module into its cache, where it isn't there
// yet, and says where it lies.
func moduleDir(ctx context.Context, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = os.TempDir()
	out, err := cmd.Output()
	var m struct{ Dir, Error string }
	if bad := json.Unmarshal(out, &m); bad != nil || m.Dir == "" {
		return "", fmt.Errorf("%w: the go command doesn't have %s: %w %s", ErrReplay, module, errors.Join(err, bad), m.Error)
	}
	return m.Dir, nil
}

// ReplayRepo replays the newest commits of a repository, along first parents, as
// agent A's changes. Whatever the repository's code does, it does confined. Errors
// are ErrReplay, and those of the packages git and premise.
func ReplayRepo(ctx context.Context, path string, commits int, say func(done, total int)) (Replayed, error) {
	r, err := git.Open(ctx, path)
	if err != nil {
		return Replayed{}, err
	}
	ids, err := r.History(ctx, commits+1)
	if err != nil {
		return Replayed{}, err
	}
	var states []snapshot
	for _, id := range ids {
		states = append(states, snapshot{id[:12], func(ctx context.Context, dir string) error { return r.Checkout(ctx, id, dir) }})
	}
	return replay(ctx, path, states, say)
}

// Table is the dial as a table.
func (r Replayed) Table() table.Table {
	t := table.Table{Name: CodingHistoryName, Header: []string{"premises", "pairs", "rest on any", "refused", "rightly", "for nothing", "landed and broke"}}
	for _, by := range r.By {
		t.Rows = append(t.Rows, append([]string{"gate/" + string(by.Granularity)},
			ints(r.Pairs, by.Rests, by.Refused, by.Rightly, by.Refused-by.Rightly, by.Broke)...))
	}
	return t
}

// Sentence says what was replayed, and what was left out.
func (r Replayed) Sentence() string {
	s := fmt.Sprintf("%s: %d states, %d changes replayed, %d pairs of a change and a test that it is compiled into, of %d tests; the test breaks in %d. %d more pairs can't be judged.",
		r.Of, r.States, r.Changes, r.Pairs, r.Tests, r.Breaks, r.Unknown)
	if n := len(r.Skipped); n > 0 {
		s += fmt.Sprintf(" %d changes were left out: %s.", n, strings.Join(r.Skipped[:min(n, 20)], "; "))
		if n > 20 {
			s = strings.TrimSuffix(s, ".") + "; and more."
		}
	}
	return s
}

// replayedOf is what the records of a run hold.
func replayedOf(records []Record) (r Replayed) {
	for _, record := range records {
		x := func(name string) int { return extraCount(record, name) }
		r.Of, r.States, r.Changes, r.Tests = fmt.Sprint(record.Extra["of"]), x("states"), x("changes"), x("tests")
		r.Pairs, r.Breaks, r.Unknown = x("pairs"), x("breaks"), x("unknown")
		r.Skipped = nil
		switch list := record.Extra["skipped"].(type) {
		case []string:
			r.Skipped = list
		case []any:
			for _, s := range list {
				r.Skipped = append(r.Skipped, fmt.Sprint(s))
			}
		}
		r.By = append(r.By, ReplayedBy{
			Granularity: premise.Granularity(strings.TrimPrefix(record.Column, "gate-")),
			Rests:       x("rests"), Refused: x("refused"), Rightly: x("rightly"), Broke: x("broke"),
		})
	}
	return r
}

// codingHistoryPage renders results/coding_history.md.
func codingHistoryPage(records []Record) string {
	r := replayedOf(records)
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	p("# The dial of premises on real history")
	p("Made by `interlock-bench coding-history --seed %s`, once: %v.", indexRecords(records).seed(), records[0].Extra["made"])
	p("**%s, versions %s.** What the go command fetches of a module is its published versions and not its commits, so a change of agent A's is here everything between two versions, much more than one commit. What agent B wrote is each test function of the earlier version, as people wrote it; what it rests on is read from the functions that it uses, directly or by helpers in test files. Ground truth is that test, compiled and run on the later version's code. Tests run confined: no network, bounded in time and memory.", historyModule, strings.Join(historyVersions, ", "))
	p("%s", r.Sentence())
	b.WriteString(r.Table().Markdown() + "\n")
	p("![refused for nothing and let break, by granularity](coding_history.svg)")
	p("Rightly refused: the test doesn't compile or pass on the later version. For nothing: it does. Landed and broke: it doesn't, and nothing that it rests on at this setting had changed. For `gate/behaviour` up to three calls of each function that takes plain values were tried, with values that stand in the test; %s", restsOn(r))
	p("## Findings")
	for _, f := range historyFindings(r) {
		p("%s", f)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func restsOn(r Replayed) string {
	for _, by := range r.By {
		if by.Granularity == premise.Behaviour {
			return fmt.Sprintf("in %d of %d pairs there was one, and in the others nothing that could be refused.", by.Rests, r.Pairs)
		}
	}
	return "none was tried."
}

func historyFindings(r Replayed) []string {
	var parts []string
	for _, by := range r.By {
		parts = append(parts, fmt.Sprintf("`%s` refuses %d of %d, %d of them for nothing, and lets %d of %d break", by.Granularity, by.Refused, r.Pairs, by.Refused-by.Rightly, by.Broke, r.Breaks))
	}
	looks := map[premise.Granularity]ReplayedBy{}
	for _, by := range r.By {
		looks[by.Granularity] = by
	}
	through := "**A syntax tree is not finer than a file where it looks further.**"
	if looks[premise.Body].Refused <= looks[premise.File].Refused {
		through = "**A syntax tree looks further than a file and is finer within it.**"
	}
	return []string{
		"**The dial turns on real code, too.** " + strings.Join(parts, "; ") + ".",
		fmt.Sprintf("%s `body` follows what the code uses into files that nobody opened, and holds the version of the language: it refuses %d, `file` %d.", through, looks[premise.Body].Refused, looks[premise.File].Refused),
		"**How often a refusal is right depends on how much a change holds.** Between two versions nearly every file of a small module changes; between two commits few do. These figures are those of this module and these versions, and of no other.",
	}
}

// codingHistoryDrawing is the dial: for each setting what it refuses for nothing,
// what it refuses rightly, and what it lets break.
func codingHistoryDrawing(records []Record) string {
	r := replayedOf(records)
	const left, top, height, group, bar = 60.0, 50.0, 180.0, 150.0, 36.0
	most := 1
	for _, by := range r.By {
		most = max(most, by.Refused-by.Rightly, by.Rightly, by.Broke)
	}
	d := svg.New(left+group*float64(len(r.By))+20, top+height+70, "The dial of premises on "+r.Of, r.Sentence())
	d.Text(left, 20, svg.Start, svg.Strong, fmt.Sprintf("%d pairs of a change and a test, by what the test rests on", r.Pairs))
	d.Line(left-10, top+height, left+group*float64(len(r.By)), top+height, svg.Quiet)
	for i, by := range r.By {
		x := left + group*float64(i)
		for k, of := range []struct {
			n     int
			style svg.Style
		}{{by.Rightly, svg.Good}, {by.Refused - by.Rightly, svg.Warn}, {by.Broke, svg.Bad}} {
			h := height * float64(of.n) / float64(most)
			at := x + float64(k)*(bar+4)
			d.Rect(at, top+height-h, bar, h, of.style)
			d.Text(at+bar/2, top+height-h-4, svg.Middle, svg.Ink, fmt.Sprint(of.n))
		}
		d.Text(x+1.5*bar, top+height+18, svg.Middle, svg.Ink, "gate/"+string(by.Granularity))
	}
	for k, of := range []struct {
		what  string
		style svg.Style
	}{{"refused rightly", svg.Good}, {"refused for nothing", svg.Warn}, {"landed and broke", svg.Bad}} {
		x := left + 190*float64(k)
		d.Rect(x, top+height+38, 12, 12, of.style)
		d.Text(x+18, top+height+48, svg.Start, svg.Ink, of.what)
	}
	return d.String()
}
