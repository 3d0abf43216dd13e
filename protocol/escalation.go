package protocol

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Escalation is what a person is asked: whether an effect may be carried out, on
// the facts as they were read. It is an entry of its own; its hash is what a
// decision answers.
type Escalation struct {
	Rule     string      `json:"rule"`               // that routed it
	Route    []Step      `json:"route"`              // of the rule at that time
	Step     int         `json:"step"`               // whose turn it is
	Group    string      `json:"group"`              // the group of that step
	Deadline time.Time   `json:"deadline,omitzero"`  // of this step; zero: none
	Why      string      `json:"why"`                // why a person is asked, and again
	Read     []Reading   `json:"read,omitempty"`     // the facts to decide on
	Left     string      `json:"left,omitempty"`     // the most that would still fit, where the rule says how to tell
	In       string      `json:"in,omitempty"`       // the payload field that Left is about
	Changed  []string    `json:"changed,omitempty"`  // premises that aren't what the decision, or the last person, saw
	Passed   time.Time   `json:"passed,omitzero"`    // the deadline that nobody met, where that is why
	Proposed journal.Seq `json:"proposed"`           // the decision it is about
	At       Position    `json:"authority,omitzero"` // head of the authority log
}

// escalated is the latest escalation of an effect, and what became of it.
type escalated struct {
	Escalation
	hash   journal.Hash
	time   time.Time
	ruling *ruling
}

// ruling is the decision that answers an escalation.
type ruling struct {
	decidedBody
	hash  journal.Hash
	tries int // attempts made on it
}

// waiting reports whether a person is asked and may still answer.
func (e *effect) waiting(now time.Time) bool {
	return e != nil && e.open() && len(e.attempts) == 0 && e.asked != nil && e.asked.ruling == nil && !e.asked.late(now)
}

// copy is what may be kept after the store's lock is given up.
func (a *escalated) copy() *escalated {
	if a == nil {
		return nil
	}
	c := *a
	if a.ruling != nil {
		r := *a.ruling
		c.ruling = &r
	}
	return &c
}

// late reports whether the deadline has passed.
func (a *escalated) late(now time.Time) bool { return !a.Deadline.IsZero() && !now.Before(a.Deadline) }

// awaiting stops what waits for a person: connecting and reading the world for it
// is of no use (S5).
func awaiting(f *facts) *stop {
	if f.mode != first || !f.effect.waiting(f.now) {
		return nil
	}
	return f.awaits(nil)
}

// awaits is the stop of an effect that a person is to decide on; ask is nil where
// somebody is asked already.
func (f *facts) awaits(ask *Escalation) *stop {
	s := &stop{status: Status{Final: Refused, Reason: AwaitingDecision}, ask: ask, prior: f.asked().copy(), silent: ask == nil}
	if ask == nil {
		ask = &f.effect.asked.Escalation
	}
	s.why = fmt.Sprintf("group %q is to decide it", ask.Group)
	return s
}

// undecided stops what needs a person's approval and has none that counts: of its
// latest escalation, by somebody who is in the group it was routed to, on the
// facts that person saw (I7).
func undecided(f *facts) *stop {
	rule, needs := f.needs()
	if !needs {
		return nil
	}
	why := f.approved()
	if why == "" {
		return nil
	}
	asked := f.asked()
	switch {
	case len(rule.Route) == 0:
		return &stop{status: Status{Final: Refused, Reason: Undecided}, why: fmt.Sprintf("rule %q, which it needs a person by, isn't in the authority log", rule.ID)}
	case f.mode != first:
		return &stop{status: Status{Final: Refused, Reason: ApprovalAtRecovery}, why: why}
	case asked != nil && asked.ruling == nil && !asked.late(f.now):
		return f.awaits(nil)
	case asked != nil && asked.ruling == nil:
		next := asked.Step + 1
		if next >= len(asked.Route) {
			return &stop{status: Status{Final: Refused, Reason: Undecided}, prior: asked.copy(), why: fmt.Sprintf("group %q, the last on the route of rule %q, didn't decide in time", asked.Group, asked.Rule)}
		}
		ask := f.ask(Rule{ID: asked.Rule, Route: asked.Route}, next, fmt.Sprintf("group %q didn't decide in time", asked.Group))
		ask.Passed, ask.Left, ask.In = asked.Deadline, asked.Left, asked.In
		return f.awaits(ask)
	}
	return f.awaits(f.ask(*rule, 0, why))
}

