package protocol

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// mode is what a send rests on.
type mode int

const (
	first   mode = iota // no earlier attempt is unsettled
	resend              // the key: the target absorbs a repeat (R2)
	reapply             // an absence: no earlier attempt landed or can land (R5)
)

// work is one decision on its way to the target.
type work struct {
	id       journal.ID
	proposal Proposal // as recorded, or about to be
	digest   journal.Hash
	given    Proposal        // canonical, as the caller gave it
	key      *secretKey      // that its secrets are digested with; nil: it has none
	secrets  []secret        // its marked fields
	clear    json.RawMessage // payload with its secrets; nil where nobody brought it
	proposed journal.Seq     // of the decision
	revision uint64
	corrects *corrected // revision above 0
	target   Target
	can      Capabilities

	mode    mode
	rests   []journal.Token // unsettled attempts that the send knows of
	absence *Absence

	covered *grant // found to cover the decision
	lease   Lease  // that speaks for the one named, found by the lease guard
	granted journal.Seq
	line    string
	budget  string         // that the proposal names or the lease requires; "" is none
	draw    *Draw          // what DISPATCHED is to hold of it, found by the budget guard
	drained [2]journal.Seq // bytes of the drain that a dispatch shares: of the lease, of the budget or 0

	decision *journal.Hash // the approval that it rests on, found by its guard; nil where it needs none

	read   []Reading
	readAt time.Duration // when the first reading began
	facts  *facts        // as they were put together last; kept to be used again
	token  journal.Token // of DISPATCHED; zero before
	anchor journal.Hash
}

// atRecovery picks a refusal's name: recovery's before it has dispatched.
func (w *work) atRecovery(name, recovery Reason) Reason {
	if w.mode == first || w.token != (journal.Token{}) {
		return name
	}
	return recovery
}

func (w *work) request() Request {
	r := Request{Effect: w.id, Request: w.proposal.Request, Action: w.proposal.Effect.Action, Payload: w.proposal.Effect.Payload}
	switch {
	case w.withheld():
		r.Withheld = w.proposal.Secrets
	case w.clear != nil:
		r.Payload = w.clear
	}
	for _, p := range w.proposal.Premises {
		if p.Holds == ByTarget {
			r.Premises = append(r.Premises, p)
		}
	}
	return r
}

// outcome is what one step of a submit or a recovery came to.
type outcome struct {
	status Status
	retry  time.Duration
	owner  string
	since  time.Time
	err    error
	on     bool  // another attempt is unsettled: recovery goes on at R3
	stop   *stop // why nothing was dispatched
	caller bool  // it waits for the caller's payload, not for time
}

// look calls f with what journal and authority hold right now.
func (g *Gate) look(ctx context.Context, w *work, f func(*facts)) error {
	var inner error
	err := g.journal.View(ctx, func(journal.Head) {
		inner = g.within(ctx, w, g.Clock.Now(), f)
	})
	return errors.Join(err, inner)
}

// within reads the authority while the journal's lock is held.
func (g *Gate) within(ctx context.Context, w *work, now time.Time, f func(*facts)) error {
	return g.authority.View(ctx, func(head journal.Head) { f(g.facts(w, head, now)) })
}

// facts are those of this moment, with both logs' locks held.
func (g *Gate) facts(w *work, head journal.Head, now time.Time) *facts {
	if w.facts == nil {
		w.facts = &facts{}
	}
	*w.facts = facts{
		work: w, effect: g.state.effects[w.id], state: g.state,
		authority: g.grants, head: head, now: now, margin: g.ClockMargin, people: g.People,
	}
	return w.facts
}

// judge asks the guards of one phase.
func (g *Gate) judge(ctx context.Context, in phase, w *work) (s *stop, err error) {
	var inner error
	err = g.journal.View(ctx, func(journal.Head) {
		inner = g.authority.View(ctx, func(head journal.Head) { s = check(in, g.facts(w, head, g.Clock.Now())) })
	})
	return s, errors.Join(err, inner)
}

