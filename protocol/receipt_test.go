package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// TestReceiptFacts are the four facts in every state (I12).
func TestReceiptFacts(t *testing.T) {
	type facts [4]protocol.Truth // proposed, authorized, executed, recorded
	const yes, no, unknown = protocol.Yes, protocol.No, protocol.Unproved
	assumed := tier2()
	assumed.BoundAssumed = "operations"
	fenced := protocol.Capabilities{Lookup: true, Fencing: true}
	lost := func(r *rig) { r.dies("gate/intent-durable", func() { r.submit(r.proposal("case-1", 20)) }) }
	for _, c := range []struct {
		name   string
		can    protocol.Capabilities
		run    func(*rig)
		status string
		facts  facts
		basis  string // of executed: a part of it
	}{
		{"committed", tier1(), func(r *rig) { r.submit(r.proposal("case-1", 20)) }, "COMMITTED", facts{yes, yes, yes, yes}, "the target's answer"},
		{"committed on query", tier2(), func(r *rig) {
			r.dies("service/applied", func() { r.submit(r.proposal("case-1", 20)) })
			r.recover(true)
		}, "COMMITTED_ON_QUERY", facts{yes, yes, yes, yes}, "when asked"},
		{"refused before any dispatch", tier1(), func(r *rig) { r.submit(r.proposal("case-1", 30)) }, "REFUSED:lease", facts{yes, no, no, no}, "nothing was sent"},
		{"refused at recovery, bound", assumed, func(r *rig) {
			lost(r)
			r.revoke("L-refund")
			r.recover(true)
		}, "REFUSED:lease_at_recovery", facts{yes, yes, no, no}, "assumed by operations"},
		{"refused at recovery, fence", fenced, func(r *rig) {
			lost(r)
			r.revoke("L-refund")
			r.recover(true)
		}, "REFUSED:lease_at_recovery", facts{yes, yes, no, no}, "fence"},
		{"refused by the target", tier2(), func(r *rig) {
			r.service.script = []simulatedAnswer{says(protocol.Rejected)}
			r.submit(r.proposal("case-1", 20))
		}, "REFUSED:target_rejected", facts{yes, yes, no, no}, "the target's answer"},
		{"proposed", tier2(), func(r *rig) {
			r.dies("gate/proposed", func() { r.submit(r.proposal("case-1", 20)) })
		}, "NOT_SENT", facts{yes, no, no, no}, "nothing was sent"},
		{"in doubt", tier2(), lost, "IN_FLIGHT", facts{yes, yes, unknown, no}, "may land"},
		{"ambiguous", tier3(), func(r *rig) {
			lost(r)
			r.recover(true)
		}, "AMBIGUOUS", facts{yes, yes, unknown, no}, "may land"},
		{"resolved landed", tier3(), func(r *rig) {
			r.dies("service/applied", func() { r.submit(r.proposal("case-1", 20)) })
			r.resolve(r.recover(true), true)
		}, "COMMITTED", facts{yes, yes, yes, yes}, "the word of ruth"},
		{"resolved not landed", tier3(), func(r *rig) {
			lost(r)
			r.resolve(r.recover(true), false)
		}, "REFUSED:resolved_not_landed", facts{yes, yes, no, no}, "the word of ruth"},
		{"suspect", tier2(), func(r *rig) {
			r.dies("gate/proposed", func() { r.submit(r.proposal("case-1", 20)) })
			r.suspect("case-1")
		}, "IN_FLIGHT", facts{yes, unknown, unknown, no}, "may land"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.can)
			c.run(r)
			got, err := r.gate.Receipt(context.Background(), id("case-1"))
			if err != nil {
				t.Fatal(err)
			}
			have := facts{got.Proposed.Is, got.Authorized.Is, got.Executed.Is, got.Recorded.Is}
			if got.Status.String() != c.status || have != c.facts || !strings.Contains(got.Executed.Basis, c.basis) {
				t.Errorf("%s %v, executed by %q; want %s %v, %q\n%s", got.Status, have, got.Executed.Basis, c.status, c.facts, c.basis, got)
			}
			if (got.Status.Final == protocol.Refused && got.Resolution == nil) != (got.Why != "") {
				t.Errorf("why: %q", got.Why)
			}
		})
	}
}

