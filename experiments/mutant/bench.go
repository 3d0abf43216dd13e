package mutant

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bench builds mutants of the module and runs what may catch them. Its methods
// may be called by several goroutines.
type Bench struct {
	root string // of the module
	dir  string // everything that is built, and what it writes

	mu           sync.Mutex
	spots        []Spot
	overlay      string
	instrumented map[string]func() (string, error) // binaries, by what they are built of
}

// ErrBench is returned where a mutant can't be built or run, which says nothing
// of who would have caught it.
var ErrBench = errors.New("mutant: a mutant can't be tried")

// Open makes a bench for the module that the working directory is in. It needs
// the module's source and the go command, and a place for about 150 MB.
func Open(ctx context.Context) (*Bench, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	mod := strings.TrimSpace(string(out))
	if err != nil || mod == "" || mod == os.DevNull {
		return nil, fmt.Errorf("%w: mutants are made of the source; run this in a checkout, with the go command there (%v)", ErrBench, err)
	}
	root := filepath.Dir(mod)
	if _, err := os.Stat(filepath.Join(root, Guarded[0], "guard.go")); err != nil {
		return nil, fmt.Errorf("%w: %s is another module", ErrBench, root)
	}
	dir, err := os.MkdirTemp(memory(), "mutants-")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBench, err)
	}
	b := &Bench{root: root, dir: dir, instrumented: map[string]func() (string, error){}}
	if b.spots, b.overlay, err = Instrument(root, dir); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// memory is a folder in memory where there is one: tests that sync files are ten
// times as fast there. "" is the usual folder for temporary files.
func memory() string {
	const shm = "/dev/shm"
	var s syscall.Statfs_t
	if os.Getenv("TMPDIR") == "" && syscall.Statfs(shm, &s) == nil && s.Bavail*uint64(s.Bsize) > 1<<30 {
		return shm
	}
	return ""
}

// Close removes everything that the bench has made.
func (b *Bench) Close() error { return os.RemoveAll(b.dir) }

// Spots are the machine mutants of the source, in order.
func (b *Bench) Spots() []Spot { return b.spots }

// Catch is who caught a mutant. Records have its names in order.
type Catch struct {
	By    string   `json:"by"`              // the rung: "tests of protocol", "rows of refund"; "" is nobody
	How   string   `json:"how"`             // what became of it: "fails", "hangs", "DUPLICATE: COMMITTED $40"
	Rules []string `json:"rules,omitempty"` // of the judge, that the cell broke
	What  string   `json:"what"`            // the test, or the cell
}

// String is the catch in a few words for a page.
func (c Catch) String() string { return fmt.Sprintf("`%s` %s", c.What, c.How) }

// rung is one catcher: a package's tests, or cells of an experiment.
type rung struct {
	tests      string   // package, from the module's root
	run, skip  string   // of its tests, patterns; "" is all, and none
	flags      []string // further ones of its test binary
	experiment []string // the command's arguments
	patience   time.Duration
}

func (r rung) String() string {
	if r.tests != "" {
		return "tests of " + r.tests
	}
	return "rows of " + r.experiment[0]
}

// unwritten keeps rapid from writing what it found beside the source.
var unwritten = []string{"-rapid.nofailfile"}

// slowest is a test that takes as long as all others of its package.
const slowest = "^TestFullDisk$"

// Cells that mutants of the gate, and of its wire, are tried on.
var (
	refundCells = []string{"refund", "--column", "gate@t1,gate@t2,gate@t3"}
	faultCells  = []string{"faults", "--column", "gate@t1,gate@t2", "--row",
		"crash_on_the_wire,ack_lost,error_after_apply,late_landing,lookup_lags,lookup_fails,lookup_other_amount," +
			"one_approval_two_effects,one_approval_resent,wrong_first_proposal,key_expired_no_lookup"}
	wireCells = []string{"faults", "--column", "gate@t2", "--row",
		"wire_reset_before,wire_reset_after,wire_close_after,wire_half_answer,one_request_per_send"}
)

