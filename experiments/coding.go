package experiments

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/targets/git"
	"github.com/interlock-bench/interlock-bench/targets/git/premise"
)

// CodingName is the experiment with two agents and one repository.
const CodingName = "coding"

// Coding is the gate in another world: two agents change one Go repository.
func Coding() *Experiment {
	e := &Experiment{
		Name:  CodingName,
		Short: "two agents change one Go repository, and what landed is compiled and run",
		Long: `Agent B reads a repository and decides. Then agent A's change lands, and then B's
is submitted, in a process that is killed by SIGKILL where the row says so. What
landed is compiled and run. The gate's columns differ in what B's change rests on:
the files that B opened, the signatures that its code references, the syntax trees
behind them, or the results of the calls that B tried.

In the rows whose names begin with notice, B can be told of A's change before it
submits. That saves work, and keeps nothing right.`,
		Example: `  interlock-bench coding
  interlock-bench coding --row semantic_only --words
  interlock-bench coding --notify
  interlock-bench coding --repo ../some/repository`,
		Run:   runCoding,
		Judge: judgeCoding,
		Child: codingWork,
		Page:  codingPage,
	}
	for _, r := range codingRows {
		e.Rows = append(e.Rows, Row{Name: r.Name, Group: r.Group, What: r.What})
		for _, c := range codingColumns {
			if r.Group == groupNotice && c.quiet {
				continue
			}
			e.Cells = append(e.Cells, Cell{
				Row: r.Name, Column: c.Name,
				Trials:   []faults.Trial{{Experiment: e.Name, Row: r.Name, Column: c.Name, Faults: r.Faults}},
				Declared: declaredCoding(r.Name, c.Name),
			})
		}
	}
	for _, c := range codingColumns {
		e.Columns = append(e.Columns, c.Column)
	}
	return e
}

// codingRow is one thing that can go wrong between two agents.
type codingRow struct {
	faults.Row
	lands   []git.Edit // agent A's change
	defines string     // the function that A's change implements
	does    func(there func(symbol string) bool) script
	notice  string // when B hears of A's change: "", "in time", "late" or "lost"
}

const (
	groupNotice   = "notice"
	actLand       = "a-lands"
	actRevoke     = "revoke"
	noticeInTime  = "in time"
	noticeLate    = "late"
	noticeLost    = "lost"
	pointPlanned  = "planned" // B has read what it needs and written nothing
	codingBranch  = "refs/heads/main"
	codingRequest = "task-12"
	otherRequest  = "task-11"
	codingAgent   = "agent-b"
	otherAgent    = "agent-a"
	codingLease   = "L-b"
	otherLease    = "L-a"
	codingAction  = "land"
)

// invoices is what B does in most rows: it uses the formatting function by the
// name that it finds.
func invoices(there func(string) bool) script {
	if !there("shop/money.Format") {
		return invoice("Render")
	}
	return invoice("Format")
}

var landsBefore = []faults.Fault{{What: actLand, At: pointDecided, Passage: 1}}

// codingRows are the rows, in the order of the page.
var codingRows = append([]codingRow{
	{Row: faults.Row{Name: "rename_break", What: "A renames the function that B calls, in another file, with all callers that there are.", Faults: landsBefore}, lands: renames},
	{Row: faults.Row{Name: "duplicate_work", What: "A and B each implement FormatCurrency.", Faults: landsBefore}, lands: duplicates, defines: duplicated,
		does: func(func(string) bool) script { return currency() }},
	{Row: faults.Row{Name: "benign_reformat", What: "A edits comments and layout of a file that B read, and adds a function to it.", Faults: landsBefore}, lands: reformats},
	{Row: faults.Row{Name: "crash_before_commit", What: "B's change has landed; the process is killed before it has written so down.", Faults: []faults.Fault{{What: faults.Kill, At: git.PointLanded, Passage: 1}}}},
	{Row: faults.Row{Name: "duplicate_submit", What: "The same change of B's is submitted twice.", Submits: make([]faults.Submit, 2)}},
	{Row: faults.Row{Name: "lease_revoked", What: "B's lease is revoked between the decision and the landing.", Faults: []faults.Fault{{What: actRevoke, At: pointDecided, Passage: 1}}}},
	{Row: faults.Row{Name: "semantic_only", What: "A keeps the function's name and signature, and inverts what it says.", Faults: landsBefore}, lands: inverts},
	{Row: faults.Row{Name: "refactor_same_meaning", What: "A writes the function's body anew; it does what it did.", Faults: landsBefore}, lands: refactors},
	{Row: faults.Row{Name: "unobserved_behaviour", What: "A changes what the function says of amounts below zero, which B never tried and its code uses.", Faults: landsBefore}, lands: brackets},
}, noticeRows()...)

