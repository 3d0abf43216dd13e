package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
)

const (
	maxOutput = 64 << 10        // bytes kept of what a process printed last
	lastWords = 4 << 10         // bytes of them that go into Exited
	dumpTime  = 5 * time.Second // real time to print stacks in, after SIGQUIT
)

// process is one start of the program under test.
type process struct {
	who      string
	cmd      *exec.Cmd
	output   tail
	died     chan struct{} // closed when it is dead
	exited   chan struct{} // closed when it was waited for, and how it ended and its last words are known
	hopeless chan struct{} // closed when it waits for what can't come
	stuck    bool          // hopeless is closed
	buried   chan struct{} // closed when a kill by the trial is recorded
	finished bool          // it said that it is done
	killed   bool          // by the trial, as the kernel says
	conns    []net.Conn    // of its control channel, until accepting ends
}

// giveUp says that nothing will come of p any more. It is called once.
func (p *process) giveUp() {
	p.stuck = true
	close(p.hopeless)
}

// follow starts the program, serves it until it has ended, and records how. It
// says whether the trial killed it.
func (s *Stage) follow(ctx context.Context, start int) (killed bool, err error) {
	task, err := json.Marshal(s.plan.Task)
	if err != nil {
		return false, fmt.Errorf("faults: task: %w", err)
	}
	p := &process{who: fmt.Sprintf("worker#%d", start), cmd: s.plan.Command(start),
		died: make(chan struct{}), exited: make(chan struct{}), hopeless: make(chan struct{}), buried: make(chan struct{})}
	control, err := net.Listen("unix", s.socket(start))
	if err != nil {
		return false, fmt.Errorf("faults: control channel: %w", err)
	}

	// The lock is held until the process has started: nothing it says is heard
	// before.
	s.mu.Lock()
	s.rec.Record(history.Event{Who: p.who, Kind: history.Started}, nil)
	if err := p.start(s.State(), s.socket(start)); err != nil {
		s.mu.Unlock()
		control.Close()
		return false, fmt.Errorf("faults: the program under test doesn't start: %w", err)
	}
	s.proc, s.clock.live, s.signs = p, 1, 0
	s.sign()
	s.mu.Unlock()

	var accepting, serving sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := control.Accept()
			if err != nil {
				return
			}
			p.conns = append(p.conns, conn)
			serving.Go(func() { s.serve(newLink(conn), p, reply{Start: start, Body: task}) })
		}
	})
	killed = s.watch(ctx, p)
	control.Close()
	accepting.Wait()
	for _, c := range p.conns { // a relative of the process may hold the other end
		c.Close()
	}
	serving.Wait()
	return killed, nil
}

// start starts the process, in a process group of its own. It dies with the
// thread that started it, which lives as long as it, and its group with it. A
// terminal's interrupt reaches the supervisor alone, which ends the trial.
func (p *process) start(folder, control string) error {
	if p.cmd.Dir == "" {
		p.cmd.Dir = folder
	}
	if p.cmd.Env == nil {
		p.cmd.Env = os.Environ()
	}
	race := "atexit_sleep_ms=0"
	for _, v := range p.cmd.Env {
		if set, ok := strings.CutPrefix(v, "GORACE="); ok {
			race = set + " " + race
		}
	}
	p.cmd.Env = append(p.cmd.Env, controlVariable+"="+control, "GORACE="+race)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.WaitDelay = dumpTime
	if p.cmd.SysProcAttr == nil {
		p.cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	p.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	p.cmd.SysProcAttr.Setpgid = !p.cmd.SysProcAttr.Setsid // a session has a group already
	p.cmd.SysProcAttr.Pgid = 0

	started := make(chan error)
	go func() {
		defer close(p.exited)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			await(p.cmd.Process.Pid, syscall.WEXITED)
			close(p.died)
			// Its number stays its own, and so its group's, until it is waited for.
			syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
			p.cmd.Wait() // how it ended is in ProcessState
		}
	}()
	return <-started
}

