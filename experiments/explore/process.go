package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/disk"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

var (
	background = context.Background()
	epoch      = time.Unix(1_796_000_000, 0).UTC()
)

const (
	namespace = "explore"
	leaseID   = "L"
	holder    = "agent"
	openSeen  = `"open"`
)

// process is one life of the shipped gate: its journal and its view of the
// authority are those of the file store, on disks in memory.
type process struct {
	x       *execution
	gate    *protocol.Gate
	drain   *journal.Drain
	agents  []*agent
	born    time.Duration
	submits bool // it starts with its callers
	opened  bool
	broken  bool // its journal failed: nothing may be sent any more

	// Two agents share the gate's memory.
	left    [][16]byte // by effect: what the agent had seen that released it last
	busy    *agent     // that is in the journal's Update or Durable
	flushes bool       // and its entries are in line

	kinds    []journal.Kind // by effect: the last entry that settles or opens
	firsts   []int          // by effect: 1 and more is the payload of the first proposal
	attempts []attempts     // by effect
}

// attempts are those that the journal has of an effect.
type attempts struct {
	n     int
	first time.Time
}

// start begins a process. Its opening is part of what its first agent does.
func (x *execution) start(submits bool) {
	w := x.w
	p := &process{x: x, born: w.now, submits: submits, kinds: make([]journal.Kind, len(w.bound.profiles)), firsts: make([]int, len(w.bound.profiles)), attempts: make([]attempts, len(w.bound.profiles)), left: make([][16]byte, len(w.bound.profiles))}
	x.proc = p
	w.lives++
	x.tell.started()
	w.journal.Before = func(op int, what string) { p.called(op, what) }
	w.authority.Before = func(int, string) {
		if a := x.running; a != nil && !a.dead {
			if sum := w.authority.Sum(); sum != a.heard {
				a.heard = sum
				a.see(sum[:]...)
			}
		}
	}
	for i := range w.bound.Agents {
		a := newAgent(i, len(w.bound.profiles), func(a *agent) { p.run(a) })
		a.seen = w.journal.Sum() // it reads all of it
		a.at = stop{kind: stopPoint, name: "start", effect: -1}
		if i > 0 {
			a.at.kind = stopTurn
		}
		p.agents = append(p.agents, a)
	}
}

// shut ends the process. What its agents still do while they unwind is done to
// disks that nobody looks at any more.
func (p *process) shut() {
	for _, a := range p.agents {
		p.x.running = a
		a.end()
	}
	p.x.running = nil
	if p.gate != nil {
		p.gate.Close()
	}
	if p.drain != nil {
		p.drain.Close()
	}
}

// open opens the gate and registers the services.
func (p *process) open() (err error) {
	w := p.x.w
	if p.drain, err = journal.OpenDrain(filepath.Join(p.x.dir, "authority")); err != nil {
		return err
	}
	now := p.clock().Now
	open := journal.FileOpener(filepath.Join(p.x.dir, "journal"), journal.Options{
		Namespace: namespace, Now: now, Dir: w.bound.store(w.journal), Trace: p.passed, Identity: "explore",
	})
	gate, err := protocol.Open(background, protocol.Config{
		Namespace: namespace,
		Journal: func(apply func(journal.Entry) error) (journal.Store, error) {
			s, err := open(func(e journal.Entry) error {
				p.fold(e)
				return apply(e)
			})
			if err == nil && len(p.agents) > 1 {
				s = &shared{Store: s, p: p}
			}
			return s, err
		},
		Authority: journal.FileOpener(filepath.Join(p.x.dir, "authority"), journal.Options{Mode: journal.Reader, Namespace: namespace, Now: now, Dir: w.authority}),
		Drain:     p.taken(),
		Clock:     p.clock(),
		Trace:     p.passed,
	})
	if err != nil {
		return err
	}
	p.gate = gate
	for e, s := range w.bound.profiles {
		if err := gate.Register(action(e), p.target(e, s.Can)); err != nil {
			return err
		}
	}
	for e := range w.bound.profiles {
		p.settle(e)
	}
	p.opened = true
	return nil
}

// taken is the drain that a dispatch takes its byte of.
func (p *process) taken() *journal.Drain {
	if p.x.w.has(drainSkipped) {
		return nil
	}
	return p.drain
}