// noticeRows are the rename again, landing while B has planned and not yet
// written, with B told of it or not.
func noticeRows() (rows []codingRow) {
	for _, n := range []struct{ name, notice, what string }{
		{"notice_none", "", "A's rename lands while B works; nobody tells B."},
		{"notice_in_time", noticeInTime, "The same, and B is told before it goes on."},
		{"notice_late", noticeLate, "The same, and B is told after it has submitted."},
		{"notice_lost", noticeLost, "The same, and the notice is lost."},
	} {
		rows = append(rows, codingRow{
			Row:   faults.Row{Name: n.name, Group: groupNotice, What: n.what, Faults: []faults.Fault{{What: actLand, At: pointPlanned, Passage: 1}}},
			lands: renames, notice: n.notice,
		})
	}
	return rows
}

func codingRowNamed(name string) (codingRow, bool) {
	i := slices.IndexFunc(codingRows, func(r codingRow) bool { return r.Name == name })
	if i < 0 {
		return codingRow{}, false
	}
	return codingRows[i], true
}

// NoticeRows are the names of the rows that measure what a notice saves.
func NoticeRows() (names []string) {
	for _, r := range codingRows {
		if r.Group == groupNotice {
			names = append(names, r.Name)
		}
	}
	return names
}

// codingPatience is how long, in real time, a process may say nothing: it runs
// the go command, which may have to compile the standard library first.
const codingPatience = 2 * time.Minute

// runCoding runs one trial.
func runCoding(ctx context.Context, t faults.Trial) (Outcome, error) {
	row, ok := codingRowNamed(t.Row)
	c, known := codingColumnNamed(t.Column)
	if !ok || !known {
		return Outcome{}, fmt.Errorf("experiments: coding has no row %q with a column %q", t.Row, t.Column)
	}
	self, err := os.Executable()
	if err != nil {
		return Outcome{}, fmt.Errorf("experiments: this program can't start itself: %w", err)
	}
	var world *codingWorld
	var given codingTask
	h, err := faults.Run(ctx, faults.Plan{
		Trial:    t,
		Restarts: maxTries,
		Command: func(int) *exec.Cmd {
			cmd := exec.Command(self) // what a kill leaves of its temporary files goes with the trial
			cmd.Env = append(os.Environ(), "TMPDIR="+world.stage.Dir())
			return cmd
		},
		Task: &given,
		World: func(s *faults.Stage) (faults.World, error) {
			var err error
			world, err = newCodingWorld(ctx, s, row, c, t, &given)
			return world, err
		},
		Patience: codingPatience,
		Settle:   settleTime,
	})
	if err != nil {
		return Outcome{}, err
	}
	body, err := json.Marshal(world.seen)
	if err != nil {
		return Outcome{}, err
	}
	h = append(h, history.Event{N: len(h) + 1, At: h[len(h)-1].At, Who: "judge", Kind: inspected, Body: body})
	o := Outcome{Trial: t, History: h, Verdict: judgeCoding(h), Status: codingStatus(h), Record: world.record, Extra: map[string]any{}}
	if said := saidWhy(h); said.Why != "" {
		o.Extra["why"] = said.Why
		if said.Held == otherRequest {
			o.Extra["holder"] = "A"
		}
	}
	return o, nil
}

// shopFiles are the files of the repository that every trial begins with. It is
// made once in the life of this process, which also sees to it that it builds and
// that what it imports is compiled: no trial waits for the standard library.
func shopFiles(ctx context.Context) (map[string][]byte, error) {
	shopMade.Lock()
	defer shopMade.Unlock()
	if shopMade.files != nil {
		return shopMade.files, nil
	}
	dir, err := os.MkdirTemp("", "interlock-shop-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r, err := git.Create(ctx, dir, codingBranch, otherAgent, shopBegan, shop)
	if err != nil {
		return nil, err
	}
	tip, err := r.Tip(ctx, codingBranch)
	if err != nil {
		return nil, err
	}
	reader := &premise.Reader{Repo: r}
	defer reader.Close()
	got, err := reader.Begin(tip, nil).Try(ctx, "shop/money.Format(125050)")
	if err == nil && got != `"$1250.50"` {
		err = fmt.Errorf("it gives %s", got)
	}
	if err != nil {
		return nil, fmt.Errorf("experiments: the repository of the experiment doesn't work here: %w", err)
	}
	files := map[string][]byte{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[strings.TrimPrefix(path, dir)], err = os.ReadFile(path)
		return err
	})
	shopMade.files = files
	return files, err
}

var (
	shopBegan = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	shopMade  struct {
		sync.Mutex
		files map[string][]byte
	}
)
