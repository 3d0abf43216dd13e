package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	measure "github.com/interlock-bench/interlock-bench/experiments/bench"
)

// TestTakeover has a process hang in the middle of its send, in each kind of
// journal. Takeover names it and does nothing; with --kill that process dies, no
// other one does, and the effect is free.
func TestTakeover(t *testing.T) {
	for store, log := range map[string]string{"file": "journal", "sqlite": "journal.db"} {
		t.Run(store, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "gate")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			sender := hangingSender(t, dir, store, "case-4471")
			bystander := exec.Command("cat") // a process that holds nothing
			in, err := bystander.StdinPipe()
			if err != nil || bystander.Start() != nil {
				t.Fatal(err)
			}
			defer bystander.Wait()
			defer in.Close()

			place := filepath.Join(dir, log)
			named := fmt.Sprintf("that is process [%d]", sender.Process.Pid)
			code, out := takeover(t, "case-4471", place)
			if code != exitHeld || !strings.Contains(out, named) || !strings.Contains(out, "since 20") || !strings.Contains(out, "nothing was done") {
				t.Fatalf("exit %d:\n%s\nwant it to say %q", code, out, named)
			}
			if code, out = takeover(t, "case-4471", place, "--kill"); code != exitHeld || !strings.Contains(out, "killed") {
				t.Fatalf("exit %d:\n%s", code, out)
			}
			sender.Wait()
			if status := sender.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
				t.Errorf("the sender ended by %v", sender.ProcessState)
			}
			if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("another process is gone: %v", err)
			}
			if code, out = takeover(t, "case-4471", place, "--kill"); code != exitHeld || !strings.Contains(out, "nobody has it") {
				t.Errorf("afterwards, exit %d:\n%s", code, out)
			}
			if code, out = takeover(t, "case-9", place); code != exitUsage {
				t.Errorf("of no effect, exit %d:\n%s", code, out)
			}
		})
	}
}

func takeover(t *testing.T, args ...string) (int, string) {
	t.Helper()
	line := append([]string{"journal", "takeover", args[0], "--journal", args[1]}, args[2:]...)
	var out bytes.Buffer
	code := run(t.Context(), line, &out, &out)
	return code, strings.Join(strings.Fields(out.String()), " ")
}

// hangingSender is a process that has a gate open and hangs in the middle of a
// send.
func hangingSender(t *testing.T, dir, store, request string) *exec.Cmd {
	t.Helper()
	given, err := json.Marshal(measure.Sender{Dir: dir, Store: store, Request: request})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), measure.SenderVariable+"="+string(given))
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil || cmd.Start() != nil {
		t.Fatal("the sender doesn't start", err1, err2)
	}
	t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	said := bufio.NewScanner(out)
	if !said.Scan() || said.Text() != "sending" {
		t.Fatal("the sender didn't get to its send")
	}
	return cmd
}
