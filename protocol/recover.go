package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// RecoverOptions say how Recover goes about it. The zero value works and returns.
type RecoverOptions struct {
	Wait bool // wait for bounds, lags and retry times, until nothing open can be settled by waiting
}

// Recover takes every open effect as far as it can. It claims them all first,
// which starts every landing bound at once. An effect that is not in doubt goes
// on at S7 with its recorded bytes. For one in doubt:
//
//	R1  a living process is at it                            left alone: IN_FLIGHT, with its owner
//	R2  the key is inside its window, all guards hold and    sent again under the same key; done is COMMITTED_BY_RETRY,
//	    no attempt is suspect                                anything else goes on at R3
//	R3  the target says that it landed                       COMMITTED_ON_QUERY, whatever happened to lease and premises;
//	                                                         other content is UNRESOLVED:mismatch, which a person settles
//	R4  not found, it may still land, and it can be fenced   fenced, or waited for when asked to, and asked again;
//	    or the bound is known                                else IN_FLIGHT
//	R5  not found once it can't land any more; all hold      a new attempt that settles the earlier ones:
//	                                                         REAPPLIED_AFTER_QUERY; IN_FLIGHT while the key replays a stored failure
//	R6  the same, and something no longer holds              REFUSED:lease_at_recovery, REFUSED:stale_premise_at_recovery,
//	                                                         REFUSED:over_budget, REFUSED:duplicate_symbol
//	R7  not found, no fence and no bound; or nobody to ask   AMBIGUOUS; while R2 applies and nobody is to be asked,
//	                                                         or its send certainly did nothing: IN_FLIGHT
//	R8  an error, or nothing registered for the action       UNRESOLVED with the error; it stays open
//
// An effect whose payload holds secrets is sent only where the caller brings them,
// so Recover skips R2. Where R5 would send, and where nothing is in doubt, the
// guards are asked as far as can be: what holds no more is refused, else it stays
// open as UNRESOLVED with ErrSecret and holds nothing. Where nobody can be asked
// it is IN_FLIGHT until the key's window ends, and is not waited for.
//
// Every send is a new attempt under the checks of S13. Ambiguous effects are
// asked about again where they can be: found settles one, absent changes nothing.
//
// There is one Result for each effect that was open, oldest first, and one for
// each ambiguous effect that was settled. With Wait, an effect that isn't sent or
// may still land is worked on again when its time has come, until ctx ends; then
// the results so far come with ctx's error. Any other error comes from the journal
// or the authority (I11). Recover may be interrupted at any point and run again
// (I13).
func (g *Gate) Recover(ctx context.Context, o RecoverOptions) ([]Result, error) {
	jobs, err := g.claimAll(ctx)
	defer func() {
		for _, j := range jobs {
			g.end(ctx, j)
		}
	}()
	for err == nil {
		var next *job
		for _, j := range jobs {
			if j.claim == nil || j.due > g.Clock.Mono() {
				continue
			}
			if err = g.step(ctx, j, o.Wait); err != nil {
				break
			}
		}
		for _, j := range jobs {
			if j.claim != nil && (next == nil || j.due < next.due) {
				next = j
			}
		}
		if err != nil || next == nil {
			break
		}
		if err = g.Clock.Wait(ctx, next.due-g.Clock.Mono()); err == nil {
			g.at(PointWaited, next.id)
		}
	}
	var results []Result
	for _, j := range jobs {
		if j.result.Status == (Status{}) { // an error ended the work before its turn came
			continue
		}
		if !j.ambiguous || j.result.Status.Final == Committed || j.result.Status.Final == Unresolved {
			results = append(results, j.result)
		}
	}
	return results, err
}

// job is one effect that Recover works on; claim is nil once it is through.
type job struct {
	id        journal.ID
	claim     *journal.Claim
	ambiguous bool // when Recover began
	due       time.Duration
	result    Result
}

// claimAll claims what is open or ambiguous. An effect that somebody is at, or
// that was settled meanwhile, is a job without a claim.
func (g *Gate) claimAll(ctx context.Context) (jobs []*job, err error) {
	err = g.journal.View(ctx, func(journal.Head) {
		for _, e := range g.state.liveInOrder() {
			jobs = append(jobs, &job{id: e.id, ambiguous: e.final == Ambiguous})
		}
	})
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		var held *journal.HeldError
		j.claim, _, err = g.claim(ctx, j.id)
		if errors.As(err, &held) {
			j.result, err = g.result(ctx, j.id, g.busy(held, Capabilities{}))
		}
		if err != nil {
			return jobs, err
		}
	}
	return jobs, nil
}

