package sim_test

import (
	"errors"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// TestSettlement: a refund that was returned has landed all the same, and a
// chargeback makes the order ineligible and undoes nothing.
func TestSettlement(t *testing.T) {
	s := sim.New(sim.RealHost{Started: time.Now()}, sim.Profile{Name: "t2", Lookup: true})
	s.SetOrder("881", true, 100_00, "")
	if err := s.ReturnRefunds("881", "case-1"); !errors.Is(err, sim.ErrWorld) {
		t.Errorf("nothing is there to return: %v", err)
	}
	if err := s.RefundByHand("881", "case-1", 20_00); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		do   func() error
		want sim.Settlement
	}{
		{func() error { return nil }, sim.Settlement{Arrived: 20_00}},
		{func() error { return s.ReturnRefunds("881", "case-1") }, sim.Settlement{Returned: 20_00}},
		{func() error { return s.Chargeback("881") }, sim.Settlement{Returned: 20_00, ChargedBack: 100_00}},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := s.Settlement("881", "case-1"); got != step.want {
			t.Errorf("settled as %s, want %s", got, step.want)
		}
	}
	if n := len(s.Ledger()); n != 1 {
		t.Errorf("the ledger has %d entries", n)
	}
}
