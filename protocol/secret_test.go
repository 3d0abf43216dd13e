package protocol_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

const account = `IBAN/DE02"1203<0000`

func key(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

// secretRig is a desk that keeps account numbers secret.
func secretRig(t testing.TB, can protocol.Capabilities) *rig {
	t.Helper()
	r := newRig(t, can)
	r.reopen(key(1))
	return r
}

func (r *rig) reopen(keys ...[]byte) {
	r.Helper()
	r.kill()
	r.keys = keys
	r.open()
}

// payout is a refund to an account.
func (r *rig) payout(request, to string) protocol.Proposal {
	p := r.proposal(request, 20)
	text, err := json.Marshal(map[string]any{"order": "881", "amount": 20, "to": to})
	if err != nil {
		r.Fatal(err)
	}
	p.Effect.Payload, p.Secrets = text, []string{"to"}
	return p
}

func TestASecretIsSentAndNotKept(t *testing.T) {
	r := secretRig(t, tier1())
	p := r.payout("case-1", account)
	got := r.submit(p)
	r.want(got, "COMMITTED", 1)
	clear, err := protocol.Canonical(p.Effect.Payload)
	if err != nil {
		t.Fatal(err)
	}
	if sent := r.service.sent[0].Payload; string(sent) != string(clear) {
		t.Errorf("sent %s", sent)
	}
	if kept := string(got.Payload); !strings.Contains(kept, `"order":"881"`) || !strings.Contains(kept, `"to":"hmac-sha256:`) {
		t.Errorf("kept %s", kept)
	}
	if !slices.Equal(got.Receipt.Secrets, []string{"to"}) {
		t.Errorf("the receipt doesn't say what is secret: %v", got.Receipt.Secrets)
	}
	other := r.submit(r.payout("case-2", account))
	if string(other.Payload) == string(got.Payload) {
		t.Error("one secret looks the same in two effects")
	}
	for range 2 { // before and after a restart
		r.want(r.submit(p), "DUPLICATE_IGNORED", 1)
		spelled := p
		spelled.Effect.Payload = json.RawMessage(` {"to":"IBAN\/DE02\u00221203\u003c0000","amount":2e1,"order":"881"}`)
		r.want(r.submit(spelled), "DUPLICATE_IGNORED", 1)
		unmarked := p
		unmarked.Secrets = nil // what was marked once stays so
		r.want(r.submit(unmarked), "DUPLICATE_IGNORED", 1)
		r.want(r.submit(r.payout("case-1", account+"1")), "REFUSED:conflicting_payload", 1)
		digested := p
		digested.Effect.Payload, digested.Secrets = got.Payload, nil // the digest is not the secret
		r.want(r.submit(digested), "REFUSED:conflicting_payload", 1)
		r.restart()
	}
}

// TestSecretsAreInNoFile takes an effect with a secret through everything that
// writes, against a target that repeats what it was sent, and looks for it.
func TestSecretsAreInNoFile(t *testing.T) {
	for _, where := range []string{"memory", "disk"} {
		r := newRig(t, tier1())
		r.kill()
		r.onDisk, r.keys = where == "disk", [][]byte{key(1)}
		r.open()
		var said []any
		tell := func(got protocol.Result) {
			said = append(said, got, fmt.Sprint(got.Err), got.Receipt.String(), got.Receipt)
		}
		echo, _ := json.Marshal(map[string]any{"to": account, "memo": []any{"to " + account, 7}, account: true})
		words := "no such account: " + account
		r.service.script = []simulatedAnswer{
			{says: protocol.Answer{Outcome: protocol.Done, Result: echo}},
			{lost: true, says: protocol.Answer{Outcome: protocol.Done, Result: []byte(words)}},
			{lost: true, says: protocol.Answer{Outcome: protocol.Rejected, Reason: words}},
			{lost: true, says: protocol.Answer{Outcome: protocol.NotExecuted, Reason: words}},
			ackLost,
		}
		tell(r.submit(r.payout("case-1", account)))
		tell(r.submit(r.payout("case-2", account)))
		tell(r.submit(r.payout("case-3", account)))
		tell(r.submit(r.payout("case-4", account)))
		tell(r.submit(r.payout("case-5", account)))
		unmarked := r.payout("case-1", account)
		unmarked.Secrets = nil
		unmarked.Effect.Payload = bytes.Replace(unmarked.Effect.Payload, []byte("881"), []byte("882"), 1)
		tell(r.submit(unmarked)) // another payload, with the secret in it
		r.service.observe = func(string) error { return errors.New(words) }
		tell(r.submit(r.payout("case-6", account)))
		r.service.observe = nil
		r.service.value = func(p protocol.Premise) (string, bool) {
			text, _ := json.Marshal(account)
			return string(text), p.Name == "refunded"
		}
		tell(r.submit(r.payout("case-7", account)))
		r.service.value = nil
		l := lease("L-to")
		l.Limits = []protocol.Limit{{Field: "to", Equals: json.RawMessage(`"nobody"`)}}
		r.grant(l)
		limited := r.payout("case-8", account)
		limited.Lease = "L-to"
		tell(r.submit(limited))
		r.service.lookup = errors.New(words)
		r.clock.advance(23 * time.Hour)
		tell(r.submit(r.payout("case-5", account))) // in doubt, and the key is over
		r.service.lookup = nil
		bad := r.payout("case-9", account)
		bad.Effect.Payload = append(bad.Effect.Payload, account...)
		_, err := r.gate.Submit(context.Background(), bad)
		said = append(said, fmt.Sprintf("%v %#v", err, err), fmt.Sprint(errors.Unwrap(err)))
		results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true}) // the target's lookup repeats it
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range results {
			tell(got)
		}
		r.kill()

		looked := 0
		search := func(name string, text []byte) {
			looked++
			quoted, _ := json.Marshal(account)
			for _, spelling := range []string{account, string(quoted[1 : len(quoted)-1]), `IBAN/DE02\"1203<0000`, "DE02", string(key(1))} {
				if bytes.Contains(text, []byte(spelling)) {
					at := bytes.Index(text, []byte(spelling))
					t.Errorf("%s: %s holds %q: …%q…", where, name, spelling, text[max(0, at-80):min(len(text), at+80)])
				}
			}
		}
		for name, f := range r.disk.files {
			search(name, f.bytes)
		}
		if where == "disk" {
			err = filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				text, err := os.ReadFile(path)
				search(path, text)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if looked < 2 {
			t.Errorf("%s: %d files were searched", where, looked)
		}
		for i, s := range said {
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			search(fmt.Sprintf("answer %d", i), text)
		}
	}
}

