// Package protocol is the gate: it makes an agent's effect happen at most once,
// under live authority, on premises that still hold, and proves it with a
// receipt.
package protocol

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/clock"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// Config is what a gate is opened with.
type Config struct {
	Namespace   string
	Journal     journal.Opener // the decisions; this process appends
	Authority   journal.Opener // the grants; opened to read, followed by View
	Drain       *journal.Drain // nil where Journal and Authority are one database
	Clock       clock.Clock    // nil is clock.System
	ClockMargin time.Duration  // by how much clocks may differ, declared once for all; 0 is one second
	// ReadAgain is how much time may pass between reading a premise and the first
	// byte before it is read again (I3); 0 is one second.
	ReadAgain time.Duration
	Trace     trace.Func
	// People may settle an ambiguous effect. Members of groups whose key the
	// authority log holds may too; for one without a key there, the key here counts.
	People map[string]ed25519.PublicKey
	// SecretKeys digest secret fields of payloads, by HMAC-SHA-256; each has at
	// least 32 random bytes. The first is for new effects, the others are those that
	// older effects were recorded with. They are not kept anywhere.
	SecretKeys [][]byte
}

// Gate submits and recovers effects. It is safe for use by several goroutines
// and starts none of its own.
type Gate struct {
	Config
	journal   journal.Store
	authority journal.Store
	state     *state      // inside the journal's callbacks only
	grants    *authority  // inside the authority's callbacks only
	restored  journal.Seq // entry at which the journal was opened as restored last; no other process can do so while this one has it open
	keys      []secretKey

	mu      sync.Mutex
	targets map[string]Target
	doings  map[journal.ID]*doing
}

// doing is what this process did about an effect, by its own monotonic clock. It
// dies with the process, which is why bounds start again after a crash (C3).
type doing struct {
	claimed  bool
	quiet    time.Duration // the later of the first claim and the end of the last send made here (C33)
	latest   journal.Token // last attempt known at the claim or made since; a later one starts quiet again
	fence    journal.Token // acknowledged by the target; zero: none
	fencedAt time.Duration
	resent   bool // the same key was tried again and gave no answer that settles
	replayed bool // the key replays a stored failure
	tries    int  // in a row that came to nothing
}

// Result is what a caller is told.
type Result struct {
	Effect     journal.ID
	Status     Status
	Payload    json.RawMessage // as journaled; nil where nothing is
	RetryAfter time.Duration   // 0: now, or never, by Status
	Owner      string          // IN_FLIGHT: who holds the claim, where somebody does
	Since      time.Time       // IN_FLIGHT: since when Owner holds it; zero where unknown
	Err        error           // NOT_SENT, UNRESOLVED: what stood in the way
	Receipt    Receipt
	Recovered  Status // what an inline recovery did before this call was judged; zero where none ran
}

// Open opens the journal and the authority; Report then says what is open. It
// sends nothing and starts no goroutine. An error means that nothing stays open.
func Open(ctx context.Context, c Config) (*Gate, error) {
	if c.Clock == nil {
		c.Clock = clock.System
	}
	if c.ClockMargin == 0 {
		c.ClockMargin = time.Second
	}
	if c.ReadAgain == 0 {
		c.ReadAgain = time.Second
	}
	g := &Gate{
		Config: c, state: newState(), grants: newAuthority(),
		targets: map[string]Target{}, doings: map[journal.ID]*doing{},
	}
	if c.Journal == nil || c.Authority == nil {
		return nil, errors.New("protocol: a gate needs a journal and an authority; name both in its Config")
	}
	var err error
	if g.keys, err = secretKeys(c.SecretKeys); err != nil {
		return nil, err
	}
	g.SecretKeys = nil
	if g.authority, err = c.Authority(g.grants.apply); err != nil {
		return nil, fmt.Errorf("protocol: the authority: %w", err)
	}
	if g.journal, err = c.Journal(g.state.apply); err != nil {
		return nil, errors.Join(fmt.Errorf("protocol: the journal: %w", err), g.authority.Close())
	}
	if err := g.journal.View(ctx, func(journal.Head) { g.restored = g.state.restored }); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	c.Trace.At(PointOpened, "")
	return g, nil
}

