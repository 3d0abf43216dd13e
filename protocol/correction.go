package protocol

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Correction is another payload for a request whose effect didn't land. Accepting
// it closes that effect and makes a new one, the next revision, which rests on the
// facts that were read last (I8).
type Correction struct {
	Namespace string          `json:"namespace"`
	Effect    journal.ID      `json:"effect"`  // the one that didn't land
	Answers   journal.Hash    `json:"answers"` // Question of its receipt
	Payload   json.RawMessage `json:"payload"`
	Lease     string          `json:"lease,omitempty"` // that the revision is to run under; "" is the original's
	// Person accepts it; "" leaves it to the lease's own rule, Lease.Corrections.
	Person    string    `json:"person,omitempty"`
	Note      string    `json:"note,omitempty"`
	At        time.Time `json:"at"`
	Signature []byte    `json:"signature,omitempty"`
}

// SignCorrection returns c signed by the person's key.
func SignCorrection(key ed25519.PrivateKey, c Correction) (Correction, error) {
	if len(key) != ed25519.PrivateKeySize {
		return c, &CorrectionError{c.Effect, "the key is no ed25519 private key"}
	}
	var err error
	if c, err = c.canonical(); err != nil {
		return c, err
	}
	text, err := c.signed()
	if err != nil {
		return c, err
	}
	c.Signature = ed25519.Sign(key, text)
	return c, nil
}

// canonical is c as it is signed and recorded.
func (c Correction) canonical() (Correction, error) {
	payload, err := Canonical(c.Payload)
	if err != nil {
		return c, &CorrectionError{c.Effect, "the payload is no JSON object with one meaning"}
	}
	c.Payload, c.At = payload, c.At.UTC().Round(0)
	if _, err := c.signed(); err != nil {
		return c, &CorrectionError{c.Effect, "it " + err.Error()}
	}
	return c, nil
}

// signed is what the signature is over.
func (c Correction) signed() ([]byte, error) {
	c.Signature = nil
	return signable("interlock-bench correction v1", c)
}

// Verify returns nil where key signed c.
func (c Correction) Verify(key ed25519.PublicKey) error {
	text, err := c.signed()
	if err != nil {
		return err
	}
	if len(c.Signature) == 0 {
		return &CorrectionError{c.Effect, fmt.Sprintf("%s has a key, and it isn't signed with it", c.Person)}
	}
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, text, c.Signature) {
		return &CorrectionError{c.Effect, fmt.Sprintf("the signature isn't made with %s's key", c.Person)}
	}
	return nil
}

// digest names the correction.
func (c Correction) digest() (journal.Hash, error) {
	text, err := c.signed()
	return sha256.Sum256(text), err
}

