package oracle

import (
	"cmp"
	"fmt"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
)

// missing says what an approval lacks before the event at pos: a live lease that
// covers it, an eligible order, a case that no person has refunded. "" is
// nothing.
func (r *reading) missing(p history.Approval, pos int) string {
	return r.missingAt(p, looks{pos, pos, pos})
}

// missingAt is missing for a sender that looked where of says.
func (r *reading) missingAt(p history.Approval, of looks) string {
	return cmp.Or(r.unleased(p, of.lease), r.uncovered(p, of.lease), r.ineligible(p, of.facts), r.refundedByHand(p, of.facts))
}

// lost says whether something that the approval needs, once there, was gone at
// some event up to and including pos, or was never there. A revocation under way
// counts as gone here: refusing during it is right.
func (r *reading) lost(p history.Approval, pos int) bool {
	had := false
	for i := 1; i <= pos; i++ {
		switch missing := r.missing(p, i); {
		case missing == "":
			had = true
		case had:
			return true
		}
	}
	for _, e := range r.leases {
		if e.kind == history.Revoking && e.pos <= pos && r.sameAuthority(p.Lease, e.body.Lease, pos) {
			return true
		}
	}
	return !had
}

// sameAuthority says whether one lease is the other, or replaces it through any
// number of renewals.
func (r *reading) sameAuthority(root, lease string, pos int) bool {
	for hops := 0; hops <= len(r.leases); hops++ {
		if lease == root {
			return true
		}
		grant, ok := r.grant(lease, pos)
		if !ok || grant.body.Replaces == "" {
			return false
		}
		lease = grant.body.Replaces
	}
	return false
}

// grant returns the grant of a lease before pos.
func (r *reading) grant(lease string, pos int) (leaseEvent, bool) {
	for _, e := range r.leases {
		if e.kind == history.Granted && e.pos < pos && e.body.Lease == lease {
			return e, true
		}
	}
	return leaseEvent{}, false
}

// revoked says whether the revocation of a lease, or of one that it replaces,
// had returned before pos. A revocation is an interval: until it has returned a
// dispatch is still right (I4).
func (r *reading) revoked(lease string, pos int) bool {
	for _, e := range r.leases {
		if e.kind == history.Revoked && e.pos < pos && r.sameAuthority(e.body.Lease, lease, pos) {
			return true
		}
	}
	return false
}

// grants returns the live grants of an approval's authority before pos: its
// lease and what renewed it, without what is revoked or past its end.
func (r *reading) grants(p history.Approval, pos int) []leaseEvent {
	now := r.at[min(pos, len(r.at)-1)]
	var live []leaseEvent
	for _, e := range r.leases {
		if e.kind != history.Granted || e.pos >= pos || !r.sameAuthority(p.Lease, e.body.Lease, pos) {
			continue
		}
		if !r.revoked(e.body.Lease, pos) && !expired(e.body, now) {
			live = append(live, e)
		}
	}
	return live
}

func expired(l history.Lease, now time.Duration) bool { return l.Expires != 0 && now >= l.Expires }

// unleased says why no lease of the approval was live before pos.
func (r *reading) unleased(p history.Approval, pos int) string {
	if len(r.grants(p, pos)) > 0 {
		return ""
	}
	if _, granted := r.grant(p.Lease, pos); !granted {
		return fmt.Sprintf("lease %s had not been granted", p.Lease)
	}
	if r.revoked(p.Lease, pos) {
		return fmt.Sprintf("lease %s had been revoked", p.Lease)
	}
	return fmt.Sprintf("lease %s had ended", p.Lease)
}

// uncovered says why the live leases of the approval don't cover it. It is
// silent where none is live.
func (r *reading) uncovered(p history.Approval, pos int) string {
	why := ""
	for _, e := range r.grants(p, pos) {
		l := e.body
		switch {
		case l.Holder != "" && l.Holder != p.Agent:
			why = fmt.Sprintf("lease %s is held by %s, not by %s", l.Lease, l.Holder, p.Agent)
		case l.Case != "" && l.Case != p.Case:
			why = fmt.Sprintf("lease %s is for case %s, not for %s", l.Lease, l.Case, p.Case)
		case l.Max != 0 && p.Amount > l.Max:
			why = fmt.Sprintf("lease %s covers at most %s, not %s", l.Lease, cents(l.Max), cents(p.Amount))
		case l.Uses != 0 && r.usedByOthers(p, pos) >= l.Uses:
			why = fmt.Sprintf("lease %s was used up: it is for %d", l.Lease, l.Uses)
		default:
			return ""
		}
	}
	return why
}

// usedByOthers counts the other approvals of the same authority under which a
// column's money landed before pos. Uses count effects, not attempts, so what
// landed for the approval's own case is no further use.
func (r *reading) usedByOthers(p history.Approval, pos int) int {
	n := 0
	for _, other := range r.declared.Approved {
		if other.Lease != p.Lease || other.Order == p.Order && other.Case == p.Case {
			continue
		}
		for _, l := range r.of(r.under(other.Order, other.Case)) {
			if !l.byHand() && l.pos < pos && l.body.Amount == other.Amount {
				n++
				break
			}
		}
	}
	return n
}

// ineligible says whether the order was not eligible before pos. An order that
// never changed is as it was approved.
func (r *reading) ineligible(p history.Approval, pos int) string {
	for i := len(r.orders) - 1; i >= 0; i-- {
		if o := r.orders[i]; o.pos < pos && o.body.Order == p.Order {
			if !o.body.Eligible {
				return fmt.Sprintf("order %s was no longer eligible since %s", p.Order, event(o.pos))
			}
			return ""
		}
	}
	return ""
}

// refundedByHand says whether a person had paid under the approval's case
// before pos, so that nothing is left of the account.
func (r *reading) refundedByHand(p history.Approval, pos int) string {
	a := r.under(p.Order, p.Case)
	byHand := 0
	for _, l := range r.of(a) {
		if l.byHand() && l.pos < pos {
			if byHand++; byHand >= len(a.approved) {
				return fmt.Sprintf("a person had refunded under case %s at %s", p.Case, event(l.pos))
			}
		}
	}
	return ""
}

// cents prints money for a sentence.
func cents(c int64) string { return fmt.Sprintf("$%d.%02d", c/100, c%100) }
