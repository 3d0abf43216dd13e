package git_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/git"
)

// A run of this test binary with this variable lands what it says, and stands
// still at each point until it is told to go on.
const landVariable = "INTERLOCK_TEST_LAND"

type landTask struct {
	Dir, Effect string
	Change      git.Change
}

func TestMain(m *testing.M) {
	text, child := os.LookupEnv(landVariable)
	if !child {
		code := m.Run()
		if template.dir != "" {
			os.RemoveAll(filepath.Dir(template.dir))
		}
		os.Exit(code)
	}
	var t landTask
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		panic(err)
	}
	answers := bufio.NewReader(os.Stdin)
	l := landing(t.Effect, t.Change)
	l.Trace = func(p trace.Point, _ string) {
		fmt.Println(p)
		answers.ReadString('\n')
	}
	repo, err := git.Open(context.Background(), t.Dir)
	if err == nil {
		_, err = repo.Land(context.Background(), l)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// landIn starts a process that lands l, in a group of its own, and returns what
// it says and a way to let it go on.
func (w *world) landIn(l git.Landing, env ...string) (cmd *exec.Cmd, said *bufio.Scanner, goOn func()) {
	w.t.Helper()
	task, err := json.Marshal(landTask{w.dir, l.Effect, l.Change})
	if err != nil {
		w.t.Fatal(err)
	}
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), landVariable+"="+string(task)), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out), func() { in.Write([]byte("\n")) }
}

func (w *world) mustBeKilled(cmd *exec.Cmd) {
	w.t.Helper()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		w.t.Fatalf("the process ended with %v", err)
	}
}

// A kill at any point leaves the branch where it was or where it should be, and
// the next landing of the same effect ends with one commit.
func TestKilledAtEveryPoint(t *testing.T) {
	for _, point := range []trace.Point{git.PointMerged, git.PointLanding, git.PointLanded} {
		w := newWorld(t)
		before := w.tip()
		l := landing("e1", w.change(git.Edit{Path: "c.txt", Op: git.Write, Text: "c\n"}))
		cmd, said, goOn := w.landIn(l)
		for said.Scan() && said.Text() != string(point) {
			goOn()
		}
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		w.mustBeKilled(cmd)
		w.clean()
		if landed := w.tip() != before; landed != (point == git.PointLanded) {
			t.Errorf("killed at %s: landed is %v", point, landed)
		}
		found, ok, err := w.repo.Find(t.Context(), main, l.Change.Base, "e1")
		if err != nil || ok != (w.tip() != before) {
			t.Errorf("killed at %s: found %+v, %v, %v", point, found, ok, err)
		}
		again, err := w.repo.Land(t.Context(), l)
		if err != nil || again.Repeated != ok || w.sh(w.dir, "git", "rev-list", "--count", "main") != "2" {
			t.Errorf("killed at %s, and again: %+v, %v", point, again, err)
		}
	}
}

// git, killed with its own lock in hand, leaves a file that would stop everybody.
// Whoever takes our lock next knows that it is nobody's.
func TestGitKilledOverTheRef(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		w := newWorld(t)
		real, err := exec.LookPath("git")
		if err != nil {
			t.Fatal(err)
		}
		bin := t.TempDir()
		stale := filepath.Join(w.dir, "refs", "heads", "main.lock")
		script := fmt.Sprintf("#!/bin/sh\nlast2=; last=; for a; do last3=$last2; last2=$last; last=$a; case $a in update-ref) u=1;; esac; done\nif [ -n \"$u\" ]; then echo $last2 > %s; kill -9 0; fi\nexec %s \"$@\"\n", stale, real)
		if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		l := landing("e1", w.change(git.Edit{Path: "c.txt", Op: git.Write, Text: "c\n"}))
		cmd, said, goOn := w.landIn(l, "PATH="+bin+":"+os.Getenv("PATH"))
		for said.Scan() {
			goOn()
		}
		w.mustBeKilled(cmd)
		if _, err := os.Stat(stale); err != nil {
			t.Fatal(err)
		}
		if foreign {
			if err := os.WriteFile(stale, []byte(w.tip()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, err = w.repo.Land(t.Context(), l)
		if foreign != (err != nil) {
			t.Errorf("a lock that is somebody else's: %v; landing: %v", foreign, err)
		}
		if !foreign {
			w.clean()
		}
	}
}

// As long as git may still move the ref, whoever started it and is dead by now, a
// search waits: what it then doesn't find has not landed and won't.
func TestGitOutlivesItsParent(t *testing.T) {
	w := newWorld(t)
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	gate := filepath.Join(bin, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nfor a; do case $a in update-ref) kill -9 $PPID; read go < %s;; esac; done\nexec %s \"$@\"\n", gate, real)
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	l := landing("e1", w.change(git.Edit{Path: "c.txt", Op: git.Write, Text: "c\n"}))
	cmd, said, goOn := w.landIn(l, "PATH="+bin+":"+os.Getenv("PATH"))
	for said.Scan() {
		goOn()
		if said.Text() == string(git.PointLanding) {
			break
		}
	}
	w.mustBeKilled(cmd)
	found := make(chan bool)
	go func() {
		_, ok, err := w.repo.Find(context.Background(), main, l.Change.Base, "e1")
		found <- ok && err == nil
	}()
	go2, err := os.OpenFile(gate, os.O_WRONLY, 0) // git's orphan stands at the other end
	if err != nil {
		t.Fatal(err)
	}
	select {
	case ok := <-found:
		t.Errorf("a search did not wait for a landing under way; it found it: %v", ok)
	default:
	}
	fmt.Fprintln(go2, "go")
	go2.Close()
	if !<-found {
		t.Error("a search didn't find what an orphan landed before it")
	}
}
