package protocol

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Receipt is what the journal proves about one effect: four facts and where it
// stands (I12). It is derived from entries alone. Its scope is this effect id at
// this target: what was done by hand or under other ids is not seen.
type Receipt struct {
	V         int             `json:"v"` // 2
	Namespace string          `json:"namespace"`
	Effect    journal.ID      `json:"effect"`
	Request   string          `json:"request"`
	Revision  uint64          `json:"revision"`
	Action    string          `json:"action"`
	Payload   json.RawMessage `json:"payload,omitempty"` // canonical, as journaled
	Agent     string          `json:"agent"`
	Lease     string          `json:"lease"` // that the decision names
	Budget    string          `json:"budget,omitempty"`
	Symbols   []string        `json:"symbols,omitempty"`
	Secrets   []string        `json:"secrets,omitempty"` // fields of the payload that are digests

	Status     Status    `json:"status"`          // IN_FLIGHT where in doubt, NOT_SENT where only proposed
	Why        string    `json:"why,omitempty"`   // REFUSED: what didn't hold, in words
	Moved      []string  `json:"moved,omitempty"` // REFUSED for a premise: which, without values
	Held       []Holding `json:"held,omitempty"`  // REFUSED: effects that held what it needed, some of them where they are many
	Proposed   Fact      `json:"proposed"`
	Authorized Fact      `json:"authorized"`
	Executed   Fact      `json:"executed"`
	Recorded   Fact      `json:"recorded"`

	Attempts    []AttemptRecord `json:"attempts,omitempty"`
	Assumptions []string        `json:"assumptions,omitempty"` // what the facts rest on that nobody proved
	TurnedAway  []TurnedAway    `json:"turned_away,omitempty"`
	Asked       []Asked         `json:"asked,omitempty"`      // each time that people were asked, and what they said
	Corrects    *Corrects       `json:"corrects,omitempty"`   // the effect that this one is a correction of
	Corrected   *journal.ID     `json:"corrected,omitempty"`  // the effect that is a correction of this one
	Result      json.RawMessage `json:"result,omitempty"`     // the target's evidence, whole
	Resolution  *Resolution     `json:"resolution,omitempty"` // a person's word
	Question    *journal.Hash   `json:"question,omitempty"`   // what a person's word, decision or correction has to answer
	Anchor      *journal.Hash   `json:"anchor,omitempty"`     // of the first DISPATCHED, as sent to the target
	Last        Position        `json:"last"`                 // the entry that the receipt ends with
}

// Fact is one of the four.
type Fact struct {
	Is    Truth  `json:"is"`
	Basis string `json:"basis"`
}

// Truth is yes, no or unknown.
type Truth string

const (
	Yes      Truth = "yes"
	No       Truth = "no"
	Unproved Truth = "unknown"
)

// AttemptRecord is one attempt.
type AttemptRecord struct {
	Token     journal.Token `json:"token"`
	At        time.Time     `json:"at"`
	Lease     string        `json:"lease,omitempty"`
	Principal string        `json:"principal,omitempty"`
	Grant     *Lease        `json:"grant,omitempty"`
	Authority Position      `json:"authority"` // the lease was live at this head
	Read      []Reading     `json:"read,omitempty"`
	Absence   *Absence      `json:"absence,omitempty"` // it settled the attempts before
	Draw      *Draw         `json:"draw,omitempty"`    // what the effect held of a budget from here on
	// Outcome is "committed", "landed", "refused", "not sent", "not executed",
	// "not landed", "repeated" (under its key, by the attempt that committed) or
	// "unknown"; of several that were unknown when the target said that it landed,
	// each is "perhaps landed".
	Outcome string `json:"outcome"`
}

// TurnedAway is a proposal that was refused and settled nothing.
type TurnedAway struct {
	Seq    journal.Seq `json:"seq"`
	At     time.Time   `json:"at"`
	Reason Reason      `json:"reason"`
	Agent  string      `json:"agent"`
	Lease  string      `json:"lease"`
	Effect *Effect     `json:"effect,omitempty"`
}

// Asked is one escalation, and the decision that answers it.
type Asked struct {
	Escalation
	Seq  journal.Seq `json:"seq"`
	Time time.Time   `json:"time"`

	Decision *Decision `json:"decision,omitempty"` // nil: nobody answered this one
	// Signed says how the decision is backed: "signed" by a key that the receipt
	// carries, or "attested only", which is the word of whoever wrote the journal.
	Signed string            `json:"signed,omitempty"`
	Key    ed25519.PublicKey `json:"key,omitempty"`

	hash, decided journal.Hash
}

