package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// Plan is what a trial needs besides its line.
type Plan struct {
	Trial Trial
	// Before are acts of the world before the first start, and Outage those after
	// the first death, before the restart. "wait DURATION" lets time pass; the
	// others go to World.Do.
	Before, Outage []string
	// Restarts is how often the program is started again after a kill. One that
	// ended by itself or hung is not.
	Restarts int
	// Command is the program under test. Where it names no environment it gets
	// that of this process, and no folder, that of Stage.State.
	Command func(start int) *exec.Cmd
	// Task is what Child.Task gives the program. It is encoded at each start, when
	// the world is there.
	Task any
	// World builds the world of the trial before the program starts.
	World func(*Stage) (World, error)
	// Patience is how long, in real time, nothing may happen before the program
	// counts as hung; 0 is ten seconds.
	Patience time.Duration
	// Steps is how many events and waits one start of the program may have before it
	// counts as hung; 0 is 100,000.
	Steps int
	// Settle is the virtual time that passes after the last process, so that
	// whatever may still land lands.
	Settle time.Duration
}

// World is everything around the program under test: its service, its
// principals, its model.
type World interface {
	// Do carries out an act by name while the program stands still. An act that
	// can't end before the program goes on calls proceed once its own record is
	// durable: the program is let go and held again, before it passes the next
	// point, until Do has returned. Where Do can't return before certain points
	// either, it names those after them, and the first of these is where the
	// program is held. A word to the world or to the history holds it as well.
	// What the program and Do do meanwhile is in no fixed order, so an act that can
	// end while the program stands still doesn't call proceed.
	// An error ends the trial: the harness could not do what the trial says.
	Do(action string, proceed func(until ...trace.Point)) error
	// Answer answers Child.Ask. Its error is what the child gets. The question is
	// not recorded; the world records what the judge must know of it.
	Answer(what string, question json.RawMessage) (any, error)
	// Idle returns when nothing of a request that a process sent before it died is
	// under way any more, but for what its After's will still do; or when ctx ends.
	// It is called after every death, before the next thing happens.
	Idle(ctx context.Context) error
	// Close ends the world and everything that it started.
	Close() error
}

const (
	supervisor    = "supervisor"
	patience      = 10 * time.Second // where the plan says nothing
	steps         = 100_000
	maxSocketPath = 100 // bytes; the kernel's limit is 108
)

// Run runs one trial and returns its history. An error means that the harness
// failed, or that ctx ended, and what was recorded so far comes with it; a
// program that misbehaves is no error but an event. When Run returns, no
// goroutine or temporary folder of the trial is left and the program is dead.
// What it started has been sent SIGKILL with it, unless it left the program's
// process group, as by setsid(2): such a process is not followed.
func Run(ctx context.Context, p Plan) (history.History, error) {
	if p.Patience == 0 {
		p.Patience = patience
	}
	if p.Steps == 0 {
		p.Steps = steps
	}
	dir, err := temporary()
	if err != nil {
		return nil, fmt.Errorf("faults: no folder for the trial: %w", err)
	}
	defer os.RemoveAll(dir)

	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s := &Stage{plan: p, dir: dir, fail: fail, moved: time.Now(),
		passages: map[trace.Point]int{}, fired: make([]bool, len(p.Trial.Faults))}
	s.cond = sync.NewCond(&s.mu)
	s.rec = history.NewRecorder(s.Mono)
	if err := os.Mkdir(s.State(), 0o700); err != nil {
		return nil, fmt.Errorf("faults: no folder for the program's state: %w", err)
	}
	if s.world, err = p.World(s); err != nil {
		return nil, fmt.Errorf("faults: the world doesn't come up: %w", err)
	}

	var clock sync.WaitGroup
	clock.Go(s.moveTime)
	err = s.play(ctx)
	h := s.rec.History()

	s.mu.Lock()
	s.over = true
	abandoned := s.abandoned
	s.cond.Broadcast()
	s.mu.Unlock()
	clock.Wait()
	err = errors.Join(err, s.world.Close())
	if !abandoned {
		s.acts.Wait()
	}
	return h, err
}

// temporary makes a folder whose path leaves room for a socket's name.
func temporary() (string, error) {
	base := os.TempDir()
	if len(base) > maxSocketPath/2 {
		base = "/tmp"
	}
	return os.MkdirTemp(base, "interlock-")
}

// play runs the program as often as the trial says.
func (s *Stage) play(ctx context.Context) error {
	s.start = func() (bool, error) {
		s.starts++ // by one goroutine at a time: a start that stops for another waits for it
		return s.follow(ctx, s.starts)
	}
	for _, action := range s.plan.Before {
		s.act(action)
	}
	for start := 1; ; start++ {
		killed, err := s.start()
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if !killed || start > s.plan.Restarts {
			break
		}
		if start == 1 {
			for _, action := range s.plan.Outage {
				s.act(action)
			}
		}
	}
	s.mu.Lock()
	s.elapse(s.plan.Settle)
	s.mu.Unlock()
	for i, f := range s.plan.Trial.Faults {
		if !s.fired[i] {
			s.As(supervisor).Record(history.Unfired, "", f)
		}
	}
	return context.Cause(ctx)
}

