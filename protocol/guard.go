package protocol

import (
	"cmp"
	"crypto/ed25519"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// phase is when a guard is asked.
type phase int

const (
	early    phase = 1 << iota // when the proposal comes, and again before it is recorded
	decided                    // the decision is durable, nothing is connected
	ready                      // the connection stands and the premises are read
	dispatch                   // in the atomic step that appends DISPATCHED
	last                       // before the first byte
)

// guards are the rows of the submit table that stop an effect, in the order in
// which they are asked. Dropping a line drops the check everywhere.
var guards = []guard{
	{"S1", dispatch, unclaimed},
	{"S2", early | dispatch, conflicting},
	{"S3", early | dispatch, undecidable},
	{"S4", early | dispatch, done},
	{"S5", early | dispatch, over},
	{"S5", decided, awaiting},
	{"S7", decided | dispatch, defined},
	{"S8", decided | dispatch | last, unauthorized},
	{"S9", decided, falseAtDecision},
	{"S11", ready | dispatch | last, stale},
	{"I7", ready | dispatch | last, undecided},
	{"S12", dispatch, overBudget},
	{"R2", dispatch | last, keyExpired},
}

type guard struct {
	row   string
	in    phase
	stops func(*facts) *stop // nil: it holds
}

// stop is why an effect doesn't go on.
type stop struct {
	status Status
	why    string
	about  string      // why, without the values that why names
	ask    *Escalation // a person is asked, instead of a refusal
	prior  *escalated  // the escalation that ask, or a refusal for want of an answer, follows
	once   bool        // turns a proposal away: recorded once, and settles nothing
	silent bool        // nothing is recorded
	held   []Holding
}

// facts are what the guards judge by. They are put together inside the stores'
// callbacks and are not kept.
type facts struct {
	*work
	effect    *effect // nil: the journal knows nothing of it
	state     *state  // of the journal
	authority *authority
	head      journal.Head // of the authority log
	now       time.Time
	margin    time.Duration // by how much clocks may differ
	people    map[string]ed25519.PublicKey
}

// check asks the guards of one phase.
func check(in phase, f *facts) *stop {
	for _, g := range guards {
		if g.in&in == 0 {
			continue
		}
		if s := g.stops(f); s != nil {
			return s
		}
	}
	return nil
}

// asked names the guards of the given phases, for the record.
func asked(in phase) (rows []string) {
	for _, g := range guards {
		if g.in&in != 0 && !slices.Contains(rows, g.row) {
			rows = append(rows, g.row)
		}
	}
	return rows
}

// dispatchedOn are the guards that have held when an attempt is dispatched.
var dispatchedOn = asked(decided | ready | dispatch)

// unclaimed stops a send that rests on another set of attempts than the journal
// holds: somebody else was at it (I2).
func unclaimed(f *facts) *stop {
	var unsettled []journal.Token
	if f.effect != nil {
		for _, a := range f.effect.attempts {
			unsettled = append(unsettled, a.token)
		}
	}
	if slices.Equal(unsettled, f.rests) && (len(unsettled) == 0 || f.mode != first) {
		return nil
	}
	return &stop{status: Status{Final: InFlight}, why: "another attempt is under way", silent: true}
}

// conflicting stops other content than the one recorded first, unless that was
// refused before any dispatch and a new authority brings this one (I5).
func conflicting(f *facts) *stop {
	e := f.effect
	if e == nil || e.digest == (journal.Hash{}) || e.digest == f.digest {
		return nil
	}
	if e.final == Refused && e.tries == 0 && f.newAuthority() {
		return nil
	}
	return &stop{
		status: Status{Final: Refused, Reason: ConflictingPayload},
		why:    "this request was decided with another payload",
		once:   true,
	}
}

// newAuthority reports whether no recorded decision ran under the authority that
// the proposal names.
func (f *facts) newAuthority() bool {
	return !slices.ContainsFunc(f.effect.authority, func(r recorded) bool { return f.sameAuthority(r.lease) })
}

func (f *facts) sameAuthority(lease string) bool {
	return f.authority.line(lease) == f.authority.line(f.proposal.Lease)
}

// undecidable stops what waits for a person.
func undecidable(f *facts) *stop {
	if f.effect == nil || f.effect.final != Ambiguous {
		return nil
	}
	return &stop{status: Status{Final: Ambiguous}, silent: true}
}

// done stops what is committed.
func done(f *facts) *stop {
	if f.effect == nil || f.effect.final != Committed {
		return nil
	}
	return &stop{status: Status{Final: Committed, Way: Duplicate}, silent: true}
}

// over stops what waits for a person, what a person closed or rejected, and what the
// target refused for good.
func over(f *facts) *stop {
	switch {
	case f.effect.waiting(f.now):
		s := f.awaits(nil)
		s.once, s.silent = true, false
		return s
	case f.effect == nil || f.effect.final != Refused:
		return nil
	case f.effect.closed:
		return &stop{status: Status{Final: Refused, Reason: Closed}, why: "a person closed this effect; a further attempt is a new revision", once: true}
	case f.effect.reason == RejectedByPerson:
		return &stop{status: Status{Final: Refused, Reason: RejectedByPerson}, why: "a person rejected this", once: true}
	case f.effect.rejected:
		return &stop{status: Status{Final: Refused, Reason: TargetRejected}, why: "the target refused this for good", once: true}
	}
	return nil
}

// unauthorized stops what no live lease covers, as of the head of the authority
// log that f holds (I4). An effect that holds a use doesn't count itself (C20).
func unauthorized(f *facts) *stop {
	refuse := func(why string) *stop {
		reason := f.atRecovery(LeaseDead, LeaseAtRecovery)
		return &stop{status: Status{Final: Refused, Reason: reason}, why: fmt.Sprintf("lease %q %s", f.proposal.Lease, why)}
	}
	g := f.authority.current(f.proposal.Lease, f.head.Proven)
	switch {
	case g == nil:
		return refuse("is not granted")
	case g.dead():
		return refuse("is revoked")
	}
	if why := g.expired(f.latest().Add(f.margin)); why != "" {
		return refuse(why)
	}
	for _, limit := range g.Limits {
		if f.proposal.keepsSecret(limit.Field) {
			return refuse(fmt.Sprintf("limits %q, which the proposal keeps secret", limit.Field))
		}
	}
	if f.covered != g { // grants and decisions don't change: what covers once covers again
		if why := g.covers(f.proposal.Agent, f.proposal.Effect); why != "" {
			return refuse(why)
		}
		f.covered = g
	}
	if g.Budget != "" && f.proposal.Budget != "" && f.proposal.Budget != g.Budget {
		return refuse(fmt.Sprintf("requires budget %q, not %q", g.Budget, f.proposal.Budget))
	}
	line, used := g.first(), 0
	for l := g; l != nil; l = l.replaced { // a suspect holds the lease that its decision named, which may be any of the line
		used += f.state.uses[l.ID]
	}
	if f.authority.line(f.effect.holds) == line.ID {
		used--
	}
	if g.Uses > 0 && used >= g.Uses {
		return refuse(fmt.Sprintf("is used up: %d of %d", used, g.Uses))
	}
	f.lease, f.granted, f.line, f.budget = g.Lease, g.seq, line.ID, cmp.Or(f.proposal.Budget, g.Budget)
	f.drained = [2]journal.Seq{line.seq}
	if b := f.authority.budgets[f.budget]; b != nil {
		f.drained[1] = b.first().seq
	}
	return nil
}

// latest is the latest time that anything here speaks of: the wall clock's, or that
// of an entry of either log. A clock that is behind must not bring a lease back to
// life that a log proves to be over.
func (f *facts) latest() time.Time { return later(later(f.now, f.state.logged), f.authority.logged) }

// falseAtDecision stops what was decided on a fact that already spoke against it.
func falseAtDecision(f *facts) *stop {
	for _, p := range f.proposal.Premises {
		if len(p.Want) > 0 && p.Holds != Unchanged && !sameJSON(p.Seen, p.Want) {
			return &stop{
				status: Status{Final: Refused, Reason: FalseAtDecision},
				why:    fmt.Sprintf("%s was %s when it was decided, not %s", p.about(), p.Seen, p.Want),
			}
		}
	}
	return nil
}

// stale stops what rests on a fact that changed, or that was seen too long ago. On
// an approval the facts are those that the person saw (I7); while nobody has
// answered, nothing rests on them.
func stale(f *facts) *stop {
	if a := f.asked(); a != nil && a.ruling == nil {
		return nil
	}
	refuse := func(about, why string) *stop {
		reason := f.atRecovery(StalePremise, StaleAtRecovery)
		return f.moved(&stop{status: Status{Final: Refused, Reason: reason}, about: about, why: why})
	}
	for _, p := range f.proposal.Premises {
		p = f.seen(p)
		if age := f.now.Sub(p.At); p.MaxAge > 0 && age > p.MaxAge {
			why := fmt.Sprintf("%s was seen %v ago, more than %v", p.about(), age, p.MaxAge)
			return refuse(why, why)
		}
		if p.Holds == ByTarget {
			continue
		}
		want := p.Seen
		if p.Holds == Equals {
			want = p.Want
		}
		i := slices.IndexFunc(f.read, func(r Reading) bool { return r.Name == p.Name && r.Whose == p.Whose })
		if i < 0 {
			return refuse(p.about()+" was not read", p.about()+" was not read")
		}
		if !sameJSON(f.read[i].Value, want) {
			return refuse(p.about()+" changed", fmt.Sprintf("%s is %s, not %s", p.about(), f.read[i].Value, want))
		}
	}
	return nil
}

func (p Premise) about() string {
	if p.Whose == "" {
		return fmt.Sprintf("premise %q", p.Name)
	}
	return fmt.Sprintf("premise %q of %s", p.Name, p.Whose)
}

// keyExpired stops a resend that rests on the key where the key may be forgotten
// (C9, C30).
func keyExpired(f *facts) *stop {
	if f.mode != resend || f.effect.keyEnds(f.can).After(later(f.now, f.state.logged)) {
		return nil
	}
	return &stop{status: Status{Final: InFlight}, why: "the key window is over", silent: true}
}

// later is the later of two times. A window is held against the journal's latest
// entry where the wall clock says less: a clock that was set back must not
// bring a forgotten key to life again.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// keyEnds is when the target's promise to absorb a repeat ends, less the margin:
// counted from the first attempt whose key it may know. The zero time is no
// promise.
func (e *effect) keyEnds(can Capabilities) time.Time {
	if can.DedupWindow == 0 || len(e.keyed) == 0 {
		return time.Time{}
	}
	return e.keyed[0].time.Add(can.DedupWindow - can.DedupMargin)
}
