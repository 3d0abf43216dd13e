package oracle_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// checks sets how many cases rapid draws for one test, unless the command line
// says so. rapid prints the seed of a case that fails.
func checks(t *testing.T, n string) {
	t.Helper()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		return
	}
	f := flag.Lookup("rapid.checks")
	before := f.Value.String()
	if err := f.Value.Set(n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Value.Set(before) })
}

// model is a world and a column that does everything right in it: it looks before
// it sends, sends once as long as that may have landed, and says what is so.
type model struct {
	*script
	ineligible, revoked, byHand bool // what holds against a send now
	lost                        bool // whether anything ever did
	pending, landed             bool // a request is under way; one has landed
	money                       int64
}

// holds says that authority and facts are there.
func (m *model) holds() bool { return !m.ineligible && !m.revoked && !m.byHand }

func (m *model) send() {
	m.look().ask(20_00)
	m.pending = true
}

func (m *model) lands() {
	m.land(20_00)
	m.pending, m.landed = false, true
	m.money += 20_00
}

// steps are what may happen, by the world or the column.
var steps = map[string]func(*model){
	"die":        func(m *model) { m.kill().start() },
	"wait":       func(m *model) { m.wait(time.Second) },
	"ineligible": func(m *model) { m.eligible(false); m.ineligible, m.lost = true, true },
	"eligible":   func(m *model) { m.eligible(true); m.ineligible = false },
	"revoke": func(m *model) {
		if !m.revoked {
			m.revoke()
			m.revoked, m.lost = true, true
		}
	},
	"refund by hand": func(m *model) {
		if !m.byHand {
			m.script.byHand(20_00)
			m.money += 20_00
			m.byHand, m.lost = true, true
		}
	},
	"send": func(m *model) {
		if m.holds() && !m.pending && !m.landed {
			m.send()
		}
	},
	"land": func(m *model) {
		if m.pending {
			m.lands()
		}
	},
	"lose": func(m *model) { // past the bound it can't land any more
		if m.pending {
			m.wait(31 * time.Second)
			m.pending = false
		}
	},
}

// happened is a right history without its end.
func happened(t *rapid.T) *model {
	m := &model{script: begin(t2)}
	var names []string
	for name := range steps {
		names = append(names, name)
	}
	slices.Sort(names)
	for range rapid.IntRange(0, 12).Draw(t, "steps") {
		steps[rapid.SampledFrom(names).Draw(t, "step")](m)
	}
	if m.pending {
		m.lands()
	}
	return m
}

// settled ends it as it should.
func (m *model) settled() history.History {
	if !m.landed && m.holds() {
		m.send()
		m.lands()
	}
	if m.landed {
		m.tell("COMMITTED", history.SaysDone)
	} else {
		m.tell("REFUSED", history.SaysNot)
	}
	return m.end()
}

// TestRightHistories finds nothing in whatever a column that does everything
// right may go through.
func TestRightHistories(t *testing.T) {
	checks(t, "2000")
	rapid.Check(t, func(t *rapid.T) {
		m := happened(t)
		h := m.settled()
		v := oracle.Judge(h)
		if v.Class != oracle.Correct || v.Answer != oracle.Agrees || v.Money != m.money {
			t.Fatalf("judged %s, %s, %d cents, want %d: %v", v.Class, v.Answer, v.Money, m.money, v.Why)
		}
	})
}

// wrongs are one wrong each, at the end of a right history: where it can be
// done, and the rule that finds it.
var wrongs = []struct {
	name  string
	can   func(*model) bool
	do    func(*model)
	class oracle.Class
	rule  string
}{
	{"sends again", func(m *model) bool { return m.landed },
		func(m *model) { m.send(); m.lands(); m.tell("APPLIED", history.SaysDone) }, oracle.Duplicate, "more-landings"},
	{"sends behind a person", func(m *model) bool { return m.byHand && !m.landed },
		func(m *model) { m.send(); m.lands(); m.tell("APPLIED", history.SaysDone) }, oracle.Duplicate, "more-landings"},
	{"sends too much", func(m *model) bool { return !m.landed },
		func(m *model) { m.look().ask(50_00).land(50_00).tell("APPLIED", history.SaysDone) }, oracle.Duplicate, "more-money"},
	{"sends without authority", func(m *model) bool { return m.revoked && !m.landed },
		func(m *model) { m.send(); m.lands(); m.tell("APPLIED", history.SaysDone) }, oracle.Unauthorized, "lease-not-live"},
	{"sends on stale facts", func(m *model) bool { return m.ineligible && !m.landed },
		func(m *model) { m.send(); m.lands(); m.tell("APPLIED", history.SaysDone) }, oracle.Stale, "not-eligible"},
	{"claims what never was", func(m *model) bool { return !m.landed && !m.byHand },
		func(m *model) { m.tell("APPLIED", history.SaysDone) }, oracle.Lost, "claimed-done"},
	{"says nothing", func(m *model) bool { return !m.landed && !m.lost },
		func(m *model) {}, oracle.Lost, "dropped"},
	{"leaves it open", func(m *model) bool { return true },
		func(m *model) { m.tell("IN_FLIGHT", history.SaysPending) }, oracle.Stuck, "never-settled"},
	{"gives up where it could ask", func(m *model) bool { return true },
		func(m *model) { m.tell("AMBIGUOUS", history.SaysUnknown) }, oracle.Stuck, "avoidable-doubt"},
	{"refuses what is right", func(m *model) bool { return !m.landed && !m.lost },
		func(m *model) { m.tell("REFUSED", history.SaysNot) }, oracle.FalseRefusal, "false-refusal"},
}

// TestPlantedWrongs finds each wrong in whatever came before it, and judges the
// whole no better than it deserves.
func TestPlantedWrongs(t *testing.T) {
	checks(t, "2000")
	planted := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		m := happened(t)
		wrong := rapid.SampledFrom(wrongs).Draw(t, "wrong")
		if !wrong.can(m) {
			return
		}
		planted[wrong.name]++
		wrong.do(m)
		v := oracle.Judge(m.end())
		if !slices.Contains(v.Broke, wrong.rule) || v.Class < wrong.class {
			t.Fatalf("%s: judged %s by %v, want %s by %s: %v", wrong.name, v.Class, v.Broke, wrong.class, wrong.rule, v.Why)
		}
	})
	for _, w := range wrongs {
		if planted[w.name] == 0 {
			t.Errorf("%q was never planted", w.name)
		}
	}
}