// run is what an agent does in its life: it recovers what it finds, submits what
// it was asked for, and recovers what that left open.
func (p *process) run(a *agent) {
	w := p.x.w
	if a.index == 0 {
		a.opening = true
		a.err = p.open()
		a.opening = false
		if a.err != nil || a.dead {
			return
		}
		if !p.submits && w.lives > 1 {
			if a.err = p.recover(); a.err != nil {
				return
			}
		}
	}
	for _, e := range w.bound.requests(a.index) {
		asked := w.asked[e]
		r, err := p.gate.Submit(background, w.bound.proposal(e, asked))
		if err != nil {
			a.err = err
			return
		}
		p.x.judgeAnswer(e, asked, r, "submit")
	}
	if a.err = p.recover(); a.err != nil || a.index > 0 {
		return
	}
	a.stop(stop{kind: stopLast, name: "last", effect: -1})
	for range 4 {
		more, err := p.unsettled()
		a.see(bit(more))
		if err != nil || !more {
			a.err = err
			return
		}
		w.calm = true
		if a.err = p.recover(); a.err != nil {
			return
		}
	}
}

// unsettled reports whether Recover has something to do: an effect is open, or
// nobody can tell of one that a lookup would find by now.
func (p *process) unsettled() (bool, error) {
	w := p.x.w
	report, err := p.gate.Report(background)
	for _, o := range report {
		e := w.bound.effect(o.Effect)
		can := w.bound.profiles[e].Can
		_, found := w.found(e, w.now-can.LookupLag)
		if o.Standing != "ambiguous" || found && can.Lookup {
			return true, err
		}
	}
	return false, err
}

func (p *process) recover() error {
	results, err := p.gate.Recover(background, protocol.RecoverOptions{Wait: true})
	if err != nil {
		return err // results that come with it are of before
	}
	for _, r := range results {
		if e := p.x.w.bound.effect(r.Effect); e >= 0 {
			p.x.judgeAnswer(e, -1, r, "recover")
		}
	}
	return nil
}

// passed is a step of the gate or its journal.
func (p *process) passed(point trace.Point, subject string) {
	a := p.x.running
	if a == nil || a.dead {
		return
	}
	e := p.x.w.bound.named(subject)
	if point == protocol.PointOutcomeDurable || point == protocol.PointProposed || point == protocol.PointResolved || point == protocol.PointIntentDurable {
		p.settle(e)
	}
	p.x.passed(a, point, e)
	a.share(string(point), true)
	if len(p.agents) > 1 && !crowded[point] {
		return
	}
	a.stop(stop{kind: stopPoint, name: string(point), effect: e, alone: point == protocol.PointRechecked || p.locked(a)})
}

// crowded are the steps at which one of two agents may be left for the other.
// Their calls of services and of the disk are stops anyway, and between two of
// those neither changes what the other can see.
var crowded = map[trace.Point]bool{
	protocol.PointClaimed: true, protocol.PointLeaseShared: true, protocol.PointRechecked: true,
	protocol.PointLastChecked: true, protocol.PointReleased: true,
}

// locked reports whether a, at the journal, holds the lock of its memory.
func (p *process) locked(a *agent) bool { return len(p.agents) > 1 && p.busy == a && !p.flushes }

// called is a call of the journal's disk.
func (p *process) called(op int, what string) {
	a, w := p.x.running, p.x.w
	if a != nil && a.dead && a.opening {
		w.journal.Fault = &disk.Fault{Op: op, Err: errKilled}
	}
	if a == nil || a.dead || a.index < 0 {
		return
	}
	s := stop{kind: stopDisk, name: what, effect: -1, alone: len(p.agents) > 1 && p.opened && !(p.busy == a && p.flushes)}
	switch what {
	case "write":
		s.kind = stopWrite
	case "sync", "sync directory":
		s.kind = stopSync
	case "create", "truncate", "remove":
	default: // it changes nothing: a stop only where it may fail
		if w.left.IO == 0 || w.calm {
			return
		}
	}
	how := a.stop(s)
	if a.dead {
		w.journal.Fault = &disk.Fault{Op: op, Err: errKilled}
	}
	switch how {
	case eio, eioHalf, eioLies:
		f := &disk.Fault{Op: op, Err: syscall.EIO}
		if how == eioHalf {
			f.Short = 512
		}
		if how == eioLies {
			f.After = disk.Zeros
		}
		w.damaged = w.damaged || how != eio
		w.journal.Fault = f
		if s.kind == stopWrite || s.kind == stopSync {
			p.broken = p.broken || p.opened
		}
	}
}

// fold notes what an entry of the journal settles.
func (p *process) fold(entry journal.Entry) {
	e := p.x.w.bound.effect(entry.Effect)
	if e < 0 {
		return
	}
	if entry.Kind.Attempts() {
		if p.attempts[e].n++; p.attempts[e].n == 1 {
			p.attempts[e].first = entry.Time
		}
	}
	switch entry.Kind {
	case journal.Proposed:
		if p.firsts[e] == 0 {
			p.firsts[e] = 1 + payloadIn(entry.Body)
		}
		p.kinds[e] = entry.Kind
	case journal.Dispatched, journal.Suspect, journal.Committed, journal.Refused, journal.Ambiguous, journal.Unresolved:
		p.kinds[e] = entry.Kind
	}
}