// Register names the target for an action. Capabilities that don't fit together
// are refused as a *MisfitError, and nothing is registered.
func (g *Gate) Register(action string, t Target) error {
	if why := unfitName(action); why != "" {
		return &MisfitError{action, "the action's name " + why}
	}
	_, fencer := t.(Fencer)
	if why := t.Capabilities().misfit(fencer, g.ClockMargin); why != "" {
		return &MisfitError{action, why}
	}
	if f, ok := t.(Functions); ok && f.misfit() != "" {
		return &MisfitError{action, f.misfit()}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.targets[action] = t
	return nil
}

// Close releases the journal. Effects in flight stay open in it.
func (g *Gate) Close() error { return errors.Join(g.journal.Close(), g.authority.Close()) }

// OpenEffect is an effect that isn't settled.
type OpenEffect struct {
	Effect   journal.ID
	Request  string // "" where the journal lost the decision
	Action   string
	Agent    string
	Lease    string    // that the last attempt ran under, or that the decision names
	Standing string    // "proposed", "awaiting a decision", "in doubt", "ambiguous" or "mismatch"
	Since    time.Time // of its first entry
	Attempts int       // that may still land or have landed
	leases   []string
}

func (e *effect) report() OpenEffect {
	o := OpenEffect{Effect: e.id, Standing: "proposed", Since: e.since, Attempts: len(e.attempts)}
	if e.decision != nil {
		p := e.decision.Proposal
		o.Request, o.Action, o.Agent, o.Lease = p.Request, p.Effect.Action, p.Agent, p.Lease
	}
	for _, a := range e.attempts {
		o.Lease = a.lease
		o.leases = append(o.leases, a.lease)
	}
	switch {
	case e.mismatch:
		o.Standing = "mismatch"
	case e.final == Ambiguous:
		o.Standing = "ambiguous"
	case e.inDoubt():
		o.Standing = "in doubt"
	case e.asked != nil && e.asked.ruling == nil:
		o.Standing = "awaiting a decision"
	}
	return o
}

// Report lists what is open or ambiguous, oldest first. It reads no target.
func (g *Gate) Report(ctx context.Context) (list []OpenEffect, err error) {
	err = g.journal.View(ctx, func(journal.Head) {
		for _, e := range g.state.liveInOrder() {
			list = append(list, e.report())
		}
	})
	return list, err
}

func (g *Gate) target(action string) Target {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.targets[action]
}

// doing returns what this process did about an effect, for one change under the
// gate's lock.
func (g *Gate) doing(id journal.ID, change func(*doing)) doing {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.doings[id]
	if d == nil {
		d = &doing{}
		g.doings[id] = d
	}
	if change != nil {
		change(d)
	}
	return *d
}

// find copies where an effect stands; nil is unknown.
func (g *Gate) find(ctx context.Context, id journal.ID) (e *effect, err error) {
	err = g.journal.View(ctx, func(journal.Head) { e = g.state.effects[id].copy() })
	return e, err
}

// claim takes the right to send or recover one effect, and with it starts the
// time that a landing bound is counted from. The caller gives it up with
// release, after the outcome was appended or that failed (C7, C34).
func (g *Gate) claim(ctx context.Context, id journal.ID) (*journal.Claim, *effect, error) {
	c, err := g.journal.Claim(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	var e *effect
	err = g.journal.View(ctx, func(journal.Head) {
		g.state.claimed[id] = true
		e = g.state.effects[id].copy()
	})
	if err == nil {
		g.doing(id, func(d *doing) {
			if !d.claimed || d.latest.Less(e.latest()) {
				d.claimed, d.quiet, d.latest = true, g.Clock.Mono(), e.latest()
			}
		})
		if !c.Proven && e.inDoubt() {
			if _, err = g.append(ctx, id, PointTakenOver, body{journal.TakenOver, takenOverBody{}}); err == nil {
				e, err = g.find(ctx, id)
			}
		}
	}
	if err != nil {
		c.Release()
		return nil, nil, err
	}
	g.at(PointClaimed, id)
	return c, e, nil
}

func (g *Gate) release(ctx context.Context, id journal.ID, c *journal.Claim) {
	g.journal.View(context.WithoutCancel(ctx), func(journal.Head) { // a poisoned journal needs no tidying
		delete(g.state.claimed, id)
		if e := g.state.effects[id]; e == nil || e.final == Committed || e.final == Refused {
			e.shrink()
			g.mu.Lock()
			delete(g.doings, id)
			g.mu.Unlock()
		}
	})
	c.Release()
	g.at(PointReleased, id)
}

// at reports that p was passed for an effect. Where nobody observes, the id is
// not spelled.
func (g *Gate) at(p trace.Point, id journal.ID) {
	if g.Trace != nil {
		g.Trace(p, id.String())
	}
}

// body is an entry that is yet to be recorded.
type body struct {
	kind journal.Kind
	of   any
}

// append records entries of one effect in one durable step and passes p.
func (g *Gate) append(ctx context.Context, id journal.ID, p trace.Point, bodies ...body) ([]journal.Entry, error) {
	entries, err := g.journal.Update(context.WithoutCancel(ctx), func(journal.Head) ([]journal.Entry, error) {
		return records(id, bodies...)
	})
	if err == nil {
		g.at(p, id)
	}
	return entries, err
}

func records(id journal.ID, bodies ...body) ([]journal.Entry, error) {
	entries := make([]journal.Entry, 0, len(bodies))
	for _, b := range bodies {
		e, err := record(b.kind, id, b.of)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// stride is how many entries of others are read over before a new look at the log
// is cheaper.
const stride = 64

// read reads entries from the log, given in order.
func (g *Gate) read(seqs []journal.Seq) (list []journal.Entry, err error) {
	for len(list) < len(seqs) {
		n := len(list)
		for e, err := range g.journal.Since(seqs[n] - 1) {
			if err != nil {
				return nil, err
			}
			if e.Seq == seqs[len(list)] {
				list = append(list, e)
			}
			if len(list) == len(seqs) || seqs[len(list)]-e.Seq > stride {
				break
			}
		}
		if len(list) == n {
			return nil, fmt.Errorf("protocol: entry %d is not there: %w", seqs[n], journal.ErrCorrupt)
		}
	}
	return list, nil
}

// entries are all entries of one effect, durable ones.
func (g *Gate) entries(ctx context.Context, id journal.ID) (list []decoded, err error) {
	var seqs []journal.Seq
	err = g.journal.View(ctx, func(journal.Head) {
		if e := g.state.effects[id]; e != nil {
			seqs = slices.Clone(e.seqs)
			if len(e.entries) == len(e.seqs) {
				list = slices.Clone(e.entries)
			}
		}
	})
	if err != nil || len(seqs) == 0 {
		return nil, err
	}
	if list == nil {
		entries, err := g.read(seqs)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			list = append(list, decoded{Entry: e})
		}
	}
	return list, g.journal.Durable(ctx, seqs[len(seqs)-1])
}

// result makes the answer to a caller of where the effect stands.
func (g *Gate) result(ctx context.Context, id journal.ID, o outcome) (Result, error) {
	r := Result{Effect: id, Status: o.status, RetryAfter: o.retry, Owner: o.owner, Since: o.since, Err: o.err}
	entries, err := g.entries(context.WithoutCancel(ctx), id)
	if err != nil || len(entries) == 0 {
		return r, err
	}
	r.Receipt, err = receiptOf(entries)
	r.Payload = r.Receipt.Payload
	return r, err
}

// Receipt is what the journal proves about an effect; ErrUnknown where it holds
// nothing of it.
func (g *Gate) Receipt(ctx context.Context, id journal.ID) (Receipt, error) {
	entries, err := g.entries(ctx, id)
	if err != nil {
		return Receipt{}, err
	}
	if len(entries) == 0 {
		return Receipt{}, fmt.Errorf("%w: %s", ErrUnknown, id)
	}
	return receiptOf(entries)
}
