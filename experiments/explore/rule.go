package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/disk"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// Rule is one thing that must never be. Those that the judge of histories has as
// well bear its names and are of its classes.
type Rule struct {
	Name  string
	Class oracle.Class
	What  string
}

// ClassOf is the class of a rule.
func ClassOf(name string) oracle.Class {
	for _, r := range Rules {
		if r.Name == name {
			return r.Class
		}
	}
	return oracle.Unknown
}

// Rules are all of them.
var Rules = []Rule{
	{"more-landings", oracle.Duplicate, "an effect landed twice (I2)"},
	{"may-still-land", oracle.Duplicate, "sent while an earlier attempt may still land, and no key protects the repeat (I2, I10)"},
	{"claimed-done", oracle.Lost, "COMMITTED, in the journal or to the caller, and nothing landed (I12)"},
	{"refused-landed", oracle.Lost, "REFUSED, and it landed (I10, I12)"},
	{"untruthful", oracle.Lost, "the receipt says another thing than the ledger or the journal (I12)"},
	{"lease-not-live", oracle.Unauthorized, "dispatched or sent after the revocation returned, or although it could be read (I4)"},
	{"doubt-not-told", oracle.Unauthorized, "a revocation returned without telling of an effect in doubt (I4)"},
	{"not-eligible", oracle.Stale, "sent although the last look at the premise, taken after the connection stood, saw it changed; or without such a look (I3)"},
	{"read-too-early", oracle.Stale, "sent on a premise that was read more than a second before (I3)"},
	{"not-approved", oracle.Unauthorized, "another payload than the first durable one was sent, or taken for it (I5)"},
	{"intent-first", oracle.Duplicate, "a request left whose DISPATCHED was not on the disk (I1)"},
	{"sent-after-failure", oracle.Duplicate, "a request left after the journal's disk had failed (I11)"},
	{"request-twice", oracle.Duplicate, "one DISPATCHED, two requests (I14)"},
	{"never-settled", oracle.Stuck, "open at the end, with nothing more going wrong (I13, progress)"},
	{"avoidable-doubt", oracle.Stuck, "AMBIGUOUS where the service allows an answer (progress)"},
	{"false-refusal", oracle.FalseRefusal, "REFUSED although lease and premise held and the service said no final no (progress)"},
	{"gate-failed", oracle.Stuck, "the gate or the journal failed without a fault of the disk"},
}

// Violation is a rule that an execution broke.
type Violation struct {
	Rule     string
	Why      string
	Schedule Schedule // that leads there
}

func (v *Violation) Error() string { return fmt.Sprintf("%s: %s (%s)", v.Rule, v.Why, v.Schedule) }

func (x *execution) broken(rule, format string, args ...any) {
	if x.broke == nil {
		x.broke = &Violation{Rule: rule, Why: fmt.Sprintf(format, args...)}
	}
}

// look is what a sender saw for its present attempt.
type look struct {
	connected  bool
	read       bool
	fact       fact
	at         time.Duration
	dispatched bool
}

// passed judges a step of the gate.
func (x *execution) passed(a *agent, p trace.Point, e int) {
	w := x.w
	x.tell.point(p, e)
	switch p {
	case protocol.PointRechecked:
		if w.lease == returned {
			x.broken("lease-not-live", "%s was dispatched, and the revocation had returned", request(e))
		}
	case protocol.PointIntentDurable:
		a.looks[e].dispatched = true
	case protocol.PointLastChecked:
		l := a.looks[e]
		if w.lease >= recorded {
			x.broken("lease-not-live", "%s passed the last check, and the revocation could be read", request(e))
		}
		if l.read && w.now-l.at > time.Second {
			x.broken("read-too-early", "%s passed the last check on a premise that was read %v before", request(e), w.now-l.at)
		}
	}
}

// judgeSend judges a request whose first byte leaves.
func (x *execution) judgeSend(a *agent, e, payload int, token journal.Token) {
	w := x.w
	can := w.bound.profiles[e].Can
	l := a.looks[e]
	a.looks[e] = look{}
	for _, t := range w.tokens {
		if t == token {
			x.broken("request-twice", "%s was sent again as attempt %s", request(e), token)
		}
	}
	if x.proc.broken {
		x.broken("sent-after-failure", "%s was sent after the journal's disk had failed", request(e))
	}
	if !durable(w.journal, w.bound.ids[e], token) {
		x.broken("intent-first", "%s left as attempt %s, which is not on the disk", request(e), token)
	}
	if w.fixed[e] != payload+1 {
		x.broken("not-approved", "%s was sent with payload %d", request(e), payload)
	}
	if w.lease == returned && !l.dispatched {
		x.broken("lease-not-live", "%s left undispatched, and the revocation had returned", request(e))
	}
	if !can.Conditional {
		switch {
		case !l.connected || !l.read:
			x.broken("not-eligible", "%s left without a look at its premise behind the connection", request(e))
		case l.fact != asSeen:
			x.broken("not-eligible", "%s left, and its last look had seen the premise changed", request(e))
		}
	}
	if can.DedupWindow > 0 && (!w.service.keys[e].known || w.remembers(e)) {
		return // the key absorbs it
	}
	for _, f := range w.service.flying {
		if f.effect == e && !f.token.Less(w.service.fences[e]) {
			x.broken("may-still-land", "%s was sent while attempt %s is on its way", request(e), f.token)
		}
	}
}