// ladders say by package who tries to catch its mutants, the cheapest first.
var ladders = map[string][]rung{
	"protocol": {
		{tests: "protocol", skip: slowest, flags: unwritten, patience: time.Minute},
		{tests: "protocol", run: slowest, patience: time.Minute},
		{tests: "experiments/explore", run: "^TestSmall$", patience: 2 * time.Minute},
		{tests: "protocol/journal/sqlite", patience: 2 * time.Minute},
		{experiment: refundCells, patience: 5 * time.Minute},
		{experiment: faultCells, patience: 5 * time.Minute},
	},
	"protocol/journal": {
		{tests: "protocol/journal", patience: time.Minute},
		{tests: "protocol", skip: slowest, flags: unwritten, patience: time.Minute},
		{tests: "protocol/journal/sqlite", patience: 2 * time.Minute},
		{experiment: []string{"disk-states", "--row", "suspects,authority"}, patience: 5 * time.Minute},
	},
	"protocol/wire": {
		{tests: "protocol/wire", patience: time.Minute},
		{experiment: wireCells, patience: 5 * time.Minute},
	},
}

// Ladder names the rungs that mutants of a package are tried on, in order.
func Ladder(pkg string) (names []string) {
	for _, r := range ladders[pkg] {
		names = append(names, r.String())
	}
	return slices.Compact(names)
}

// Control runs the tests of a package, built like its mutants, without any. The
// zero Catch is as it should be.
func (b *Bench) Control(ctx context.Context, pkg string) (Catch, error) {
	return b.climb(ctx, ladders[pkg][:1], 0)
}

// Machine tries a machine mutant. The zero Catch is that nobody caught it. One
// whose survival is explained is tried by tests alone: that cells take minutes to
// find nothing shows no more.
func (b *Bench) Machine(ctx context.Context, s Spot) (Catch, error) {
	ladder := ladders[s.Package()]
	if _, ok := Explained(s); ok {
		ladder = slices.DeleteFunc(slices.Clone(ladder), func(r rung) bool { return r.tests == "" || r.run == slowest })
	}
	return b.climb(ctx, ladder, s.Number)
}

func (b *Bench) climb(ctx context.Context, ladder []rung, number int) (Catch, error) {
	for _, r := range ladder {
		if _, err := os.Stat(filepath.Join(b.root, r.tests)); err != nil {
			continue
		}
		binary, err := b.binary(ctx, r.tests)
		if err != nil {
			return Catch{}, err
		}
		if c, err := b.try(ctx, r, binary, number); c.By != "" || err != nil {
			return c, err
		}
	}
	return Catch{}, nil
}

// binary is the instrumented test binary of a package, or the command where pkg
// is "", built once.
func (b *Bench) binary(ctx context.Context, pkg string) (string, error) {
	b.mu.Lock()
	build, ok := b.instrumented[pkg]
	if !ok {
		build = sync.OnceValues(func() (string, error) {
			return b.build(ctx, b.overlay, pkg, filepath.Join(b.dir, "all_"+strings.ReplaceAll(pkg, "/", "_")))
		})
		b.instrumented[pkg] = build
	}
	b.mu.Unlock()
	return build()
}

func (b *Bench) build(ctx context.Context, overlay, pkg, to string) (string, error) {
	args := []string{"test", "-c", "-vet=off", "-overlay", overlay, "-o", to, "./" + pkg}
	if pkg == "" {
		args = []string{"build", "-overlay", overlay, "-o", to, "./cmd/interlock-bench"}
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: it doesn't build: %w\n%s", ErrBench, err, out)
	}
	return to, nil
}