// end gives a job's claim up.
func (g *Gate) end(ctx context.Context, j *job) {
	if j.claim != nil {
		g.release(ctx, j.id, j.claim)
		j.claim = nil
	}
}

// step works on one effect, and says when to come back.
func (g *Gate) step(ctx context.Context, j *job, wait bool) error {
	j.result = Result{} // what an earlier try came to says nothing of this one
	o, err := g.recoverEffect(ctx, j.id, nil)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, journal.ErrPoisoned) || errors.Is(err, journal.ErrClosed) {
			return err
		}
		o = unresolvedBy(err) // R8: what can't be recorded of this one doesn't stop the others
	}
	if j.result, err = g.result(ctx, j.id, o); err != nil {
		if ctx.Err() != nil || errors.Is(err, journal.ErrPoisoned) || errors.Is(err, journal.ErrClosed) {
			return err
		}
		j.result.Err = errors.Join(o.err, err) // the receipt of this one doesn't stop the others either
	}
	if wait && o.retry > 0 && !o.caller && (o.status.Final == InFlight || o.status.Final == NotYetSent) {
		j.due = g.Clock.Mono() + o.retry
		return nil
	}
	g.end(ctx, j)
	return nil
}

// recoverEffect works once on one effect whose claim is held. clear is its
// payload with its secrets, where it has any and the caller brought it.
func (g *Gate) recoverEffect(ctx context.Context, id journal.ID, clear json.RawMessage) (outcome, error) {
	e, err := g.find(ctx, id)
	if err != nil {
		return outcome{}, err
	}
	if e.final == Committed || e.final == Refused { // settled by another caller before the claim was taken (B57)
		return outcome{status: e.status()}, nil
	}
	if e.decision == nil {
		return unresolvedBy(errors.New("protocol: the journal lost this decision; submit the request again, or have a person settle it")), nil
	}
	p := e.decision.Proposal
	t := g.target(p.Effect.Action)
	if t == nil { // R8
		return unresolvedBy(fmt.Errorf("%w: %q", ErrUnregistered, p.Effect.Action)), nil
	}
	w := &work{
		id: id, proposal: p, digest: e.digest, proposed: e.proposedAt, revision: e.decision.Revision, corrects: e.decision.Corrects,
		target: t, can: t.Capabilities(),
	}
	if err := g.reopen(w, e, clear); err != nil { // R8
		return unresolvedBy(err), nil
	}
	if e.open() && len(e.attempts) == 0 {
		return g.attempt(ctx, w)
	}
	for _, a := range e.attempts {
		w.rests = append(w.rests, a.token)
	}
	return g.settleDoubt(ctx, w, e)
}

func unresolvedBy(err error) outcome {
	return outcome{status: Status{Final: Unresolved}, err: err}
}

// status is where a settled effect stands.
func (e *effect) status() Status { return Status{Final: e.final, Way: e.way, Reason: e.reason} }

