package sqlite_test

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
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
)

// TestMain: the test binary is its own other process, for the suite and for the
// tests of this package.
func TestMain(m *testing.M) {
	if do := os.Getenv("SQLITE_CHILD"); do != "" {
		if err := child(strings.Fields(do)); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(suite.Main(m))
}

func child(do []string) error {
	path := do[1]
	wait := func(line string) { fmt.Println(line); io.Copy(io.Discard, os.Stdin) }
	switch do[0] {
	case "claim":
		s, err := sqlite.Open(path, sqlite.Options{Identity: "the child"}, nil)
		if err != nil {
			return err
		}
		if _, err := s.Claim(context.Background(), e1); err != nil {
			return err
		}
		wait("claimed")
		return s.Close()
	case "turn": // can it append right now?
		_, err := sqlite.Open(path, sqlite.Options{Patience: 20 * time.Millisecond}, nil)
		if !errors.Is(err, journal.ErrHeld) {
			return fmt.Errorf("it took the write lock: %w", err)
		}
		fmt.Println("held")
		return nil
	case "updates": // ten, one after another
		s, err := sqlite.Open(path, sqlite.Options{Namespace: "test"}, nil)
		if err != nil {
			return err
		}
		for range 10 {
			if _, err := s.Update(context.Background(), func(journal.Head) ([]journal.Entry, error) {
				fmt.Println("decides")
				return []journal.Entry{{Kind: journal.Granted}}, nil
			}); err != nil {
				return err
			}
			fmt.Println("told")
		}
		return s.Close()
	case "gate":
		var k gateTask
		if err := json.Unmarshal([]byte(do[2]), &k); err != nil {
			return err
		}
		return gateChild(path, k)
	}
	return fmt.Errorf("unknown %q", do)
}

type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t testing.TB, do ...any) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SQLITE_CHILD="+strings.TrimSpace(fmt.Sprintln(do...)), "GORACE=atexit_sleep_ms=0")
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

func (p *process) line() string {
	if !p.out.Scan() {
		return ""
	}
	return p.out.Text()
}

func (p *process) want(t testing.TB, line string) {
	t.Helper()
	if got := p.line(); got != line {
		t.Fatalf("the child says %q, want %q", got, line)
	}
}

// kill is SIGKILL, and the end of the process.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}