// asked is the effect's latest escalation, nil where there is none.
func (f *facts) asked() *escalated {
	if f.effect == nil {
		return nil
	}
	return f.effect.asked
}

// needs is whether the effect needs a person, and the rule by which one is asked
// next: that which matches now, else that which asked before.
func (f *facts) needs() (rule *Rule, needs bool) {
	rule = f.authority.route(f.proposal, f.read, false, f.head.Proven)
	if rule != nil {
		return rule, true
	}
	if a := f.asked(); a != nil {
		return &Rule{ID: a.Rule, Route: a.Route}, true
	}
	if e := f.effect; e != nil && e.rule != "" {
		rule := Rule{ID: e.rule}
		if v := f.authority.rules[e.rule]; v != nil {
			rule = v.last()
		}
		return &rule, true
	}
	return nil, false
}

// ask makes an escalation to the group at the given step of a rule's route.
func (f *facts) ask(rule Rule, step int, why string) *Escalation {
	to := rule.Route[step]
	x := &Escalation{
		Rule: rule.ID, Route: rule.Route, Step: step, Group: to.Group, Why: why, Read: f.read,
		Proposed: f.proposed, At: Position{f.head.Segment, f.head.Seq, f.head.Hash}, Changed: f.changed(),
	}
	if to.Within > 0 {
		x.Deadline = f.now.Add(to.Within).UTC().Round(0)
	}
	if rule.Left != nil {
		x.Left, x.In = rule.Left.most(f.proposal, f.read), rule.Left.Field
	}
	return x
}

// changed names the premises that are not as the decision, or the person asked
// last, saw them.
func (f *facts) changed() (names []string) {
	for _, p := range f.proposal.Premises {
		p = f.seen(p)
		for _, r := range f.read {
			if r.Name == p.Name && r.Whose == p.Whose && !sameJSON(r.Value, p.Seen) {
				names = append(names, p.about())
			}
		}
	}
	return names
}

// seen is a premise on the facts of the latest escalation: what the person saw is
// what must still be so.
func (f *facts) seen(p Premise) Premise {
	a := f.asked()
	if a == nil || p.Holds == ByTarget {
		return p
	}
	for _, r := range a.Read {
		if r.Name == p.Name && r.Whose == p.Whose {
			p.Seen, p.At, p.Holds, p.Want = r.Value, r.At, Unchanged, nil
		}
	}
	return p
}

// moved is what becomes of a changed premise: people are asked again where they
// were asked before, or where a rule says so (I7).
func (f *facts) moved(s *stop) *stop {
	if f.mode != first {
		return s
	}
	rule := f.authority.route(f.proposal, f.read, true, f.head.Proven)
	if rule == nil || !(rule.Changed || f.asked() != nil) {
		if f.asked() == nil {
			return s
		}
		rule = &Rule{ID: f.asked().Rule, Route: f.asked().Route}
	}
	return f.awaits(f.ask(*rule, 0, s.about))
}

// escalate records that a person is asked, unless somebody answered meanwhile. An
// attempt that was dispatched is closed in the same step as certainly not sent.
func (g *Gate) escalate(ctx context.Context, w *work, s *stop, bodies ...body) error {
	entries, err := g.journal.Update(context.WithoutCancel(ctx), func(journal.Head) ([]journal.Entry, error) {
		if g.state.effects[w.id].answered(s.prior) {
			return records(w.id, bodies...)
		}
		return records(w.id, append(bodies, body{journal.Escalated, escalatedBody{*s.ask}})...)
	})
	if err == nil && len(entries) > 0 {
		g.Trace.At(PointEscalated, w.id.String())
	}
	return err
}

// answered reports whether the effect's latest escalation isn't the one that was
// seen, or was answered since.
func (e *effect) answered(prior *escalated) bool {
	if e == nil || e.asked == nil || prior == nil {
		return (e == nil || e.asked == nil) != (prior == nil)
	}
	return e.asked.hash != prior.hash || (e.asked.ruling == nil) != (prior.ruling == nil)
}
