package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// state is what the journal's entries amount to. It is folded once, for every
// store, and read and changed only inside the store's callbacks.
type state struct {
	effects map[journal.ID]*effect
	live    map[journal.ID]*effect // open or ambiguous
	uses    map[string]int         // effects that hold a use, by the first lease of the line
	budgets budgets
	undrawn []undrawn
	symbols symbols
	claimed map[journal.ID]bool // by this process; others' settled effects need no entries in memory
	logged  time.Time           // latest time of an entry

	restored journal.Seq // of the last opening as restored from a backup; 0 for none
}

func newState() *state {
	return &state{
		effects: map[journal.ID]*effect{},
		live:    map[journal.ID]*effect{},
		uses:    map[string]int{},
		budgets: budgets{},
		symbols: symbols{},
		claimed: map[journal.ID]bool{},
	}
}

// effect is where one effect stands.
type effect struct {
	id      journal.ID
	seqs    []journal.Seq // of its entries
	entries []decoded     // the entries, while it is worked on

	// The decision in force, nil where the journal lost it (SUSPECT alone).
	decision   *proposedBody
	proposedAt journal.Seq
	since      time.Time    // of the first entry
	digest     journal.Hash // of the content that the first decision fixed (I5)
	sealed     *sealed      // nil where nothing in it is secret
	authority  []recorded   // decisions recorded so far, one for each lease named

	attempts []sent       // unsettled
	keyed    []sent       // attempts whose key the target may know: all that are not certainly unsent
	tries    int          // DISPATCHED and SUSPECT entries
	anchor   journal.Hash // of the first DISPATCHED

	final    Final // "" while open
	way      Way
	reason   Reason
	question journal.Hash // of the entry that left it to a person, or refused it

	rule  string     // that it needs a person by; "" where none asked so far
	asked *escalated // what a person is, or was, asked last about the decision in force
	next  journal.ID // the revision that a correction made; zero: none

	closed   bool                  // never sent again
	rejected bool                  // the target said a final no
	mismatch bool                  // the target holds other content under this id (C24, C35)
	holds    string                // the first lease of the line that a use is held of
	draw     *drawn                // held of a budget; nil again once it landed
	symbols  []string              // held; nil again once it landed
	said     map[journal.Hash]bool // proposals turned away and recorded
}

// recorded is a decision of the past: the premises first recorded under a lease
// are those that a retry under the same authority is judged on.
type recorded struct {
	lease string
	seq   journal.Seq
}

// sent is one attempt.
type sent struct {
	token   journal.Token
	lease   string    // it runs under
	time    time.Time // of the entry; of the first entry of the effect where it is suspect
	suspect bool
	unbound bool // taken over without proof of death: no bound speaks for it
}

func (e *effect) open() bool    { return e.final == "" }
func (e *effect) inDoubt() bool { return e != nil && e.open() && len(e.attempts) > 0 }
func (e *effect) suspect() bool {
	return slices.ContainsFunc(e.attempts, func(s sent) bool { return s.suspect })
}

// latest is the token of the last unsettled attempt.
func (e *effect) latest() journal.Token {
	if e == nil || len(e.attempts) == 0 {
		return journal.Token{}
	}
	return e.attempts[len(e.attempts)-1].token
}

// usual is how many entries an effect has that goes well: PROPOSED, AUTHORIZED,
// DISPATCHED and COMMITTED.
const usual = 4

// apply folds one entry.
func (s *state) apply(n journal.Entry) error {
	if !n.Kind.Known() {
		return unknownKind(n)
	}
	if n.Time.After(s.logged) {
		s.logged = n.Time
	}
	if n.Kind == journal.Opened {
		switch epoch, err := journal.EpochOf(n); {
		case err != nil:
			return err
		case epoch > 0:
			s.restored = n.Seq
		}
	}
	if n.Effect.IsZero() {
		return nil
	}
	e := s.effects[n.Effect]
	if e == nil {
		e = &effect{id: n.Effect, since: n.Time, seqs: make([]journal.Seq, 0, usual), entries: make([]decoded, 0, usual)}
		s.effects[n.Effect] = e
	}
	e.seqs = append(e.seqs, n.Seq)
	read := decoded{Entry: n}
	if err := s.fold(e, &read); err != nil {
		return err
	}
	if e.entries != nil {
		e.entries = append(e.entries, read)
	}
	s.rehold(e)
	if e.open() || e.final == Ambiguous {
		s.live[e.id] = e
	} else {
		delete(s.live, e.id)
		if !s.claimed[e.id] {
			e.shrink()
		}
	}
	return nil
}

