package protocol_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gowebpki/jcs"

	"github.com/interlock-bench/interlock-bench/protocol"
)

func TestEffectIDs(t *testing.T) {
	// Two request ids that share 48 bits of a hash in the first implementation.
	if protocol.EffectID("refunds", "case-9095555", 0) == protocol.EffectID("refunds", "case-2968566", 0) {
		t.Error("two requests, one effect")
	}
	seen := map[string]string{}
	for _, c := range []struct {
		namespace, request string
		revision           uint64
		why                string
	}{
		{"a", "bc", 0, "lengths come first"},
		{"ab", "c", 0, "lengths come first"},
		{"a", "bc", 1, "a revision is another effect"},
		{"a", "bc0", 0, "the revision is no part of the id"},
	} {
		effect := protocol.EffectID(c.namespace, c.request, c.revision).String()
		if other, ok := seen[effect]; ok {
			t.Errorf("%s: the same as %s", c.why, other)
		}
		seen[effect] = c.why
	}
}

func TestRequestIDs(t *testing.T) {
	r := newRig(t, tier1())
	for _, c := range []struct {
		id  string
		fit bool
	}{
		{"case-4471", true}, {"A_b.c-9", true}, {strings.Repeat("x", 128), true},
		{"", false}, {strings.Repeat("x", 129), false}, {".hidden", false}, {"../x", false}, {"a/b", false},
		{"a b", false}, {"a\nb", false}, {"a\x00", false}, {"a\x1b[2J", false}, {"rtl\u202e", false}, {"é", false},
	} {
		p := r.proposal("x", 20)
		p.Request = c.id
		_, err := r.gate.Submit(t.Context(), p)
		if fit := !errors.Is(err, protocol.ErrProposal); fit != c.fit {
			t.Errorf("%q: %v", c.id, err)
		}
	}
}

func TestCanonical(t *testing.T) {
	for _, c := range []struct{ in, want, why string }{
		{`{"b":1,"a":2}`, `{"a":2,"b":1}`, "key order doesn't count"},
		{`{"a":20.0}`, `{"a":20}`, "number spelling doesn't count"},
		{`{"a":2e1}`, `{"a":20}`, "number spelling doesn't count"},
		{`{"a":-0}`, `{"a":0}`, "minus nothing is nothing"},
		{`{"a":-0.0e99}`, `{"a":0}`, "minus nothing is nothing"},
		{`{"a":0.1}`, `{"a":0.1}`, "the shortest decimal of a double"},
		{`{"a":9007199254740992}`, `{"a":9007199254740992}`, "2^53 is exact"},
		{`{"a":"9007199254740993"}`, `{"a":"9007199254740993"}`, "carried as a string"},
		{` {"a" : [ {"b":1}, {"b":1} ] } `, `{"a":[{"b":1},{"b":1}]}`, "the same key in two objects"},
		{`{"a":{"k":"k"},"K":1}`, `{"K":1,"a":{"k":"k"}}`, "a twin in another object, a string that looks like a key"},
		{`{"a":9007199254740993}`, "", "becomes another integer"},
		{`{"a":-9007199254740993}`, "", "becomes another integer"},
		{`{"a":1e300}`, "", "beyond 2^53"},
		{`{"a":1e400}`, "", "out of range"},
		{`{"a":0.30000000000000001}`, "", "becomes another decimal"},
		{`{"a":1e-999999999}`, "", "becomes nothing"},
		{`{"a":1,"a":1}`, "", "twice"},
		{`{"a":1,"\u0061":1}`, "", "twice, once escaped"},
		{`{"amount":1,"AMOUNT":9}`, "", "differ only in case"},
		{`{"k":1,"` + "\u212a" + `":9}`, "", "the Kelvin sign folds to k"},
		{`{"x":[{"a":1,"A":1}]}`, "", "inside an array"},
		{"{\"a\":\"\xff\"}", "", "bad UTF-8"},
		{`{"a":"\ud800"}`, "", "a lone surrogate"},
		{`{"a":01}`, "", "no JSON number"},
		{`{"a":1}x`, "", "trailing text"},
		{"\ufeff{}", "", "a byte order mark"},
		{`[1]`, "", "no object"},
		{`1`, "", "no object"},
		{``, "", "nothing"},
		{`{"a":"` + strings.Repeat("x", 1<<20) + `"}`, "", "too long"},
		{strings.Repeat(`{"a":`, 20000) + `1` + strings.Repeat(`}`, 20000), "", "too deep"},
	} {
		got, err := protocol.Canonical([]byte(c.in))
		if string(got) != c.want || (err == nil) != (c.want != "") || err != nil && !errors.Is(err, protocol.ErrJSON) {
			t.Errorf("%.60q: %.60q, %v, want %q: %s", c.in, got, err, c.want, c.why)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"a":20.0,"b":[1,"x",null,true]}`, `{"a":1,"A":2}`, `{"a":9007199254740993}`, `{"a":-0}`, `{"a":1e-400}`, `[]`, `{"":"","a":{"":-1,"b":[true,null,{}]},"b":"~"}`, `{"a":"\u007f"}`, `{"a":123456789012345,"b":-0}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		form, err := protocol.Canonical(in)
		if err != nil {
			if !errors.Is(err, protocol.ErrJSON) {
				t.Fatalf("%q: %v", in, err)
			}
			return
		}
		if transformed, err := jcs.Transform(in); err != nil || !bytes.Equal(transformed, form) {
			t.Fatalf("%q became %q, and by RFC 8785 %q, %v", in, form, transformed, err)
		}
		again, err := protocol.Canonical(form)
		if err != nil || !bytes.Equal(form, again) {
			t.Fatalf("%q became %q and that %q, %v", in, form, again, err)
		}
		var a, b any
		if json.Unmarshal(in, &a) != nil || json.Unmarshal(form, &b) != nil {
			t.Fatalf("%q or %q is no JSON", in, form)
		}
		left, _ := json.Marshal(a)
		right, _ := json.Marshal(b)
		if strings.ReplaceAll(string(left), "-0", "0") != strings.ReplaceAll(string(right), "-0", "0") {
			t.Fatalf("%s became %s", left, right)
		}
	})
}