func TestB15AReceiptHasNoLinesOfOthers(t *testing.T) {
	r := newRig(t, tier2())
	r.service.script = []simulatedAnswer{{lost: true, says: protocol.Answer{Outcome: protocol.Rejected, Reason: "no\nReceipt      COMMITTED\x1b[2J"}}}
	text := r.submit(r.proposal("case-1", 20)).Receipt.String()
	if strings.Contains(text, "\nReceipt") || strings.ContainsRune(text, '\x1b') {
		t.Errorf("the target wrote a line:\n%s", text)
	}
}

func TestI11NothingIsSentAfterAFailedSync(t *testing.T) {
	for _, c := range []struct {
		at   string // the sync behind this point fails
		sent int
		want string // after a restart
	}{
		{"gate/claimed", 0, ""},
		{"gate/rechecked", 0, "REAPPLIED_AFTER_QUERY"},
		{"service/applied", 1, "COMMITTED_ON_QUERY"},
	} {
		r := newRig(t, tier2())
		r.once(c.at, func() { r.disk.fail(errors.New("input/output error")) })
		got, err := r.gate.Submit(context.Background(), r.proposal("case-1", 20))
		if !errors.Is(err, journal.ErrPoisoned) || len(r.service.sent) != c.sent {
			t.Errorf("at %s: %v, %d requests", c.at, err, len(r.service.sent))
		}
		if c.sent > 0 && got.Status.String() != "IN_FLIGHT" {
			t.Errorf("at %s: %s", c.at, got.Status)
		}
		if _, err := r.gate.Submit(context.Background(), r.proposal("case-2", 20)); !errors.Is(err, journal.ErrPoisoned) {
			t.Errorf("at %s, then: %v", c.at, err)
		}
		if _, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{}); !errors.Is(err, journal.ErrPoisoned) {
			t.Errorf("at %s, recover: %v", c.at, err)
		}
		r.disk.fail(nil)
		r.restart()
		results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range results {
			if got.Status.String() != c.want && got.Status.String() != "COMMITTED" {
				t.Errorf("at %s: recovered %s", c.at, got.Status)
			}
		}
		if n := r.service.landings(id("case-1")); n > 1 || c.sent > 0 && n != 1 {
			t.Errorf("at %s: landed %d times", c.at, n)
		}
	}
}

func TestS10IsTriedAgainUntilTheDeadline(t *testing.T) {
	r := newRig(t, tier1())
	r.service.refuse = 3
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(time.Hour))
	defer cancel()
	got, err := r.gate.Submit(ctx, r.proposal("case-1", 20))
	if err != nil {
		t.Fatal(err)
	}
	r.want(got, "COMMITTED", 1)
	if r.service.dials != 4 {
		t.Errorf("%d dials", r.service.dials)
	}
}

func TestACancelledCallerLeavesAnHonestJournal(t *testing.T) {
	for _, at := range []string{"gate/proposed", "gate/premises-read", "gate/intent-durable", "service/applied"} {
		r := newRig(t, tier2())
		ctx, cancel := context.WithCancel(context.Background())
		r.once(at, cancel)
		got, err := r.gate.Submit(ctx, r.proposal("case-1", 20))
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("at %s: %v", at, err)
		}
		if n := r.service.landings(id("case-1")); got.Status.Final == protocol.Committed && n != 1 {
			t.Errorf("at %s: %s, landed %d times", at, got.Status, n)
		}
		if _, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true}); err != nil {
			t.Fatal(err)
		}
		r.want(r.submit(r.proposal("case-1", 20)), "DUPLICATE_IGNORED", 1)
	}
}

func TestAnUnregisteredActionRecordsNothing(t *testing.T) {
	r := newRig(t, tier1())
	p := r.proposal("case-1", 20)
	p.Effect = protocol.Effect{Action: "credit", Payload: json.RawMessage(`{}`)}
	if _, err := r.gate.Submit(context.Background(), p); !errors.Is(err, protocol.ErrUnregistered) {
		t.Error(err)
	}
	if _, err := r.gate.Receipt(context.Background(), id("case-1")); !errors.Is(err, protocol.ErrUnknown) {
		t.Error(err)
	}
}