// await returns when one of the changes has happened to the child pid, and leaves
// it to be waited for.
func await(pid, changes int) {
	const idIsPid = 1 // P_PID of waitid(2)
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, idIsPid, uintptr(pid), 0, uintptr(changes|syscall.WNOWAIT), 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}

// watch waits until p has ended, ends it where that is due, and records how. It
// says whether the trial killed it. Nothing of p's life is under way any more
// when watch returns.
func (s *Stage) watch(ctx context.Context, p *process) (killed bool) {
	hung := s.ends(ctx, p)
	ours := s.bury(p)
	if !ours { // a kill of the trial was first, and records it
		<-p.buried
		hung = false
	}
	if hung {
		p.cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-p.exited:
		case <-time.After(dumpTime):
		}
	}
	p.cmd.Process.Kill() // nothing happens to one that has ended
	<-p.exited
	s.idle()

	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case hung:
		s.rec.Record(history.Event{Who: p.who, Kind: history.Hung},
			history.Exit{Code: p.cmd.ProcessState.ExitCode(), Text: s.scrub(p.output.String())})
	case ours && ctx.Err() == nil:
		s.recordExit(p)
	}
	return p.killed
}

// ends waits for the end of p, or of ctx, or of the patience with p: then it says
// that p hangs.
func (s *Stage) ends(ctx context.Context, p *process) (hung bool) {
	impatient := time.NewTimer(s.plan.Patience)
	defer impatient.Stop()
	for {
		select {
		case <-p.died:
			return false
		case <-ctx.Done():
			return false
		case <-p.hopeless:
			return true
		case <-impatient.C:
			s.mu.Lock()
			left := s.plan.Patience - time.Since(s.moved)
			if s.aside == p { // it is stopped, and not what hangs
				left = s.plan.Patience
			}
			s.mu.Unlock()
			if left <= 0 {
				return true
			}
			impatient.Reset(left)
		}
	}
}

// idle waits until nothing of a dead process's life is under way any more.
func (s *Stage) idle() {
	s.mu.Lock()
	s.settled(func() bool { return s.acting == 0 && s.beside == nil && s.firing == 0 })
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), s.plan.Patience)
	defer cancel()
	if err := s.world.Idle(ctx); err != nil {
		s.fail(fmt.Errorf("faults: the world doesn't come to rest after a death: %w", err))
	}
}

// bury takes the living process off the stage: what it still says is not heard,
// and what it waited for is gone. False means that somebody else has done so.
func (s *Stage) bury(p *process) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch p {
	case s.proc:
		s.proc = nil
		s.clock.bury()
	case s.aside:
		s.aside = nil
	default:
		return false
	}
	s.cond.Broadcast()
	return true
}

// kill kills p for the trial, waits for it and records the death: Killed only
// where the kernel says that SIGKILL ended it. The stage's lock is held, and let
// go while p dies.
func (s *Stage) kill(p *process) {
	s.proc = nil
	s.clock.bury()
	s.cond.Broadcast()
	s.mu.Unlock()
	p.cmd.Process.Kill()
	<-p.exited
	s.mu.Lock()
	s.settled(func() bool { return s.beside == nil }) // its last event comes first
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		p.killed = true
		s.rec.Record(history.Event{Who: p.who, Kind: history.Killed}, nil)
	} else {
		s.recordExit(p)
	}
	close(p.buried)
}

// recordExit records an end that the supervisor did not bring about. One with
// code 0 after the process said that it is done says nothing new.
func (s *Stage) recordExit(p *process) {
	code := p.cmd.ProcessState.ExitCode()
	if code == 0 && p.finished {
		return
	}
	text := s.scrub(p.output.String())
	s.rec.Record(history.Event{Who: p.who, Kind: history.Exited},
		history.Exit{Code: code, Text: text[max(0, len(text)-lastWords):]})
}

