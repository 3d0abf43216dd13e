package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// machine drives a gate with anything that may happen and holds it to a model:
// what was said to be final.
type machine struct {
	*rig
	model map[journal.ID]protocol.Status
	lease int // the last one granted
	cap   int // the highest that the budget ever had
}

var machineRequests = []string{"case-1", "case-2", "case-3", "case-4"}

// machineSymbols are what the requests define: of two that define the same, one
// may land (I6).
var machineSymbols = map[string][]string{"case-2": {"a", "b"}, "case-3": {"b"}, "case-4": {"c"}}

// caps holds the ledger against the budget (I9) and the symbols (I6).
func (m *machine) caps(t *rapid.T) {
	sum, by := 0, map[string]journal.ID{}
	for _, l := range m.service.ledger {
		var payload struct{ Amount int }
		if err := json.Unmarshal([]byte(l.payload), &payload); err != nil {
			t.Fatal(err)
		}
		sum += payload.Amount
		for _, request := range machineRequests {
			for _, symbol := range machineSymbols[request] {
				if id(request) != l.effect {
					continue
				}
				if other, ok := by[symbol]; ok && other != l.effect {
					t.Fatalf("symbol %q was defined by two effects", symbol)
				}
				by[symbol] = l.effect
			}
		}
	}
	if sum > m.cap {
		t.Fatalf("%d landed under a cap of %d", sum, m.cap)
	}
}

// told notes a final status, and finds it in contradiction to an earlier
// one or to the ledger.
func (m *machine) told(t *rapid.T, got protocol.Result) {
	landings := m.service.landings(got.Effect)
	if landings > 1 {
		t.Fatalf("%s landed %d times", got.Effect, landings)
	}
	switch before := m.model[got.Effect]; got.Status.Final {
	case protocol.Committed:
		if landings != 1 {
			t.Fatalf("%s, and it landed %d times\n%s", got.Status, landings, got.Receipt)
		}
		m.model[got.Effect] = got.Status
	case protocol.Refused, protocol.Ambiguous, protocol.NotYetSent:
		if before.Final == protocol.Committed && got.Status.Reason != protocol.ConflictingPayload {
			t.Fatalf("%s after %s", got.Status, before)
		}
	}
	switch r := got.Receipt; {
	case r.Executed.Is == protocol.Yes && landings == 0, r.Executed.Is == protocol.No && landings == 1:
		t.Fatalf("landed %d times, and the receipt says\n%s", landings, r)
	}
}

func (m *machine) submit(t *rapid.T) {
	p := m.proposal(rapid.SampledFrom(machineRequests).Draw(t, "request"), rapid.SampledFrom([]int{20, 20, 20, 15, 30}).Draw(t, "amount"))
	p.Lease, p.Symbols = m.current(), machineSymbols[p.Request]
	got, err := m.gate.Submit(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	m.told(t, got)
}

func (m *machine) current() string { return fmt.Sprintf("L-%d", m.lease) }

// grants grants the next lease, which requires the budget.
func (m *machine) grants() {
	l := lease(m.current())
	l.Budget = "refunds"
	m.grant(l)
}

func (m *machine) recovers(t *rapid.T, wait bool) {
	results, err := m.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: wait})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for _, got := range results {
		m.told(t, got)
	}
}

// orDies kills the process on the way, or not.
func (m *machine) orDies(t *rapid.T, f func(t *rapid.T)) {
	at := rapid.IntRange(-20, 25).Draw(t, "killed at point")
	m.onStep = nil
	if at >= 0 {
		m.killAt(at, nil)
	}
	if m.run(func() { f(t) }) {
		m.restart()
	}
	m.onStep = nil
}

func TestMachine(t *testing.T) {
	fenced := tier2()
	fenced.Fencing, fenced.LandingBound = true, 0
	lagging := tier2()
	lagging.LookupLag = 5 * time.Second
	profiles := []protocol.Capabilities{tier1(), tier2(), tier3(), fenced, lagging}
	rapid.Check(t, func(rt *rapid.T) {
		can := rapid.SampledFrom(profiles).Draw(rt, "profile")
		m := &machine{rig: newRig(t, can), model: map[journal.ID]protocol.Status{}}
		defer m.kill()
		m.setBudget(budget("20"))
		m.cap = 20
		m.grants()
		rt.Repeat(map[string]func(*rapid.T){
			"submit":  func(t *rapid.T) { m.orDies(t, m.submit) },
			"recover": func(t *rapid.T) { m.orDies(t, func(t *rapid.T) { m.recovers(t, rapid.Bool().Draw(t, "wait")) }) },
			"restart": func(t *rapid.T) { m.restart() },
			"time": func(t *rapid.T) {
				m.clock.advance(time.Duration(rapid.SampledFrom([]int{1, 4, 20, 31, 3600, 80000}).Draw(t, "seconds")) * time.Second)
			},
			"service": func(t *rapid.T) {
				late := time.Duration(rapid.IntRange(1, 29).Draw(t, "late")) * time.Second
				m.service.script = append(m.service.script, rapid.SampledFrom([]simulatedAnswer{
					ackLost, neverLands, lands(late), says(protocol.NotSent), says(protocol.NotExecuted),
					{says: protocol.Answer{Outcome: protocol.Unknown, Reason: "500"}},
				}).Draw(t, "answer"))
			},
			"refuse": func(t *rapid.T) { m.service.refuse = 1 },
			"world": func(t *rapid.T) {
				m.service.set("refunded", rapid.SampledFrom([]string{"0", "20"}).Draw(t, "refunded"))
			},
			"revoke": func(t *rapid.T) {
				m.revoke(m.current())
				m.lease++
				m.grants()
			},
			"cap": func(t *rapid.T) {
				cap := rapid.SampledFrom([]int{10, 20, 35}).Draw(t, "cap")
				m.setBudget(budget(fmt.Sprint(cap)))
				m.cap = max(m.cap, cap)
			},
			"": m.caps,
		})
		m.caps(rt)
		// Left alone, everything ends.
		m.service.script, m.service.refuse, m.onStep = nil, 0, nil
		m.recovers(rt, true)
		m.clock.advance(time.Hour)
		open, err := m.gate.Report(context.Background())
		if err != nil {
			rt.Fatal(err)
		}
		for _, e := range open {
			if e.Standing != "ambiguous" || can.Tier() != 3 {
				rt.Fatalf("left open: %+v", e)
			}
		}
		for _, request := range machineRequests {
			r, err := m.gate.Receipt(context.Background(), id(request))
			if errors.Is(err, protocol.ErrUnknown) {
				continue
			}
			if err != nil {
				rt.Fatal(err)
			}
			m.told(rt, protocol.Result{Effect: id(request), Status: r.Status, Receipt: r})
		}
		m.caps(rt)
	})
}
