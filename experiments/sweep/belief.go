package sweep

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// beliefs are the model: what must be so of each effect, by what was recorded and
// said of it.
type beliefs map[journal.ID]*belief

type belief struct {
	payload    string                        // of the decision in force; "" where none is known
	lease, who string                        // that it names
	premises   map[string][]protocol.Premise // first recorded, by the authority they were recorded under
	maybe      *protocol.Proposal            // a kill left open whether this was recorded
	dispatched bool
	rechecked  bool           // DISPATCHED may be in the log
	final      protocol.Final // last said of it, and not superseded by another decision
	reason     protocol.Reason
	settledIn  int // the call in which somebody was told that it is refused: another's refusal may be older
	heard      int // how often somebody was told of it
	closed     bool
	closing    bool // a kill left open whether a person's word was recorded
	rejected   bool
}

func (b beliefs) of(id journal.ID) *belief {
	if b[id] == nil {
		b[id] = &belief{premises: map[string][]protocol.Premise{}}
	}
	return b[id]
}

// inOrder are the effects in the order of the requests: what is asked of a broken
// disk, in which order, is part of a case.
func (b beliefs) inOrder() (ids []journal.ID) {
	for _, request := range requests {
		if id := effectID(request); b[id] != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

func effectID(request string) journal.ID { return protocol.EffectID(namespace, request, 0) }

// leases are the model of authority.
type leases map[string]*granted

type granted struct {
	protocol.Lease
	revoked bool
	renewal string
}

func (l leases) grant(g protocol.Lease) {
	l[g.ID] = &granted{Lease: g}
	if old := l[g.Replaces]; old != nil {
		old.renewal = g.ID
	}
}

func (l leases) revoke(id string) {
	if g := l[id]; g != nil {
		g.revoked = true
	}
}

func (l leases) renewable(id string) bool { return l[id] != nil && !l.dead(id) && l[id].renewal == "" }

// dead reports whether a lease, or one that it replaces at some remove, is
// revoked.
func (l leases) dead(id string) bool {
	for g := l[id]; g != nil; g = l[g.Replaces] {
		if g.revoked {
			return true
		}
	}
	return false
}

// root is the lease whose line id belongs to; id itself where nobody granted it.
func (l leases) root(id string) string {
	for l[id] != nil && l[id].Replaces != "" {
		id = l[id].Replaces
	}
	return id
}

// covers is the lease that speaks for id, where it lets the agent do this now.
func (l leases) covers(id, who, payload string, now time.Time) *granted {
	g := l[id]
	for g != nil && g.renewal != "" {
		g = l[g.renewal]
	}
	var most int
	if g == nil {
		return nil
	}
	fmt.Sscan(g.Limits[0].Max, &most)
	if l.dead(g.ID) || g.Holder != who || amountOf(payload) > most || !now.Before(g.Expires) {
		return nil
	}
	return g
}

// follow believes what passes.
func (d *desk) follow(p trace.Point, subject string) {
	raw, err := hex.DecodeString(subject)
	if err != nil || len(raw) != len(journal.ID{}) {
		return
	}
	b := d.beliefs.of(journal.ID(raw))
	switch p {
	case protocol.PointClaimed: // from here on until it is known to be recorded, it may have been
		if p := d.call(journal.ID(raw)); p != nil {
			b.maybe = p
		}
	case protocol.PointProposed:
		b.record(d, *d.call(journal.ID(raw)))
		b.maybe = nil
	case protocol.PointRechecked:
		b.rechecked = true
	case protocol.PointIntentDurable:
		d.dispatched(b)
	}
}

// call is the submit under way for an effect, the innermost one.
func (d *desk) call(id journal.ID) *protocol.Proposal {
	for i := len(d.calls) - 1; i >= 0; i-- {
		if p := d.calls[i]; effectID(p.Request) == id {
			return &p
		}
	}
	return nil
}

// record believes that p is the decision in force.
func (b *belief) record(d *desk, p protocol.Proposal) {
	line := d.leases.root(p.Lease)
	_, known := b.premises[line]
	if b.payload != "" && b.payload != string(p.Effect.Payload) && (b.dispatched || known) {
		d.t.Fatalf("%s was recorded over %s (I5)", p.Effect.Payload, b.payload)
	}
	if b.final == protocol.Committed || b.final == protocol.Ambiguous || b.closed || b.rejected {
		d.t.Fatalf("a decision was recorded of an effect that is %s:%s", b.final, b.reason)
	}
	b.payload, b.lease, b.who, b.final, b.reason = string(p.Effect.Payload), p.Lease, p.Agent, "", ""
	if !known {
		b.premises[line] = p.Premises
	}
}

// learn finds out, after a kill, which of the decisions that may have been
// recorded are.
func (d *desk) learn() {
	for _, id := range d.beliefs.inOrder() {
		b := d.beliefs[id]
		if b.maybe == nil && !b.closing {
			continue
		}
		r, err := d.gate.Receipt(context.Background(), id)
		switch {
		case errors.Is(err, protocol.ErrUnknown):
		case err != nil:
			d.t.Fatal(err)
		case b.closing:
			b.closed = r.Status.Reason == protocol.ResolvedNotLanded
		case r.Lease == b.maybe.Lease && r.Agent == b.maybe.Agent && string(r.Payload) == string(b.maybe.Effect.Payload):
			b.record(d, *b.maybe)
		}
		b.maybe, b.closing = nil, false
	}
}

// dispatched is asked when DISPATCHED is durable: authority is live, covers the
// effect, and has a use left for it (I4, I9).
func (d *desk) dispatched(b *belief) {
	b.dispatched = true
	d.n["dispatches"]++
	g := d.leases.covers(b.lease, b.who, b.payload, d.clock.Now())
	if g == nil {
		d.t.Fatalf("dispatched %s under lease %s, which doesn't cover it (I4)", b.payload, b.lease)
	}
}

// sending is asked when the first byte arrives.
func (d *desk) sending(r protocol.Request) {
	b := d.beliefs.of(r.Effect)
	switch {
	case d.poisoned:
		d.t.Fatal("sent after the journal was poisoned (I11)")
	case !b.dispatched:
		d.t.Fatal("sent before its DISPATCHED was durable (I1)")
	case string(r.Payload) != b.payload:
		d.t.Fatalf("sent %s, decided was %s (I5)", r.Payload, b.payload)
	case b.final == protocol.Committed, b.final == protocol.Ambiguous, b.closed, b.rejected:
		d.t.Fatalf("sent what is %s:%s (I2)", b.final, b.reason)
	case d.held(r.Effect)+amountOf(b.payload) > d.cap && d.budget != "":
		d.t.Fatalf("sent %s, others hold %d of %d (I9)", b.payload, d.held(r.Effect), d.cap)
	case d.service.pending[r.Effect] > 0 && !d.absorbs():
		d.t.Fatal("sent beside an earlier attempt that may still land (I2)")
	}
	if why := d.changed(r.Effect, b, b.lease, true); why != "" {
		d.t.Fatalf("sent although %s (I3)", why)
	}
}

// held is what others than id hold of the budget for certain: what landed, and
// what was sent and may land.
func (d *desk) held(id journal.ID) (sum int) {
	for other, b := range d.beliefs {
		if other != id && (len(d.service.landings(other)) > 0 || d.service.pending[other] > 0 && !d.service.can.Fencing) {
			sum += amountOf(b.payload)
		}
	}
	return sum
}

// mayHold is what others than id may hold of it: whatever was dispatched and
// isn't known not to have landed.
func (d *desk) mayHold(id journal.ID) (sum int) {
	for other, b := range d.beliefs {
		settled := b.final == protocol.Refused && b.settledIn != d.calling
		if other != id && (b.rechecked || d.on.damaged()) && !settled {
			sum += amountOf(b.payload)
		}
	}
	return sum
}

func amountOf(payload string) int {
	var p struct{ Amount int }
	json.Unmarshal([]byte(payload), &p) // what isn't known takes nothing
	return p.Amount
}

// absorbs reports whether the service sees to it itself that one of two requests
// lands; its books say whether it did.
func (d *desk) absorbs() bool { return d.service.can.DedupWindow > 0 || d.service.can.Fencing }

// changed says what of the premises first recorded under a lease doesn't hold by what was read
// last, or was read too long ago.
func (d *desk) changed(id journal.ID, b *belief, lease string, now bool) string {
	for _, p := range b.premises[d.leases.root(lease)] {
		if p.Holds == protocol.ByTarget {
			continue
		}
		want := string(p.Seen)
		if p.Holds == protocol.Equals {
			want = string(p.Want)
		}
		read, ok := d.service.read[id][p.Name]
		switch {
		case !ok:
			return p.Name + " was never read"
		case read.value != want:
			return fmt.Sprintf("%s was %s, not %s, when it was read", p.Name, read.value, want)
		case now && d.clock.Mono()-read.at > time.Second:
			return fmt.Sprintf("%s was read %v ago", p.Name, d.clock.Mono()-read.at)
		}
	}
	return ""
}

// told holds what a caller hears, and the receipt with it, to the model and to
// the service's books. p is what was submitted, nil where nothing was.
func (d *desk) told(got protocol.Result, p *protocol.Proposal) {
	b, id := d.beliefs.of(got.Effect), got.Effect
	landed := d.service.landings(id)
	bad := func(format string, args ...any) {
		d.t.Fatalf("%s: %s; landed %d times\n%s", got.Status, fmt.Sprintf(format, args...), len(landed), got.Receipt)
	}
	d.n["said "+got.Status.String()]++
	b.heard++
	if len(landed) > 1 {
		bad("an effect landed twice (I2)")
	}
	if len(landed) == 1 && landed[0].payload != b.payload {
		bad("%s landed, decided was %s", landed[0].payload, b.payload)
	}
	d.believable(got.Receipt, len(landed), bad)
	if got.Status.Reason == protocol.ConflictingPayload { // says nothing of the effect
		if p == nil || string(p.Effect.Payload) == b.payload {
			bad("nothing conflicts with %s", b.payload)
		}
		return
	}
	switch got.Status.Final {
	case protocol.Committed:
		if len(landed) != 1 {
			bad("it didn't land")
		}
		if p != nil && string(p.Effect.Payload) != string(got.Payload) {
			bad("asked for %s", p.Effect.Payload)
		}
	case protocol.Refused:
		if why := got.Status.Reason; b.closing && (why == protocol.Closed || why == protocol.ResolvedNotLanded) {
			b.closed, b.closing = true, false
		}
		if b.final == protocol.Committed || b.final == protocol.Ambiguous && !b.closed {
			bad("it was %s", b.final)
		}
		if len(landed) > 0 && !b.closed {
			bad("it landed")
		}
		if why := d.unfounded(got, b, p); why != "" {
			bad("a false refusal: %s", why)
		}
		if p != nil && got.Receipt.Agent != p.Agent { // turned away, settles nothing
			return
		}
		b.settledIn = d.calling
		b.rejected = b.rejected || got.Status.Reason == protocol.TargetRejected
	case protocol.Ambiguous:
		if b.final == protocol.Committed {
			bad("it was committed")
		}
		if !d.service.doubts {
			bad("this service can be asked")
		}
	case protocol.InFlight, protocol.NotYetSent, protocol.Unresolved:
		if b.final == protocol.Committed || b.closed {
			bad("it was settled: %s:%s", b.final, b.reason)
		}
		return
	default:
		bad("no status")
	}
	if r := got.Receipt.Status; r.Final == got.Status.Final {
		b.final, b.reason = r.Final, r.Reason
	}
}

// believable holds a receipt to the service's books (I12).
func (d *desk) believable(r protocol.Receipt, landed int, bad func(string, ...any)) {
	switch {
	case r.Executed.Is == protocol.Yes && landed == 0:
		bad("the receipt says executed")
	case r.Executed.Is == protocol.No && landed > 0:
		bad("the receipt says not executed")
	case r.Status.Final == protocol.Committed && r.Executed.Is != protocol.Yes:
		bad("committed, and executed: %s", r.Executed.Is)
	case (r.Status.Final == protocol.Ambiguous || r.Status.Final == protocol.InFlight) && r.Executed.Is != protocol.Unproved:
		bad("open, and executed: %s", r.Executed.Is)
	}
}

// unfounded says why a refusal has no ground in the model; "" where it has one.
func (d *desk) unfounded(got protocol.Result, b *belief, p *protocol.Proposal) string {
	switch got.Status.Reason {
	case protocol.LeaseDead, protocol.LeaseAtRecovery:
		lease, who, payload := b.lease, b.who, b.payload
		if p != nil {
			lease, who, payload = p.Lease, p.Agent, string(p.Effect.Payload)
		}
		if g := d.leases.covers(lease, who, payload, d.clock.Now()); g != nil && g.Uses == 0 {
			return fmt.Sprintf("lease %s covers it", g.ID)
		}
	case protocol.StalePremise, protocol.StaleAtRecovery:
		// Of the decision that it was refused under: another may have been recorded
		// before the caller was told.
		if d.changed(got.Effect, b, cmp.Or(got.Receipt.Lease, b.lease), false) == "" && !d.service.said[got.Effect][protocol.PremiseFailed] {
			return "nothing changed"
		}
	case protocol.FalseAtDecision:
		decided := b.premises[d.leases.root(b.lease)]
		if p != nil {
			decided = slices.Concat(decided, p.Premises) // turned away by its own, or judged on those first recorded
		}
		if !slices.ContainsFunc(decided, func(m protocol.Premise) bool { return m.Name == "eligible" && string(m.Seen) != "true" }) {
			return "nothing was false"
		}
	case protocol.OverBudget:
		payload := b.payload
		if p != nil {
			payload = string(p.Effect.Payload)
		}
		if d.budget == "" || d.mayHold(got.Effect)+amountOf(payload) <= d.cap {
			return fmt.Sprintf("others hold at most %d of %d", d.mayHold(got.Effect), d.cap)
		}
	case protocol.TargetRejected:
		if !d.service.said[got.Effect][protocol.Rejected] {
			return "the service rejected nothing"
		}
	case protocol.Closed, protocol.ResolvedNotLanded:
		if !b.closed {
			return "nobody closed it"
		}
	default:
		return "an unknown reason"
	}
	return ""
}

// inDoubt holds what a revocation reports to the journal: nothing but what may
// have been sent, and all of that which ran under the lease and isn't settled (I4).
func (d *desk) inDoubt(v protocol.Revocation) {
	reported := map[journal.ID]bool{}
	for _, o := range v.Doubt {
		reported[o.Effect] = true
		if b := d.beliefs[o.Effect]; b == nil || !b.rechecked && !d.on.damaged() {
			d.t.Fatalf("a revocation reports %s, which was never dispatched", o.Effect)
		}
	}
	for _, id := range d.beliefs.inOrder() {
		r, err := d.gate.Receipt(context.Background(), id)
		if errors.Is(err, protocol.ErrUnknown) {
			continue
		}
		if d.failed(err) {
			return
		}
		for _, a := range r.Attempts {
			if a.Outcome == "unknown" && a.Lease == v.Lease && !reported[id] {
				d.t.Fatalf("a revocation of %s doesn't report %s, which is in doubt under it (I4)\n%s", v.Lease, id, r)
			}
		}
	}
}

// leftAlone lets everything come to its end: one landing or none, an answer that
// is so, and nothing open that could be settled.
func (d *desk) leftAlone(t fataler) {
	d.events, d.service.next, d.service.deaf, d.service.mute, d.service.blind = nil, nil, 0, 0, 0
	d.alive(d.restart)
	d.recovers(true)
	for _, request := range requests {
		if b := d.beliefs[effectID(request)]; b != nil && b.payload != "" {
			p := d.decide()
			p.Request, p.Agent, p.Lease = request, agent, d.lease
			p.Effect.Payload = json.RawMessage(b.payload)
			d.submit(p)
		}
	}
	d.recovers(true)
	d.clock.advance(time.Hour * 24)
	open, err := d.gate.Report(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range open {
		if o.Standing != "ambiguous" || !d.service.doubts {
			t.Fatalf("left open: %+v", o)
		}
		d.n["left to a person"]++
	}
	for _, id := range d.beliefs.inOrder() {
		b := d.beliefs[id]
		r, err := d.gate.Receipt(context.Background(), id)
		if errors.Is(err, protocol.ErrUnknown) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		landed := len(d.service.landings(id))
		bad := func(format string, args ...any) {
			t.Fatalf("at the end: %s; landed %d times\n%s", fmt.Sprintf(format, args...), landed, r)
		}
		if landed > 1 || r.Status.Final == protocol.Committed && landed != 1 {
			bad("%s", r.Status)
		}
		if r.Status.Final == protocol.Refused && landed > 0 {
			bad("it landed after it was refused")
		}
		if b.final == protocol.Committed && r.Status.Final != protocol.Committed {
			bad("it was said to be committed")
		}
		d.believable(r, landed, bad)
		d.n["ended "+string(r.Status.Final)]++
	}
}

type fataler interface {
	Fatal(...any)
	Fatalf(string, ...any)
}
