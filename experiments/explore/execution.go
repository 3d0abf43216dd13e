package explore

import (
	"slices"
	"time"
)

// execution is one way through a bound: a world and who lives in it. Whoever
// calls do decides everything.
type execution struct {
	w         *world
	dir       string // for lock files
	proc      *process
	principal *principal
	running   *agent // nil between two steps
	broke     *Violation
	tell      *teller
	over      bool // a process came to its end, and nothing more can go wrong
	steps     int
}

// resume goes on from a world in which nobody lives.
func resume(w *world, p *principal) *execution { return &execution{w: w, dir: p.dir, principal: p} }

// close ends whoever lives.
func (x *execution) close() {
	if x.proc != nil {
		x.proc.shut()
		x.proc = nil
	}
}

// moves are what may happen next; the first is what happens where nobody chooses.
// None is the end.
func (x *execution) moves() []move {
	var m []move
	w := x.w
	switch {
	case x.over:
		return x.arrivals(m)
	case x.proc == nil:
		m = append(m, move{way: advance})
		if w.bound.Restarts && w.lives > 0 {
			m = append(m, move{way: advance, how: submit})
		}
		return x.changes(x.arrivals(m))
	}
	for _, a := range x.proc.agents {
		if a.at.alone && !a.done {
			return x.deaths(x.changes(x.arrivals(x.ways(m, a))))
		}
	}
	for _, a := range x.proc.agents {
		m = x.ways(m, a)
	}
	return x.deaths(x.changes(x.arrivals(m)))
}

// shares reports whether an agent may hold the lease's byte.
func (x *execution) shares() bool {
	if x.proc == nil {
		return false
	}
	return slices.ContainsFunc(x.proc.agents, func(a *agent) bool { return a.sharing != apart && !a.done })
}

// ways are those in which an agent may go on.
func (x *execution) ways(m []move, a *agent) []move {
	w := x.w
	if a.done {
		return m
	}
	go_ := func(ways ...way) {
		for _, how := range ways {
			m = append(m, move{advance, byte(a.index), how})
		}
	}
	faults := w.left.Faults > 0 && !w.calm
	disk := w.left.IO > 0 && !w.calm
	switch a.at.kind {
	case stopTurn:
		if x.proc.busy != nil || !x.proc.opened {
			return m
		}
	case stopLast:
		if slices.ContainsFunc(x.proc.agents, func(b *agent) bool { return b != a && !b.done }) {
			return m
		}
	case stopWait:
		if !x.mayPass(a) {
			return m
		}
	}
	go_(on)
	switch a.at.kind {
	case stopPrepare, stopObserve:
		if faults {
			go_(failed)
		}
	case stopLookup:
		if lag := w.lag(a.at.effect); lag > 0 {
			_, fresh := w.found(a.at.effect, w.now)
			if _, old := w.found(a.at.effect, w.now-lag); old != fresh {
				go_(stale)
			}
		}
		if faults {
			go_(failed)
		}
	case stopFence:
		if faults {
			go_(failed, ackLost)
		}
	case stopSend:
		if faults {
			go_(ackLost, lost, late, rejected, busy, unsent)
			if w.bound.profiles[a.at.effect].Can.DedupWindow > 0 {
				go_(stored)
			}
		}
	case stopWrite:
		if disk {
			go_(eio, eioHalf)
		}
	case stopSync:
		if disk {
			go_(eio, eioLies)
		}
	case stopDisk:
		if disk {
			go_(eio)
		}
	}
	return m
}

// mayPass reports whether time may pass until a wakes: all others wait for longer,
// or can't move, and no request has to arrive before.
func (x *execution) mayPass(a *agent) bool {
	for _, b := range x.proc.agents {
		if b == a || b.done || b.at.kind == stopLast {
			continue
		}
		if b.at.kind != stopWait || b.at.wake < a.at.wake {
			return false
		}
	}
	return !slices.ContainsFunc(x.w.service.flying, func(f flight) bool { return f.deadline < a.at.wake })
}

// arrivals are the requests that may arrive now.
func (x *execution) arrivals(m []move) []move {
	for i := range x.w.service.flying {
		m = append(m, move{way: arrive, arg: byte(i)})
	}
	return m
}

