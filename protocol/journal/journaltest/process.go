package journaltest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

const childVariable = "JOURNALTEST_CHILD"

// task is what another process does. It says one line after each step, and some
// wait for a line, or for the end of their input.
type task struct {
	Do     string
	Place  string
	Who    string
	N      int
	Ledger string
}

// process is another process.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t testing.TB, k task) *process {
	t.Helper()
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(text), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, in, bufio.NewScanner(out)}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return p
}

// line is what the process says next; "" is nothing more.
func (p *process) line() string {
	if !p.out.Scan() {
		return ""
	}
	return p.out.Text()
}

func (p *process) want(t testing.TB, line string) {
	t.Helper()
	if got := p.line(); got != line {
		t.Fatalf("the other process says %q, want %q", got, line)
	}
}

// say gives the process a line.
func (p *process) say() { io.WriteString(p.in, "\n") }

// stop is SIGSTOP, and returns when the process stands still.
func (p *process) stop(t testing.TB) {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the other process doesn't stop: %v", err)
	}
}

// kill is SIGKILL, and returns when the process is dead.
func (p *process) kill(t testing.TB) {
	t.Helper()
	p.cmd.Process.Kill()
	p.cmd.Wait()
	if s := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGKILL {
		t.Fatalf("the other process was not killed: %v", p.cmd.ProcessState)
	}
}

// end lets the process come to its end.
func (p *process) end(t testing.TB) {
	t.Helper()
	p.in.Close()
	for p.line() != "" {
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("the other process failed: %v", err)
	}
}

// child does what a test started this process for.
func (s Suite) child(text string) int {
	var k task
	err := json.Unmarshal([]byte(text), &k)
	if err == nil {
		err = s.do(k, bufio.NewReader(os.Stdin))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the other process:", err)
		return 1
	}
	return 0
}

func (s Suite) do(k task, in *bufio.Reader) error {
	ctx := context.Background()
	wait := func(line string) { fmt.Println(line); in.ReadString('\n') }
	f := newFold()
	if k.Do == "open" { // stands still while the log is fed to it
		_, err := s.Open(k.Place)(func(e journal.Entry) error {
			if e.Seq == journal.Seq(k.N) {
				wait("opening")
			}
			return nil
		})
		return errors.Join(errors.New("it was to be killed"), err)
	}
	store, err := s.Open(k.Place)(f.apply)
	if err != nil {
		return err
	}
	defer store.Close()
	switch k.Do {
	case "append": // N entries, 0 is without end, each of which says how many it saw
		for i := 0; k.N == 0 || i < k.N; i++ {
			got, err := store.Update(ctx, func(journal.Head) ([]journal.Entry, error) {
				return []journal.Entry{{Kind: journal.Granted, Body: body(`{"who":%q,"n":%d,"saw":%d}`, k.Who, i, f.granted)}}, nil
			})
			if err != nil {
				return err
			}
			fmt.Println(got[0].Seq, i)
		}
	case "claim": // has the claim on effect N
		c, err := store.Claim(ctx, Effect(k.N))
		if err != nil {
			return err
		}
		wait("claimed")
		c.Release()
		wait("released")
	case "update": // stands still in an update
		_, err := store.Update(ctx, func(journal.Head) ([]journal.Entry, error) {
			wait("inside")
			return []journal.Entry{{Kind: journal.Granted, Body: body(`{"who":%q}`, k.Who)}}, nil
		})
		return err
	case "propose": // each of N effects, unless somebody did
		wait("ready")
		for n := range k.N {
			if _, err := store.Update(ctx, func(journal.Head) ([]journal.Entry, error) {
				if f.kinds[Effect(n)] != 0 {
					return nil, nil
				}
				return []journal.Entry{{Kind: journal.Proposed, Effect: Effect(n)}}, nil
			}); err != nil {
				return err
			}
		}
	case "dispatch": // until it sees a revocation
		for n := 0; ; n++ {
			entries, err := store.Update(ctx, func(journal.Head) ([]journal.Entry, error) { return f.dispatch(n) })
			if err != nil {
				return err
			}
			if len(entries) == 0 {
				return nil
			}
			fmt.Println("dispatched")
		}
	case "work":
		return s.work(store, f, k)
	default:
		return fmt.Errorf("unknown %q", k.Do)
	}
	return nil
}

// fold is the state that the tests fold a log into.
type fold struct {
	granted int
	revoked bool
	kinds   map[journal.ID]journal.Kind // of each effect's last entry
	done    map[journal.ID]int          // COMMITTED entries
}

func newFold() *fold {
	return &fold{kinds: map[journal.ID]journal.Kind{}, done: map[journal.ID]int{}}
}

func (f *fold) apply(e journal.Entry) error {
	switch e.Kind {
	case journal.Granted:
		f.granted++
	case journal.Revoked:
		f.revoked = true
	case journal.Committed:
		f.done[e.Effect]++
	}
	if !e.Effect.IsZero() {
		f.kinds[e.Effect] = e.Kind
	}
	return nil
}

func (f *fold) dispatch(n int) ([]journal.Entry, error) {
	if f.revoked {
		return nil, nil
	}
	return []journal.Entry{{Kind: journal.Dispatched, Effect: Effect(n)}}, nil
}

// work brings each of N effects to its end, whoever began it: an effect is a
// line of the ledger.
func (s Suite) work(store journal.Store, f *fold, k task) error {
	ctx := context.Background()
	ledger, err := os.OpenFile(k.Ledger, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer ledger.Close()
	for open := true; open; {
		open = false
		for n := range k.N {
			id := Effect(n)
			claim, err := store.Claim(ctx, id)
			if errors.Is(err, journal.ErrHeld) {
				open = true // its holder ends it, or dies
				continue
			}
			if err != nil {
				return err
			}
			fmt.Println("claimed", n)
			if err := finish(ctx, store, f, id, ledger); err != nil {
				return err
			}
			claim.Release()
			fmt.Println("released", n)
		}
	}
	return nil
}

// finish does what an owner of the claim does: it records, acts, records.
func finish(ctx context.Context, store journal.Store, f *fold, id journal.ID, ledger *os.File) error {
	var kind journal.Kind
	if err := store.View(ctx, func(journal.Head) { kind = f.kinds[id] }); err != nil || kind == journal.Committed {
		return err
	}
	if kind != 0 { // in doubt: the one who dispatched it is dead, and the ledger knows
		text, err := os.ReadFile(ledger.Name())
		if err != nil {
			return err
		}
		if strings.Contains(string(text), id.String()+"\n") {
			return append1(ctx, store, journal.Committed, id)
		}
	}
	if err := append1(ctx, store, journal.Dispatched, id); err != nil {
		return err
	}
	fmt.Println("dispatched")
	if _, err := ledger.WriteString(id.String() + "\n"); err != nil {
		return err
	}
	fmt.Println("landed")
	return append1(ctx, store, journal.Committed, id)
}

func append1(ctx context.Context, store journal.Store, kind journal.Kind, id journal.ID) error {
	_, err := store.Update(ctx, func(journal.Head) ([]journal.Entry, error) {
		return []journal.Entry{{Kind: kind, Effect: id}}, nil
	})
	return err
}