// settle takes what was folded of e for what the journal says: it is durable now.
func (p *process) settle(e int) {
	w := p.x.w
	if w.fixed[e] == 0 {
		w.fixed[e] = p.firsts[e]
	}
	s := &w.standing[e]
	switch p.kinds[e] {
	case journal.Proposed:
		*s = proposed
	case journal.Dispatched, journal.Suspect:
		*s = dispatched
	case journal.Committed:
		*s = committed
	case journal.Refused:
		*s = refused
	case journal.Ambiguous:
		*s = ambiguous
	case journal.Unresolved:
		*s = mismatched
	}
}

// clock is the scheduler's, as this process reads it.
func (p *process) clock() simulatedClock { return simulatedClock{p.x, p.born} }

// simulatedClock moves when the scheduler says so. Each process has its own
// monotonic beginning.
type simulatedClock struct {
	x    *execution
	born time.Duration
}

func (c simulatedClock) Now() time.Time {
	if a := c.x.running; a != nil && !a.dead {
		a.seeTime(c.x.w.now)
	}
	return epoch.Add(c.x.w.now)
}

func (c simulatedClock) Mono() time.Duration {
	if a := c.x.running; a != nil && !a.dead {
		a.seeTime(c.x.w.now)
	}
	if c.x.w.has(clockRaces) {
		return 100 * (c.x.w.now - c.born)
	}
	return c.x.w.now - c.born
}

func (c simulatedClock) Wait(ctx context.Context, d time.Duration) error {
	if c.x.w.has(clockRaces) {
		d /= 100
	}
	if a := c.x.running; a != nil && d > 0 {
		a.stop(stop{kind: stopWait, name: "wait", effect: -1, wake: c.x.w.now + d})
	}
	return ctx.Err()
}

// Timeout sets no timer: how long a call to a service takes is the scheduler's
// choice.
func (c simulatedClock) Timeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return ctx, func() {}
}

// shared is the journal of a gate that two agents are at. An agent waits for its
// turn here and not inside the store, where the scheduler wouldn't see it.
type shared struct {
	journal.Store
	p *process
}

// look is what the agent sees of the gate's memory: it follows from the entries.
func (s *shared) look(h journal.Head) {
	if a := s.p.x.running; a != nil && !a.dead {
		a.see(h.Hash[:16]...)
		a.see('d', byte(h.Seq-h.Durable))
	}
}

// turn waits until no other agent is at the journal, and takes it.
func (s *shared) turn() (end func()) {
	a := s.p.x.running
	if a == nil || a.dead || s.p.busy == a {
		return func() {}
	}
	for s.p.busy != nil {
		a.stop(stop{kind: stopTurn, name: "turn", effect: -1})
	}
	s.p.busy = a
	return func() { s.p.busy, s.p.flushes = nil, false }
}

func (s *shared) Update(ctx context.Context, fn func(journal.Head) ([]journal.Entry, error)) ([]journal.Entry, error) {
	defer s.turn()()
	return s.Store.Update(ctx, func(h journal.Head) ([]journal.Entry, error) {
		s.look(h)
		entries, err := fn(h)
		s.p.flushes = true
		return entries, err
	})
}

func (s *shared) Durable(ctx context.Context, upTo journal.Seq) error {
	defer s.turn()()
	s.p.flushes = true
	return s.Store.Durable(ctx, upTo)
}

func (s *shared) View(ctx context.Context, fn func(journal.Head)) error {
	return s.Store.View(ctx, func(h journal.Head) {
		s.look(h)
		fn(h)
	})
}

// Claim shows its caller what the one before left in memory of the effect.
func (s *shared) Claim(ctx context.Context, effect journal.ID) (*journal.Claim, error) {
	a, e := s.p.x.running, s.p.x.w.bound.effect(effect)
	c, err := s.Store.Claim(ctx, effect)
	a.see('c', bit(err == nil))
	if err != nil {
		return nil, err
	}
	a.see(s.p.left[e][:]...)
	return journal.NewClaim(c.Effect, c.Proven, func() {
		if a := s.p.x.running; a != nil {
			s.p.left[e] = digest(slices.Concat(a.unseen, a.seen[:]))
		}
		c.Release()
	}), nil
}

func action(e int) string { return fmt.Sprintf("act%d", e) }

var (
	errFailed = errors.New("explore: the call failed")
	errKilled = errors.New("explore: the process is dead")
)

func payload(n int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"amount":%d}`, 20+10*n))
}

func payloadIn(body []byte) int {
	if strings.Contains(string(body), string(payload(1))) {
		return 1
	}
	return 0
}