// settleDoubt is R2 to R8.
func (g *Gate) settleDoubt(ctx context.Context, w *work, e *effect) (outcome, error) {
	now, err := g.latest(ctx)
	if err != nil {
		return outcome{status: w.standing()}, err
	}
	applies := e.open() && !e.mismatch && !e.suspect() && e.keyEnds(w.can).After(now)
	again, unsent := outcome{retry: time.Second}, false
	if applies && !w.withheld() && !g.doing(w.id, nil).resent { // R2
		w.mode = resend
		o, err := g.attempt(ctx, w)
		if err != nil || !o.on {
			return o, err
		}
		before := len(e.attempts)
		if e, err = g.find(ctx, w.id); err != nil {
			return outcome{status: w.standing()}, err
		}
		again, applies = o, o.stop == nil
		unsent = applies && len(e.attempts) == before
		w = w.after(e)
	}
	for {
		if now, err = g.latest(ctx); err != nil {
			return outcome{status: w.standing()}, err
		}
		if !e.canAsk(w.can, g.ClockMargin, now) { // R7
			return g.nobodyToAsk(ctx, w, e, again, applies && e.keyEnds(w.can).After(now))
		}
		asked, at := g.Clock.Mono(), g.Clock.Now().UTC().Round(0)
		found, err := g.lookup(ctx, w)
		if err != nil { // R8
			g.doing(w.id, func(d *doing) { d.resent = false })
			return unresolvedBy(fmt.Errorf("protocol: lookup: %w", err)), nil
		}
		g.at(PointLookedUp, w.id)
		if found.Landed {
			return g.landed(ctx, w, e, found)
		}
		if !e.open() {
			return outcome{status: Status{Final: Ambiguous}}, nil
		}
		if e.mismatch {
			return outcome{status: Status{Final: Unresolved, Reason: Mismatch}}, nil
		}
		if now, err = g.latest(ctx); err != nil {
			return outcome{status: w.standing()}, err
		}
		if !e.canAsk(w.can, g.ClockMargin, now) { // the answer came too late to count
			continue
		}
		if w.absence = g.honest(w, e, asked, at); w.absence != nil { // R5, R6
			w.mode = reapply
			return g.attempt(ctx, w)
		}
		if unsent && !w.can.Fencing && !g.bounded(w, e) && e.keyEnds(w.can).After(now) {
			return g.tryAgain(w, again), nil
		}
		o, ask, err := g.mayLand(ctx, w, e)
		if err != nil || !ask {
			return o, err
		}
	}
}

// latest is the wall clock's time, or that of the journal's latest entry where
// the clock says less.
func (g *Gate) latest(ctx context.Context) (now time.Time, err error) {
	err = g.journal.View(ctx, func(journal.Head) { now = later(g.Clock.Now(), g.state.logged) })
	return now, err
}

// after is w as it stands once a resend came to nothing.
func (w *work) after(e *effect) *work {
	n := &work{
		id: w.id, proposal: w.proposal, digest: w.digest, proposed: w.proposed, revision: w.revision, corrects: w.corrects,
		target: w.target, can: w.can, key: w.key, secrets: w.secrets, clear: w.clear,
	}
	for _, a := range e.attempts {
		n.rests = append(n.rests, a.token)
	}
	return n
}

func (g *Gate) lookup(ctx context.Context, w *work) (Finding, error) {
	ctx, cancel := g.Clock.Timeout(ctx, w.can.ClientTimeout)
	defer cancel()
	found, err := w.target.Lookup(ctx, w.request())
	found.Result = w.hushJSON(found.Result)
	return found, w.hushed(err)
}

// canAsk reports whether the target can be asked, and still knows what landed
// when the first unsettled attempt was made (C25).
func (e *effect) canAsk(can Capabilities, clocks time.Duration, now time.Time) bool {
	if !can.Lookup || len(e.attempts) == 0 {
		return false
	}
	return can.LookupWindow == 0 || now.Before(e.attempts[0].time.Add(can.LookupWindow-can.LookupLag-clocks))
}

// honest says why an absence counts, or nil (I10). The lookup was asked at the
// given times, of the monotonic and of the wall clock.
func (g *Gate) honest(w *work, e *effect, asked time.Duration, at time.Time) *Absence {
	d := g.doing(w.id, nil)
	if d.fence != (journal.Token{}) && e.latest().Less(d.fence) && asked >= d.fencedAt+w.can.LookupLag {
		return &Absence{Basis: "fenced", Token: &d.fence, Lag: w.can.LookupLag, Asked: at}
	}
	if g.bounded(w, e) && d.claimed && asked >= d.quiet+w.can.LandingBound+w.can.LookupLag+g.ClockMargin {
		return &Absence{Basis: "bound", Bound: w.can.LandingBound, Assumed: w.can.BoundAssumed, Lag: w.can.LookupLag, Asked: at}
	}
	return nil
}

// bounded reports whether a landing bound speaks for every unsettled attempt: an
// unknown bound speaks for none, and none speaks for an attempt that was taken
// over without proof of its sender's death (C8).
func (g *Gate) bounded(w *work, e *effect) bool {
	if w.can.LandingBound <= 0 {
		return false
	}
	for _, a := range e.attempts {
		if a.unbound {
			return false
		}
	}
	return true
}