func (s *state) fold(e *effect, n *decoded) error {
	switch n.Kind {
	case journal.Proposed:
		b, err := read[proposedBody](n)
		if err != nil {
			return err
		}
		e.decision, e.proposedAt, e.digest = &b, n.Seq, b.Proposal.digest()
		e.seal(b)
		if !slices.ContainsFunc(e.authority, func(r recorded) bool { return r.lease == b.Proposal.Lease }) {
			e.authority = append(e.authority, recorded{b.Proposal.Lease, n.Seq})
		}
		e.final, e.way, e.reason, e.asked = "", "", "", nil
		if b.Rule != "" {
			e.rule = b.Rule
		}
		if len(e.attempts) > 0 {
			s.holdSuspect(e, n) // the journal had lost the decision
		}

	case journal.Dispatched:
		b, err := read[dispatchedBody](n)
		if err != nil {
			return err
		}
		if b.Absence != nil {
			e.attempts = nil
		}
		a := sent{token: n.Token(), lease: b.Lease, time: n.Time}
		e.attempts, e.keyed = append(e.attempts, a), append(e.keyed, a)
		if e.anchor == (journal.Hash{}) {
			e.anchor = n.Hash
		}
		e.tries++
		s.hold(e, b.Holds)
		if b.Decision != nil && e.asked != nil && e.asked.ruling != nil {
			e.asked.ruling.tries++
		}
		s.symbols.take(e)
		s.draws(e)
		if b.Draw != nil && e.decision != nil {
			if err := s.budgets.take(e, b.Draw, e.decision.Proposal.Request); err != nil {
				return fmt.Errorf("protocol: entry %d: %w: %w", n.Seq, err, journal.ErrCorrupt)
			}
		}

	case journal.Suspect:
		if e.final == Committed || e.closed {
			return nil // the outcome was recorded and outlived the cut
		}
		if e.final == Refused {
			e.final, e.reason = "", "" // the cut held an attempt made after that
		}
		a := sent{token: n.Token(), time: e.since, suspect: true}
		if e.decision != nil {
			a.lease = e.decision.Proposal.Lease
		}
		e.attempts, e.keyed = append(e.attempts, a), append(e.keyed, a)
		e.tries++
		s.holdSuspect(e, n)

	case journal.NotSent:
		b, err := read[notSentBody](n)
		if err != nil {
			return err
		}
		its := func(a sent) bool { return a.token == b.Attempt }
		e.attempts = slices.DeleteFunc(e.attempts, its)
		if b.Unsent {
			e.keyed = slices.DeleteFunc(e.keyed, its)
		}

	case journal.Committed:
		b, err := read[committedBody](n)
		if err != nil {
			return err
		}
		if e.final == Committed {
			return fmt.Errorf("protocol: entry %d commits effect %s again (I2): %w", n.Seq, e.id, journal.ErrCorrupt)
		}
		e.settle(Committed, b.Way, "")

	case journal.Refused:
		b, err := read[refusedBody](n)
		if err != nil {
			return err
		}
		e.settle(Refused, "", b.Reason)
		e.rejected, e.question = e.rejected || b.Rejected, n.Hash

	case journal.Conflicted:
		b, err := read[refusedBody](n)
		if err != nil {
			return err
		}
		if e.said == nil {
			e.said = map[journal.Hash]bool{}
		}
		e.said[b.saying()] = true

	case journal.Ambiguous:
		e.final, e.question = Ambiguous, n.Hash

	case journal.Unresolved:
		e.mismatch, e.question = true, n.Hash

	case journal.Resolved:
		b, err := read[Resolution](n)
		if err != nil {
			return err
		}
		if b.Landed {
			e.settle(Committed, Settled, "")
		} else {
			e.settle(Refused, "", ResolvedNotLanded)
			e.closed, e.question = true, n.Hash
		}

	case journal.Escalated:
		b, err := read[escalatedBody](n)
		if err != nil {
			return err
		}
		e.asked, e.rule, e.question = &escalated{Escalation: b.Escalation, hash: n.Hash, time: n.Time}, b.Escalation.Rule, n.Hash

	case journal.Decided:
		b, err := read[decidedBody](n)
		if err != nil {
			return err
		}
		if a := e.asked; a != nil && a.ruling == nil && a.hash == b.Decision.Escalation {
			a.ruling = &ruling{decidedBody: b, hash: n.Hash}
		}

	case journal.Corrected:
		b, err := read[correctedBody](n)
		if err != nil {
			return err
		}
		e.settle(Refused, "", Closed)
		e.closed, e.next = true, b.Effect

	case journal.TakenOver:
		for i := range e.attempts {
			e.attempts[i].unbound = true
		}

	case journal.Authorized, journal.Fenced:

	default:
		return unknownKind(n.Entry)
	}
	return nil
}

