package sqlite_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
)

// TestInboxesBesideAGate: a person decides in a process of their own while the gate
// has the database open, and so does a second person; the gate carries it out.
func TestInboxesBesideAGate(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "desk", "journal.db")
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	authority, err := protocol.OpenAuthority(sqlite.Opener(path, sqlite.Options{Namespace: namespace}), nil, protocol.AuthorityOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		authority.Grant(ctx, protocol.Lease{ID: "L-refund", Principal: "finance", Holder: "agent-7", Actions: []string{"refund"}, Expires: time.Now().Add(time.Hour)}),
		authority.SetGroup(ctx, protocol.Group{Name: "leads", Principal: "finance", Members: []protocol.Member{
			{Name: "ana", Key: key.Public().(ed25519.PublicKey)}, {Name: "bob"},
		}}),
		authority.SetRule(ctx, protocol.Rule{ID: "all", Principal: "finance", Actions: []string{"refund"}, Route: []protocol.Step{{Group: "leads"}}}),
		authority.Close())
	if err != nil {
		t.Fatal(err)
	}
	l := ledger{path: filepath.Join(t.TempDir(), "ledger")}
	var gates []*protocol.Gate // the agent's, and two inboxes
	for range 3 {
		g, err := openGate(path, l)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		gates = append(gates, g)
	}
	got, err := gates[0].Submit(ctx, proposal("case-1"))
	if err != nil || got.Status.Reason != protocol.AwaitingDecision {
		t.Fatalf("%v, %v", got.Status, err)
	}
	for i, person := range []string{"ana", "bob"} {
		list, err := gates[i+1].Inbox(ctx, true)
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 && len(list) != 0 {
			t.Errorf("the second inbox still shows %+v", list)
		}
		d := protocol.Decision{Namespace: namespace, Effect: got.Effect, Escalation: *got.Receipt.Question, Approve: true, Person: person, At: time.Now()}
		if person == "ana" {
			if d, err = protocol.SignDecision(key, d); err != nil {
				t.Fatal(err)
			}
		}
		_, err = gates[i+1].Decide(ctx, d)
		var other *protocol.DecisionError
		if i == 0 && err != nil || i == 1 && (!errors.As(err, &other) || other.By != "ana") {
			t.Fatalf("%s is told %v", person, err)
		}
	}
	results, err := gates[0].Recover(ctx, protocol.RecoverOptions{Wait: true})
	if err != nil || len(results) != 1 || results[0].Status.Final != protocol.Committed {
		t.Fatalf("%v, %v", results, err)
	}
	if n, err := l.landed(got.Effect); n != 1 || err != nil {
		t.Errorf("landed %d times, %v", n, err)
	}
}