// durable reports whether the disk holds the DISPATCHED of an attempt, as a
// reader says who shares no code with the journal.
func durable(d *disk.Disk, id journal.ID, token journal.Token) bool {
	for _, f := range disk.Read(d.Synced()).Frames {
		if f.Segment == token.Segment && f.Seq == uint64(token.Seq) {
			return f.Kind == uint16(journal.Dispatched) && f.Effect == id
		}
	}
	return false
}

// judgeWorld judges where everything stands after a step.
func (x *execution) judgeWorld() {
	w := x.w
	for e, s := range w.standing {
		n := w.service.landings(e)
		if w.service.unmet[e] {
			x.broken("not-eligible", "%s landed on a premise that the service was to check", request(e))
		}
		switch {
		case n > 1:
			x.broken("more-landings", "%s landed %d times", request(e), n)
		case s == committed && n == 0:
			x.broken("claimed-done", "%s is COMMITTED in the journal, and nothing landed", request(e))
		case s == refused && n > 0:
			x.broken("refused-landed", "%s is REFUSED in the journal, and it landed", request(e))
		}
	}
}

// judgeAnswer judges what a caller is told.
func (x *execution) judgeAnswer(e, asked int, r protocol.Result, during string) {
	w := x.w
	x.tell.answer(e, asked, r, during)
	n := w.service.landings(e)
	if r.Status.Final == protocol.Committed && n == 0 {
		x.broken("claimed-done", "the caller was told that %s is %s, and nothing landed", request(e), r.Status)
	}
	if r.Status.Final == protocol.Committed && asked >= 0 && w.fixed[e] != asked+1 {
		x.broken("not-approved", "the caller asked for payload %d of %s and was told %s", asked, request(e), r.Status)
	}
	conflict := r.Status.Reason == protocol.ConflictingPayload
	if r.Status.Final == protocol.Refused && n > 0 && !conflict {
		x.broken("refused-landed", "the caller was told that %s is %s, and it landed", request(e), r.Status)
	}
	if r.Status.Final == protocol.Refused && conflict && (asked < 0 || w.fixed[e] == asked+1) {
		x.broken("false-refusal", "the caller was told that %s is %s, and it asked for what is recorded", request(e), r.Status)
	}
	switch f := r.Receipt.Executed.Is; {
	case f == protocol.Yes && n == 0:
		x.broken("untruthful", "the receipt of %s says executed, and nothing landed", request(e))
	case f == protocol.No && n > 0 && w.bound.Agents == 1: // beside another agent it may be true no longer
		x.broken("untruthful", "the receipt of %s says not executed, and it landed", request(e))
	}
}

// judgeRevocation judges what a revocation told when it returned.
func (x *execution) judgeRevocation(doubt []protocol.OpenEffect) {
	w := x.w
	for e, id := range w.bound.ids {
		told := slices.ContainsFunc(doubt, func(o protocol.OpenEffect) bool { return o.Effect == id })
		if !told && w.inDoubt(e) {
			x.broken("doubt-not-told", "the revocation returned and told nothing of %s", request(e))
		}
	}
}

// inDoubt reports whether the last entry of e is an attempt, or leaves it to a
// person.
func (w *world) inDoubt(e int) bool {
	var last journal.Kind
	for _, f := range disk.Read(w.journal.Cached()).Frames {
		if f.Effect == w.bound.ids[e] {
			last = journal.Kind(f.Kind)
		}
	}
	return last == journal.Dispatched || last == journal.Suspect || last == journal.Ambiguous
}

// judgeEnd judges a process that has done all it can, with nothing more going
// wrong.
func (x *execution) judgeEnd() {
	w := x.w
	for e, s := range w.standing {
		switch s {
		case committed:
		case refused:
			if w.lease == alive && w.service.facts[e] == asSeen && !w.service.finals[e] {
				x.broken("false-refusal", "%s is REFUSED at the end, and everything held", request(e))
			}
		case ambiguous:
			if how := x.answerable(e); how != "" {
				x.broken("avoidable-doubt", "%s is AMBIGUOUS at the end, but %s", request(e), how)
			}
		default:
			x.broken("never-settled", "%s is open at the end", request(e))
		}
	}
}

// answerable says how the service could have told whether e landed; "" says that
// it could not.
func (x *execution) answerable(e int) string {
	w := x.w
	can := w.bound.profiles[e].Can
	// Two attempts without an answer, at a service that can be asked and doesn't
	// bound its landings, are left to a person (R7).
	attempts := x.proc.attempts[e]
	unanswered := can.Lookup && can.LandingBound == 0 && attempts.n > 1
	if can.DedupWindow > 0 && !unanswered && !w.damaged && w.lease == alive && w.service.facts[e] == asSeen &&
		!w.service.keys[e].failed && epoch.Add(w.now).Before(attempts.first.Add(can.DedupWindow-can.DedupMargin)) {
		return "the same key could have been sent again"
	}
	if !can.Lookup {
		return ""
	}
	if _, ok := w.found(e, w.now-can.LookupLag); ok {
		return "a lookup would have found it"
	}
	if (can.LandingBound > 0 || can.Fencing) && can.LookupWindow == 0 {
		return "a lookup would have told, once nothing could land any more"
	}
	return ""
}
