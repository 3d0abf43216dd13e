package protocol

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Decision is a person's answer to an escalation. An approval holds for the one
// effect that was escalated, on the facts of that escalation; nothing else can use
// it.
type Decision struct {
	Namespace  string       `json:"namespace"`
	Effect     journal.ID   `json:"effect"`
	Escalation journal.Hash `json:"escalation"` // hash of the entry that asked, as in the inbox
	Approve    bool         `json:"approve"`
	Person     string       `json:"person"`
	Note       string       `json:"note,omitempty"`
	At         time.Time    `json:"at"`

	// What an approval may be bound to besides.
	Limits   []Limit   `json:"limits,omitempty"`   // the payload is inside each
	Expires  time.Time `json:"expires,omitzero"`   // nothing is dispatched on it from then on; zero: it has no end of its own
	Attempts int       `json:"attempts,omitempty"` // sends it is good for; 0 sets no limit

	Signature []byte `json:"signature,omitempty"`
}

// SignDecision returns d signed by the person's key.
func SignDecision(key ed25519.PrivateKey, d Decision) (Decision, error) {
	if len(key) != ed25519.PrivateKeySize {
		return d, &DecisionError{Effect: d.Effect, Why: "the key is no ed25519 private key"}
	}
	if why := d.unfit(); why != "" {
		return d, &DecisionError{Effect: d.Effect, Why: why}
	}
	d.At, d.Expires = d.At.UTC().Round(0), d.Expires.UTC().Round(0)
	text, err := d.signed()
	if err != nil {
		return d, err
	}
	d.Signature = ed25519.Sign(key, text)
	return d, nil
}

// signed is what the signature is over.
func (d Decision) signed() ([]byte, error) {
	d.Signature = nil
	return signable("interlock-bench decision v1", d)
}

// Verify returns nil where key signed d.
func (d Decision) Verify(key ed25519.PublicKey) error {
	text, err := d.signed()
	if err != nil {
		return err
	}
	if len(d.Signature) == 0 {
		return &DecisionError{Effect: d.Effect, Why: fmt.Sprintf("%s has a key, and it isn't signed with it", d.Person)}
	}
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, text, d.Signature) {
		return &DecisionError{Effect: d.Effect, Why: fmt.Sprintf("the signature isn't made with %s's key", d.Person)}
	}
	return nil
}

// unfit says what keeps d from being judged; "" is nothing.
func (d Decision) unfit() string {
	switch {
	case unfitPerson(d.Person) != "":
		return fmt.Sprintf("the person's name, %q, %s", d.Person, unfitPerson(d.Person))
	case d.Attempts < 0:
		return "it is good for a negative number of sends"
	case d.At.IsZero() || unfitTime(d.At) != "":
		return "it doesn't say when it was made"
	case !d.Expires.IsZero() && unfitTime(d.Expires) != "":
		return "it ends at a time that " + unfitTime(d.Expires)
	}
	for _, l := range d.Limits {
		if err := l.valid(); err != nil {
			return fmt.Sprintf("its limit on %q can't be kept: %v", l.Field, err)
		}
	}
	if _, err := d.signed(); err != nil {
		return "it " + err.Error()
	}
	return ""
}

// Decide records a person's answer to the latest escalation of an effect. The
// first answer counts. An approval sends nothing: Recover, or the next Submit,
// carries the effect out. A rejection ends it as REFUSED:rejected.
//
// The person must be in the group that the escalation names, as the authority log
// says now, and again at the dispatch. A member with a key signs; one without is
// attested only, and the receipt says so.
//
// Nil means recorded, durable and proved by a later record. A *DecisionError means
// that nothing was recorded; where somebody answered before, it says who and when.
// It needs no claim: it may be given while another process works on other effects.
func (g *Gate) Decide(ctx context.Context, d Decision) (Result, error) {
	d.At, d.Expires = d.At.UTC().Round(0), d.Expires.UTC().Round(0)
	refuse := func(format string, args ...any) error {
		return &DecisionError{Effect: d.Effect, Why: fmt.Sprintf(format, args...)}
	}
	if why := d.unfit(); why != "" {
		return Result{Effect: d.Effect}, refuse("%s", why)
	}
	if d.Namespace != g.Namespace {
		return Result{Effect: d.Effect}, refuse("it is about namespace %q", d.Namespace)
	}
	entries, err := g.journal.Update(context.WithoutCancel(ctx), func(h journal.Head) (entries []journal.Entry, err error) {
		e := g.state.effects[d.Effect]
		switch {
		case e == nil:
			return nil, refuse("the journal has no such effect")
		case e.asked == nil:
			return nil, refuse("nobody is asked about it")
		case e.asked.ruling != nil && (e.asked.hash == d.Escalation || !e.open()):
			r := e.asked.ruling.Decision
			return nil, &DecisionError{Effect: d.Effect, Why: r.word(), By: r.Person, At: r.At}
		case !e.open() || e.inDoubt():
			return nil, refuse("it waits for nobody any more")
		case e.asked.hash != d.Escalation:
			return nil, refuse("somebody was asked again since, on other facts or in another group; read it again")
		case e.asked.late(h.Now):
			return nil, refuse("the deadline passed at %s; recovery asks the next group", e.asked.Deadline.Format(time.RFC3339))
		case e.decision != nil && e.decision.Proposal.Agent == d.Person:
			return nil, refuse("%s proposed it; somebody else decides", d.Person)
		}
		b := decidedBody{Decision: d}
		within := g.authority.View(ctx, func(head journal.Head) {
			var why string
			if b.Key, why = g.speaks(e.asked.Group, d.Person, head.Proven); why != "" {
				err = refuse("%s", why)
				return
			}
			if b.Key != nil {
				err = d.Verify(b.Key)
			}
			if err == nil && d.Approve {
				if why := d.holds(e.decision.Proposal.Effect, h.Now, 0); why != "" {
					err = refuse("%s", why)
				}
			}
		})
		if err = errors.Join(err, within); err != nil {
			return nil, err
		}
		bodies := []body{{journal.Decided, b}}
		if !d.Approve {
			p := e.decision.Proposal
			bodies = append(bodies, body{journal.Refused, refusedBody{
				Reason: RejectedByPerson, Agent: p.Agent, Lease: p.Lease, Digest: e.digest, Read: e.asked.Read,
				Why: fmt.Sprintf("%s rejected it", d.Person),
			}})
		}
		return records(d.Effect, bodies...)
	})
	if err != nil {
		return Result{Effect: d.Effect}, err
	}
	g.Trace.At(PointDecided, d.Effect.String())
	if err := journal.Prove(context.WithoutCancel(ctx), g.journal, entries[len(entries)-1].Seq); err != nil {
		return Result{Effect: d.Effect}, err
	}
	return g.standing(ctx, d.Effect)
}