// attempt takes a recorded decision from its guards to the target's answer, and
// records what came of it. It is the only way to send.
func (g *Gate) attempt(ctx context.Context, w *work) (outcome, error) {
	if s, err := g.judge(ctx, decided, w); s != nil || err != nil {
		return g.stopped(ctx, w, s, err)
	}
	g.at(PointAuthorityRead, w.id)
	if w.withheld() {
		return g.unsendable(ctx, w)
	}

	if err := g.observe(ctx, w, true); err != nil {
		return g.unready(w, err), nil
	}
	connection, err := g.prepare(ctx, w)
	if err != nil {
		return g.unready(w, err), nil
	}
	defer connection.Close()
	g.at(PointConnected, w.id)

	if err := g.observe(ctx, w, false); err != nil {
		return g.unready(w, err), nil
	}
	g.at(PointPremisesRead, w.id)
	if s, err := g.judge(ctx, ready, w); s != nil || err != nil {
		return g.stopped(ctx, w, s, err)
	}
	if end, held := g.held(ctx, w); held {
		return outcome{status: Status{Final: InFlight}, retry: end}, nil
	}

	if o, ok, err := g.dispatch(ctx, w); !ok || err != nil {
		return o, err
	}
	if o, ok, err := g.lastCheck(ctx, w); !ok || err != nil {
		return o, err
	}
	answer := g.send(ctx, w, connection)
	return g.settle(ctx, w, answer)
}

// prepare connects within the client's timeout.
func (g *Gate) prepare(ctx context.Context, w *work) (Attempt, error) {
	ctx, cancel := g.Clock.Timeout(ctx, w.can.ClientTimeout)
	defer cancel()
	connection, err := w.target.Prepare(ctx, w.request())
	return connection, w.hushed(err)
}

// unsendable judges an attempt whose payload nobody brought as far as can be, and
// leaves it to the caller. What is known not to have landed is settled as that,
// and holds nothing any more.
func (g *Gate) unsendable(ctx context.Context, w *work) (outcome, error) {
	for _, before := range []bool{true, false} {
		if err := g.observe(ctx, w, before); err != nil {
			return g.unready(w, err), nil
		}
	}
	if s, err := g.judge(ctx, ready, w); s != nil || err != nil {
		return g.stopped(ctx, w, s, err)
	}
	var settled []body
	for _, token := range w.rests {
		settled = append(settled, body{journal.NotSent, notSentBody{Attempt: token, Why: w.absence.words(), Absence: w.absence}})
	}
	if len(settled) > 0 {
		if _, err := g.append(ctx, w.id, PointOutcomeDurable, settled...); err != nil {
			return outcome{status: w.standing()}, err
		}
	}
	return unresolvedBy(w.needsCaller()), nil
}

// needsCaller says that only the caller has what is needed.
func (w *work) needsCaller() error {
	return &SecretError{w.id, "are not in the journal; submit the request again, with the same payload"}
}

// observe reads the premises that are to be read before, or after, the
// connection stands.
func (g *Gate) observe(ctx context.Context, w *work, before bool) error {
	if before {
		w.read, w.readAt = nil, g.Clock.Mono()
	}
	for _, p := range w.proposal.Premises {
		if p.Holds == ByTarget || p.BeforeConnect != before {
			continue
		}
		if len(w.read) == 0 {
			w.readAt = g.Clock.Mono()
		}
		value, err := g.premise(ctx, w, p)
		if err != nil {
			return fmt.Errorf("protocol: %s can't be read: %w", p.about(), err)
		}
		w.read = append(w.read, Reading{Name: p.Name, Whose: p.Whose, Value: value, At: g.Clock.Now().UTC().Round(0)})
	}
	return nil
}

// premise reads one premise within the client's timeout.
func (g *Gate) premise(ctx context.Context, w *work, p Premise) (json.RawMessage, error) {
	ctx, cancel := g.Clock.Timeout(ctx, w.can.ClientTimeout)
	defer cancel()
	value, err := w.target.Observe(ctx, p, w.request())
	if err != nil {
		return nil, w.hushed(err)
	}
	value, err = canonicalValue(w.hushJSON(value))
	return value, w.hushed(err)
}

// unready is an attempt that ended before its dispatch (S10).
func (g *Gate) unready(w *work, err error) outcome {
	o := outcome{status: Status{Final: NotYetSent}, retry: g.backoff(w.id), err: err}
	switch w.mode {
	case resend:
		o.on = true
	case reapply:
		o.status.Final = InFlight
	}
	return o
}