// TestRecoveryWithoutTheSecret: Recover has the digests alone, so it sends nothing
// (R2, R5), asks where it can, and leaves the rest to whoever has the payload.
func TestRecoveryWithoutTheSecret(t *testing.T) {
	keyOnly := tier1()
	keyOnly.Lookup = false
	for _, c := range []struct {
		name     string
		can      protocol.Capabilities
		answer   simulatedAnswer
		meantime func(*rig)
		recover  string
		again    string // where the caller then submits it again
		sent     int    // in all
	}{
		{"landed, key and lookup", tier1(), ackLost, nil, "COMMITTED_ON_QUERY", "DUPLICATE_IGNORED", 1},
		{"lost, key and lookup", tier1(), neverLands, nil, "UNRESOLVED", "COMMITTED", 2},
		{"landed, key alone", keyOnly, ackLost, nil, "IN_FLIGHT", "COMMITTED_BY_RETRY", 2},
		{"lost, key alone", keyOnly, neverLands, nil, "IN_FLIGHT", "COMMITTED_BY_RETRY", 2},
		{"key alone, and its window is over", keyOnly, ackLost, func(r *rig) { r.clock.advance(25 * time.Hour) }, "AMBIGUOUS", "AMBIGUOUS", 1},
		{"landed, lookup alone", tier2(), ackLost, nil, "COMMITTED_ON_QUERY", "DUPLICATE_IGNORED", 1},
		{"lost, lookup alone", tier2(), neverLands, nil, "UNRESOLVED", "COMMITTED", 2},
		{"lost, and the lease is dead", tier2(), neverLands, func(r *rig) { r.revoke("L-refund") }, "REFUSED:lease_at_recovery", "REFUSED:lease", 1},
		{"lost, and a premise changed", tier2(), neverLands, func(r *rig) { r.service.set("refunded", "20") }, "REFUSED:stale_premise_at_recovery", "REFUSED:stale_premise", 1},
		{"neither", tier3(), neverLands, nil, "AMBIGUOUS", "AMBIGUOUS", 1},
		{"not sent", tier1(), says(protocol.NotSent), nil, "UNRESOLVED", "COMMITTED", 2},
		{"not sent, and the lease is dead", tier1(), says(protocol.NotSent), func(r *rig) { r.revoke("L-refund") }, "REFUSED:lease", "REFUSED:lease", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := secretRig(t, c.can)
			r.service.script = []simulatedAnswer{c.answer}
			p := r.payout("case-1", account)
			r.submit(p)
			if c.meantime != nil {
				c.meantime(r)
			}
			r.restart()
			results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: true})
			if err != nil || len(results) != 1 {
				t.Fatalf("%d results, %v", len(results), err)
			}
			got := results[0]
			r.want(got, c.recover, r.service.landings(id("case-1")))
			if waits := c.recover == "UNRESOLVED" || c.recover == "IN_FLIGHT"; waits != errors.Is(got.Err, protocol.ErrSecret) {
				t.Errorf("it says %v", got.Err)
			}
			if len(r.service.sent) != 1 {
				t.Errorf("sent %d times without its payload", len(r.service.sent))
			}
			again := r.submit(p)
			if s := again.Status.String(); s != c.again || len(r.service.sent) != c.sent {
				t.Errorf("submitted again: %s, sent %d times; want %s and %d\n%s", s, len(r.service.sent), c.again, c.sent, again.Receipt)
			}
			if n := len(r.service.sent); n == 2 && string(r.service.sent[0].Payload) != string(r.service.sent[1].Payload) {
				t.Errorf("sent %s, then %s", r.service.sent[0].Payload, r.service.sent[1].Payload)
			}
			if n := r.service.landings(id("case-1")); n > 1 {
				t.Errorf("landed %d times", n)
			}
		})
	}
}

