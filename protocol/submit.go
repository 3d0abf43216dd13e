package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Submit decides whether a proposal may be carried out, and carries it out. The
// rows are asked in this order:
//
//	S1   a living process is at this effect                 IN_FLIGHT, with its owner
//	S1b  an attempt is in doubt and nobody is at it         it is recovered without waiting; still in doubt: IN_FLIGHT
//	     the journal was restored from a backup and holds     it is suspect from here on, and recovered as at S1b (C22)
//	     nothing that was recorded of it since
//	S2   the payload is not the recorded one                REFUSED:conflicting_payload; recorded once, settles nothing
//	S3   nobody can tell whether it landed                  AMBIGUOUS
//	S4   it is committed                                    DUPLICATE_IGNORED, with the recorded result
//	S5   a person is asked, closed it or rejected it, or    REFUSED:awaiting_decision, REFUSED:closed, REFUSED:rejected,
//	     the target refused it                              REFUSED:target_rejected
//	S6   none of these                                      PROPOSED is made durable before anything is read of the world
//	S7   a symbol that it defines is held                   REFUSED:duplicate_symbol, with the holder
//	S8   no live lease covers it                            REFUSED:lease
//	S9   a premise was false when it was decided            REFUSED:premise_false_at_decision
//	S10  no connection, or a premise can't be read          NOT_SENT, still open
//	S11  a premise changed                                  REFUSED:stale_premise
//	I7   a rule asks for a person, and no approval counts   ESCALATED; REFUSED:awaiting_decision, still open
//	S12  its budget has no room for it                      REFUSED:over_budget, with the holders
//	S13  all hold                                           AUTHORIZED and DISPATCHED, in one durable step that asks S1 to S5, S7, S8, I7 and S12 again
//	S14  the last read before the first byte fails          the attempt is closed as not sent; REFUSED:stale_premise, REFUSED:lease
//	S15  the target did it                                  COMMITTED, with what it returned
//	S15b a premise that the target checks failed            REFUSED:stale_premise
//	S16  the target refused for good                        REFUSED:target_rejected
//	S17  not executed for now, or certainly not sent        the attempt is closed; NOT_SENT, still open
//	S18  anything else                                      IN_FLIGHT; Recover decides
//
// Where S1b settled the effect and S3, S4 or S5 would answer, the answer is what
// recovery did. A retry under the same authority is judged on the premises, budget
// and symbols that were recorded first; another authority is another decision and
// brings its own.
// S10 is tried again until the deadline of ctx, where it has one.
//
// A nil error means that what Status says is durable. A *ProposalError, or
// ErrUnregistered, or ErrSecret, means that nothing was recorded. Any other error comes from
// the journal or the authority: the effect stands as Status says and as far as is
// known. After journal.ErrPoisoned this gate sends nothing more (I11), and one
// opened anew recovers it; else Recover does, here or there.
func (g *Gate) Submit(ctx context.Context, p Proposal) (Result, error) {
	w, err := g.work(p)
	if err != nil {
		return Result{}, err
	}
	if err := g.revise(ctx, w); err != nil {
		return Result{Effect: w.id}, err
	}
	e, err := g.find(ctx, w.id)
	if err != nil {
		return Result{Effect: w.id}, err
	}
	if err := g.seal(w, e); err != nil {
		return Result{Effect: w.id}, err
	}
	if e != nil && !e.open() { // S2 to S5 need no claim
		if r, answered, err := g.answer(ctx, w, e, Status{}); answered || err != nil {
			return r, err
		}
	}
	claim, e, err := g.claim(ctx, w.id)
	if held := (*journal.HeldError)(nil); errors.As(err, &held) {
		return g.result(ctx, w.id, g.busy(held, w.can))
	}
	if err != nil {
		return Result{Effect: w.id}, err
	}
	defer g.release(ctx, w.id, claim)
	if err := g.seal(w, e); err != nil { // somebody may have marked more
		return Result{Effect: w.id}, err
	}

	if e, err = g.distrust(ctx, w.id, e); err != nil {
		return Result{Effect: w.id}, err
	}
	var recovered Status
	if e.inDoubt() { // S1b
		if e.decision == nil {
			if err := g.adopt(ctx, w); err != nil {
				return Result{Effect: w.id}, err
			}
		}
		var clear json.RawMessage // of the payload that is in doubt
		if e.decision == nil || e.digest == w.digest {
			clear = w.clear
		}
		o, err := g.recoverEffect(ctx, w.id, clear)
		if err != nil {
			return Result{Effect: w.id, Status: Status{Final: InFlight}}, err
		}
		recovered = o.status
		if e, err = g.find(ctx, w.id); err != nil {
			return Result{Effect: w.id}, err
		}
		if e.inDoubt() {
			if !e.mismatch {
				o.status = Status{Final: InFlight}
			}
			r, err := g.result(ctx, w.id, o)
			r.Recovered = recovered
			return r, err
		}
	}
	if r, answered, err := g.answer(ctx, w, e, recovered); answered || err != nil {
		return r, err
	}
	o, err := g.proceed(ctx, w, e)
	if err != nil {
		return Result{Effect: w.id, Status: o.status}, err
	}
	r, err := g.result(ctx, w.id, o)
	r.Recovered = recovered
	return r, err
}

