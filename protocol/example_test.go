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

// exampleDesk makes a folder with an authority log in which finance lets agent-7
// refund up to 20 dollars, and opens a gate on it.
func exampleDesk(dir string) (*protocol.Gate, *journal.Drain, error) {
	authorityDir, journalDir := filepath.Join(dir, "authority"), filepath.Join(dir, "journal")
	for _, d := range []string{authorityDir, journalDir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, nil, err
		}
	}
	drain, err := journal.OpenDrain(authorityDir)
	if err != nil {
		return nil, nil, err
	}
	authority, err := protocol.OpenAuthority(
		journal.FileOpener(authorityDir, journal.Options{Mode: journal.Appender, Namespace: "desk"}), drain, protocol.AuthorityOptions{})
	if err != nil {
		return nil, nil, err
	}
	defer authority.Close()
	err = authority.Grant(context.Background(), protocol.Lease{
		ID: "L-refund", Principal: "finance", Holder: "agent-7", Actions: []string{"refund"},
		Limits:  []protocol.Limit{{Field: "amount", Max: "20"}},
		Expires: time.Now().AddDate(0, 1, 0),
	})
	if err != nil {
		return nil, nil, err
	}
	gate, err := protocol.Open(context.Background(), protocol.Config{
		Namespace: "desk",
		Journal:   journal.FileOpener(journalDir, journal.Options{Namespace: "desk"}),
		Authority: journal.FileOpener(authorityDir, journal.Options{Mode: journal.Reader, Namespace: "desk"}),
		Drain:     drain,
	})
	return gate, drain, err
}

func ExampleGate_Submit() {
	dir, err := os.MkdirTemp("", "desk")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	gate, drain, err := exampleDesk(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer drain.Close()
	defer gate.Close()
	service := newSimulatedService()
	if err := gate.Register("refund", service); err != nil {
		log.Fatal(err)
	}

	decision := protocol.Proposal{
		Request: "case-4471", Agent: "agent-7", Lease: "L-refund",
		Premises: []protocol.Premise{{
			Name: "eligible", Seen: json.RawMessage(`true`), At: time.Now(), Holds: protocol.Equals, Want: json.RawMessage(`true`),
		}},
		Effect: protocol.Effect{Action: "refund", Payload: json.RawMessage(`{"order":"881","amount":20}`)},
	}
	for range 2 {
		result, err := gate.Submit(context.Background(), decision)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Status, "- executed:", result.Receipt.Executed.Is)
	}
	// Output:
	// COMMITTED - executed: yes
	// DUPLICATE_IGNORED - executed: yes
}

func ExampleGate_Recover() {
	dir, err := os.MkdirTemp("", "desk")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	gate, drain, err := exampleDesk(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer drain.Close()
	defer gate.Close()
	service := newSimulatedService()
	service.script = []simulatedAnswer{ackLost} // applied, and the answer is lost
	if err := gate.Register("refund", service); err != nil {
		log.Fatal(err)
	}

	result, err := gate.Submit(context.Background(), protocol.Proposal{
		Request: "case-4471", Agent: "agent-7", Lease: "L-refund",
		Effect: protocol.Effect{Action: "refund", Payload: json.RawMessage(`{"order":"881","amount":20}`)},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Status, "- executed:", result.Receipt.Executed.Is)

	results, err := gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Println(r.Status, "- executed:", r.Receipt.Executed.Is)
	}
	// Output:
	// IN_FLIGHT - executed: unknown
	// COMMITTED_BY_RETRY - executed: yes
}