// try runs one rung.
func (b *Bench) try(ctx context.Context, r rung, binary string, number int) (Catch, error) {
	tmp, err := os.MkdirTemp(b.dir, "t-")
	if err != nil {
		return Catch{}, fmt.Errorf("%w: %w", ErrBench, err)
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(b.root, r.tests)
	args := []string{"-test.short", "-test.failfast", "-test.timeout", r.patience.String(), "-test.run", r.run, "-test.skip", cmp.Or(r.skip, "^$")}
	args = append(args, r.flags...)
	if r.tests == "" {
		dir, args = b.root, append(slices.Clone(r.experiment), "--out", tmp)
	}
	said, code, err := b.run(ctx, dir, tmp, r.patience+10*time.Second, number, binary, args...)
	if err != nil || code == 0 {
		return Catch{}, err
	}
	c := Catch{By: r.String()}
	switch {
	case r.tests != "":
		c.What, c.How = testIn(said)
	case code == hung:
		c.How = "hangs"
	default:
		c.What, c.How, c.Rules = cellIn(said, filepath.Join(tmp, strings.ReplaceAll(r.experiment[0], "-", "_")+".jsonl"))
	}
	return c, nil
}

// hung is the exit code of what had to be ended.
const hung = -1

// run runs a program with everything that it starts, and ends all of it after
// patience, or with ctx. It gets 8 GB of address space and files of at most 1 GB:
// a mutant may be greedy.
func (b *Bench) run(ctx context.Context, dir, tmp string, patience time.Duration, number int, program string, args ...string) (said string, code int, err error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	const limits = `ulimit -v 8000000; ulimit -f 1000000; exec "$0" "$@"`
	cmd := exec.CommandContext(limited, "sh", append([]string{"-c", limits, program}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, Picked+"="+strconv.Itoa(number))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", 0, ctx.Err()
	case limited.Err() != nil:
		return string(out), hung, nil
	case errors.As(err, &exit):
		return string(out), max(1, exit.ExitCode()), nil
	case err != nil:
		return "", 0, fmt.Errorf("%w: %w", ErrBench, err)
	}
	return string(out), 0, nil
}

var (
	failed  = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
	running = regexp.MustCompile(`(?s)panic: test timed out.*?running tests:\s+(\w+)`)
	panics  = regexp.MustCompile(`(?m)^(panic|fatal error): `)
	within  = regexp.MustCompile(`\.((?:Test|Fuzz|Example)\w+)\(`)
)

// testIn finds the first test that failed in what a test binary said.
func testIn(out string) (test, how string) {
	if m := running.FindStringSubmatch(out); m != nil {
		return m[1], "hangs"
	}
	if m := failed.FindStringSubmatch(out); m != nil {
		return m[1], "fails"
	}
	if panics.MatchString(out) {
		if m := within.FindStringSubmatch(out); m != nil {
			return m[1], "panics"
		}
		return "", "panics"
	}
	return "", "hangs" // it was ended without a word
}

var broken = regexp.MustCompile(`(?m)^(?:broken promise|not judged): (\S+): `)

// cellIn finds the first cell that broke its promise in what a run said, and what
// its records hold of it.
func cellIn(said, records string) (cell, how string, rules []string) {
	m := broken.FindStringSubmatch(said)
	if m == nil {
		return "", "can't be run", nil
	}
	text, _ := os.ReadFile(records) // where there are none, the cell's name is all that is known
	for line := range bytes.Lines(text) {
		var r struct {
			ID, Cell, Verdict string
			Broke             []string
		}
		if json.Unmarshal(line, &r) == nil && r.ID == m[1] {
			return r.ID, r.Verdict + ": " + r.Cell, r.Broke
		}
	}
	return m[1], "fails", nil
}

// Planted tries a planted fault: every cell and every test that is said to catch
// it. The second result is those that didn't.
func (b *Bench) Planted(ctx context.Context, m Mutant) (caught []Catch, missed []string, err error) {
	dir, err := os.MkdirTemp(b.dir, "planted-")
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrBench, err)
	}
	defer os.RemoveAll(dir)
	overlay, err := m.Overlay(b.root, dir)
	if err != nil {
		return nil, nil, err
	}
	var rungs []rung
	for _, c := range m.Cells {
		rungs = append(rungs, rung{experiment: []string{cmp.Or(c.Experiment, "refund"), "--row", c.Row, "--column", c.Column}, patience: 2 * time.Minute})
	}
	for _, t := range m.Tests {
		rungs = append(rungs, rung{tests: strings.TrimPrefix(t.Package, "./"), run: "^" + t.Name + "$", patience: time.Minute})
	}
	built := map[string]string{}
	for i, r := range rungs {
		binary, ok := built[r.tests]
		if !ok {
			if binary, err = b.build(ctx, overlay, r.tests, filepath.Join(dir, fmt.Sprint("bin", i))); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", m.Name, err)
			}
			built[r.tests] = binary
		}
		c, err := b.try(ctx, r, binary, 0)
		if err != nil {
			return nil, nil, err
		}
		if i < len(m.Cells) && !m.Cells[i].is(c) || c.By == "" {
			missed = append(missed, strings.TrimSpace(fmt.Sprint(r, " ", r.run, strings.Join(r.experiment, " "), ": ", c.What, " ", c.How)))
			continue
		}
		caught = append(caught, c)
	}
	return caught, missed, nil
}

// is says whether what was caught is this cell, showing what it should.
func (c Cell) is(k Catch) bool {
	return k.What == cmp.Or(c.Experiment, "refund")+"/"+c.Row+"/"+c.Column && strings.Contains(k.How, c.Shows)
}
