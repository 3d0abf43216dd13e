package journal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// The test binary is its own other process: with JOURNAL_CHILD set it does what
// that says, writes a line, waits for its standard input to end, and goes.
func TestMain(m *testing.M) {
	if do := os.Getenv("JOURNAL_CHILD"); do != "" {
		if err := child(strings.Fields(do)); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func child(do []string) error {
	ctx, path := context.Background(), do[1]
	ready := func() { fmt.Println("ready"); io.Copy(io.Discard, os.Stdin) }
	switch do[0] {
	case "own": // until told to end
		l, err := journal.OpenFile(path, journal.Options{Namespace: "test", Identity: "the child"}, nil)
		if err != nil {
			return err
		}
		ready()
		return l.Close()
	case "append": // n entries, one update each
		l, err := journal.OpenFile(path, journal.Options{Mode: journal.Appender, Namespace: "test"}, nil)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(do[2])
		if err != nil {
			return err
		}
		for i := range n {
			if _, err := l.Update(ctx, func(h journal.Head) ([]journal.Entry, error) {
				return []journal.Entry{{Kind: journal.Granted, Body: fmt.Appendf(nil, "[%d,%d,%d]", os.Getpid(), i, h.Seq)}}, nil
			}); err != nil {
				return err
			}
		}
		ready()
		return l.Close()
	case "update": // hangs in an update until told to end
		l, err := journal.OpenFile(path, journal.Options{Mode: journal.Appender, Namespace: "test"}, nil)
		if err != nil {
			return err
		}
		_, err = l.Update(ctx, func(journal.Head) ([]journal.Entry, error) {
			ready()
			return []journal.Entry{{Kind: journal.Revoked}}, nil
		})
		return err
	case "share":
		d, err := journal.OpenDrain(path)
		if err != nil {
			return err
		}
		if _, ok, err := d.Share(7); !ok || err != nil {
			return fmt.Errorf("share: %v, %w", ok, err)
		}
		ready()
		return nil
	}
	return fmt.Errorf("unknown %q", do)
}

type process struct {
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Scanner
}

// start starts a child; ready waits for its line.
func start(t *testing.T, do ...any) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "JOURNAL_CHILD="+strings.TrimSpace(fmt.Sprintln(do...)), "GORACE=atexit_sleep_ms=0")
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

func (p *process) ready(t *testing.T) {
	t.Helper()
	if !p.out.Scan() || p.out.Text() != "ready" {
		t.Fatalf("the child says %q", p.out.Text())
	}
}

// end lets the child go on to its end.
func (p *process) end(t *testing.T) {
	t.Helper()
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

// kill is SIGKILL, and the end of the process.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.cmd.Wait()
}
