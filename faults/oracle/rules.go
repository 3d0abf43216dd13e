package oracle

import (
	"fmt"
	"slices"

	"github.com/interlock-bench/interlock-bench/faults/history"
)

// Rule finds one kind of breach. Find returns a sentence for each and nothing
// where the history keeps the rule.
type Rule struct {
	Name  string
	Class Class
	Find  func(*reading) []string
}

// Rules are all of them, in the order in which a verdict names them.
var Rules = []Rule{
	{"more-landings", Duplicate, moreLandings},
	{"more-money", Duplicate, moreMoney},
	{"claimed-done", Lost, claimedDone},
	{"dropped", Lost, dropped},
	{"lease-not-live", Unauthorized, leaseNotLive},
	{"lease-does-not-cover", Unauthorized, leaseDoesNotCover},
	{"not-approved", Unauthorized, notApproved},
	{"over-cap", Unauthorized, overCap},
	{"not-eligible", Stale, notEligible},
	{"never-settled", Stuck, neverSettled},
	{"hung", Stuck, hung},
	{"avoidable-doubt", Stuck, avoidableDoubt},
	{"false-refusal", FalseRefusal, falseRefusal},
	{"honest-doubt", Ambiguous, honestDoubt},
}

// counted are the landings of an account that are held against the column: its
// own, and each by a person's hand that one of its senders could have seen. A
// person who pays after the column's last look is not the column's doing.
func (r *reading) counted(a *account) []landing {
	lastLook := -1
	for _, l := range r.of(a) {
		if !l.byHand() {
			lastLook = max(lastLook, l.facts)
		}
	}
	var counted []landing
	for _, l := range r.of(a) {
		if !l.byHand() || l.pos < lastLook {
			counted = append(counted, l)
		}
	}
	return counted
}

// moreLandings finds accounts with more landings than approvals. Two of
// different amounts are two, and a person's refund that the column could have
// seen is one.
func moreLandings(r *reading) (found []string) {
	for i := range r.accounts {
		a := &r.accounts[i]
		if n := len(r.counted(a)); n > len(a.approved) {
			found = append(found, fmt.Sprintf("case %s was paid %d times for %d approved, the last time at %s",
				a.case_, n, len(a.approved), event(r.counted(a)[n-1].pos)))
		}
	}
	return found
}

// moreMoney finds accounts from which more left than was approved, in however
// many landings.
func moreMoney(r *reading) (found []string) {
	for i := range r.accounts {
		a := &r.accounts[i]
		var paid, approved int64
		for _, l := range r.counted(a) {
			paid += l.body.Amount
		}
		for _, p := range a.approved {
			approved += p.Amount
		}
		if paid > approved {
			found = append(found, fmt.Sprintf("%s left for case %s where %s was approved", cents(paid), a.case_, cents(approved)))
		}
	}
	return found
}

// claimedDone finds approvals whose caller was told last that it happened, where
// nothing landed for the case in the whole trial.
func claimedDone(r *reading) (found []string) {
	for _, p := range r.declared.Approved {
		a, ok := r.last(p.Request)
		if ok && a.body.Says == history.SaysDone && len(r.of(r.under(p.Order, p.Case))) == 0 {
			found = append(found, fmt.Sprintf("%s: the caller was told %s, and nothing landed", event(a.pos), a.body.Status))
		}
	}
	return found
}

// dropped finds approvals of which nobody ever said anything and for which
// nothing landed, although authority and facts held to the end.
func dropped(r *reading) (found []string) {
	end := len(r.at) - 1
	for _, p := range r.declared.Approved {
		_, told := r.last(p.Request)
		if !told && len(r.of(r.under(p.Order, p.Case))) == 0 && !r.lost(p, end) {
			found = append(found, fmt.Sprintf("%s was approved, nothing landed, and the caller was told nothing", p.Request))
		}
	}
	return found
}

// sent calls check for every landing of the column under an approved order and
// case, with the content that landed and the position of that last look of its
// sender's which look picks.
func (r *reading) sent(look func(looks) int, check func(history.Approval, int) string) (found []string) {
	for _, l := range r.landings {
		a := r.under(l.body.Order, l.body.Case)
		if a == nil || l.byHand() {
			continue
		}
		p := a.approval(l.body.Amount)
		p.Amount = l.body.Amount
		if lacks := check(p, look(l.looks)); lacks != "" {
			found = append(found, fmt.Sprintf("%s: %s landed, and at the last look (%s) %s",
				event(l.pos), cents(l.body.Amount), event(look(l.looks)), lacks))
		}
	}
	return found
}

func atLease(l looks) int { return l.lease }
func atFacts(l looks) int { return l.facts }

// leaseNotLive finds landings sent when no lease for them had been granted, or
// its revocation had returned, or it had ended (I4).
func leaseNotLive(r *reading) []string { return r.sent(atLease, r.unleased) }

// leaseDoesNotCover finds landings sent under a live lease that is not for this
// agent, case or amount, or that other effects had used up (I4).
func leaseDoesNotCover(r *reading) []string { return r.sent(atLease, r.uncovered) }

// notApproved finds landings by the column of an order, case or amount that
// nobody approved.
func notApproved(r *reading) (found []string) {
	for _, l := range r.landings {
		if l.byHand() {
			continue
		}
		a := r.under(l.body.Order, l.body.Case)
		if a == nil || a.approval(l.body.Amount).Amount != l.body.Amount {
			found = append(found, fmt.Sprintf("%s: %s landed for order %s under case %s, which nobody approved",
				event(l.pos), cents(l.body.Amount), l.body.Order, l.body.Case))
		}
	}
	return found
}