// TestWhatDidNotLandWaitsForItsSecretAndHoldsNothing (I9).
func TestWhatDidNotLandWaitsForItsSecretAndHoldsNothing(t *testing.T) {
	r := budgetRig(t, tier2(), budget("20"))
	r.reopen(key(1))
	capped := func(request string) protocol.Proposal {
		p := r.payout(request, account)
		p.Lease = "L-capped"
		return p
	}
	r.service.script = []simulatedAnswer{neverLands}
	r.want(r.submit(capped("case-1")), "IN_FLIGHT", 0)
	r.want(r.submit(capped("case-2")), "REFUSED:over_budget", 0)
	r.restart()
	got := r.recover(true)
	r.want(got, "UNRESOLVED", 0)
	if a := got.Receipt.Attempts; len(a) != 1 || a[0].Outcome != "not landed" || !strings.Contains(got.Receipt.Executed.Basis, "landing bound") {
		t.Errorf("the absence is not on the receipt:\n%s", got.Receipt)
	}
	r.want(r.submit(capped("case-2")), "COMMITTED", 1)
	r.want(r.submit(capped("case-1")), "REFUSED:over_budget", 0)
}

// TestAnotherPayloadDoesNotStandInForTheSecret: only bytes that match are sent.
func TestAnotherPayloadDoesNotStandInForTheSecret(t *testing.T) {
	r := secretRig(t, tier1())
	r.service.script = []simulatedAnswer{neverLands}
	r.want(r.submit(r.payout("case-1", account)), "IN_FLIGHT", 0)
	r.clock.advance(10 * time.Second)
	got := r.submit(r.payout("case-1", "another account"))
	r.want(got, "IN_FLIGHT", 0) // it was looked up, and may still land
	r.clock.advance(time.Minute)
	got = r.submit(r.payout("case-1", "another account"))
	r.want(got, "REFUSED:conflicting_payload", 0)
	if len(r.service.sent) != 1 {
		t.Errorf("sent %d times", len(r.service.sent))
	}
	r.want(r.submit(r.payout("case-1", account)), "COMMITTED", 1)
}