// stopped records what a guard found, where it is to be recorded.
func (g *Gate) stopped(ctx context.Context, w *work, s *stop, err error) (outcome, error) {
	if err != nil {
		return outcome{status: w.standing()}, err
	}
	o := outcome{status: s.status, stop: s}
	if w.mode == resend {
		o.on = true
		return o, nil
	}
	if s.silent {
		return o, nil
	}
	if s.ask != nil {
		return o, g.escalate(ctx, w, s)
	}
	return o, g.refuse(ctx, w, s)
}

// standing is the status of an effect whose work an error interrupted.
func (w *work) standing() Status {
	if w.token != (journal.Token{}) || len(w.rests) > 0 {
		return Status{Final: InFlight}
	}
	return Status{Final: NotYetSent}
}

// refuse records a refusal; one that turns a proposal away only once (W2).
func (g *Gate) refuse(ctx context.Context, w *work, s *stop) error {
	b := w.refusal(s)
	entries, err := g.journal.Update(context.WithoutCancel(ctx), func(journal.Head) ([]journal.Entry, error) {
		e := g.state.effects[w.id]
		if s.status.Reason == Undecided && e.answered(s.prior) {
			return nil, nil
		}
		if s.once && e != nil && e.said[b.saying()] {
			return nil, nil
		}
		if s.once {
			return records(w.id, body{journal.Conflicted, b})
		}
		return records(w.id, body{journal.Refused, b})
	})
	if err == nil && len(entries) > 0 {
		g.at(PointOutcomeDurable, w.id)
	}
	return err
}

func (w *work) refusal(s *stop) refusedBody {
	b := refusedBody{
		Reason: s.status.Reason, Agent: w.proposal.Agent, Lease: w.proposal.Lease,
		Digest: w.digest, Why: s.why, Read: w.read, Absence: w.absence, Held: s.held,
	}
	if s.once {
		b.Effect = &w.proposal.Effect
		if w.key != nil {
			b.Effect = &Effect{Action: w.proposal.Effect.Action} // what it keeps secret where is not known
		}
	}
	if w.token != (journal.Token{}) {
		b.Attempt, b.Absence, b.Read = &w.token, nil, nil
	}
	return b
}

// held reports whether a new attempt has to wait because the key replays a
// stored failure (R5).
func (g *Gate) held(ctx context.Context, w *work) (wait time.Duration, held bool) {
	if w.mode != reapply || !g.doing(w.id, nil).replayed {
		return 0, false
	}
	e, err := g.find(ctx, w.id)
	if err != nil || len(e.keyed) == 0 {
		return 0, false
	}
	end := e.keyed[0].time.Add(w.can.DedupWindow + g.ClockMargin)
	wait = end.Sub(g.Clock.Now())
	return wait, wait > 0
}

// dispatch appends AUTHORIZED and DISPATCHED in the atomic step that asks the
// guards again (S13). While it holds the lease's byte a revocation waits (I4).
func (g *Gate) dispatch(ctx context.Context, w *work) (outcome, bool, error) {
	if err := ctx.Err(); err != nil {
		return g.unready(w, err), false, nil
	}
	release, o, err := g.share(ctx, w)
	if release == nil || err != nil {
		return o, false, err
	}
	defer release()
	g.at(PointLeaseShared, w.id)

	ctx = context.WithoutCancel(ctx)
	var s *stop
	shared := w.drained
	moved := false
	entries, err := g.journal.Update(ctx, func(h journal.Head) (entries []journal.Entry, err error) {
		var head journal.Head
		err = g.within(ctx, w, h.Now, func(f *facts) { s, head = check(dispatch, f), f.head })
		if s != nil || err != nil {
			return nil, err
		}
		if moved = shared != w.drained; moved {
			return nil, nil // another change of it would not wait for this dispatch
		}
		g.at(PointRechecked, w.id)
		return w.intent(head)
	})
	release()
	if moved && err == nil {
		return g.unready(w, errors.New("protocol: the lease has been renewed under a budget; try again")), false, nil
	}
	if s != nil || err != nil {
		o, err := g.stopped(ctx, w, s, err)
		return o, false, err
	}
	intent := entries[len(entries)-1]
	w.token = intent.Token()
	err = g.journal.View(ctx, func(journal.Head) { w.anchor = g.state.effects[w.id].anchor })
	if err != nil {
		return outcome{status: w.standing()}, false, err
	}
	g.doing(w.id, func(d *doing) {
		d.latest, d.quiet = w.token, g.Clock.Mono()
		d.resent = w.mode == resend
	})
	g.at(PointIntentDurable, w.id)
	return outcome{}, true, nil
}