// pass records a passage and carries out the faults planned for it. p is the
// process that passed the point, nil for the world. It says whether that
// process, or any for the world, is alive.
func (s *Stage) pass(p *process, who string, at trace.Point, subject string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p != nil && !s.hold(p, at) {
		return false
	}
	s.sign()
	s.rec.Record(history.Event{Who: who, Kind: history.Passed, Point: at, Subject: subject}, nil)
	if p != nil {
		s.last = at
	}
	s.passages[at]++
	n := s.passages[at]
	s.acting++
	for i, f := range s.plan.Trial.Faults {
		if f.At != at || f.Passage != n {
			continue
		}
		if f.What == Kill {
			if victim := s.proc; victim != nil {
				s.fired[i] = true
				s.kill(victim)
			}
			continue
		}
		if f.What == Other {
			s.fired[i] = s.other() || s.fired[i]
			continue
		}
		s.fired[i] = true
		s.mu.Unlock()
		s.act(f.What)
		s.mu.Lock()
	}
	s.acting--
	s.sign()
	return s.proc != nil && (p == nil || p == s.proc) || p == nil && s.guests > 0
}

// hold waits until p may go on: while a fault is carried out it stands still,
// and while an act goes on beside it, at the points that the act named. at is ""
// for what is no point. False means that p is dead. The stage's lock is held.
func (s *Stage) hold(p *process, at trace.Point) bool {
	for s.aside == p || s.proc == p && (s.acting > 0 || s.beside.holds(at)) {
		s.cond.Wait()
	}
	return s.proc == p
}

func (a *act) holds(at trace.Point) bool {
	if a == nil {
		return false
	}
	if len(a.until) == 0 || at == "" {
		return true
	}
	for _, p := range a.until {
		if p == at {
			return true
		}
	}
	return false
}

// act carries out an act of the world. It returns when the act is done, or when
// the act said that the living process may proceed.
func (s *Stage) act(action string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.beside != nil && !s.abandoned { // one at a time
		s.cond.Wait()
	}
	s.rec.Record(history.Event{Who: supervisor, Kind: history.Acted}, history.Action{Action: action})
	if d, ok := waitAction(action); ok {
		s.elapse(d)
		return
	}
	a := new(act)
	done, proceeded := false, false
	s.acts.Go(func() {
		err := s.world.Do(action, func(until ...trace.Point) {
			s.mu.Lock()
			defer s.mu.Unlock()
			a.until, proceeded = until, true
			s.cond.Broadcast()
		})
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			s.fail(fmt.Errorf("faults: act %q: %w", action, err))
		}
		done = true
		if s.beside == a {
			s.beside = nil
		}
		s.sign()
	})
	for s.proc != nil && !done && !proceeded && !s.abandoned {
		s.cond.Wait()
	}
	switch {
	case s.proc == nil: // nobody to let go on
		s.settled(func() bool { return done })
	case !done && !s.abandoned:
		s.beside = a
	}
}

// waitAction reads "wait DURATION"; in the line of a trial, which has no room
// for a space, it is "wait:DURATION".
func waitAction(action string) (time.Duration, bool) {
	text, ok := strings.CutPrefix(action, "wait")
	if !ok || !strings.HasPrefix(text, " ") && !strings.HasPrefix(text, ":") {
		return 0, false
	}
	d, err := time.ParseDuration(text[1:])
	return d, err == nil && d >= 0
}

// elapse lets d pass with nobody blocked: deadlines of the world on the way
// happen, and so do timers of a process that stands still, whose flows then stop
// at their next word. The stage's lock is held.
func (s *Stage) elapse(d time.Duration) {
	target := s.Mono() + d
	for {
		next := s.clock.earliest(timer)
		if next == nil || next.due > target {
			break
		}
		s.reach(next)
		for len(s.clock.fired) > 0 {
			s.cond.Wait()
		}
	}
	s.now.Store(max(s.now.Load(), int64(target)))
}

// reach moves time to d and does what is due then. The stage's lock is held.
func (s *Stage) reach(d *deadline) {
	s.clock.disarm(d)
	s.now.Store(max(s.now.Load(), int64(d.due)))
	s.firing++
	d.fire()
	s.firing--
	s.sign()
}

// moveTime moves the clock to the next deadline whenever the program can do
// nothing but wait. It returns when the trial is over.
func (s *Stage) moveTime() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.over {
		if s.proc == nil || s.proc.stuck || s.acting > 0 || s.beside != nil || !s.clock.blocked() {
			s.cond.Wait()
			continue
		}
		if next := s.clock.earliest(waiting); next != nil {
			s.reach(next)
			continue
		}
		s.proc.giveUp() // everybody waits and nothing will ever happen
	}
}

// settled waits until ready says so. Where that takes longer than the plan's
// patience, in real time, an act of the world hangs: it is given up, and so is the
// trial. The stage's lock is held.
func (s *Stage) settled(ready func() bool) {
	end := time.Now().Add(s.plan.Patience)
	limit := time.AfterFunc(s.plan.Patience, s.cond.Broadcast)
	defer limit.Stop()
	for !ready() && !s.abandoned {
		if !time.Now().Before(end) {
			s.abandoned = true
			s.fail(errActHangs)
			s.cond.Broadcast()
			return
		}
		s.cond.Wait()
	}
}

var errActHangs = errors.New("faults: an act of the world does not return although the process is dead")

func (s *Stage) socket(start int) string { return filepath.Join(s.dir, fmt.Sprint("c", start)) }
