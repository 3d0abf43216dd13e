package oracle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
)

// BeforeSend is the point at which a column can look at the world for the last
// time before its request leaves. A part's name in front of it is allowed.
const BeforeSend = "before-send"

// reading is a history with its bodies decoded, sorted by what they are. Events
// are known by their position, which is also their order.
type reading struct {
	declared history.Declaration
	at       []time.Duration // by position
	accounts []account
	answers  []at[history.Answer]
	requests []request
	landings []landing
	leases   []leaseEvent
	orders   []at[history.Order]
	forgot   []int
	deaths   []int
	wrong    []int // lookups that showed money which the ledger doesn't have

	questions []question
	hung      []string

	asked, modelled, unfired int
}

// at is a body with the position of its event.
type at[T any] struct {
	pos  int
	body T
}

// account is one approved case of one order with what was approved under it.
type account struct {
	order, case_ string
	approved     []history.Approval
}

// request is one request for money as the service read it.
type request struct {
	at[history.Request]
	looks
}

// looks are where the sender of a request looked for the last time.
type looks struct {
	look  int // before-send: nothing of it had left
	facts int // at the order
	lease int // at its authority
}

// question is one about an order, asked for the sake of an effect.
type question struct {
	pos           int
	order, effect string
}

// looksOf says where the sender of q looked last, given its last step before the
// send and the position at which the newest process began.
//
// Between a look and the first byte lies a window that only the service could
// close (I3, I4). What changes in it is right at the last look and counted as
// the window. It is granted to a sender that did look: it asked about the order
// for this effect, in the same life and at the same instant; or, at its
// authority, the revocation told its principal that an effect is in doubt, which
// is the dispatch whose request then leaves, again in the same life, at the same
// instant, and before any other request.
func (r *reading) looksOf(q history.Request, look, born int) looks {
	of := looks{look, look, look}
	within := func(pos int) bool { return born < pos && pos < look && r.at[pos] == r.at[look] }
	for _, asked := range r.questions {
		if within(asked.pos) && asked.order == q.Order && asked.effect == q.Effect {
			of.facts = asked.pos
		}
	}
	for _, e := range r.leases {
		first := len(r.requests) == 0 || r.requests[len(r.requests)-1].pos < e.pos
		if e.kind == history.Revoked && e.body.Doubt > 0 && within(e.pos) && first && of.lease == look {
			of.lease = e.pos
		}
	}
	return of
}

// landing is money that moved. A person's hand has no request.
type landing struct {
	at[history.Landing]
	looks // of the request that did it; a hand's own position
}

func (l landing) byHand() bool { return l.body.Request == 0 }

type leaseEvent struct {
	at[history.Lease]
	kind history.Kind
}

// passage is a process's last look before a request.
type passage struct {
	pos     int
	who     string
	subject string
	used    bool
}

// lookOf finds the last step at which the sender of a request could look: the
// latest passage of before-send that no other request has used, by the process
// the event names, or, where it names none, by the process that was started
// last. A program without such points is judged at the request itself.
func lookOf(passages []passage, e history.Event, r history.Request, pos int, newest string) int {
	who := e.Who
	if !isProcess(who) {
		who = newest
	}
	for _, same := range []func(passage) bool{
		func(p passage) bool { return p.who == who },
		func(p passage) bool { return !isProcess(e.Who) && p.subject != "" && p.subject == r.Effect },
	} {
		for i := len(passages) - 1; i >= 0; i-- {
			if p := &passages[i]; !p.used && same(*p) {
				p.used = true
				return p.pos
			}
		}
	}
	return pos
}

// isProcess tells a started process, "worker#2", from the service and people.
func isProcess(who string) bool { return strings.Contains(who, "#") }

func isBeforeSend(point string) bool {
	return point == BeforeSend || strings.HasSuffix(point, "/"+BeforeSend)
}

// under returns the account of an order and case, or nil.
func (r *reading) under(order, case_ string) *account {
	for i := range r.accounts {
		if a := &r.accounts[i]; a.order == order && a.case_ == case_ {
			return a
		}
	}
	return nil
}

// of returns the landings of an account, in order, people's included.
func (r *reading) of(a *account) []landing {
	var of []landing
	for _, l := range r.landings {
		if l.body.Order == a.order && l.body.Case == a.case_ {
			of = append(of, l)
		}
	}
	return of
}

// approval returns the approval that a landing is held against: the one of its
// amount, else the account's first.
func (a *account) approval(amount int64) history.Approval {
	for _, p := range a.approved {
		if p.Amount == amount {
			return p
		}
	}
	return a.approved[0]
}

// approved returns the approval of a request id.
func (r *reading) approved(request string) (history.Approval, bool) {
	for _, p := range r.declared.Approved {
		if p.Request == request {
			return p, true
		}
	}
	return history.Approval{}, false
}

// last returns the last answer about a request, of whatever amount.
func (r *reading) last(request string) (at[history.Answer], bool) {
	for _, a := range slices.Backward(r.answers) {
		if a.body.Request == request {
			return a, true
		}
	}
	return at[history.Answer]{}, false
}

// lastEach returns the last answer for every request and amount, in the order of
// the answers.
func (r *reading) lastEach() []at[history.Answer] {
	type asked struct {
		request string
		amount  int64
	}
	seen := map[asked]bool{}
	var last []at[history.Answer]
	for _, a := range slices.Backward(r.answers) {
		k := asked{a.body.Request, a.body.Amount}
		if !seen[k] {
			seen[k] = true
			last = append(last, a)
		}
	}
	slices.Reverse(last)
	return last
}

// money is what left for the approved cases, by whomever.
func (r *reading) money() int64 {
	var sum int64
	for _, l := range r.landings {
		if slices.ContainsFunc(r.declared.Approved, func(p history.Approval) bool { return p.Case == l.body.Case }) {
			sum += l.body.Amount
		}
	}
	return sum
}

// agreement compares the last answer for each request and amount with the
// ledger. A person's refund is not the column's: "not" may stand beside it.
func (r *reading) agreement() string {
	for _, a := range r.lastEach() {
		landed, ever := false, false
		if p, ok := r.approved(a.body.Request); ok {
			for _, l := range r.of(r.under(p.Order, p.Case)) {
				if !l.byHand() && l.body.Amount == a.body.Amount {
					ever = true
					landed = landed || l.pos < a.pos
				}
			}
		}
		if a.body.Says == history.SaysDone && !landed || a.body.Says == history.SaysNot && ever {
			return Disagrees
		}
	}
	return Agrees
}

// window counts the landings whose sender had everything right when it last
// looked, and for which something went away before they were applied.
func (r *reading) window() int {
	n := 0
	for _, l := range r.landings {
		a := r.under(l.body.Order, l.body.Case)
		if a == nil || l.byHand() {
			continue
		}
		p := a.approval(l.body.Amount)
		if r.missingAt(p, l.looks) == "" && r.missing(p, l.pos) != "" {
			n++
		}
	}
	return n
}

// settled is the virtual time from the first death to the last answer.
func (r *reading) settled() time.Duration {
	if len(r.deaths) == 0 || len(r.answers) == 0 {
		return 0
	}
	return max(0, r.at[r.answers[len(r.answers)-1].pos]-r.at[r.deaths[0]])
}

// event names a position as the history numbers it.
func event(pos int) string { return fmt.Sprintf("event %d", pos+1) }