// share takes the bytes of the lease and of the budget. A byte that is being
// drained is a revocation or another cap: the authority is read again, and says so.
func (g *Gate) share(ctx context.Context, w *work) (release func(), o outcome, err error) {
	if g.Drain == nil {
		return func() {}, outcome{}, nil
	}
	for _, n := range w.drained {
		if n == 0 {
			break
		}
		one, ok, err := g.Drain.Share(n)
		if err == nil && ok {
			if before := release; before != nil {
				release = func() { one(); before() }
			} else {
				release = one
			}
			continue
		}
		if release != nil {
			release()
		}
		if err != nil {
			return nil, outcome{status: w.standing()}, fmt.Errorf("protocol: the byte of a lease or budget: %w", err)
		}
		s, err := g.judge(ctx, decided, w)
		if s == nil && err == nil {
			return nil, g.unready(w, errors.New("protocol: the lease is being revoked, or its budget changed; try again")), nil
		}
		o, err = g.stopped(ctx, w, s, err)
		return nil, o, err
	}
	return release, outcome{}, nil
}

// intent is what an attempt is dispatched on.
func (w *work) intent(head journal.Head) ([]journal.Entry, error) {
	return records(w.id,
		body{journal.Authorized, authorizedBody{
			Grant: w.lease, Granted: w.granted, Held: dispatchedOn,
		}},
		body{journal.Dispatched, dispatchedBody{
			Proposed: w.proposed, Lease: w.lease.ID, Holds: w.line,
			Authority: Position{head.Segment, head.Seq, head.Hash},
			Read:      w.read, Resend: w.mode == resend, Absence: w.absence, Decision: w.decision,
			Bound: w.can.LandingBound, Assumed: w.can.BoundAssumed,
			Window: w.can.DedupWindow, Margin: w.can.DedupMargin, Draw: w.draw,
		}})
}

// lastCheck is the last step before the first byte (S14): premises again where
// too much time passed, the lease, and the key window of a resend.
func (g *Gate) lastCheck(ctx context.Context, w *work) (outcome, bool, error) {
	if len(w.read) > 0 && g.Clock.Mono()-w.readAt > g.ReadAgain {
		err := g.observe(ctx, w, true)
		if err == nil {
			err = g.observe(ctx, w, false)
		}
		if err != nil {
			o, err := g.unsent(ctx, w, Answer{Outcome: NotSent, Reason: err.Error()})
			return o, false, err
		}
	}
	s, err := g.judge(ctx, last, w)
	if err != nil {
		return outcome{status: w.standing()}, false, err
	}
	if s == nil {
		g.at(PointLastChecked, w.id)
		return outcome{}, true, nil
	}
	closed := body{journal.NotSent, notSentBody{Attempt: w.token, Unsent: true, Why: s.why}}
	if w.mode == resend {
		_, err = g.append(ctx, w.id, PointOutcomeDurable, closed)
		return outcome{on: true, stop: s}, false, err
	}
	if s.ask != nil {
		err = g.escalate(ctx, w, s, closed)
	} else {
		_, err = g.append(ctx, w.id, PointOutcomeDurable, closed, body{journal.Refused, w.refusal(s)})
	}
	return outcome{status: s.status, stop: s}, false, err
}

// send writes the request once and gives the connection up.
func (g *Gate) send(ctx context.Context, w *work, connection Attempt) Answer {
	ctx, cancel := g.Clock.Timeout(ctx, w.can.ClientTimeout)
	defer cancel()
	answer := connection.Send(ctx, Envelope{Anchor: w.anchor, Token: w.token})
	answer.Result, answer.Premise, answer.Reason = w.hushJSON(answer.Result), w.hush(answer.Premise), w.hush(answer.Reason)
	connection.Close()
	g.doing(w.id, func(d *doing) {
		d.quiet = g.Clock.Mono()
		d.replayed = d.replayed || answer.Replayed
	})
	g.at(PointSent, w.id)
	return answer
}