// scrub takes out of what a process printed what differs from run to run:
// folders, addresses, and the numbers of processes and goroutines.
func (s *Stage) scrub(text string) string {
	text = strings.ReplaceAll(text, s.State(), "STATE")
	text = strings.ReplaceAll(text, s.dir, "DIR")
	text = addresses.ReplaceAllString(text, "")
	return strings.ToValidUTF8(numbers.ReplaceAllString(text, "$1 N"), "?")
}

var (
	addresses = regexp.MustCompile(`\(0x[0-9a-f][^)\n]*\)| \+0x[0-9a-f]+|0x[0-9a-f]+\??`)
	numbers   = regexp.MustCompile(`\b(goroutine|gp|m|pid) \d+`)
)

// serve answers one connection of p until it ends.
func (s *Stage) serve(l *link, p *process, hello reply) {
	var pending *deadline // the wait or the timer of this connection
	for {
		var q question
		if err := l.read(&q); err != nil {
			return
		}
		var r *reply
		alive := true
		switch q.Op {
		case opHello:
			r = &hello
		case opAt:
			alive, r = s.pass(p, p.who, q.Point, q.Subject), &reply{}
		case opTell:
			alive, r = s.told(p, q), &reply{}
		case opAsk:
			r, alive = s.asked(p, q)
		default:
			r, alive = s.timed(l, p, q, &pending)
		}
		if !alive || r != nil && l.write(r) != nil {
			return
		}
	}
}

func (s *Stage) told(p *process, q question) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hold(p, "") {
		return false
	}
	s.sign()
	e := history.Event{Who: p.who, Kind: q.Kind, Subject: q.Subject, Body: q.Body}
	s.rec.Record(e, nil)
	p.finished = p.finished || q.Kind == history.Finished
	return true
}

func (s *Stage) asked(p *process, q question) (*reply, bool) {
	s.mu.Lock()
	alive := s.hold(p, "")
	s.sign()
	s.mu.Unlock()
	if !alive {
		return nil, false
	}
	answer, err := s.world.Answer(q.Subject, q.Body)
	if err != nil {
		return &reply{Error: err.Error()}, true
	}
	body, err := json.Marshal(answer)
	if err != nil {
		s.fail(fmt.Errorf("faults: answer to %s: %w", q.Subject, err))
		return nil, false
	}
	return &reply{Body: body}, true
}

// timed serves the clock and counts flows. Nothing of it is recorded. A nil reply
// is one that comes later.
func (s *Stage) timed(l *link, p *process, q question, pending **deadline) (*reply, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.aside == p {
		s.cond.Wait()
	}
	if s.proc != p {
		return nil, false
	}
	defer s.sign()
	switch q.Op {
	case opTime:
		return &reply{Now: s.Now().Add(s.skew), Mono: s.Mono()}, true
	case opFlow:
		s.clock.live += q.N
		return &reply{}, true
	case opWait:
		s.clock.waits++
		*pending = s.clock.arm(s.Mono()+q.For, waiting, "", func() {
			s.clock.waits--
			l.write(reply{}) // a process that is gone is noticed elsewhere
		})
		return nil, true
	case opCancel:
		if !s.clock.disarm(*pending) {
			return nil, true // it is answered already
		}
		s.clock.waits--
		return &reply{Error: "cancelled"}, true
	case opArm:
		*pending = s.clock.armTimer(s.Mono()+q.For, func() { l.write(reply{Fired: true}) })
		return &reply{}, true
	case opFired:
		s.clock.ended(*pending, q.N)
		return nil, true
	case opDisarm:
		if !s.clock.disarm(*pending) {
			s.clock.ended(*pending, 0)
		}
		return &reply{}, true
	}
	return nil, false // no word of ours
}

// tail keeps the last bytes of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > 2*maxOutput {
		t.text = append(t.text[:0], t.text[len(t.text)-maxOutput:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text[max(0, len(t.text)-maxOutput):])
}
