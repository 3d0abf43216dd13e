package sweep

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// trial writes the history of a world and of a column that does everything right
// in it: it looks before it sends, sends once as long as that may have landed, and
// says what is so.
type trial struct {
	h        history.History
	now      time.Duration
	worker   int
	requests int
	refunds  int

	ineligible, revoked, byHand bool // what holds against a send now
	lost                        bool // whether anything ever did
	pending, landed             bool // a request is under way; one has landed
	money                       int64
}

const dollar = 100

// begin opens a history with what is approved, the lease and a started worker.
func begin() *trial {
	w := &trial{}
	w.add("supervisor", history.Declared, history.Declaration{
		Approved: []history.Approval{{Request: "case-4471", Order: "881", Case: "case-4471", Amount: 20 * dollar, Agent: agent, Lease: "L-refund"}},
		Service:  history.Service{Lookup: true, LandingBound: 30 * time.Second},
	})
	w.add("principal", history.Granted, history.Lease{Lease: "L-refund", Holder: agent, Max: 20 * dollar, Expires: 720 * time.Hour})
	w.order(true)
	w.start()
	return w
}

func (w *trial) add(who string, kind history.Kind, body any) {
	e := history.Event{N: len(w.h) + 1, At: w.now, Who: who, Kind: kind}
	if kind == history.Passed {
		e.Point = sim.BeforeSend
	}
	if body != nil {
		e.Body, _ = json.Marshal(body) // structs of the history's own
	}
	w.h = append(w.h, e)
}

func (w *trial) who() string { return fmt.Sprintf("worker#%d", w.worker) }

func (w *trial) start() { w.worker++; w.add(w.who(), history.Started, nil) }

func (w *trial) order(eligible bool) {
	w.add("service", history.Changed, history.Order{Order: "881", Eligible: eligible, Paid: 100 * dollar})
}

// ask looks, and sends.
func (w *trial) ask(amount int64) {
	w.add(w.who(), history.Passed, nil)
	w.requests++
	w.add("service", history.Requested, history.Request{Order: "881", Case: "case-4471", Amount: amount, Number: w.requests})
}

func (w *trial) land(amount int64, request int) {
	w.refunds++
	w.money += amount
	w.add("service", history.Applied, history.Landing{
		ID: fmt.Sprintf("re_%d", w.refunds), Order: "881", Case: "case-4471", Amount: amount, Request: request,
	})
}

func (w *trial) tell(status string, says history.Says) {
	w.add(w.who(), history.Told, history.Answer{Request: "case-4471", Amount: 20 * dollar, Status: status, Says: says, During: "submit"})
}

// holds says that authority and facts are there.
func (w *trial) holds() bool { return !w.ineligible && !w.revoked && !w.byHand }

func (w *trial) send() { w.ask(20 * dollar); w.pending = true }

func (w *trial) lands() {
	w.land(20*dollar, w.requests)
	w.pending, w.landed = false, true
}

// happenings are what the world or the column may do next.
var happenings = map[string]func(*trial){
	"die":        func(w *trial) { w.add(w.who(), history.Killed, nil); w.start() },
	"wait":       func(w *trial) { w.now += time.Second },
	"ineligible": func(w *trial) { w.order(false); w.ineligible, w.lost = true, true },
	"eligible":   func(w *trial) { w.order(true); w.ineligible = false },
	"revoke": func(w *trial) {
		if !w.revoked {
			w.add("principal", history.Revoking, history.Lease{Lease: "L-refund"})
			w.add("principal", history.Revoked, history.Lease{Lease: "L-refund"})
			w.revoked, w.lost = true, true
		}
	},
	"refund by hand": func(w *trial) {
		if !w.byHand {
			w.land(20*dollar, 0)
			w.byHand, w.lost = true, true
		}
	},
	"send": func(w *trial) {
		if w.holds() && !w.pending && !w.landed {
			w.send()
		}
	},
	"land": func(w *trial) {
		if w.pending {
			w.lands()
		}
	},
	"lose": func(w *trial) { // past the bound it can't land any more
		if w.pending {
			w.now += 31 * time.Second
			w.pending = false
		}
	},
}

