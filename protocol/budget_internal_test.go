package protocol

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// TestSettledEffectsDropOut: what is kept of a budget doesn't grow with the
// effects that landed, nor with the periods that passed.
func TestSettledEffectsDropOut(t *testing.T) {
	s := budgets{}
	day := func(n int) time.Time { return time.Date(2026, 1, 1+n, 0, 0, 0, 0, time.UTC) }
	take := func(n, of int) *effect {
		e := &effect{id: journal.ID{byte(n >> 8), byte(n), byte(of)}, seqs: []journal.Seq{journal.Seq(n)}}
		if err := s.take(e, &Draw{Budget: "refunds", Amount: "0.1", From: day(of)}, fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
		return e
	}
	doubt := take(1, 0) // and it stays so
	for d := range 40 {
		for n := range 1000 {
			switch e := take(2+n, d); {
			case n%3 == 0:
				s.giveBack(e)
			default:
				s.spend(e)
			}
		}
	}
	of := s["refunds"]
	if len(of.periods) != 2 || of.periods[day(0)] == nil || of.periods[day(39)] == nil {
		t.Errorf("%d periods are kept; want that of the effect in doubt, and the last", len(of.periods))
	}
	last := of.periods[day(39)]
	if len(last.open) != 0 || len(last.latest) > maxNamed || last.landed != 666 || decimalOf(&last.sum) != "66.6" {
		t.Errorf("%d open, %d named, %d landed, %s in all", len(last.open), len(last.latest), last.landed, decimalOf(&last.sum))
	}
	s.spend(doubt)
	if len(of.periods) != 1 {
		t.Errorf("%d periods are kept behind the last outcome", len(of.periods))
	}
}

// TestHoldersAreNamedInOrder: a refusal names the same effects each time.
func TestHoldersAreNamedInOrder(t *testing.T) {
	s := budgets{}
	var from time.Time
	for n := range 20 {
		e := &effect{id: journal.ID{byte(n)}, seqs: []journal.Seq{journal.Seq(n + 1)}}
		if err := s.take(e, &Draw{Budget: "refunds", Amount: "1"}, fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
		if n%4 != 0 {
			s.spend(e)
		}
	}
	names, others := s.holders("refunds", from, journal.ID{8})
	var have []string
	for _, h := range names {
		have = append(have, h.Request)
	}
	if want := "[0 4 12 16 19 18 17 15]"; fmt.Sprint(have) != want || others != 11 {
		t.Errorf("%v and %d others; want %s and 11", have, others, want)
	}
}
