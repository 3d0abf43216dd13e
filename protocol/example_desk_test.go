package protocol_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// ledger stands for the service's own books, keyed by the idempotency key.
var ledger = map[string]json.RawMessage{}

// refunds is a target made of two functions.
var refunds = protocol.Functions{
	Can: protocol.Capabilities{ClientTimeout: 10 * time.Second, Lookup: true, LandingBound: 30 * time.Second},
	Do: func(ctx context.Context, r protocol.Request, e protocol.Envelope) protocol.Answer {
		ledger[r.Effect.String()] = r.Payload
		return protocol.Answer{Outcome: protocol.Done, Result: json.RawMessage(`{"id":"re_1"}`)}
	},
	Find: func(ctx context.Context, r protocol.Request) (protocol.Finding, error) {
		found, landed := ledger[r.Effect.String()]
		return protocol.Finding{Landed: landed, Same: string(found) == string(r.Payload), Result: found}, nil
	},
}

// principal is what somebody from finance runs, in a process of their own: a cap
// of 30 for all agents together, and a lease for one of them.
func principal(dir string) error {
	drain, err := journal.OpenDrain(dir)
	if err != nil {
		return err
	}
	defer drain.Close()
	authority, err := protocol.OpenAuthority(
		journal.FileOpener(dir, journal.Options{Mode: journal.Appender, Namespace: "desk"}), drain, protocol.AuthorityOptions{})
	if err != nil {
		return err
	}
	defer authority.Close()
	err = authority.SetBudget(context.Background(), protocol.Budget{
		Name: "refunds", Principal: "finance", Holders: []string{"agent-7", "agent-8"},
		Field: "amount", Cap: "30",
	})
	if err != nil {
		return err
	}
	return authority.Grant(context.Background(), protocol.Lease{
		ID: "L-refund", Principal: "finance", Holder: "agent-7", Actions: []string{"refund"},
		Limits:  []protocol.Limit{{Field: "amount", Max: "20"}},
		Budget:  "refunds",
		Expires: time.Now().AddDate(0, 1, 0),
	})
}

// agent is what the agent's process runs.
func agent(authorityDir, journalDir string) error {
	ctx := context.Background()
	drain, err := journal.OpenDrain(authorityDir)
	if err != nil {
		return err
	}
	defer drain.Close()
	gate, err := protocol.Open(ctx, protocol.Config{
		Namespace: "desk",
		Journal:   journal.FileOpener(journalDir, journal.Options{Namespace: "desk"}),
		Authority: journal.FileOpener(authorityDir, journal.Options{Mode: journal.Reader, Namespace: "desk"}),
		Drain:     drain,
	})
	if err != nil {
		return err
	}
	defer gate.Close()
	if err := gate.Register("refund", refunds); err != nil {
		return err
	}
	// First of all, what an earlier process left.
	if _, err := gate.Recover(ctx, protocol.RecoverOptions{Wait: true}); err != nil {
		return err
	}

	for _, request := range []string{"case-4471", "case-4471", "case-4472"} {
		result, err := gate.Submit(ctx, protocol.Proposal{
			Request: request, Agent: "agent-7", Lease: "L-refund",
			Effect: protocol.Effect{Action: "refund", Payload: json.RawMessage(`{"order":"881","amount":20}`)},
		})
		if err != nil {
			return err
		}
		fmt.Printf("%s %s, executed: %s\n", request, result.Status, result.Receipt.Executed.Is)
		if result.Receipt.Why != "" {
			fmt.Println(result.Receipt.Why)
		}
	}
	return nil
}

// A refund desk: finance caps what all agents pay out together and lets one of
// them refund; the agent submits, twice for one case by mistake, and once more
// than the cap has room for.
func Example() {
	dir, err := os.MkdirTemp("", "desk")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	authorityDir, journalDir := filepath.Join(dir, "authority"), filepath.Join(dir, "journal")
	for _, d := range []string{authorityDir, journalDir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			log.Fatal(err)
		}
	}
	if err := principal(authorityDir); err != nil {
		log.Fatal(err)
	}
	if err := agent(authorityDir, journalDir); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(ledger), "refund in the service's books")
	// Output:
	// case-4471 COMMITTED, executed: yes
	// case-4471 DUPLICATE_IGNORED, executed: yes
	// case-4472 REFUSED:over_budget, executed: no
	// budget "refunds" is 30 and 20 of it is held by case-4471 (20); 20 more doesn't fit
	// 1 refund in the service's books
}