// overCap finds caps from which the column took more than they allow (I9). What a
// person spent from one is not the column's doing.
func overCap(r *reading) (found []string) {
	for _, c := range r.declared.Caps {
		if spent := r.spent(c, false); spent > c.Max {
			found = append(found, fmt.Sprintf("%s left under cap %s of %s", cents(spent), c.Name, cents(c.Max)))
		}
	}
	return found
}

// spent is what left under a cap; a person's hand counts where it is asked for.
func (r *reading) spent(c history.Cap, byHand bool) (sum int64) {
	for _, l := range r.landings {
		if slices.Contains(c.Cases, l.body.Case) && (byHand || !l.byHand()) {
			sum += l.body.Amount
		}
	}
	return sum
}

// capped says whether what left in the whole trial leaves no room for an approval
// under a cap: what is under way holds its part before it lands.
func (r *reading) capped(p history.Approval) bool {
	return slices.ContainsFunc(r.declared.Caps, func(c history.Cap) bool {
		return slices.Contains(c.Cases, p.Case) && r.spent(c, true)+p.Amount > c.Max
	})
}

// notEligible finds landings sent when the order was no longer eligible (I3). A
// send after a person's refund under the same case is found by moreLandings.
func notEligible(r *reading) []string { return r.sent(atFacts, r.ineligible) }

// neverSettled finds requests whose last answer is pending and that nobody was
// ever told an outcome of. Beside an outcome a pending answer is an observer's.
func neverSettled(r *reading) (found []string) {
	for _, last := range r.lastEach() {
		if last.body.Says != history.SaysPending {
			continue
		}
		settled := false
		for _, a := range r.answers {
			same := a.body.Request == last.body.Request && a.body.Amount == last.body.Amount
			settled = settled || same && a.body.Says != history.SaysPending
		}
		if !settled {
			found = append(found, fmt.Sprintf("%s: the last that was said of %s is %s", event(last.pos), last.body.Request, last.body.Status))
		}
	}
	return found
}

// hung finds processes that did not come to an end.
func hung(r *reading) []string { return r.hung }

// doubts are the approvals whose caller was told last that nobody can tell.
func (r *reading) doubts(found func(history.Approval, at[history.Answer])) {
	for _, p := range r.declared.Approved {
		if a, ok := r.last(p.Request); ok && a.body.Says == history.SaysUnknown {
			found(p, a)
		}
	}
}

// avoidableDoubt finds answers that say nobody can tell where the declared
// service could have.
func avoidableDoubt(r *reading) (found []string) {
	r.doubts(func(p history.Approval, a at[history.Answer]) {
		if how := r.answerable(p, a.pos); how != "" {
			found = append(found, fmt.Sprintf("%s: the caller was told %s, but %s", event(a.pos), a.body.Status, how))
		}
	})
	return found
}

// honestDoubt finds answers that say nobody can tell where that is so. It is a
// finding because somebody must look.
func honestDoubt(r *reading) (found []string) {
	r.doubts(func(p history.Approval, a at[history.Answer]) {
		if r.answerable(p, a.pos) == "" {
			found = append(found, fmt.Sprintf("%s: the caller was told %s, and the service leaves no other answer", event(a.pos), a.body.Status))
		}
	})
	return found
}

// answerable says how the service could have told, at pos, whether the approved
// effect landed. "" says that it could not.
//
// A key that is still remembered tells only whoever may send again, so it counts
// while authority and facts hold. A lookup tells where the refund landed and can
// still be found, and tells an absence where the service bounds or fences what
// is under way (I10). One that was wrong before pos tells nothing (C24).
func (r *reading) answerable(p history.Approval, pos int) string {
	s, now, first := r.declared.Service, r.at[pos], r.at[r.firstSend(p, pos)]
	forgot := len(r.forgot) > 0 && r.forgot[0] < pos
	if s.DedupWindow > 0 && now-first < s.DedupWindow && !forgot && r.missing(p, pos) == "" {
		return "the same key could have been sent again"
	}
	if wrong := len(r.wrong) > 0 && r.wrong[0] < pos; !s.Lookup || wrong {
		return ""
	}
	for _, l := range r.of(r.under(p.Order, p.Case)) {
		if !l.byHand() && l.pos < pos && (s.LookupWindow == 0 || now-r.at[l.pos] < s.LookupWindow) {
			return fmt.Sprintf("a lookup would have found what landed at %s", event(l.pos))
		}
	}
	if (s.LandingBound > 0 || s.Fencing) && (s.LookupWindow == 0 || now-first < s.LookupWindow) {
		return "a lookup would have told, once nothing could land any more"
	}
	return ""
}

// firstSend is the position of the first look before a send for the approval, or
// of the trial's beginning, from which a key's window would at the earliest run.
func (r *reading) firstSend(p history.Approval, pos int) int {
	for _, q := range r.requests {
		if q.pos < pos && q.body.Order == p.Order && q.body.Case == p.Case {
			return q.look
		}
	}
	return 0
}

// falseRefusal finds approvals whose last answer for the approved amount is a
// refusal, where nothing landed and authority and facts held all along. To
// refuse another amount, or a case that is already paid, is right.
func falseRefusal(r *reading) (found []string) {
	for _, a := range r.lastEach() {
		p, ok := r.approved(a.body.Request)
		if !ok || a.body.Says != history.SaysNot || a.body.Amount != p.Amount {
			continue
		}
		if len(r.of(r.under(p.Order, p.Case))) == 0 && !r.lost(p, a.pos) && !r.capped(p) {
			found = append(found, fmt.Sprintf("%s: the caller was told %s, though authority and facts held", event(a.pos), a.body.Status))
		}
	}
	return found
}
