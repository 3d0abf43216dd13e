package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Waiting is one effect about which a person can do something. It is a fold over
// the journal: whoever folds it, wherever and however often, finds the same.
type Waiting struct {
	For      string          `json:"for"` // "decision", "settling", or "correction" where it was refused
	Effect   journal.ID      `json:"effect"`
	Request  string          `json:"request"`
	Revision uint64          `json:"revision"`
	Action   string          `json:"action"`
	Payload  json.RawMessage `json:"payload,omitempty"`
	Agent    string          `json:"agent"`
	Lease    string          `json:"lease"`
	Status   Status          `json:"status"`
	Since    time.Time       `json:"since"`   // of the question, or of the effect's first entry
	Answers  journal.Hash    `json:"answers"` // what the person's decision, word or correction has to name
	Late     bool            `json:"late,omitempty"`
	*Escalation
}

// Inbox lists what waits for a person, oldest question first. With refused it lists
// as well what was refused and could be corrected.
func (g *Gate) Inbox(ctx context.Context, refused bool) (list []Waiting, err error) {
	err = g.journal.View(ctx, func(h journal.Head) { list = g.state.inbox(g.Clock.Now(), refused) })
	return list, err
}

// ReadInbox is Inbox for a reader, who has no gate: open opens the journal, in any
// mode. now is what deadlines are held against.
func ReadInbox(ctx context.Context, open journal.Opener, now time.Time, refused bool) (list []Waiting, err error) {
	folded := newState()
	store, err := open(folded.apply)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	err = store.View(ctx, func(journal.Head) { list = folded.inbox(now, refused) })
	return list, err
}

func (s *state) inbox(now time.Time, refused bool) (list []Waiting) {
	of := s.liveInOrder()
	if refused {
		of = inOrder(s.effects)
	}
	for _, e := range of {
		if w, ok := e.waits(now, refused); ok {
			list = append(list, w)
		}
	}
	slices.SortStableFunc(list, func(a, b Waiting) int { return a.Since.Compare(b.Since) })
	return list
}

// waits says what a person can do about the effect.
func (e *effect) waits(now time.Time, refused bool) (w Waiting, ok bool) {
	w = Waiting{Effect: e.id, Since: e.since, Answers: e.question, Status: e.status()}
	switch {
	case e.final == Ambiguous || e.mismatch:
		w.For = "settling"
		if e.mismatch && e.final != Ambiguous {
			w.Status = Status{Final: Unresolved, Reason: Mismatch}
		}
	case e.open() && len(e.attempts) == 0 && e.asked != nil && e.asked.ruling == nil:
		w.For, w.Status = "decision", Status{Final: Refused, Reason: AwaitingDecision}
		w.Since, w.Late = e.asked.time, e.asked.late(now)
	case refused && e.final == Refused && e.next == (journal.ID{}) && e.decision != nil:
		w.For = "correction"
	default:
		return w, false
	}
	if e.asked != nil {
		w.Escalation = &e.asked.copy().Escalation
	}
	if e.decision != nil {
		p := e.decision.Proposal
		w.Revision = e.decision.Revision
		w.Request, w.Action, w.Payload, w.Agent, w.Lease = p.Request, p.Effect.Action, p.Effect.Payload, p.Agent, p.Lease
	}
	return w, true
}