// distrust makes an effect suspect, durably, that a log restored from a backup may
// have lost an attempt for: it is looked up before its first send (C22). It
// returns where the effect stands then.
func (g *Gate) distrust(ctx context.Context, id journal.ID, e *effect) (*effect, error) {
	if !e.mayBeLost(g.restored) {
		return e, nil
	}
	_, err := g.journal.Update(context.WithoutCancel(ctx), func(h journal.Head) ([]journal.Entry, error) {
		return []journal.Entry{journal.SuspectEntry(id, h.Segment, 0, "the log was restored from a backup, which may lack an attempt")}, nil
	})
	if err != nil {
		return e, err
	}
	return g.find(ctx, id)
}

// work checks the proposal and finds its target.
func (g *Gate) work(p Proposal) (*work, error) {
	p, err := p.canonical()
	if err != nil {
		return nil, err
	}
	t := g.target(p.Effect.Action)
	if t == nil {
		return nil, fmt.Errorf("%w: %q; register one and submit again", ErrUnregistered, p.Effect.Action)
	}
	w := &work{id: EffectID(g.Namespace, p.Request, 0), proposal: p, given: p, digest: p.Effect.digest(), target: t, can: t.Capabilities()}
	for _, m := range p.Premises {
		if m.Holds == ByTarget && !w.can.Conditional {
			return nil, &ProposalError{Field: m.about(), Why: "is to be checked by a target that can't"}
		}
	}
	return w, nil
}

// busy is S1 and R1.
func (g *Gate) busy(held *journal.HeldError, can Capabilities) outcome {
	return outcome{status: Status{Final: InFlight}, owner: held.Owner, since: held.Since, retry: max(can.ClientTimeout, time.Second)}
}

// answer gives the answer of S2 to S5, where one of them applies. e is where the
// effect stands, nil where the journal knows nothing of it.
func (g *Gate) answer(ctx context.Context, w *work, e *effect, recovered Status) (r Result, answered bool, err error) {
	if e == nil {
		return Result{Effect: w.id}, false, nil
	}
	s, err := g.judge(ctx, early, w)
	if s == nil || err != nil {
		return Result{Effect: w.id}, false, err
	}
	o := outcome{status: s.status}
	switch {
	case recovered != Status{} && s.status.Reason != ConflictingPayload:
		o.status = recovered
	case !s.silent:
		err = g.refuse(ctx, w, s)
	}
	if err != nil {
		return Result{Effect: w.id}, true, err
	}
	r, err = g.result(ctx, w.id, o)
	r.Recovered = recovered
	return r, true, err
}