// settle records the target's answer (S15 to S18). With another attempt
// unsettled an answer that isn't "done" settles its own attempt only (I2).
func (g *Gate) settle(ctx context.Context, w *work, a Answer) (outcome, error) {
	switch a.Outcome {
	case Done:
		way := map[mode]Way{first: Directly, resend: ByRetry, reapply: Reapplied}[w.mode]
		_, err := g.append(ctx, w.id, PointOutcomeDurable, body{journal.Committed, committedBody{&w.token, way, evidence(a.Result)}})
		if err != nil {
			return outcome{status: w.standing()}, err
		}
		return outcome{status: Status{Final: Committed, Way: way}}, nil

	case PremiseFailed, Rejected:
		if w.mode == resend {
			return g.unsent(ctx, w, a)
		}
		s := &stop{status: Status{Final: Refused, Reason: TargetRejected}, why: a.Reason}
		if a.Outcome == PremiseFailed {
			s.status.Reason, s.why = StalePremise, fmt.Sprintf("the target found premise %q changed: %s", a.Premise, a.Reason)
		}
		b := w.refusal(s)
		b.Rejected = a.Outcome == Rejected
		_, err := g.append(ctx, w.id, PointOutcomeDurable, body{journal.Refused, b})
		if err != nil {
			return outcome{status: w.standing()}, err
		}
		return outcome{status: s.status, stop: s}, nil

	case NotExecuted, NotSent:
		return g.unsent(ctx, w, a)
	}
	o := outcome{status: Status{Final: InFlight}, on: w.mode == resend}
	o.retry = max(g.backoff(w.id), g.quietIn(w.id, w.can))
	return o, nil
}

// unsent closes one attempt as certainly not sent, or not executed as the target
// declared.
func (g *Gate) unsent(ctx context.Context, w *work, a Answer) (outcome, error) {
	b := notSentBody{Attempt: w.token, Unsent: a.Outcome == NotSent, Why: a.Reason}
	if _, err := g.append(ctx, w.id, PointOutcomeDurable, body{journal.NotSent, b}); err != nil {
		return outcome{status: w.standing()}, err
	}
	o := outcome{status: Status{Final: NotYetSent}, on: w.mode == resend, err: errors.New("protocol: not executed: " + a.Reason)}
	o.retry = max(a.RetryAfter, g.backoff(w.id))
	return o, nil
}

// evidence keeps what the target returned: JSON as it is, anything else as a
// string. What is larger or deeper than a payload may be is kept as its digest,
// its length and how it begins, so that no answer can be too much to record.
func evidence(result json.RawMessage) json.RawMessage {
	if len(result) == 0 || len(result) <= maxJSON && json.Valid(result) && depth(result) <= maxDepth {
		return result
	}
	if len(result) <= maxJSON/8 && !json.Valid(result) { // quoting may take six bytes for one
		quoted, _ := json.Marshal(string(result))
		return quoted
	}
	kept, _ := json.Marshal(struct {
		Sum    journal.Hash `json:"sha256"`
		Bytes  int          `json:"bytes"`
		Begins string       `json:"begins"`
	}{sha256.Sum256(result), len(result), string(result[:min(len(result), 1024)])})
	return kept
}

// backoff is how long to wait after the n-th try in a row that came to nothing:
// a second, doubled each time, an hour and a bit at most.
func (g *Gate) backoff(id journal.ID) time.Duration {
	d := g.doing(id, func(d *doing) { d.tries++ })
	return time.Second << min(d.tries-1, 12)
}

// quietIn is how long it takes until no attempt that this process made or took
// over can land any more; 0 where the bound is unknown.
func (g *Gate) quietIn(id journal.ID, can Capabilities) time.Duration {
	if can.LandingBound == 0 {
		return 0
	}
	d := g.doing(id, nil)
	return d.quiet + can.LandingBound + can.LookupLag + g.ClockMargin - g.Clock.Mono()
}