// TestContentThatCantBeComparedIsNoMismatch: without the secret a target may say
// of the right content that it is another's; nothing is recorded of that (C24).
func TestContentThatCantBeComparedIsNoMismatch(t *testing.T) {
	r := secretRig(t, tier2())
	r.service.script = []simulatedAnswer{ackLost}
	p := r.payout("case-1", account)
	r.submit(p)
	r.restart()
	r.service.ledger[0].payload = strings.Replace(r.service.ledger[0].payload, "881", "882", 1)
	got := r.recover(true)
	r.want(got, "UNRESOLVED", 1)
	if !errors.Is(got.Err, protocol.ErrSecret) {
		t.Errorf("it says %v", got.Err)
	}
	r.want(r.submit(p), "UNRESOLVED:mismatch", 1)
}

func TestSecretsNeedTheirKey(t *testing.T) {
	r := newRig(t, tier1())
	size := r.disk.size()
	nothing := func(p protocol.Proposal, why string) {
		t.Helper()
		if _, err := r.gate.Submit(context.Background(), p); !errors.Is(err, protocol.ErrSecret) {
			t.Errorf("%s: %v", why, err)
		}
		if n := r.disk.size(); n != size {
			t.Errorf("%s: %d bytes were written", why, n-size)
		}
	}
	nothing(r.payout("case-1", account), "no key")

	r.reopen(key(1))
	r.service.script = []simulatedAnswer{ackLost}
	r.submit(r.payout("case-1", account))
	r.reopen(key(2))
	size = r.disk.size()
	nothing(r.payout("case-1", account), "another key")
	unmarked := r.payout("case-1", account)
	unmarked.Secrets = nil
	nothing(unmarked, "another key, and nothing marked")
	got := r.recover(true)
	r.want(got, "UNRESOLVED", 1)
	if !errors.Is(got.Err, protocol.ErrSecret) || r.disk.size() != size {
		t.Errorf("recovered without the key: %v", got.Err)
	}

	r.reopen(key(2), key(1)) // rotated: the old one is still there
	r.want(r.submit(r.payout("case-1", account)), "COMMITTED_BY_RETRY", 1)
	r.want(r.submit(r.payout("case-2", account)), "COMMITTED", 1)
	r.reopen(key(2))
	r.want(r.submit(r.payout("case-2", account)), "DUPLICATE_IGNORED", 1)

	_, err := protocol.Open(context.Background(), protocol.Config{
		Namespace: namespace, Journal: r.reader(), Authority: r.reader(), SecretKeys: [][]byte{make([]byte, 16)},
	})
	if err == nil {
		t.Error("a key of 16 bytes was taken")
	}
}

func TestLimitsAndBudgetsOnASecretFailClosed(t *testing.T) {
	r := budgetRig(t, tier1(), protocol.Budget{Name: "b", Principal: "finance", Holders: []string{"agent-7"}, Field: "to.amount", Cap: "100"})
	r.reopen(key(1))
	payload := json.RawMessage(`{"amount":20,"to":{"amount":21,"iban":"` + `DE02 1203` + `"}}`)
	for _, c := range []struct {
		secret, lease, status string
	}{
		{"amount", "L-refund", "REFUSED:lease"},
		{"to.amount", "L-capped", "REFUSED:over_budget"},
		{"to.iban", "L-capped", "COMMITTED"},
	} {
		p := r.proposal("case-"+c.secret, 20)
		p.Lease, p.Effect.Payload, p.Secrets = c.lease, payload, []string{c.secret}
		if got := r.submit(p); got.Status.String() != c.status {
			t.Errorf("%s kept secret under %s: %s, want %s", c.secret, c.lease, got.Status, c.status)
		}
	}
}

