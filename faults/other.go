package faults

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/interlock-bench/interlock-bench/faults/history"
)

// Other is the fault that stops the process under test with SIGSTOP and starts
// another one of the same program, which has the stage until it ends; then the
// first goes on. Whichever of two shall be ahead is ahead, in every run.
//
// A stopped process keeps its locks and its connections, and its timers wait: one
// that became due meanwhile fires when the process next waits for something, so a
// step that it had begun is carried out however late it is. There are two at
// most, and the other one is not started again after a kill.
const Other = "other"

// other carries out Other. It says whether it did: not while one is stopped
// already. The stage's lock is held, and let go meanwhile.
func (s *Stage) other() bool {
	p, last, acting := s.proc, s.last, s.acting
	if p == nil || s.aside != nil || s.beside != nil {
		return false
	}
	s.aside, s.proc, s.acting = p, nil, 0
	waits := s.clock.setAside()
	s.mu.Unlock()
	err := p.signal(syscall.SIGSTOP, syscall.WSTOPPED)
	if err == nil {
		s.rec.Record(history.Event{Who: p.who, Kind: history.Stopped}, nil)
		_, err = s.start()
	}
	s.mu.Lock()
	if s.aside == p { // else it is dead
		s.rec.Record(history.Event{Who: p.who, Kind: history.Continued}, nil)
		err = errors.Join(err, p.signal(syscall.SIGCONT, syscall.WCONTINUED))
		s.aside, s.proc, s.last = nil, p, last
		s.clock.putBack(waits)
	}
	s.acting = acting
	s.sign()
	if err != nil {
		s.fail(err)
	}
	return true
}

// signal sends p a signal and returns when the kernel says that it took effect,
// or that p is dead.
func (p *process) signal(sig syscall.Signal, effect int) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("faults: %s can't be sent %v: %w", p.who, sig, err)
	}
	await(p.cmd.Process.Pid, syscall.WEXITED|effect)
	return nil
}

// ofProcess is what a virtual clock holds of one process.
type ofProcess struct {
	pending     []*deadline
	live, waits int
	withheld    []*held
	fired       []*deadline
}

// setAside takes everything of the process under test off the clock.
func (c *virtualClock) setAside() ofProcess {
	p := ofProcess{live: c.live, waits: c.waits, withheld: c.withheld, fired: c.fired}
	for _, d := range c.pending {
		if d.class != event {
			p.pending = append(p.pending, d)
		}
	}
	c.bury()
	return p
}

// putBack is the reverse of setAside.
func (c *virtualClock) putBack(p ofProcess) {
	c.pending = append(c.pending, p.pending...)
	c.live, c.waits, c.withheld, c.fired = p.live, p.waits, p.withheld, p.fired
}