// standing is the result of an effect as it stands.
func (g *Gate) standing(ctx context.Context, id journal.ID) (Result, error) {
	r, err := g.result(ctx, id, outcome{})
	r.Status = r.Receipt.Status
	return r, err
}

func (d Decision) word() string {
	if d.Approve {
		return "approved"
	}
	return "rejected"
}

// speaks is the key that a person of the group signs with, nil where there is
// none; why says why the person doesn't speak for it. It is called while the
// authority's lock is held.
func (g *Gate) speaks(group, person string, proven journal.Seq) (key ed25519.PublicKey, why string) {
	m, ok := g.grants.member(group, person, proven)
	if !ok {
		return nil, fmt.Sprintf("%s isn't in group %q, which is to decide it", person, group)
	}
	if len(m.Key) == 0 {
		return g.People[person], ""
	}
	return m.Key, ""
}

// holds says why an approval isn't good for the effect now, after the given number
// of sends on it; "" is that it is.
func (d Decision) holds(x Effect, now time.Time, tries int) string {
	switch {
	case !d.Approve:
		return d.Person + " rejected it"
	case !d.Expires.IsZero() && !now.Before(d.Expires):
		return fmt.Sprintf("the approval by %s ended at %s", d.Person, d.Expires.Format(time.RFC3339))
	case d.Attempts > 0 && tries >= d.Attempts:
		return fmt.Sprintf("the approval by %s was good for %d sends", d.Person, d.Attempts)
	}
	for _, l := range d.Limits {
		if why := l.exceeded(x.Payload); why != "" {
			return fmt.Sprintf("no approval covers it: that by %s %s", d.Person, why)
		}
	}
	return ""
}

// approved says why the effect has no approval that counts; "" is that it has one,
// which f then names. Its facts are the premises' matter.
func (f *facts) approved() string {
	f.decision = nil
	a := f.asked()
	if a == nil {
		return f.accepted()
	}
	if a.ruling == nil {
		return a.Why
	}
	d := a.ruling.Decision
	m, ok := f.authority.member(a.Group, d.Person, f.head.Proven)
	if !ok {
		return fmt.Sprintf("%s, who approved it, isn't in group %q any more", d.Person, a.Group)
	}
	key := m.Key
	if len(key) == 0 {
		key = f.people[d.Person]
	}
	if len(key) > 0 && d.Verify(key) != nil {
		return fmt.Sprintf("the approval isn't signed with %s's key", d.Person)
	}
	tries := a.ruling.tries
	if f.token != (journal.Token{}) {
		tries-- // this attempt doesn't count itself
	}
	if why := d.holds(f.proposal.Effect, f.latest().Add(f.margin), tries); why != "" {
		return why
	}
	f.decision = &a.ruling.hash
	return ""
}

// accepted is approved for an effect that nobody was asked about: a person of the
// right group who accepted it as a correction has approved it.
func (f *facts) accepted() string {
	rule, _ := f.needs()
	why := fmt.Sprintf("rule %q asks for a decision", rule.ID)
	if len(rule.Route) == 0 || f.effect == nil || f.effect.decision == nil || f.effect.decision.Corrects == nil {
		return why
	}
	c := f.effect.decision.Corrects.Correction
	m, ok := f.authority.member(rule.Route[0].Group, c.Person, f.head.Proven)
	if !ok {
		return why
	}
	key := m.Key
	if len(key) == 0 {
		key = f.people[c.Person]
	}
	if len(key) > 0 && c.Verify(key) != nil {
		return why
	}
	digest, err := c.digest()
	if err != nil {
		return why
	}
	f.decision = &digest
	return ""
}
