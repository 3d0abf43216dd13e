package experiments

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
)

// simulatedDesk is a refund desk with answers written down beforehand, for a
// journal to try an inbox on. It keeps no ledger.
type simulatedDesk struct {
	lost  map[string]bool              // orders whose answer never comes
	facts map[string]map[string]string // by order
}

func (simulatedDesk) Capabilities() protocol.Capabilities {
	return protocol.Capabilities{ClientTimeout: time.Second}
}

func (d simulatedDesk) Prepare(_ context.Context, r protocol.Request) (protocol.Attempt, error) {
	p, err := orderOf(r)
	return simulatedSend{d.lost[p.Order]}, err
}

func (simulatedDesk) Lookup(context.Context, protocol.Request) (protocol.Finding, error) {
	return protocol.Finding{}, errors.New("the simulated desk can't be asked")
}

func (d simulatedDesk) Observe(_ context.Context, p protocol.Premise, r protocol.Request) (json.RawMessage, error) {
	about, err := orderOf(r)
	return json.RawMessage(d.facts[about.Order][p.Name]), err
}

func orderOf(r protocol.Request) (p payload, err error) {
	err = json.Unmarshal(r.Payload, &p)
	return p, err
}

type simulatedSend struct{ lost bool }

func (s simulatedSend) Send(context.Context, protocol.Envelope) protocol.Answer {
	if s.lost {
		return protocol.Answer{Reason: "no answer"}
	}
	return protocol.Answer{Outcome: protocol.Done, Result: json.RawMessage(`{"simulated":true}`)}
}

func (simulatedSend) Close() error { return nil }

// SampleKey is the seed of a sample person's key. It is made of the name, so that
// it keeps nobody out.
func SampleKey(person string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("simulated person " + person))
	return ed25519.NewKeyFromSeed(seed[:])
}

// Sample makes a folder with a simulated day in it, to try an inbox on: a journal
// of the given store, "file" or "sqlite", in which three refunds wait for a
// decision, one for somebody to find out whether it landed and one is done, with
// the authority log beside it and the keys of ana, bob and cy.
func Sample(dir, store string) (err error) {
	for _, d := range []string{dir, filepath.Join(dir, "authority")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	authority, err := protocol.OpenAuthority(journal.FileOpener(filepath.Join(dir, "authority"), journal.Options{Mode: journal.Appender, Namespace: namespace}), nil, protocol.AuthorityOptions{})
	if err != nil {
		return err
	}
	ctx, now := context.Background(), time.Now()
	member := func(name string) protocol.Member {
		return protocol.Member{Name: name, Key: SampleKey(name).Public().(ed25519.PublicKey)}
	}
	err = errors.Join(
		authority.SetGroup(ctx, protocol.Group{Name: "leads", Principal: "finance", Members: []protocol.Member{member("ana"), member("bob")}}),
		authority.SetGroup(ctx, protocol.Group{Name: "managers", Principal: "finance", Members: []protocol.Member{member("cy")}}),
		authority.SetRule(ctx, protocol.Rule{
			ID: "over-50", Principal: "finance", Actions: []string{actionRefund}, Changed: true,
			Within: []protocol.Limit{{Field: "amount", Max: "50"}},
			Route:  []protocol.Step{{Group: "leads", Within: 4 * time.Hour}, {Group: "managers"}},
			Left:   &protocol.Left{Field: "amount", Of: protocol.Expected{Premise: "paid"}, Less: []protocol.Expected{{Premise: "refunded", Whose: "others"}}},
		}),
		authority.Grant(ctx, protocol.Lease{
			ID: "L-day", Principal: "finance", Holder: "agent-7", Actions: []string{actionRefund},
			Limits: []protocol.Limit{{Field: "amount", Max: "300"}}, Expires: now.AddDate(1, 0, 0),
		}), authority.Close())
	if err != nil {
		return err
	}
	for _, name := range []string{"ana", "bob", "cy"} {
		if err := os.WriteFile(filepath.Join(dir, name+".key"), []byte(hex.EncodeToString(SampleKey(name).Seed())+"\n"), 0o600); err != nil {
			return err
		}
	}
	open := journal.FileOpener(filepath.Join(dir, "journal"), journal.Options{Namespace: namespace})
	if store == "sqlite" {
		open = sqlite.Opener(filepath.Join(dir, "journal.db"), sqlite.Options{Namespace: namespace})
	} else if err := os.MkdirAll(filepath.Join(dir, "journal"), 0o700); err != nil {
		return err
	}
	gate, err := protocol.Open(ctx, protocol.Config{
		Namespace: namespace, Journal: open,
		Authority: journal.FileOpener(filepath.Join(dir, "authority"), journal.Options{Mode: journal.Reader, Namespace: namespace}),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gate.Close()) }()
	desk := simulatedDesk{lost: map[string]bool{"885": true}, facts: map[string]map[string]string{}}
	if err := gate.Register(actionRefund, desk); err != nil {
		return err
	}
	for _, c := range []struct {
		name, order    string
		amount         int64
		paid, refunded string // refunded: by hand, after the agent decided
	}{
		{"case-1", "881", 20, "100", "0"},
		{"case-2", "882", 80, "100", "0"},
		{"case-3", "883", 120, "120", "40"},
		{"case-4", "884", 30, "30", "30"},
		{"case-5", "885", 25, "90", "0"},
	} {
		desk.facts[c.order] = map[string]string{"paid": c.paid, "refunded": c.refunded}
		body, err := json.Marshal(payload{Amount: c.amount, Case: c.name, Currency: "usd", Order: c.order})
		if err != nil {
			return err
		}
		_, err = gate.Submit(ctx, protocol.Proposal{
			Request: c.name, Agent: "agent-7", Lease: "L-day",
			Premises: []protocol.Premise{
				{Name: "paid", Seen: json.RawMessage(c.paid), At: now, Holds: protocol.Unchanged},
				{Name: "refunded", Whose: "others", Seen: json.RawMessage("0"), At: now, Holds: protocol.Unchanged},
			},
			Effect: protocol.Effect{Action: actionRefund, Payload: body},
		})
		if err != nil {
			return fmt.Errorf("experiments: the simulated day: %w", err)
		}
	}
	_, err = gate.Recover(ctx, protocol.RecoverOptions{})
	return err
}
