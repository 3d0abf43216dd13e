package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
)

func TestFunctionsMustBeThere(t *testing.T) {
	r := newRig(t, tier1())
	do := func(context.Context, protocol.Request, protocol.Envelope) protocol.Answer { return protocol.Answer{} }
	find := func(context.Context, protocol.Request) (protocol.Finding, error) { return protocol.Finding{}, nil }
	for _, c := range []struct {
		of   protocol.Functions
		fits bool
		why  string
	}{
		{protocol.Functions{}, false, "nothing is done"},
		{protocol.Functions{Do: do}, true, "tier 3 needs no more"},
		{protocol.Functions{Do: do, Can: protocol.Capabilities{Lookup: true}}, false, "nobody looks"},
		{protocol.Functions{Do: do, Find: find, Can: protocol.Capabilities{Lookup: true}}, true, "somebody looks"},
		{protocol.Functions{Do: do, Can: protocol.Capabilities{Fencing: true}}, false, "functions don't fence"},
	} {
		if err := r.gate.Register("x", c.of); (err == nil) != c.fits || err != nil && !errors.Is(err, protocol.ErrMisfit) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
}

// TestFunctionsAreATarget: premises, answers and lookups go through them.
func TestFunctionsAreATarget(t *testing.T) {
	r := newRig(t, tier1())
	var landed json.RawMessage
	eligible := "true"
	err := r.gate.Register("refund", protocol.Functions{
		Can: protocol.Capabilities{ClientTimeout: time.Second, Lookup: true, LandingBound: time.Second},
		Do: func(ctx context.Context, q protocol.Request, e protocol.Envelope) protocol.Answer {
			landed = q.Payload
			return protocol.Answer{} // nobody knows
		},
		Find: func(ctx context.Context, q protocol.Request) (protocol.Finding, error) {
			return protocol.Finding{Landed: landed != nil, Same: string(landed) == string(q.Payload)}, nil
		},
		Read: func(ctx context.Context, p protocol.Premise, q protocol.Request) (json.RawMessage, error) {
			return json.RawMessage(map[string]string{"eligible": eligible, "refunded": "0"}[p.Name]), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	eligible = "false"
	if got := r.submit(r.proposal("case-1", 20)); got.Status.String() != "REFUSED:stale_premise" {
		t.Errorf("the premise was not read: %s", got.Status)
	}
	eligible = "true"
	if got := r.submit(r.proposal("case-2", 20)); got.Status.String() != "IN_FLIGHT" {
		t.Errorf("an answer that says nothing: %s", got.Status)
	}
	if got := r.recover(true); got.Status.String() != "COMMITTED_ON_QUERY" {
		t.Errorf("what landed was not found: %s", got.Status)
	}

	if err := r.gate.Register("refund", protocol.Functions{Do: func(context.Context, protocol.Request, protocol.Envelope) protocol.Answer {
		return protocol.Answer{Outcome: protocol.Done}
	}}); err != nil {
		t.Fatal(err)
	}
	got := r.submit(r.proposal("case-3", 20))
	if got.Status.String() != "NOT_SENT" || got.Err == nil {
		t.Errorf("a premise that nobody reads: %s, %v", got.Status, got.Err)
	}
}
