package protocol_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol"
)

// TestATotalIsTheWrongPremise lets somebody grant goodwill under another case
// while the process is dead. A premise on what others did under this case holds;
// one on the order's total refuses a refund that was right (B98).
func TestATotalIsTheWrongPremise(t *testing.T) {
	for _, c := range []struct {
		why      string
		premise  protocol.Premise
		status   string
		landings int
	}{
		{"attributed to the case", protocol.Premise{Name: "refunded", Whose: "others under this case", Holds: protocol.Equals, Want: json.RawMessage("0")}, "REAPPLIED_AFTER_QUERY", 1},
		{"the order's total", protocol.Premise{Name: "total", Holds: protocol.Unchanged}, "REFUSED:stale_premise_at_recovery", 0},
	} {
		r := newRig(t, tier2())
		r.service.set("total", "0")
		p := r.proposal("case-1", 20)
		c.premise.Seen, c.premise.At = json.RawMessage("0"), p.Premises[0].At
		p.Premises = []protocol.Premise{c.premise}
		r.dies("gate/intent-durable", func() { r.submit(p) })
		r.service.set("total", "5") // and not what others did under this case
		t.Log(c.why)
		r.want(r.recover(true), c.status, c.landings)
	}
}

// TestAFactIsSaidOnceForEachWhoChecksIt has a fact read by the gate and checked by
// the target as well, and once more than that.
func TestAFactIsSaidOnceForEachWhoChecksIt(t *testing.T) {
	can := tier2()
	can.Conditional = true
	r := newRig(t, can)
	p := r.proposal("case-1", 20)
	byTarget := p.Premises[1]
	byTarget.Holds = protocol.ByTarget
	p.Premises = append(p.Premises, byTarget)
	r.want(r.submit(p), "COMMITTED", 1)

	for _, again := range []protocol.Premise{byTarget, p.Premises[1]} {
		q := p
		q.Premises = append(slices.Clone(p.Premises), again)
		if _, err := r.gate.Submit(t.Context(), q); !errors.Is(err, protocol.ErrProposal) {
			t.Errorf("%s by %s twice: %v", again.Name, again.Holds, err)
		}
	}
}
