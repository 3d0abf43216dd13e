package protocol_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol"
)

// defines is a refund that defines symbols, for what the gate makes of them.
func (r *rig) defines(request string, symbols ...string) protocol.Proposal {
	p := r.proposal(request, 20)
	p.Symbols = symbols
	return p
}

// wantHolder checks which effect a refusal names, and by which symbol.
func (r *rig) wantHolder(got protocol.Result, request, symbol string) {
	r.Helper()
	want := protocol.Holding{Request: request, Effect: id(request), Symbol: symbol}
	if held := got.Receipt.Held; len(held) != 1 || held[0] != want || !strings.Contains(got.Receipt.Why, request) {
		r.Errorf("held by %+v, %q; want %+v", held, got.Receipt.Why, want)
	}
}

func TestASymbolIsDefinedOnce(t *testing.T) {
	r := newRig(t, tier1())
	got := r.submit(r.defines("case-1", "pay.Refund", "pay.Credit"))
	r.want(got, "COMMITTED", 1)
	if len(got.Receipt.Symbols) != 2 {
		t.Errorf("the receipt has the symbols %q", got.Receipt.Symbols)
	}
	for range 2 { // before and after a restart, from the entries alone
		got = r.submit(r.defines("case-2", "pay.Void", "pay.Refund"))
		r.want(got, "REFUSED:duplicate_symbol", 0)
		r.wantHolder(got, "case-1", "pay.Refund")
		r.want(r.submit(r.defines("case-2")), "REFUSED:duplicate_symbol", 0) // leaving it out is no other decision
		r.restart()
	}
	r.want(r.submit(r.defines("case-1", "pay.Refund", "pay.Credit")), "DUPLICATE_IGNORED", 1)
	r.want(r.submit(r.defines("case-3", "pay.Void")), "COMMITTED", 1) // what was refused holds nothing
}

func TestC12TheSymbolIsAskedAgainInTheAtomicStep(t *testing.T) {
	r := newRig(t, tier1())
	r.once("gate/premises-read", func() {
		r.want(r.submit(r.defines("case-2", "pay.Refund")), "COMMITTED", 1)
	})
	got := r.submit(r.defines("case-1", "pay.Refund"))
	r.want(got, "REFUSED:duplicate_symbol", 0)
	r.wantHolder(got, "case-2", "pay.Refund")
}

// W6: a symbol is held in the journal, whoever lives.
func TestASymbolIsHeldByWhatMayLand(t *testing.T) {
	for _, c := range []struct {
		can   protocol.Capabilities
		until func(*rig) protocol.Result
		ends  string
		free  bool
		why   string
	}{
		{tier2(), func(r *rig) protocol.Result { return r.recover(true) }, "REAPPLIED_AFTER_QUERY", false, "its own symbol isn't in its way"},
		{tier3(), func(r *rig) protocol.Result { return r.recover(true) }, "AMBIGUOUS", false, "it may have landed"},
		{tier2(), func(r *rig) protocol.Result {
			r.revoke("L-refund")
			return r.recover(true)
		}, "REFUSED:lease_at_recovery", true, "it is settled as not landed"},
	} {
		r := newRig(t, c.can)
		r.grant(lease("L-other"))
		other := func(request string) protocol.Proposal {
			p := r.defines(request, "pay.Refund")
			p.Lease = "L-other"
			return p
		}
		r.service.script = []simulatedAnswer{neverLands}
		r.want(r.submit(r.defines("case-1", "pay.Refund")), "IN_FLIGHT", 0)
		got := r.submit(other("case-2"))
		r.want(got, "REFUSED:duplicate_symbol", 0)
		r.wantHolder(got, "case-1", "pay.Refund")
		if got := c.until(r); got.Status.String() != c.ends {
			t.Errorf("%s: ends %s, want %s", c.why, got.Status, c.ends)
		}
		want, n := "REFUSED:duplicate_symbol", 0
		if c.free {
			want, n = "COMMITTED", 1
		}
		r.want(r.submit(other("case-3")), want, n)
	}
}

func TestASymbolIsAskedAgainAtRecovery(t *testing.T) {
	r := newRig(t, tier1())
	r.service.script = []simulatedAnswer{says(protocol.NotSent)}
	r.want(r.submit(r.defines("case-1", "pay.Refund")), "NOT_SENT", 0) // what is proposed holds nothing
	r.want(r.submit(r.defines("case-2", "pay.Refund")), "COMMITTED", 1)
	got := r.recover(false)
	r.want(got, "REFUSED:duplicate_symbol", 0)
	r.wantHolder(got, "case-2", "pay.Refund")
}

func TestASuspectHoldsItsSymbols(t *testing.T) {
	r := newRig(t, tier2())
	r.loses(func() { r.submit(r.defines("case-1", "pay.Refund")) })
	got := r.submit(r.defines("case-2", "pay.Refund"))
	r.want(got, "REFUSED:duplicate_symbol", 0)
	r.wantHolder(got, "case-1", "pay.Refund")
}

func TestUnfitSymbols(t *testing.T) {
	r := newRig(t, tier1())
	for _, c := range []struct {
		symbols []string
		why     string
	}{
		{[]string{""}, "no name"},
		{[]string{"a", "b", "a"}, "twice"},
		{[]string{"a\nb"}, "a line of its own"},
		{[]string{"a\xffb"}, "the journal would keep another name"},
		{[]string{"a\u202eb"}, "reads as another name"},
		{[]string{strings.Repeat("x", 513)}, "too long"},
		{strings.Split(strings.Repeat("x,", 1025), ","), "too many"},
	} {
		if _, err := r.gate.Submit(context.Background(), r.defines("case-1", c.symbols...)); !errors.Is(err, protocol.ErrProposal) {
			t.Errorf("want ErrProposal (%s), have %v", c.why, err)
		}
	}
	r.want(r.submit(r.defines("case-1", "größe", "(*T).Méthode")), "COMMITTED", 1)
}