// TestStatusWords: every status has a word, and every word is of one status. A
// reason that the list of reasons lost doesn't read back (B53).
func TestStatusWords(t *testing.T) {
	for _, c := range []struct {
		status protocol.Status
		word   string
	}{
		{protocol.Status{}, ""},
		{protocol.Status{Final: protocol.Committed}, "COMMITTED"},
		{protocol.Status{Final: protocol.Committed, Way: protocol.ByRetry}, "COMMITTED_BY_RETRY"},
		{protocol.Status{Final: protocol.Committed, Way: protocol.OnQuery}, "COMMITTED_ON_QUERY"},
		{protocol.Status{Final: protocol.Committed, Way: protocol.Reapplied}, "REAPPLIED_AFTER_QUERY"},
		{protocol.Status{Final: protocol.Committed, Way: protocol.Duplicate}, "DUPLICATE_IGNORED"},
		{protocol.Status{Final: protocol.Refused, Reason: protocol.StaleAtRecovery}, "REFUSED:stale_premise_at_recovery"},
		{protocol.Status{Final: protocol.Refused, Reason: protocol.LeaseDead}, "REFUSED:lease"},
		{protocol.Status{Final: protocol.Refused, Reason: protocol.LeaseAtRecovery}, "REFUSED:lease_at_recovery"},
		{protocol.Status{Final: protocol.Refused, Reason: protocol.StalePremise}, "REFUSED:stale_premise"},
		{protocol.Status{Final: protocol.Refused, Reason: protocol.FalseAtDecision}, "REFUSED:premise_false_at_decision"},
		{protocol.Status{Final: protocol.Refused, Reason: protocol.ConflictingPayload}, "REFUSED:conflicting_payload"},
		{protocol.Status{Final: protocol.Refused, Reason: protocol.DuplicateSymbol}, "REFUSED:duplicate_symbol"},
		{protocol.Status{Final: protocol.Refused, Reason: protocol.OverBudget}, "REFUSED:over_budget"},
		{protocol.Status{Final: protocol.Refused, Reason: protocol.Closed}, "REFUSED:closed"},
		{protocol.Status{Final: protocol.Refused, Reason: protocol.TargetRejected}, "REFUSED:target_rejected"},
		{protocol.Status{Final: protocol.Refused, Reason: protocol.ResolvedNotLanded}, "REFUSED:resolved_not_landed"},
		{protocol.Status{Final: protocol.Unresolved, Reason: protocol.Mismatch}, "UNRESOLVED:mismatch"},
		{protocol.Status{Final: protocol.Unresolved}, "UNRESOLVED"},
		{protocol.Status{Final: protocol.InFlight}, "IN_FLIGHT"},
		{protocol.Status{Final: protocol.NotYetSent}, "NOT_SENT"},
		{protocol.Status{Final: protocol.Ambiguous}, "AMBIGUOUS"},
	} {
		if got := c.status.String(); got != c.word {
			t.Errorf("%+v is %q, want %q", c.status, got, c.word)
		}
		if got, err := protocol.ParseStatus(c.word); err != nil || got != c.status {
			t.Errorf("%q is %+v, %v", c.word, got, err)
		}
	}
	byPerson := protocol.Status{Final: protocol.Committed, Way: protocol.Settled}
	if byPerson.String() != "COMMITTED" {
		t.Errorf("by a person: %s", byPerson)
	}
	for _, word := range []string{"REFUSED", "REFUSED:", "REFUSED:because", "COMMITTED:lease", "COMMITTED_BY_PERSON", "IN_FLIGHT:x", "committed", "AMBIGUOUS:"} {
		if got, err := protocol.ParseStatus(word); err == nil {
			t.Errorf("%q is %+v", word, got)
		}
	}
}

