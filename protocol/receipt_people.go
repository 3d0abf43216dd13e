package protocol

import (
	"fmt"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// How a person's word is backed.
const (
	signed   = "signed"
	attested = "attested only"
)

// decides adds a person's answer to a receipt that is being derived.
func (b *receipt) decides(e *decoded, d decidedBody) error {
	last := len(b.Asked) - 1
	if last < 0 || !b.waiting || b.Asked[last].hash != d.Decision.Escalation || d.Decision.Effect != e.Effect {
		return &ReceiptError{e.Seq, "answers a question that nobody asked"}
	}
	a := &b.Asked[last]
	a.Decision, a.Signed, a.Key, a.decided = &d.Decision, attested, d.Key, e.Hash
	if d.Key != nil {
		if d.Decision.Verify(d.Key) != nil {
			return &ReceiptError{e.Seq, "isn't signed with the key that it names"}
		}
		a.Signed = signed
	}
	b.waiting = false
	b.stand()
	return nil
}

// unapproved says why an attempt lacks the approval that it needed; "" is that it
// has it, or needed none. A journal whose decisions were taken out is found by it:
// what names the rule, or the decision, is still there (I7).
func (b *receipt) unapproved(decision *journal.Hash) string {
	switch {
	case decision == nil && b.rule == "":
		return ""
	case decision == nil:
		return fmt.Sprintf("dispatches what rule %q asks a person about, with no decision", b.rule)
	case b.accepted != (journal.Hash{}) && *decision == b.accepted && len(b.Asked) == 0:
		return ""
	case len(b.Asked) == 0:
		return "rests on a decision that isn't there"
	}
	a := b.Asked[len(b.Asked)-1]
	if a.decided != *decision || !a.Decision.Approve {
		return "rests on a decision that isn't the approval of its latest escalation"
	}
	return ""
}

// corrects adds what a revision rests on.
func (b *receipt) corrects(e *decoded, p proposedBody) error {
	if (p.Revision == 0) != (p.Corrects == nil) {
		return &ReceiptError{e.Seq, "is a revision that corrects nothing, or corrects with none"}
	}
	if p.Corrects == nil {
		return nil
	}
	c := p.Corrects.Correction
	if EffectID(p.Namespace, p.Proposal.Request, p.Revision-1) != c.Effect {
		return &ReceiptError{e.Seq, "corrects another request"}
	}
	digest, err := c.digest()
	if err != nil {
		return err
	}
	b.accepted = digest
	b.Corrects = &Corrects{Effect: c.Effect, Accepted: c.Person, Signed: attested, Key: p.Corrects.Key, Basis: p.Corrects.Basis, At: c.At}
	switch {
	case c.Person == "":
		b.Corrects.Accepted, b.Corrects.Signed = fmt.Sprintf("lease %q's own rule", p.Proposal.Lease), ""
	case p.Corrects.Key != nil:
		if c.Verify(p.Corrects.Key) != nil {
			return &ReceiptError{e.Seq, "carries a correction that isn't signed with the key that it names"}
		}
		b.Corrects.Signed = signed
	}
	return nil
}

// approvals are the people's part of why the effect was authorized.
func (b *receipt) approvals() (list []string) {
	for _, a := range b.Asked {
		if a.Decision != nil && a.Decision.Approve {
			list = append(list, fmt.Sprintf("approved by %s of %q, %s", a.Decision.Person, a.Group, a.Signed))
		}
	}
	return list
}

// moved names the premises that a refusal is about.
func (r *refusedBody) moved(premises []Premise) (names []string) {
	switch r.Reason {
	case FalseAtDecision:
		for _, p := range premises {
			if len(p.Want) > 0 && p.Holds != Unchanged && !sameJSON(p.Seen, p.Want) {
				names = append(names, p.about())
			}
		}
	case StalePremise, StaleAtRecovery:
		for _, p := range premises {
			want := p.Seen
			if p.Holds == Equals {
				want = p.Want
			}
			for _, f := range r.Read {
				if f.Name == p.Name && f.Whose == p.Whose && !sameJSON(f.Value, want) {
					names = append(names, p.about())
				}
			}
		}
	}
	return names
}