// Correct accepts a corrected payload for a request as its next revision, a new
// effect with an id of its own. The original must be settled as not landed, or wait
// for a person with nothing sent: whatever may still land, or has, can't be
// corrected (C13). Accepting closes the original, which is never sent again.
//
// A person of the group that was asked accepts it, or of any group where none was.
// Where the revision needs a decision and that person is in the group it is routed
// to, accepting it is the approval; else it is escalated. With no person named, the
// lease accepts as many revisions as it says, but none that a person was asked
// about or rejected.
//
// It sends nothing: Recover, or a Submit of the corrected payload, carries the
// revision out, under the checks of every effect. Nil means recorded, durable and
// proved by a later record; the Result is the revision's. A *CorrectionError means
// that nothing was recorded; journal.ErrHeld that somebody is at the original.
func (g *Gate) Correct(ctx context.Context, c Correction) (Result, error) {
	refuse := func(format string, args ...any) error {
		return &CorrectionError{c.Effect, fmt.Sprintf(format, args...)}
	}
	c, err := c.canonical()
	switch {
	case err != nil:
		return Result{Effect: c.Effect}, err
	case c.Namespace != g.Namespace:
		return Result{Effect: c.Effect}, refuse("it is about namespace %q", c.Namespace)
	case c.Person != "" && unfitPerson(c.Person) != "":
		return Result{Effect: c.Effect}, refuse("the person's name, %q, %s", c.Person, unfitPerson(c.Person))
	case c.Lease != "" && unfitName(c.Lease) != "":
		return Result{Effect: c.Effect}, refuse("the lease's name %s", unfitName(c.Lease))
	case c.At.IsZero() || unfitTime(c.At) != "":
		return Result{Effect: c.Effect}, refuse("it doesn't say when it was made")
	}
	claim, e, err := g.claim(ctx, c.Effect)
	if err != nil {
		return Result{Effect: c.Effect}, err
	}
	defer g.release(ctx, c.Effect, claim)
	if e == nil {
		return Result{Effect: c.Effect}, fmt.Errorf("%w: %s", ErrUnknown, c.Effect)
	}
	entries, err := g.entries(ctx, c.Effect)
	if err != nil {
		return Result{Effect: c.Effect}, err
	}
	original, err := receiptOf(entries)
	if err != nil {
		return Result{Effect: c.Effect}, err
	}
	facts, err := lastRead(entries)
	if err != nil {
		return Result{Effect: c.Effect}, err
	}
	next := EffectID(g.Namespace, original.Request, original.Revision+1)
	b := proposedBody{Namespace: g.Namespace, Revision: original.Revision + 1, Corrects: &corrected{Correction: c, Basis: original.Executed.Basis}}

	written, err := g.journal.Update(context.WithoutCancel(ctx), func(h journal.Head) (entries []journal.Entry, err error) {
		e := g.state.effects[c.Effect]
		if why := e.uncorrectable(); why != "" {
			return nil, refuse("%s", why)
		}
		switch {
		case e.question != c.Answers:
			return nil, refuse("it answers an older state of it; read the receipt again")
		case original.Executed.Is != No:
			return nil, refuse("it isn't known that nothing landed")
		case g.state.effects[next] != nil:
			return nil, refuse("revision %d exists already", b.Revision)
		}
		b.Proposal = e.decision.Proposal
		b.Proposal.Lease = cmp.Or(c.Lease, b.Proposal.Lease)
		b.Proposal.Effect.Payload = c.Payload
		b.Proposal.Premises = resting(b.Proposal.Premises, facts)
		if b.Proposal.Effect.digest() == e.digest {
			return nil, refuse("the payload is the one that it had")
		}
		var who error
		err = g.authority.View(ctx, func(head journal.Head) {
			if l := g.grants.current(b.Proposal.Lease, head.Proven); l != nil && !l.dead() {
				if why := l.covers(b.Proposal.Agent, b.Proposal.Effect); why != "" {
					who = refuse("lease %q %s; the revision would be refused, and the original closed for it", l.ID, why)
					return
				}
			}
			if b.Corrects.Key, who = g.accepts(c, e, b, head.Proven, h.Now); who == nil {
				if rule := g.grants.route(b.Proposal, nil, false, head.Proven); rule != nil {
					b.Rule = rule.ID
				}
			}
		})
		if err = errors.Join(err, who); err != nil {
			return nil, err
		}
		closed, err := record(journal.Corrected, c.Effect, correctedBody{*b.Corrects, next})
		if err != nil {
			return nil, err
		}
		proposed, err := record(journal.Proposed, next, b)
		return []journal.Entry{closed, proposed}, err
	})
	if err != nil {
		return Result{Effect: c.Effect}, err
	}
	g.Trace.At(PointDecided, c.Effect.String())
	if err := journal.Prove(context.WithoutCancel(ctx), g.journal, written[1].Seq); err != nil {
		return Result{Effect: next}, err
	}
	return g.standing(ctx, next)
}

// uncorrectable says why the effect can't be closed in favour of a correction; ""
// is nothing.
func (e *effect) uncorrectable() string {
	switch {
	case e == nil || e.decision == nil && e.final != Committed:
		return "the journal doesn't have its decision"
	case e.closed && e.next != (journal.ID{}):
		return fmt.Sprintf("it was corrected before, as effect %s", e.next)
	case e.decision != nil && len(e.decision.Proposal.Secrets) > 0:
		return "its payload has secret fields, which a correction would show; it is made up for by a request of its own"
	case e.final == Committed:
		return "it landed; what has landed is made up for by a request of its own"
	case e.final == Ambiguous || e.mismatch:
		return "nobody can tell whether it landed; settle that first"
	case len(e.attempts) > 0:
		return "an attempt of it may still land; recover it first"
	case e.open() && (e.asked == nil || e.asked.ruling != nil):
		return "it is still to be sent; let it end first"
	}
	return ""
}