// happened is a right history without its end.
func happened(t *rapid.T) *trial {
	w := begin()
	names := slices.Sorted(maps.Keys(happenings))
	for range rapid.IntRange(0, 12).Draw(t, "happenings") {
		happenings[rapid.SampledFrom(names).Draw(t, "what")](w)
	}
	if w.pending {
		w.lands()
	}
	return w
}

// settle ends it as it should.
func (w *trial) settle() {
	if !w.landed && w.holds() {
		w.send()
		w.lands()
	}
	if w.landed {
		w.tell("COMMITTED", history.SaysDone)
	} else {
		w.tell("REFUSED", history.SaysNot)
	}
}

func (w *trial) end() history.History {
	w.add(w.who(), history.Finished, nil)
	w.add(w.who(), history.Exited, history.Exit{})
	return w.h
}

// wrongs are one wrong each, at the end of a right history: where it can be
// done, and the rule that finds it.
var wrongs = []struct {
	name  string
	can   func(*trial) bool
	do    func(*trial)
	class oracle.Class
	rule  string
}{
	{"sends again", func(w *trial) bool { return w.landed }, (*trial).sendsAnyway, oracle.Duplicate, "more-landings"},
	{"sends behind a person", func(w *trial) bool { return w.byHand && !w.landed }, (*trial).sendsAnyway, oracle.Duplicate, "more-landings"},
	{"sends too much", func(w *trial) bool { return !w.landed },
		func(w *trial) { w.ask(50 * dollar); w.land(50*dollar, w.requests); w.tell("APPLIED", history.SaysDone) }, oracle.Duplicate, "more-money"},
	{"sends without authority", func(w *trial) bool { return w.revoked && !w.landed }, (*trial).sendsAnyway, oracle.Unauthorized, "lease-not-live"},
	{"sends on stale facts", func(w *trial) bool { return w.ineligible && !w.landed }, (*trial).sendsAnyway, oracle.Stale, "not-eligible"},
	{"claims what never was", func(w *trial) bool { return !w.landed && !w.byHand },
		func(w *trial) { w.tell("APPLIED", history.SaysDone) }, oracle.Lost, "claimed-done"},
	{"says nothing", func(w *trial) bool { return !w.landed && !w.lost }, func(*trial) {}, oracle.Lost, "dropped"},
	{"leaves it open", func(*trial) bool { return true },
		func(w *trial) { w.tell("IN_FLIGHT", history.SaysPending) }, oracle.Stuck, "never-settled"},
	{"gives up where it could ask", func(*trial) bool { return true },
		func(w *trial) { w.tell("AMBIGUOUS", history.SaysUnknown) }, oracle.Stuck, "avoidable-doubt"},
	{"refuses what is right", func(w *trial) bool { return !w.landed && !w.lost },
		func(w *trial) { w.tell("REFUSED", history.SaysNot) }, oracle.FalseRefusal, "false-refusal"},
}

func (w *trial) sendsAnyway() {
	w.send()
	w.lands()
	w.tell("APPLIED", history.SaysDone)
}

// judge is the judge's machine: nothing is found in what a column did that does
// everything right, and a wrong at its end is found by its rule and judged no
// better than it deserves.
func judge(t *rapid.T, n Counts) {
	w := happened(t)
	if rapid.Bool().Draw(t, "right") {
		w.settle()
		v := oracle.Judge(w.end())
		if v.Class != oracle.Correct || v.Answer != oracle.Agrees || v.Money != w.money {
			t.Fatalf("judged %s, %s, %d cents, want %d: %v", v.Class, v.Answer, v.Money, w.money, v.Why)
		}
		n["right"]++
		return
	}
	var can []int
	for i, wrong := range wrongs {
		if wrong.can(w) {
			can = append(can, i)
		}
	}
	wrong := wrongs[rapid.SampledFrom(can).Draw(t, "wrong")]
	t.Log(wrong.name)
	wrong.do(w)
	v := oracle.Judge(w.end())
	if !slices.Contains(v.Broke, wrong.rule) || v.Class < wrong.class {
		t.Fatalf("%s: judged %s by %v, want %s by %s: %v", wrong.name, v.Class, v.Broke, wrong.class, wrong.rule, v.Why)
	}
	n["found "+wrong.name]++
}