// Corrects is what a revision above 0 rests on.
type Corrects struct {
	Effect   journal.ID        `json:"effect"`
	Accepted string            `json:"accepted"` // by whom: a person, or the lease's own rule
	Signed   string            `json:"signed,omitempty"`
	Key      ed25519.PublicKey `json:"key,omitempty"`
	Basis    string            `json:"basis"` // why the original counts as not landed
	At       time.Time         `json:"at"`
}

// EntriesOf reads the entries of one effect from a log, for a reader who has no
// gate.
func EntriesOf(store journal.Store, id journal.ID) (entries []journal.Entry, err error) {
	for e, err := range store.Since(0) {
		if err != nil {
			return nil, err
		}
		if e.Effect == id {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// ReceiptFromEntries derives the receipt of one effect from all its entries in
// order. A *ReceiptError means that they are not one effect's whole history: a
// gap in the chain of hashes, an outcome without an attempt, another id.
func ReceiptFromEntries(entries []journal.Entry) (Receipt, error) {
	read := make([]decoded, len(entries))
	for i, e := range entries {
		read[i].Entry = e
	}
	return receiptOf(read)
}

// receiptOf is ReceiptFromEntries of entries that may be decoded already.
func receiptOf(entries []decoded) (Receipt, error) {
	if len(entries) == 0 {
		return Receipt{}, &ReceiptError{0, "there are no entries"}
	}
	b := receipt{Receipt: Receipt{V: 2, Effect: entries[0].Effect, Status: Status{Final: NotYetSent}}}
	var prev journal.Hash
	for i := range entries {
		e := &entries[i]
		if e.Effect != b.Effect || e.Prev != prev {
			return Receipt{}, &ReceiptError{e.Seq, "doesn't follow the one before it"}
		}
		if e.Sum() != e.Hash {
			return Receipt{}, &ReceiptError{e.Seq, "doesn't match its hash"}
		}
		if err := b.add(e); err != nil {
			return Receipt{}, err
		}
		prev = e.Hash
		b.Last = Position{e.Segment, e.Seq, e.Hash}
	}
	b.conclude()
	return b.Receipt, nil
}

// receipt is one that is being derived.
type receipt struct {
	Receipt
	proposals map[journal.Seq]bool
	grant     *Lease
	ended     *refusedBody // the refusal that ended the decision in force
	premises  []Premise    // of the decision in force
	rule      string       // that it needs a person by
	waiting   bool         // for a person
	accepted  journal.Hash // digest of the correction that it is
	basis     string       // of executed
	absent    *Absence     // that closed attempts last, where no attempt followed it
}

func (b *receipt) add(e *decoded) error {
	switch e.Kind {
	case journal.Proposed:
		p, err := read[proposedBody](e)
		if err != nil {
			return err
		}
		if EffectID(p.Namespace, p.Proposal.Request, p.Revision) != e.Effect {
			return &ReceiptError{e.Seq, "proposes another effect"}
		}
		if b.proposals == nil {
			b.proposals = map[journal.Seq]bool{}
		}
		b.proposals[e.Seq] = true
		b.Namespace, b.Revision, b.Request = p.Namespace, p.Revision, p.Proposal.Request
		b.Action, b.Payload = p.Proposal.Effect.Action, slices.Clone(p.Proposal.Effect.Payload) // the caller's from now on
		b.Agent, b.Lease, b.premises = p.Proposal.Agent, p.Proposal.Lease, p.Proposal.Premises
		b.Budget, b.Symbols, b.Secrets = p.Proposal.Budget, p.Proposal.Symbols, p.Proposal.Secrets
		if b.Proposed.Is != Yes || b.ended != nil {
			b.Proposed = Fact{Yes, fmt.Sprintf("entry %d, %s", e.Seq, e.Time.UTC().Format(time.RFC3339))}
		}
		b.ended, b.waiting = nil, false
		if p.Rule != "" {
			b.rule = p.Rule
		}
		if err := b.corrects(e, p); err != nil {
			return err
		}
		b.stand()

	case journal.Authorized:
		a, err := read[authorizedBody](e)
		if err != nil {
			return err
		}
		b.grant = &a.Grant

	case journal.Dispatched:
		d, err := read[dispatchedBody](e)
		if err != nil {
			return err
		}
		if !b.proposals[d.Proposed] || b.grant == nil {
			return &ReceiptError{e.Seq, "dispatches what was not proposed or not authorized"}
		}
		if why := b.unapproved(d.Decision); why != "" {
			return &ReceiptError{e.Seq, why}
		}
		if d.Absence != nil {
			b.close("not landed")
			b.assume(d.Absence)
		}
		if d.Resend && d.Bound == 0 {
			b.assumed(fmt.Sprintf("nothing lands later than %v after its send: the target gives no landing bound, and a repeat under the key rests on the margin of its window", d.Margin))
		}
		if b.Anchor == nil {
			b.Anchor = &e.Hash
		}
		b.Attempts = append(b.Attempts, AttemptRecord{
			Token: e.Token(), At: e.Time, Lease: d.Lease, Principal: b.grant.Principal, Grant: b.grant,
			Authority: d.Authority, Read: d.Read, Absence: d.Absence, Draw: d.Draw, Outcome: "unknown",
		})
		if d.Draw != nil {
			b.Budget = d.Draw.Budget
		}
		b.grant = nil
		b.stand()

	case journal.Suspect:
		if b.Status.Final != Committed && b.Status.Reason != ResolvedNotLanded {
			b.Attempts = append(b.Attempts, AttemptRecord{Token: e.Token(), At: e.Time, Outcome: "unknown"})
			b.ended = nil
			if b.Status.Final != Ambiguous {
				b.stand()
			}
		}

	case journal.NotSent:
		n, err := read[notSentBody](e)
		if err != nil {
			return err
		}
		a := b.attempt(n.Attempt)
		if a == nil {
			return &ReceiptError{e.Seq, "closes an attempt that was not made"}
		}
		switch {
		case n.Absence != nil:
			a.Outcome, b.absent = "not landed", n.Absence
			b.assume(n.Absence)
		case n.Unsent:
			a.Outcome = "not sent"
		default:
			a.Outcome = "not executed"
		}
		b.stand()

	case journal.Committed:
		c, err := read[committedBody](e)
		if err != nil {
			return err
		}
		if len(b.Attempts) == 0 || b.Status.Final == Committed {
			return &ReceiptError{e.Seq, "commits what was not dispatched, or once more"}
		}
		b.basis = "the target says so when asked"
		if c.Attempt != nil {
			a := b.attempt(*c.Attempt)
			if a == nil {
				return &ReceiptError{e.Seq, "commits an attempt that was not made"}
			}
			a.Outcome = "committed"
			b.close("repeated")
			b.basis = "the target's answer to attempt " + c.Attempt.String()
		} else {
			b.landed()
		}
		b.Question = nil
		b.Status, b.Result = Status{Final: Committed, Way: c.Way}, slices.Clone(c.Result)

	case journal.Refused:
		r, err := read[refusedBody](e)
		if err != nil {
			return err
		}
		if r.Absence != nil {
			b.close("not landed")
			b.assume(r.Absence)
		}
		if r.Attempt != nil {
			if a := b.attempt(*r.Attempt); a != nil && a.Outcome == "unknown" {
				a.Outcome = "refused"
			}
		}
		if b.unsettled() > 0 {
			return &ReceiptError{e.Seq, "refuses what may have landed"}
		}
		b.ended, b.waiting, b.Question = &r, false, &e.Hash
		b.Status = Status{Final: Refused, Reason: r.Reason}

	case journal.Escalated:
		x, err := read[escalatedBody](e)
		if err != nil {
			return err
		}
		if b.Status.Final == Committed || b.unsettled() > 0 {
			return &ReceiptError{e.Seq, "asks a person about what was sent"}
		}
		b.Asked = append(b.Asked, Asked{Escalation: x.Escalation, Seq: e.Seq, Time: e.Time, hash: e.Hash})
		b.rule, b.waiting, b.Question = x.Escalation.Rule, true, &e.Hash
		b.stand()

	case journal.Decided:
		d, err := read[decidedBody](e)
		if err != nil {
			return err
		}
		if err := b.decides(e, d); err != nil {
			return err
		}

	case journal.Corrected:
		c, err := read[correctedBody](e)
		if err != nil {
			return err
		}
		if b.Status.Final == Committed || b.unsettled() > 0 {
			return &ReceiptError{e.Seq, "corrects what may have landed"}
		}
		b.Corrected, b.Question, b.waiting = &c.Effect, nil, false
		b.Status = Status{Final: Refused, Reason: Closed}
		if b.ended == nil {
			b.ended = &refusedBody{Why: "it was corrected"}
		}

	case journal.Conflicted:
		r, err := read[refusedBody](e)
		if err != nil {
			return err
		}
		b.TurnedAway = append(b.TurnedAway, TurnedAway{e.Seq, e.Time, r.Reason, r.Agent, r.Lease, r.Effect})

	case journal.Ambiguous:
		b.Status, b.Question = Status{Final: Ambiguous}, &e.Hash

	case journal.Unresolved:
		if b.Status.Final != Ambiguous {
			b.Status = Status{Final: Unresolved, Reason: Mismatch}
		}
		b.Question = &e.Hash

	case journal.Resolved:
		r, err := read[Resolution](e)
		if err != nil {
			return err
		}
		if b.Question == nil || *b.Question != r.Question || b.Status.Final != Ambiguous && b.Status.Final != Unresolved {
			return &ReceiptError{e.Seq, "answers a question that nobody asked"}
		}
		b.Resolution, b.Question = &r, nil
		b.basis = fmt.Sprintf("the word of %s: %s", r.Person, r.Evidence)
		b.Status = Status{Final: Refused, Reason: ResolvedNotLanded}
		if r.Landed {
			b.Status = Status{Final: Committed, Way: Settled}
			b.landed()
		} else {
			b.close("not landed")
			b.Question = &e.Hash
		}

	case journal.TakenOver, journal.Fenced:

	default:
		return &ReceiptError{e.Seq, fmt.Sprintf("is of a kind that says nothing of an effect: %v", e.Kind)}
	}
	return nil
}

// stand sets the status of an open effect.
func (b *receipt) stand() {
	switch {
	case b.unsettled() == 0 && b.waiting:
		b.Status = Status{Final: Refused, Reason: AwaitingDecision}
	case b.unsettled() == 0:
		b.Status = Status{Final: NotYetSent}
	case b.Status.Final != Unresolved:
		b.Status = Status{Final: InFlight}
	}
}

func (b *receipt) attempt(t journal.Token) *AttemptRecord {
	for i := range b.Attempts {
		if b.Attempts[i].Token == t {
			return &b.Attempts[i]
		}
	}
	return nil
}

func (b *receipt) unsettled() (n int) {
	for _, a := range b.Attempts {
		if a.Outcome == "unknown" {
			n++
		}
	}
	return n
}

func (b *receipt) close(outcome string) {
	for i := range b.Attempts {
		if b.Attempts[i].Outcome == "unknown" {
			b.Attempts[i].Outcome = outcome
		}
	}
}

// landed is for what the target, or a person, found without saying which attempt
// it was.
func (b *receipt) landed() {
	if b.unsettled() > 1 {
		b.close("perhaps landed")
	} else {
		b.close("landed")
	}
}

func (b *receipt) assume(a *Absence) {
	if a.Basis == "bound" && a.Assumed != "" {
		b.assumed(fmt.Sprintf("%s assumes that nothing lands later than %v after its send", a.Assumed, a.Bound))
	}
}

func (b *receipt) assumed(what string) {
	for _, a := range b.Assumptions {
		if a == what {
			return
		}
	}
	b.Assumptions = append(b.Assumptions, what)
}

// conclude derives the facts from where the entries led.
func (b *receipt) conclude() {
	if b.Status.Final == Refused && b.ended != nil {
		b.Why, b.Held, b.Moved = b.ended.Why, b.ended.Held, b.ended.moved(b.premises)
	}
	if b.Proposed.Is == "" {
		b.Proposed = Fact{Unproved, "the journal lost the decision"}
	}
	var authorized []string
	for _, a := range b.Attempts {
		if a.Lease != "" {
			authorized = append(authorized, fmt.Sprintf("lease %s of %s live at authority entry %d", a.Lease, a.Principal, a.Authority.Seq))
		}
	}
	switch {
	case len(authorized) > 0:
		b.Authorized = Fact{Yes, strings.Join(append(authorized, b.approvals()...), "; ")}
		switch b.Status.Reason {
		case LeaseDead, LeaseAtRecovery, OverBudget, DuplicateSymbol:
			b.Authorized.Basis += "; later no: " + b.ended.Why
		}
	case len(b.Attempts) > 0:
		b.Authorized = Fact{Unproved, "the journal lost the attempt"}
	case b.ended != nil:
		b.Authorized = Fact{No, b.ended.Why}
	default:
		b.Authorized = Fact{No, "not dispatched"}
	}
	switch {
	case b.Status.Final == Committed:
		b.Executed, b.Recorded = Fact{Yes, b.basis}, Fact{Yes, fmt.Sprintf("entry %d or before", b.Last.Seq)}
		return
	case b.Resolution != nil && !b.Resolution.Landed && b.Status.Final == Refused:
		b.Executed = Fact{No, b.basis}
	case b.unsettled() > 0:
		b.Executed = Fact{Unproved, "an attempt may land or have landed"}
	default:
		b.Executed = Fact{No, b.nothing()}
	}
	b.Recorded = Fact{No, "nothing is known to have landed"}
}

// nothing is why nothing landed, of the last attempt first.
func (b *receipt) nothing() string {
	if len(b.Attempts) == 0 {
		return "nothing was sent"
	}
	if b.ended != nil && b.ended.Absence != nil {
		return b.ended.Absence.words()
	}
	switch last := b.Attempts[len(b.Attempts)-1]; {
	case last.Outcome == "not sent":
		return "certainly not sent"
	case b.absent != nil && last.Outcome == "not landed":
		return b.absent.words()
	case last.Absence != nil && last.Outcome == "not landed":
		return last.Absence.words()
	}
	return "the target's answer"
}

func (a *Absence) words() string {
	if a.Basis == "fenced" {
		return fmt.Sprintf("not found after the target acknowledged fence %s", a.Token)
	}
	who := "promised by the target"
	if a.Assumed != "" {
		who = "assumed by " + a.Assumed
	}
	return fmt.Sprintf("not found after the landing bound of %v, %s, had passed", a.Bound, who)
}

// String is the receipt as one page for people.
func (r Receipt) String() string {
	var s strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&s, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("Receipt", "%s", r.Status)
	if r.Why != "" {
		line("why", "%s", printable(r.Why))
	}
	line("in short", "%s", printable(r.Sentence()))
	line("request", "%q in %q, revision %d", r.Request, r.Namespace, r.Revision)
	line("effect", "%s", r.Effect)
	line("what", "%q %s", r.Action, r.Payload)
	line("who", "agent %q under lease %q", r.Agent, r.Lease)
	if len(r.Symbols) > 0 {
		line("defines", "%q", r.Symbols)
	}
	for _, f := range []struct {
		name string
		Fact
	}{{"proposed", r.Proposed}, {"authorized", r.Authorized}, {"executed", r.Executed}, {"recorded", r.Recorded}} {
		line(f.name, "%-7s  %s", f.Is, printable(f.Basis))
	}
	for i, a := range r.Attempts {
		line(fmt.Sprintf("attempt %d", i+1), "%s at %s: %s", a.Token, a.At.UTC().Format(time.RFC3339), a.Outcome)
		for _, p := range a.Read {
			line("", "read %q: %s at %s", p.Name, p.Value, p.At.UTC().Format(time.RFC3339))
		}
		if d := a.Draw; d != nil {
			line("", "draws %s on budget %q: %s%s, %s held by others", d.Amount, d.Budget, d.Cap, d.Period.words(), d.Others)
		}
	}
	for _, a := range r.Asked {
		line("asked", "group %q by rule %q at %s: %s", a.Group, a.Rule, a.Time.UTC().Format(time.RFC3339), printable(a.Why))
		for _, p := range a.Read {
			line("", "saw %q: %s at %s", p.Name, p.Value, p.At.UTC().Format(time.RFC3339))
		}
		if d := a.Decision; d != nil {
			line("", "%s %s it at %s, %s", d.Person, d.word(), d.At.UTC().Format(time.RFC3339), a.Signed)
		}
	}
	if c := r.Corrects; c != nil {
		line("corrects", "%s, accepted by %s: %s", c.Effect, c.Accepted, printable(c.Basis))
	}
	if r.Corrected != nil {
		line("corrected", "as revision %d: %s", r.Revision+1, r.Corrected)
	}
	for _, a := range r.Assumptions {
		line("assumption", "%s", printable(a))
	}
	for _, t := range r.TurnedAway {
		line("turned away", "%s by %q under %q at %s", t.Reason, t.Agent, t.Lease, t.At.UTC().Format(time.RFC3339))
	}
	if len(r.Result) > 0 {
		line("evidence", "%s", r.Result)
	}
	line("scope", "this effect id at this target; entries up to %d", r.Last.Seq)
	return s.String()
}

// printable keeps somebody else's words from writing lines of their own.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e {
			return '�'
		}
		return r
	}, s)
}
