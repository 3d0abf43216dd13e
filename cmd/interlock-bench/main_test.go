package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/interlock-bench/interlock-bench/experiments"
	measure "github.com/interlock-bench/interlock-bench/experiments/bench"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

func TestMain(m *testing.M) {
	experiments.ServeChild()
	measure.ServeSender()
	testscript.Main(m, map[string]func(){
		"interlock-bench": main,
		"tiny-bench":      tinyMain,
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": code, "append": appended, "seen": seen}})
}

// code CODE COMMAND... runs a command and holds it to its exit code.
func code(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		got = ended.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("%v: exit code %d, not %s", args[1:], got, args[0])
	}
}

// seen keeps, as $SEEN, the question that the last command printed.
func seen(ts *testscript.TestScript, _ bool, _ []string) {
	_, after, ok := strings.Cut(ts.ReadFile("stdout"), "--seen ")
	if !ok || len(after) < seenDigits {
		ts.Fatalf("no question was printed")
	}
	ts.Setenv("SEEN", after[:seenDigits])
}

// appended FROM TO appends one file to another.
func appended(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.OpenFile(ts.MkAbs(args[1]), os.O_WRONLY|os.O_APPEND, 0)
	ts.Check(err)
	_, err = f.WriteString(ts.ReadFile(args[0]))
	ts.Check(errors.Join(err, f.Close()))
}

// tinyMain is main over one tiny experiment, which runs no column: what its
// trials give stands in the environment, so that scripts can bend it.
func tinyMain() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(runWith(ctx, []*experiments.Experiment{tiny()}, os.Args[1:], os.Stdout, os.Stderr))
}

func tiny() *experiments.Experiment {
	e := &experiments.Experiment{
		Name: "tiny", Short: "one row", Long: "Tiny runs nothing.", Example: "  tiny-bench tiny",
		Rows:    []experiments.Row{{Name: "happy_path", Group: "none", What: "nothing goes wrong"}, {Name: "crash_before_ack", Group: "crash", What: "the answer is lost"}},
		Columns: []experiments.Column{{Name: "naive", What: "runs it again"}, {Name: "gate@t1", What: "the gate", Holds: true}},
		Run:     tinyTrial,
		Page: func(records []experiments.Record) string {
			t := table.Table{Header: []string{"cell", "result"}}
			for _, r := range records {
				t.Rows = append(t.Rows, []string{"`" + r.ID + "`", r.Cell + " " + r.Class().Mark()})
			}
			return t.Markdown()
		},
	}
	for _, r := range e.Rows {
		for _, c := range e.Columns {
			e.Cells = append(e.Cells, experiments.Cell{
				Row: r.Name, Column: c.Name, Declared: "COMMITTED $20 ok",
				Trials: []faults.Trial{{Experiment: "tiny", Row: r.Name, Column: c.Name}},
			})
		}
	}
	return e
}

func tinyTrial(ctx context.Context, t faults.Trial) (experiments.Outcome, error) {
	v := oracle.Verdict{Class: oracle.Correct, Money: 20_00, Answer: oracle.Agrees, Attempts: 1, Requests: 1}
	switch what := os.Getenv("TINY_" + strings.ToUpper(t.Row)); what {
	case "":
	case "duplicate":
		v.Class, v.Money, v.Broke = oracle.Duplicate, 40_00, []string{"more-landings"}
	case "unfired":
		v.Class, v.Unfired = oracle.Unknown, 1
	case "fails":
		return experiments.Outcome{}, errors.New("this machine has no processes left")
	case "hangs":
		return experiments.Outcome{}, hang(ctx)
	default:
		return experiments.Outcome{}, fmt.Errorf("TINY_* is %q", what)
	}
	return experiments.Outcome{Trial: t, Verdict: v, Status: "COMMITTED", Record: "none"}, nil
}

// hang starts a process that ends only when it is killed, says so on standard
// error, and waits for it.
func hang(ctx context.Context) error {
	child := exec.CommandContext(ctx, "tail", "-f", os.DevNull)
	if err := child.Start(); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, child.Process.Pid)
	return child.Wait()
}

// TestInterrupted sends the signals of a person and of a system to a run that is
// in the middle of a trial.
func TestInterrupted(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		out := t.TempDir()
		bench := exec.CommandContext(t.Context(), "tiny-bench", "run", "--out", out)
		bench.Env = append(os.Environ(), "TINY_CRASH_BEFORE_ACK=hangs")
		stderr, err := bench.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := bench.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewReader(stderr)
		line, err := said.ReadString('\n')
		if err != nil {
			t.Fatalf("%v: the run ended before its trial: %v", signal, errors.Join(err, bench.Wait()))
		}
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := bench.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(said)
		if err != nil {
			t.Fatal(err)
		}
		err = bench.Wait()
		if code := bench.ProcessState.ExitCode(); code != exitInterrupted {
			t.Errorf("%v: exit code %d (%v)\n%s", signal, code, err, rest)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%v: the child is still there: %v", signal, err)
		}
		if left, err := os.ReadDir(out); err != nil || len(left) != 0 {
			t.Errorf("%v: it left %v, %v", signal, left, err)
		}
	}
}

