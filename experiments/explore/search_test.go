package explore

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// TestVisitedSetIsSound: whoever prunes at a state that was visited sees the same
// states and the same broken rules as whoever goes every way to its end, and as
// whoever goes them in another order.
func TestVisitedSetIsSound(t *testing.T) {
	var bounds []Bound
	for _, p := range Profiles() {
		for _, b := range []Bound{
			{Budget: Budget{Crashes: 1}, Restarts: true},
			{Budget: Budget{Faults: 1}},
			{Budget: Budget{Changes: 1}, World: []string{"change", "hand", "revoke", "stall"}},
			{Budget: Budget{IO: 1}},
			{Budget: Budget{Crashes: 1}, Torn: true},
		} {
			b.Profiles, b.Agents = []string{p.Name}, 1
			if damage := b.Budget.IO > 0 || b.Torn; !damage || p.Name == "t1" || p.Name == "t3" {
				bounds = append(bounds, b)
			}
		}
	}
	for _, p := range Plants() {
		bounds = append(bounds, p.Bound)
	}
	if testing.Short() {
		bounds = bounds[:10]
	}
	dir := locks(t)
	for _, b := range bounds {
		explore := func(o Options) (map[[16]byte]bool, []string) {
			o.States = map[[16]byte]bool{}
			r, err := Explore(t.Context(), b, dir, o)
			if err != nil {
				t.Fatal(err)
			}
			return o.States, slices.Sorted(maps.Keys(r.Violations))
		}
		states, broken := explore(Options{})
		for name, o := range map[string]Options{"without the set": {Forget: true}, "in another order": {Wide: true}} {
			others, also := explore(o)
			if !maps.Equal(states, others) || !slices.Equal(broken, also) {
				t.Errorf("%s %v %s: %d states, %v broken; %s: %d states, %v broken",
					b.What(), b.World, b.Planted, len(states), broken, name, len(others), also)
			}
		}
	}
}

// TestJudgesAgree walks through bounds at random, and holds what the explorer says
// of each walk against what the judge of histories says of its history.
func TestJudgesAgree(t *testing.T) {
	const seed = 1
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	dir := locks(t)
	count := map[string]int{}
	try := func(b Bound) {
		told, err := walk(b, dir, true, func(_ int, moves []move) move {
			if chance.IntN(12) > 0 {
				return moves[0]
			}
			return moves[chance.IntN(len(moves))]
		})
		if err != nil {
			t.Fatal(err)
		}
		v := oracle.Judge(told.History)
		switch broke := told.Broke; {
		case v.Class == oracle.Unknown:
			t.Fatalf("%s: the history can't be judged: %v", b.Name, v.Why)
		case broke == nil:
			count["walks that broke nothing"]++
			for _, rule := range v.Broke {
				if why := excused(rule, told.History); why == "" {
					t.Errorf("%s: nothing is broken; the judge says %v", b.Name, v.Why)
				} else {
					count[why]++
				}
			}
		case slices.ContainsFunc(oracle.Rules, func(r oracle.Rule) bool { return r.Name == broke.Rule }):
			count["walks that broke a rule of both"]++
			if !slices.Contains(v.Broke, broke.Rule) {
				t.Errorf("%s: %v; the judge says %v %v", b.Name, broke, v.Class, v.Why)
			}
		default:
			count["walks that broke a rule of the explorer's own"]++
		}
	}
	for range 6 {
		for _, s := range Small() {
			for _, p := range s.Profiles() {
				if b := s.Bound(p.Name); len(b.Profiles) == 1 && b.Budget.IO == 0 {
					try(b)
				}
			}
		}
		for _, p := range Plants() {
			try(p.Bound)
		}
	}
	t.Log(count)
	if count["walks that broke a rule of both"] == 0 {
		t.Error("no walk broke a rule")
	}
}

// excused says why the judge may find a rule broken where the explorer doesn't; ""
// is no reason. The judge knows less: it is given a history and a declaration.
func excused(rule string, h history.History) string {
	has := func(is func(history.Event) bool) bool { return slices.ContainsFunc(h, is) }
	switch {
	case rule == "honest-doubt":
		return "both say that nobody can tell"
	case rule == "false-refusal" && has(func(e history.Event) bool {
		r, err := history.Body[history.Reply](e)
		return e.Kind == history.Answered && err == nil && r.Word == outcomeWords[protocol.Rejected]
	}):
		return "the judge doesn't know that the service said a final no"
	case rule == "avoidable-doubt" && has(func(e history.Event) bool { return e.Kind == history.Revoking }):
		return "for the judge a lease lives until its revocation has returned"
	case rule == "avoidable-doubt" && has(func(e history.Event) bool { return e.Point == journal.SuspectsMarked }):
		return "the judge doesn't know of suspects, which a key doesn't settle"
	case rule == "avoidable-doubt" && h[len(h)-1].At >= keyWindow-keyMargin:
		return "for the judge a key lives to the end of its window, the margin included"
	case (rule == "not-approved" || rule == "more-money") && has(func(e history.Event) bool { return e.Kind == history.Acted }):
		return "the judge knows one amount, and the caller changed its mind before any was recorded"
	}
	return ""
}