// changes are those of the world.
func (x *execution) changes(m []move) []move {
	w := x.w
	if w.lease == recorded && !x.shares() || w.lease == alive && w.bound.world["revoke"] && w.left.Changes > 0 && !w.calm {
		m = append(m, move{way: revoke})
	}
	if w.calm || w.left.Changes == 0 {
		return m
	}
	for e := range w.bound.profiles {
		if w.service.facts[e] != asSeen {
			continue
		}
		if w.bound.world["change"] {
			m = append(m, move{way: change, arg: byte(e)})
		}
		if w.bound.world["hand"] {
			m = append(m, move{way: hand, arg: byte(e)})
		}
	}
	if w.bound.world["stall"] && x.proc != nil && x.unstalled() {
		m = append(m, move{way: stall})
	}
	if x.proc != nil || w.lives == 0 {
		return m
	}
	for e := range w.bound.profiles {
		if w.bound.world["mind"] && w.asked[e] == 0 {
			m = append(m, move{way: mind, arg: byte(e)})
		}
	}
	bounded := func(f flight) bool { return f.deadline != never }
	if w.bound.world["day"] && !slices.ContainsFunc(w.service.flying, bounded) {
		m = append(m, move{way: day})
	}
	return m
}

// unstalled reports whether no agent is between its last look and its first byte:
// to stand still there is outside of what any client can promise.
func (x *execution) unstalled() bool {
	return !slices.ContainsFunc(x.proc.agents, func(a *agent) bool { return a.at.name == "gate/last-checked" || a.at.kind == stopSend })
}

// deaths are those of the process.
func (x *execution) deaths(m []move) []move {
	w := x.w
	if w.calm || w.left.Crashes == 0 {
		return m
	}
	m = append(m, move{way: kill})
	if w.journal.Dirty() {
		m = append(m, move{way: power})
		if w.bound.Torn {
			for i := range w.torn() {
				m = append(m, move{way: torn, arg: byte(i)})
			}
		}
	}
	return m
}

// do makes a move, one of moves.
func (x *execution) do(m move) {
	x.steps++
	switch {
	case m.dies():
		x.die(m)
	case m.way == advance && x.proc == nil:
		x.start(m.how == submit)
	case m.way == advance:
		x.advance(x.proc.agents[m.arg], m.how)
	default:
		x.act(m)
	}
	x.judgeWorld()
}

// die ends the process, and with it what it didn't write.
func (x *execution) die(m move) {
	x.tell.died(m.way)
	next := x.w.crash(m)
	x.close()
	x.w = next
}

// act is a move of the world: it resumes nobody.
func (x *execution) act(m move) {
	w := x.w
	switch m.way {
	case arrive:
		if x.proc != nil && x.idle() {
			w.now = max(w.now, min(w.service.flying[m.arg].deadline, x.wake()))
		}
		f := w.service.flying[m.arg]
		x.tell.arrived(f.effect, f.payload, f.number, w.land(int(m.arg)))
		return
	case revoke:
		x.revoke()
		return
	case change:
		w.service.facts[m.arg] = changed
	case hand:
		w.service.facts[m.arg] = byHand
		w.service.landed = append(w.service.landed, landing{effect: int(m.arg), at: w.now, hand: true})
	case mind:
		w.asked[m.arg] = 1
	case day:
		w.now += 25 * time.Hour
	case stall:
		w.now += 2 * time.Second
	}
	w.left.Changes--
	x.tell.acted(m)
}

// idle reports whether all that agents do is wait.
func (x *execution) idle() bool {
	for _, a := range x.proc.agents {
		if !a.done && a.at.kind != stopWait && a.at.kind != stopLast {
			return false
		}
	}
	return true
}

// wake is when the first of them is due.
func (x *execution) wake() time.Duration {
	first := never
	for _, a := range x.proc.agents {
		if !a.done && a.at.kind == stopWait {
			first = min(first, a.at.wake)
		}
	}
	return first
}

// advance runs an agent to its next stop.
func (x *execution) advance(a *agent, how way) {
	w := x.w
	if a.at.kind == stopWait {
		w.now = max(w.now, a.at.wake)
	}
	switch how {
	case on, stale:
	case eio, eioHalf, eioLies:
		w.left.IO--
	default:
		w.left.Faults--
	}
	faulty := w.left.IO < w.bound.Budget.IO
	a.how, x.running = how, a
	_, more := a.next()
	x.running = nil
	if more {
		return
	}
	a.done = true
	if a.err != nil {
		if !faulty {
			x.broken("gate-failed", "%v", a.err)
		}
		x.die(move{way: exits})
		return
	}
	if !slices.ContainsFunc(x.proc.agents, func(a *agent) bool { return !a.done }) {
		x.over = true
		x.judgeEnd()
	}
}

// key is what the rest of an execution depends on.
func (x *execution) key() [16]byte {
	b := x.w.describe(make([]byte, 0, 512))
	b = append(b, bit(x.over))
	if x.proc != nil {
		b = append(b, bit(x.proc.submits), bit(x.proc.broken))
		for _, l := range x.proc.left {
			b = append(b, l[:]...)
		}
		for _, a := range x.proc.agents {
			b = append(b, 'A', bit(a.done))
			b = append(b, a.seen[:]...)
		}
	}
	return digest(b)
}