// mayLand is R4, and R7 where neither a fence nor a bound is to be had. ask says
// that the target is to be asked again at once.
func (g *Gate) mayLand(ctx context.Context, w *work, e *effect) (o outcome, ask bool, err error) {
	fencer, _ := w.target.(Fencer)
	if w.can.Fencing && fencer != nil {
		d := g.doing(w.id, nil)
		if d.fence == (journal.Token{}) || !e.latest().Less(d.fence) {
			ferr, err := g.fence(ctx, w, fencer)
			if err != nil {
				return outcome{status: w.standing()}, false, err
			}
			if ferr != nil && !g.bounded(w, e) {
				return unresolvedBy(fmt.Errorf("protocol: fence: %w", ferr)), false, nil
			}
			d = g.doing(w.id, nil)
		}
		if d.fence != (journal.Token{}) && e.latest().Less(d.fence) {
			lag := d.fencedAt + w.can.LookupLag - g.Clock.Mono()
			return outcome{status: Status{Final: InFlight}, retry: lag}, lag <= 0, nil
		}
	}
	if g.bounded(w, e) {
		wait := g.quietIn(w.id, w.can)
		return outcome{status: Status{Final: InFlight}, retry: wait}, wait <= 0, nil
	}
	o, err = g.giveUp(ctx, w, "the target doesn't find it, can't be fenced and doesn't say how late it may land")
	return o, false, err
}

// fence records the fence, durably, and then asks for it; its token is the
// record's position. The second error is the journal's.
func (g *Gate) fence(ctx context.Context, w *work, f Fencer) (refused, err error) {
	entries, err := g.append(ctx, w.id, PointFenceDurable, body{journal.Fenced, fencedBody{}})
	if err != nil {
		return nil, err
	}
	token := entries[0].Token()
	ctx, cancel := g.Clock.Timeout(ctx, w.can.ClientTimeout)
	defer cancel()
	if refused := w.hushed(f.Fence(ctx, w.id, token)); refused != nil {
		return refused, nil
	}
	g.doing(w.id, func(d *doing) { d.fence, d.fencedAt = token, g.Clock.Mono() })
	g.at(PointFenced, w.id)
	return nil, nil
}

// landed is R3.
func (g *Gate) landed(ctx context.Context, w *work, e *effect, found Finding) (outcome, error) {
	if found.Same {
		_, err := g.append(ctx, w.id, PointOutcomeDurable, body{journal.Committed, committedBody{Way: OnQuery, Result: evidence(found.Result)}})
		return outcome{status: Status{Final: Committed, Way: OnQuery}}, err
	}
	if w.withheld() { // a target may have compared digests
		return unresolvedBy(w.needsCaller()), nil
	}
	o := outcome{status: Status{Final: Unresolved, Reason: Mismatch}}
	if e.mismatch {
		return o, nil
	}
	_, err := g.append(ctx, w.id, PointOutcomeDurable, body{journal.Unresolved, unresolvedBody{Mismatch, evidence(found.Result)}})
	return o, err
}

// nobodyToAsk is R7 without a lookup.
func (g *Gate) nobodyToAsk(ctx context.Context, w *work, e *effect, again outcome, applies bool) (outcome, error) {
	switch {
	case !e.open():
		return outcome{status: Status{Final: Ambiguous}}, nil
	case e.mismatch:
		return outcome{status: Status{Final: Unresolved, Reason: Mismatch}}, nil
	case applies && w.withheld(): // whoever has the payload may still send it under the key
		return outcome{status: Status{Final: InFlight}, retry: e.keyEnds(w.can).Sub(g.Clock.Now()), err: w.needsCaller(), caller: true}, nil
	case applies:
		return g.tryAgain(w, again), nil
	}
	return g.giveUp(ctx, w, "the target can't be asked whether it landed, and the key doesn't protect a repeat")
}

// tryAgain leaves an effect to another send under its key, which came to nothing
// this time.
func (g *Gate) tryAgain(w *work, again outcome) outcome {
	g.doing(w.id, func(d *doing) { d.resent = false })
	return outcome{status: Status{Final: InFlight}, retry: max(again.retry, time.Second), err: again.err}
}

// giveUp leaves the effect to a person.
func (g *Gate) giveUp(ctx context.Context, w *work, why string) (outcome, error) {
	_, err := g.append(ctx, w.id, PointOutcomeDurable, body{journal.Ambiguous, ambiguousBody{why}})
	return outcome{status: Status{Final: Ambiguous}}, err
}
