package protocol_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
)

// TestAnAnswerThatIsTooMuchIsStillRecorded: what a target returns is the one
// thing in the journal that nobody here chose.
func TestAnAnswerThatIsTooMuchIsStillRecorded(t *testing.T) {
	for _, c := range []struct {
		name   string
		result []byte
		why    string
	}{
		{"large", append(append([]byte(`"`), bytes.Repeat([]byte("x"), 17<<20)...), '"'), "more than an entry may hold"},
		{"deep", []byte(strings.Repeat("[", 9999) + strings.Repeat("]", 9999)), "JSON, until it stands within JSON"},
		{"no JSON", bytes.Repeat([]byte{0}, 1<<20), "each byte takes six once it is quoted"},
		{"text", []byte("<html>502</html>"), "kept as a string"},
	} {
		r := newRig(t, tier3())
		r.service.script = []simulatedAnswer{{says: protocol.Answer{Outcome: protocol.Done, Result: c.result}}}
		got := r.submit(r.proposal("case-1", 20))
		r.want(got, "COMMITTED", 1)
		if evidence := got.Receipt.Result; !json.Valid(evidence) || len(evidence) > 1<<20 {
			t.Errorf("%s (%s): the receipt holds %d bytes", c.name, c.why, len(evidence))
		}
	}
}

// TestAClockSetBackBringsNoKeyToLife: the journal holds later entries, so the
// key window is over whatever the clock says (C9, C30).
func TestAClockSetBackBringsNoKeyToLife(t *testing.T) {
	can := tier1()
	can.Lookup = false
	r := newRig(t, can)
	r.dies("service/applied", func() { r.submit(r.proposal("case-1", 20)) })
	r.clock.advance(25 * time.Hour)
	r.want(r.submit(r.proposal("case-2", 20)), "COMMITTED", 1)
	r.clock.skew = -25 * time.Hour
	r.want(r.recover(true), "AMBIGUOUS", 1)
}

func TestUnfitProposalsAreNamedAsSuch(t *testing.T) {
	r := newRig(t, tier1())
	for _, c := range []struct {
		change func(*protocol.Proposal)
		why    string
	}{
		{func(p *protocol.Proposal) { p.Premises = append(p.Premises, p.Premises[0]) }, "of two readings of one fact only one would be looked at"},
		{func(p *protocol.Proposal) {
			twin := p.Premises[0]
			twin.BeforeConnect = true
			p.Premises = append(p.Premises, twin)
		}, "the same, read at another time"},
		{func(p *protocol.Proposal) { p.Premises[0].Name = "eligible\xfe" }, "the journal would keep another name"},
		{func(p *protocol.Proposal) { p.Premises[1].Whose = "others\n" }, "a line of its own on a page"},
		{func(p *protocol.Proposal) { p.Premises[0].At = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "JSON has no such time"},
		{func(p *protocol.Proposal) {
			p.Effect.Payload = []byte(`{"amount":20,"deep":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`)
		}, "it would be too deep within an entry"},
		{func(p *protocol.Proposal) {
			big := []byte(`"` + strings.Repeat("x", 900_000) + `"`)
			for i := range 10 {
				p.Premises = append(p.Premises, protocol.Premise{Name: "big-" + string(rune('a'+i)), Seen: big, At: p.Premises[0].At, Holds: protocol.Unchanged})
			}
		}, "together more than an entry holds"},
	} {
		p := r.proposal("case-1", 20)
		c.change(&p)
		if _, err := r.gate.Submit(context.Background(), p); !errors.Is(err, protocol.ErrProposal) {
			t.Errorf("want ErrProposal (%s), have %v", c.why, err)
		}
	}
	if n := len(r.kinds(id("case-1"))); n != 0 {
		t.Errorf("%d entries were written", n)
	}
}

func TestUnfitLeasesAreNamedAsSuch(t *testing.T) {
	r := newRig(t, tier1())
	for _, c := range []struct {
		change func(*protocol.Lease)
		why    string
	}{
		{func(l *protocol.Lease) { l.Expires = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "JSON has no such time"},
		{func(l *protocol.Lease) {
			l.Limits = []protocol.Limit{{Field: "case", Equals: json.RawMessage("nope")}}
		}, "no JSON"},
	} {
		l := lease("L-unfit")
		c.change(&l)
		if err := r.authority.Grant(context.Background(), l); !errors.Is(err, protocol.ErrLease) {
			t.Errorf("want ErrLease (%s), have %v", c.why, err)
		}
	}
}

func TestAMaximumCoversNoNegativeAmount(t *testing.T) {
	r := newRig(t, tier1())
	r.want(r.submit(r.proposal("case-1", -20)), "REFUSED:lease", 0)
}