func FuzzParseStatus(f *testing.F) {
	for _, seed := range []string{"COMMITTED", "REFUSED:lease", "UNRESOLVED:mismatch", "", "REFUSED:", "COMMITTED_BY_PERSON"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if s, err := protocol.ParseStatus(word); err == nil && s.String() != word {
			t.Fatalf("%q is %+v, which prints %q", word, s, s)
		}
	})
}

// simulatedUnfenced is a target without a Fence method.
type simulatedUnfenced struct{ protocol.Target }

func TestCapabilitiesMustFitTogether(t *testing.T) {
	r := newRig(t, tier1())
	for _, c := range []struct {
		change func(*protocol.Capabilities)
		fits   bool
		why    string
	}{
		{func(c *protocol.Capabilities) {}, true, "the profile t1"},
		{func(c *protocol.Capabilities) { *c = tier2() }, true, "the profile t2"},
		{func(c *protocol.Capabilities) { *c = protocol.Capabilities{} }, true, "nothing is promised"},
		{func(c *protocol.Capabilities) { c.LandingBound = 0 }, true, "an unknown bound is common"},
		{func(c *protocol.Capabilities) { c.DedupMargin = 31 * time.Second }, true, "B88: bound and clocks, exactly"},
		{func(c *protocol.Capabilities) { c.DedupMargin = 31*time.Second - 1 }, false, "B88: the margin is too thin"},
		{func(c *protocol.Capabilities) { c.DedupMargin = 24 * time.Hour }, false, "the margin is the window"},
		{func(c *protocol.Capabilities) { c.DedupMargin = 0 }, false, "no margin"},
		{func(c *protocol.Capabilities) { c.DedupWindow = 0 }, false, "a margin of no window"},
		{func(c *protocol.Capabilities) { c.ClientTimeout = 22 * time.Hour }, false, "a call as long as the window"},
		{func(c *protocol.Capabilities) { c.LandingBound = -1 }, false, "negative"},
		{func(c *protocol.Capabilities) { c.Lookup, c.LookupLag = false, 1 }, false, "a lag of no lookup"},
		{func(c *protocol.Capabilities) { c.LookupWindow = 31 * time.Second }, false, "forgets before an absence counts"},
		{func(c *protocol.Capabilities) { c.LookupWindow = 32 * time.Second }, true, "an absence can count"},
		{func(c *protocol.Capabilities) { c.LandingBound, c.BoundAssumed = 0, "ops" }, false, "assumes nothing"},
		{func(c *protocol.Capabilities) { c.Fencing = true }, false, "fencing without Fence"},
	} {
		can := tier1()
		c.change(&can)
		err := r.gate.Register("x", simulatedUnfenced{&simulatedService{can: can}})
		if (err == nil) != c.fits || err != nil && !errors.Is(err, protocol.ErrMisfit) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	for tier, can := range map[int]protocol.Capabilities{1: tier1(), 2: tier2(), 3: tier3()} {
		if can.Tier() != tier {
			t.Errorf("tier %d of %+v, want %d", can.Tier(), can, tier)
		}
	}
}

func TestReceiptsAreOnePageAndOneObject(t *testing.T) {
	r := newRig(t, tier1())
	got := r.submit(r.proposal("case-1", 20))
	text, err := json.Marshal(got.Receipt)
	if err != nil {
		t.Fatal(err)
	}
	var back protocol.Receipt
	if err := json.Unmarshal(text, &back); err != nil || back.V != 2 || back.String() != got.Receipt.String() {
		t.Errorf("%v: %s", err, text)
	}
	if n := strings.Count(got.Receipt.String(), "\n"); n > 40 {
		t.Errorf("%d lines are no page", n)
	}
}