// TestInterruptedRefund interrupts the real experiment when its first trial is
// over: no child, no result and no temporary folder is left.
func TestInterruptedRefund(t *testing.T) {
	out, keep := t.TempDir(), t.TempDir()
	tmp, err := os.MkdirTemp("", "i") // short: the trials put sockets there
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	kept := watch(t, keep)
	bench := exec.CommandContext(t.Context(), "interlock-bench", "refund", "--out", out, "--keep", keep)
	bench.Env = append(os.Environ(), "TMPDIR="+tmp)
	bench.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // its children are in its session
	var stderr bytes.Buffer
	bench.Stderr = &stderr
	if err := bench.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		err := bench.Wait()
		kept.Close() // where it ended too early nothing more is kept
		ended <- err
	}()
	if _, err := kept.Read(make([]byte, 4096)); err != nil {
		t.Fatalf("the run ended before its first trial: %v\n%s", errors.Join(err, <-ended), stderr.String())
	}
	if err := bench.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err = <-ended
	if code := bench.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d (%v)\n%s", code, err, stderr.String())
	}
	if alive := session(t, bench.Process.Pid); len(alive) > 0 {
		t.Errorf("children are still there: %v", alive)
	}
	for _, dir := range []string{out, tmp} {
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%s has %v, %v", dir, left, err)
		}
	}
}

// session are the processes of a session, as /proc has them.
func session(t *testing.T, leader int) (of []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		t.Fatalf("there is no list of processes: %v", err)
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // state, parent, group, session
		if len(fields) > 3 && fields[3] == strconv.Itoa(leader) && fields[0] != "Z" {
			of = append(of, string(stat))
		}
	}
	return of
}

// TestInterruptedDemo ends a slow show in its middle.
func TestInterruptedDemo(t *testing.T) {
	tmp, err := os.MkdirTemp("", "i") // short: the trial puts sockets there
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	bench := exec.CommandContext(t.Context(), "interlock-bench", "demo", "2", "--slow")
	bench.Env = append(os.Environ(), "TMPDIR="+tmp)
	var stderr bytes.Buffer
	bench.Stderr = &stderr
	stdout, err := bench.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bench.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("it says %q, %v\n%s", line, errors.Join(err, bench.Wait()), stderr.String())
	}
	if err := bench.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err = bench.Wait()
	if code := bench.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d (%v)\n%s", code, err, stderr.String())
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

// watch returns a file that can be read once a file has been made in dir.
func watch(t *testing.T, dir string) *os.File {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.InotifyAddWatch(fd, dir, syscall.IN_CREATE); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "inotify")
}

// TestHelpIsComplete holds every command to a help that says what it does and
// shows how.
func TestHelpIsComplete(t *testing.T) {
	b := &bench{all: experiments.All()}
	for _, c := range b.root().Commands() {
		if c.GroupID == "" && !c.Hidden {
			t.Errorf("%s has no group", c.Name())
		}
		for _, c := range append(c.Commands(), c) {
			if c.Short == "" || c.Long == "" || c.Example == "" {
				t.Errorf("%s has no short help, no long help or no example", c.CommandPath())
			}
		}
	}
}

// TestHelpFitsItsTerminal prints every help at two widths.
func TestHelpFitsItsTerminal(t *testing.T) {
	for _, width := range []int{60, 80} {
		t.Setenv("COLUMNS", strconv.Itoa(width))
		var stdout bytes.Buffer
		b := &bench{all: experiments.All(), stdout: &stdout}
		root := b.root()
		for _, c := range append(root.Commands(), root) {
			for _, c := range append(c.Commands(), c) {
				stdout.Reset()
				if err := c.Help(); err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(stdout.String()) {
					line = strings.TrimSuffix(line, "\n")
					if utf8.RuneCountInString(line) > width && (width >= 80 || !strings.Contains(c.Example, line)) {
						t.Errorf("%s, %d columns: %q", c.CommandPath(), width, line)
					}
				}
				if !strings.Contains(stdout.String(), c.Example) {
					t.Errorf("%s: the examples aren't as they were:\n%s", c.CommandPath(), stdout.String())
				}
			}
		}
	}
}

// TestEveryExampleParses runs each example of the help up to where its command
// would begin.
func TestEveryExampleParses(t *testing.T) {
	b := &bench{all: experiments.All()}
	root := b.root()
	examples := root.Example
	for _, c := range root.Commands() {
		for _, c := range append(c.Commands(), c) {
			examples += "\n" + c.Example
		}
	}
	for line := range strings.Lines(strings.ReplaceAll(examples, "\\\n", "")) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "source" {
			continue
		}
		if words[0] != "interlock-bench" {
			t.Errorf("%q doesn't begin with the command", line)
			continue
		}
		fresh := (&bench{all: experiments.All()}).root()
		cmd, flags, err := fresh.Find(words[1:])
		if err != nil || cmd == fresh && len(words) > 1 {
			t.Errorf("%q names no command: %v", line, err)
			continue
		}
		if err := cmd.ParseFlags(flags); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
}