// accepts says who accepts the correction: the key that the person signed with,
// nil where the person is attested only or the lease accepts it. It is called while
// the authority's lock is held.
func (g *Gate) accepts(c Correction, e *effect, b proposedBody, proven journal.Seq, now time.Time) (key ed25519.PublicKey, err error) {
	refuse := func(format string, args ...any) error {
		return &CorrectionError{c.Effect, fmt.Sprintf(format, args...)}
	}
	if c.Person == "" {
		l := g.grants.current(b.Proposal.Lease, proven)
		switch {
		case e.asked != nil:
			return nil, refuse("a person was asked about it; a person accepts it")
		case l == nil || l.dead():
			return nil, refuse("lease %q isn't live, and no person accepts it", b.Proposal.Lease)
		case b.Revision > uint64(l.Corrections):
			return nil, refuse("lease %q accepts %d corrections of one request; a person accepts more", l.ID, l.Corrections)
		}
		why := l.covers(b.Proposal.Agent, b.Proposal.Effect)
		if why == "" {
			why = l.expired(now.Add(g.ClockMargin))
		}
		if why != "" {
			return nil, refuse("lease %q %s", l.ID, why)
		}
		return nil, nil
	}
	if c.Person == b.Proposal.Agent {
		return nil, refuse("%s proposed it; somebody else accepts it", c.Person)
	}
	m, ok := g.grants.anyMember(c.Person, proven)
	if e.asked != nil {
		if m, ok = g.grants.member(e.asked.Group, c.Person, proven); !ok {
			return nil, refuse("%s isn't in group %q, which was asked about it", c.Person, e.asked.Group)
		}
	}
	if key = m.Key; len(key) == 0 {
		key = g.People[c.Person]
	}
	if !ok && key == nil {
		return nil, refuse("%q is in no group", c.Person)
	}
	if key != nil {
		err = c.Verify(key)
	}
	return key, err
}

// lastRead are the facts that were read last of an effect.
func lastRead(entries []decoded) (facts []Reading, err error) {
	for i := range slices.Backward(entries) {
		switch e := &entries[i]; e.Kind {
		case journal.Escalated:
			var b escalatedBody
			b, err = read[escalatedBody](e)
			facts = b.Escalation.Read
		case journal.Refused:
			var b refusedBody
			b, err = read[refusedBody](e)
			facts = b.Read
		case journal.Dispatched:
			var b dispatchedBody
			b, err = read[dispatchedBody](e)
			facts = b.Read
		}
		if len(facts) > 0 || err != nil {
			return facts, err
		}
	}
	return nil, nil
}

// resting are premises on facts that were read: what was read is what must still
// be so.
func resting(premises []Premise, facts []Reading) []Premise {
	out := slices.Clone(premises)
	for i, p := range out {
		for _, f := range facts {
			if f.Name != p.Name || f.Whose != p.Whose || p.Holds == ByTarget {
				continue
			}
			if p.Holds != Equals || !sameJSON(f.Value, p.Want) {
				p.Holds, p.Want = Unchanged, nil
			}
			p.Seen, p.At = f.Value, f.At
		}
		out[i] = p
	}
	return out
}

// revise finds the revision that a submitted payload is about: the latest, or an
// earlier one that had this very payload and is closed.
func (g *Gate) revise(ctx context.Context, w *work) error {
	return g.journal.View(ctx, func(journal.Head) {
		id, n := w.id, uint64(0)
		var closed *effect
		var of uint64
		for e := g.state.effects[id]; e != nil && e.next != (journal.ID{}); e = g.state.effects[id] {
			if e.digest == w.digest {
				closed, of = e, n
			}
			id, n = e.next, n+1
		}
		if closed != nil && g.state.effects[id].digest != w.digest {
			id, n = closed.id, of
		}
		w.id, w.revision = id, n
		if e := g.state.effects[id]; e != nil && e.decision != nil {
			w.corrects = e.decision.Corrects
		}
	})
}