func unknownKind(n journal.Entry) error {
	return fmt.Errorf("protocol: entry %d is of kind %v, which a later version may know: %w", n.Seq, n.Kind, journal.ErrFormat)
}

// mayBeLost reports whether a log that was restored from a backup, at the given
// entry, may lack an attempt for e: nothing was recorded of it since, and what is
// there allows one (C22). An effect that was open in the backup is suspect by the
// opening itself.
func (e *effect) mayBeLost(restored journal.Seq) bool {
	if restored == 0 || e == nil {
		return restored != 0
	}
	return e.final == Refused && !e.closed && e.seqs[len(e.seqs)-1] < restored
}

// settle ends the effect's openness and every attempt of it.
func (e *effect) settle(f Final, w Way, r Reason) {
	e.final, e.way, e.reason = f, w, r
	e.attempts, e.mismatch = nil, false
}

// holdSuspect takes what an attempt that the journal lost held by its decision.
func (s *state) holdSuspect(e *effect, n *decoded) {
	if e.decision == nil {
		return
	}
	p := e.decision.Proposal
	if e.holds == "" {
		s.hold(e, p.Lease)
	}
	s.symbols.take(e)
	if e.draw == nil {
		s.undrawn = append(s.undrawn, undrawn{e, p, n.Time})
	}
}

// hold takes a use for e; an effect holds one at a time (C20).
func (s *state) hold(e *effect, line string) {
	if e.holds == line {
		return
	}
	s.release(e)
	e.holds = line
	s.uses[line]++
}

func (s *state) release(e *effect) {
	if e.holds == "" {
		return
	}
	if s.uses[e.holds]--; s.uses[e.holds] == 0 {
		delete(s.uses, e.holds)
	}
	e.holds = ""
}

// rehold gives back what e holds where nothing of it landed or may land any more
// (I9), and makes it final where it landed.
func (s *state) rehold(e *effect) {
	switch {
	case e.final == Refused || e.open() && len(e.attempts) == 0:
		s.release(e)
		s.symbols.giveBack(e)
		s.draws(e)
		s.budgets.giveBack(e)
	case e.final == Committed:
		e.symbols = nil
		s.budgets.spend(e)
	}
}

// shrink forgets what a settled effect needs no more: its entries are read again
// from the log when somebody asks.
func (e *effect) shrink() {
	if e == nil {
		return
	}
	e.entries = nil
	if e.final == Committed {
		e.decision, e.authority, e.keyed, e.asked = nil, nil, nil, nil
	}
}

// liveInOrder lists the effects that are open or ambiguous, oldest first.
func (s *state) liveInOrder() []*effect { return inOrder(s.live) }

func inOrder(all map[journal.ID]*effect) []*effect {
	list := make([]*effect, 0, len(all))
	for _, e := range all {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *effect) int { return int(a.seqs[0]) - int(b.seqs[0]) })
	return list
}

// copy is what a caller may keep after the store's lock is given up.
func (e *effect) copy() *effect {
	if e == nil {
		return nil
	}
	c := *e
	c.attempts, c.keyed = slices.Clone(e.attempts), slices.Clone(e.keyed)
	c.authority, c.said = slices.Clone(e.authority), nil
	c.asked = e.asked.copy()
	return &c
}
