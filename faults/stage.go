package faults

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// Stage is what a world stands on: the time of the trial, its history and its
// folders. It is safe for use by several goroutines; a world may call it from
// everywhere, but from a lock that a deadline of its own takes as well.
type Stage struct {
	plan  Plan
	dir   string
	world World
	now   atomic.Int64 // time since the trial began, ns
	rec   *history.Recorder

	mu        sync.Mutex
	cond      *sync.Cond
	clock     virtualClock
	skew      time.Duration
	proc      *process // the process under test, while it lives and is not given up
	aside     *process // the one that is stopped while another has the stage
	starts    int
	start     func() (killed bool, err error) // starts the program and follows it
	last      trace.Point
	passages  map[trace.Point]int
	fired     []bool // by index of the plan's faults
	acting    int    // faults being executed
	beside    *act   // an act of the world that goes on beside the process
	guests    int    // clients of the world that no trial follows
	acts      sync.WaitGroup
	firing    int                     // deadlines whose work is under way
	abandoned bool                    // an act hangs and is waited for no longer
	moved     time.Time               // real time of the last sign of life
	signs     int                     // of life since the program was started last
	fail      context.CancelCauseFunc // ends the trial as one that the harness couldn't carry out
	over      bool
}

// act is a call of World.Do that let the process go on.
type act struct{ until []trace.Point }

// Now is true wall time.
func (s *Stage) Now() time.Time { return epoch.Add(s.Mono()) }

// Mono is the time since the trial began.
func (s *Stage) Mono() time.Duration { return time.Duration(s.now.Load()) }

// Skew sets by how much the wall clock of the process under test is ahead of
// the true one. Its monotonic clock can't be wrong.
func (s *Stage) Skew(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew = by
}

// Dir is a short temporary folder, for sockets. It goes with the trial.
func (s *Stage) Dir() string { return s.dir }

// State is the folder that the program under test starts in and keeps its files
// in. It survives the process, not the trial.
func (s *Stage) State() string { return filepath.Join(s.dir, "state") }

// Last is the point that a process under test passed last, "" where none did: the
// one it stands at while a fault planned for that point is carried out.
func (s *Stage) Last() trace.Point {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Guest says that a further client is there which is no part of the trial's
// process: until leave is called somebody reads what the world answers, though the
// process under test is dead.
func (s *Stage) Guest() (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.guests++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.guests--
	})
}

// After has fn called when d has passed. What is due at the same time happens
// in the order of what. fn runs while time stands still, with no lock held, and
// may use the stage. stop takes it back and says nothing of whether fn has run.
func (s *Stage) After(d time.Duration, what string, fn func()) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.clock.arm(s.Mono()+max(d, 0), event, what, func() {
		s.mu.Unlock()
		defer s.mu.Lock()
		fn()
	})
	s.cond.Broadcast()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.clock.disarm(t)
	}
}

// Withhold keeps an answer back: it returns when ctx ends, which is when the
// client gives up, or when the process under test is dead. Until then the
// client's flow counts as blocked. Whatever is to be recorded of the request is
// recorded before; afterwards the client is ahead already.
func (s *Stage) Withhold(ctx context.Context) {
	s.mu.Lock()
	p := s.proc
	if p == nil || ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	h := new(held)
	s.clock.withheld = append(s.clock.withheld, h)
	s.sign()
	s.mu.Unlock()

	select {
	case <-ctx.Done():
	case <-p.exited:
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock.release(h)
	s.sign()
}

// Role is the stage as one part of the world uses it: what it records, it
// records under its own name.
type Role struct {
	*Stage
	who string
}

// As is the stage for the part of the world called who.
func (s *Stage) As(who string) Role { return Role{s, who} }

// Record writes an event into the history and returns its number. A nil body is
// none.
func (r Role) Record(kind history.Kind, subject string, body any) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sign()
	return r.rec.Record(history.Event{Who: r.who, Kind: kind, Subject: subject}, body)
}

// Pass reports that the world passed p, as a child does with Child.At: it is
// recorded, and faults planned for it happen before Pass returns. False means
// that no process under test is alive any more, nor a guest: nobody reads the answer. What the
// caller still records is waited for by World.Idle.
func (r Role) Pass(p trace.Point, subject string) bool { return r.pass(nil, r.who, p, subject) }

// sign notes a sign of life and wakes whoever waits for a change. A program that
// gives more of them than the plan allows goes round in circles: on a virtual
// clock it would do so for ever, and never be silent.
func (s *Stage) sign() {
	s.moved = time.Now()
	if s.signs++; s.signs > s.plan.Steps && s.proc != nil && !s.proc.stuck {
		s.proc.giveUp()
	}
	s.cond.Broadcast()
}