func TestUnfitSecrets(t *testing.T) {
	r := secretRig(t, tier1())
	for _, c := range []struct {
		payload string
		secrets []string
		change  func(*protocol.Proposal)
		why     string
	}{
		{`{"to":"DE02 1203"}`, []string{"iban"}, nil, "a field that isn't there keeps nothing secret"},
		{`{"to":"DE02 1203"}`, []string{""}, nil, "no name"},
		{`{"to":"DE02 1203"}`, []string{"to", "to"}, nil, "twice"},
		{`{"to":{"iban":"DE02 1203"}}`, []string{"to"}, nil, "an object would be looked for as a whole"},
		{`{"to":["DE02 1203"]}`, []string{"to"}, nil, "so would a list"},
		{`{"to":true}`, []string{"to"}, nil, "there are two of them"},
		{`{"to":"DE02 1203","memo":"for DE02 1203"}`, []string{"to"}, nil, "it is in another field as well"},
		{`{"to":"DE02 1203"}`, []string{"to"}, func(p *protocol.Proposal) {
			p.Premises = append(p.Premises, protocol.Premise{Name: "account", Seen: json.RawMessage(`"DE02 1203"`), At: r.clock.Now(), Holds: protocol.Unchanged})
		}, "it is in a premise as well"},
		{`{"to":"DE02 1203"}`, []string{"to"}, func(p *protocol.Proposal) { p.Symbols = []string{"DE02 1203"} }, "it is a symbol as well"},
	} {
		p := r.proposal("case-1", 20)
		p.Effect.Payload, p.Secrets = json.RawMessage(c.payload), c.secrets
		if c.change != nil {
			c.change(&p)
		}
		_, err := r.gate.Submit(context.Background(), p)
		if !errors.Is(err, protocol.ErrProposal) || strings.Contains(err.Error(), "1203") {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	if n := len(r.kinds(id("case-1"))); n != 0 {
		t.Errorf("%d entries were written", n)
	}
}

// TestASecretAcrossACrash: a process that died took the payload with it; the next
// one is given it again and goes on with the same bytes under the same key.
func TestASecretAcrossACrash(t *testing.T) {
	for _, point := range []string{"gate/proposed", "gate/intent-durable", "service/applied", "gate/sent"} {
		r := secretRig(t, tier1())
		p := r.payout("case-1", account)
		r.dies(point, func() { r.submit(p) })
		got := r.submit(p)
		if got.Status.Final != protocol.Committed || r.service.landings(id("case-1")) != 1 {
			t.Errorf("killed at %s: %s, landed %d times", point, got.Status, r.service.landings(id("case-1")))
		}
		if slices.Contains(r.kinds(id("case-1")), journal.Ambiguous) {
			t.Errorf("killed at %s: it was in doubt that could be settled", point)
		}
	}
}

// TestAShortSecretStandsNowhereElse: one that is too short to be looked for within
// texts is found where it is a whole value.
func TestAShortSecretStandsNowhereElse(t *testing.T) {
	for _, c := range []struct {
		payload string
		taken   bool
		why     string
	}{
		{`{"amount":20,"to":"1234"}`, true, "it stands once"},
		{`{"amount":20,"to":"1234","note":"12345"}`, true, "another value"},
		{`{"amount":20,"to":"1234","pin":"1234"}`, false, "another field repeats it"},
		{`{"amount":20,"to":"1234","n":1234}`, false, "as a number"},
		{`{"amount":20,"to":"1234","deep":[{"a":["1234"]}]}`, false, "further down"},
	} {
		r := secretRig(t, tier1())
		p := r.payout("case-1", account)
		p.Effect.Payload = json.RawMessage(c.payload)
		_, err := r.gate.Submit(context.Background(), p)
		if taken := err == nil; taken != c.taken || err != nil && !errors.Is(err, protocol.ErrProposal) {
			t.Errorf("%s: %s: %v", c.payload, c.why, err)
		}
	}
}