// proceed is S6 to S18, with the claim held and nothing in doubt.
func (g *Gate) proceed(ctx context.Context, w *work, e *effect) (outcome, error) {
	s, err := g.propose(ctx, w, e)
	if err != nil {
		return outcome{status: w.standing()}, err
	}
	if s != nil {
		o := outcome{status: s.status, stop: s}
		return o, g.refuse(ctx, w, s)
	}
	for {
		o, err := g.attempt(ctx, w)
		_, ends := ctx.Deadline()
		unready := o.status.Final == NotYetSent && w.token == journal.Token{}
		if err != nil || !unready || !ends || g.Clock.Wait(ctx, o.retry) != nil {
			return o, err
		}
	}
}

// propose records the decision, unless it is recorded and not refused (S6). It
// sets what w is judged on: the premises first recorded under this authority. A
// proposal that its lease doesn't cover takes no other's place.
func (g *Gate) propose(ctx context.Context, w *work, e *effect) (s *stop, err error) {
	if e == nil {
		return g.record(ctx, w, early)
	}
	var prior journal.Seq // of the first decision under this authority
	var uncovered *stop
	err = g.look(ctx, w, func(f *facts) {
		e = f.effect.copy()
		for _, r := range e.authority {
			if prior == 0 && f.sameAuthority(r.lease) {
				prior = r.seq
			}
		}
		if e.decision != nil && !f.sameAuthority(e.decision.Proposal.Lease) {
			e.decision = nil // another's
		}
		uncovered = check(decided, f)
	})
	if err != nil {
		return nil, err
	}
	switch {
	case prior == 0:
	case e.decision != nil:
		w.bindTo(e.decision.Proposal)
	default:
		entries, err := g.read([]journal.Seq{prior})
		if err != nil {
			return nil, err
		}
		b, err := bodyOf[proposedBody](entries[0])
		if err != nil {
			return nil, err
		}
		w.bindTo(b.Proposal)
	}
	if e.open() {
		if e.decision != nil && e.decision.Proposal.Agent == w.proposal.Agent {
			w.proposal, w.proposed = e.decision.Proposal, e.proposedAt
			return nil, nil
		}
		if uncovered != nil {
			uncovered.once = true
			return uncovered, nil
		}
	}
	return g.record(ctx, w, early)
}

// bindTo lets the decision first recorded under an authority say what a retry of
// it rests on: facts read since would bless a change, and a claim left out would
// dodge it.
func (w *work) bindTo(p Proposal) {
	w.proposal.Premises, w.proposal.Budget, w.proposal.Symbols = p.Premises, p.Budget, p.Symbols
}

// record appends PROPOSED, after asking the guards of in once more.
func (g *Gate) record(ctx context.Context, w *work, in phase) (s *stop, err error) {
	b := proposedBody{Namespace: g.Namespace, Revision: w.revision, Proposal: w.proposal, Corrects: w.corrects}
	if len(w.proposal.Secrets) > 0 {
		b.SecretKey = w.key.id
	}
	entries, err := g.journal.Update(context.WithoutCancel(ctx), func(h journal.Head) (entries []journal.Entry, err error) {
		err = g.within(ctx, w, h.Now, func(f *facts) {
			if rule := f.authority.route(w.proposal, nil, false, f.head.Proven); rule != nil {
				b.Rule = rule.ID
			}
			if f.effect != nil { // of an unknown one no guard has anything to say
				s = check(in, f)
			}
		})
		if s != nil || err != nil {
			return nil, err
		}
		return records(w.id, body{journal.Proposed, b})
	})
	if s != nil || err != nil {
		return s, err
	}
	w.proposed = entries[0].Seq
	g.at(PointProposed, w.id)
	return nil, nil
}

// adopt records a decision for an attempt whose own the journal lost: what may
// be on the wire is unknown, and a lookup or an absence settles it.
func (g *Gate) adopt(ctx context.Context, w *work) error {
	_, err := g.record(ctx, w, 0)
	return err
}
