package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/baselines"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// repairMix is how many cases of a day go which way. It is an assumption.
type repairMix struct {
	name, what                                                       string
	routine, partial, full, overshoot, stubborn, crashing, duplicate int
}

var repairMixes = []repairMix{
	{"reference", "the reference mix: 17 of 100 are refunded by hand meanwhile, in part or whole, and 13 begin with $30", 60, 12, 5, 10, 3, 5, 5},
	{"no_hands", "nobody refunds by hand", 77, 0, 0, 10, 3, 5, 5},
	{"no_overshoot", "the model never asks for more", 73, 12, 5, 0, 0, 5, 5},
	{"many_hands", "34 are refunded by hand meanwhile", 43, 24, 10, 10, 3, 5, 5},
}

const (
	repairCase  = 20_00 // cents that each case approves
	repairOver  = 30_00 // what an overshooting model decides
	repairTries = 3
	repairLease = "L-case"
)

// cases are a day's, in the order in which they come. The kinds are shuffled, then
// numbered.
func (m repairMix) cases() (all []dayRequest) {
	var kinds []string
	for _, k := range []struct {
		kind string
		n    int
	}{
		{"routine", m.routine}, {"partial_hand", m.partial}, {"full_hand", m.full}, {"overshoot", m.overshoot},
		{"stubborn", m.stubborn}, {"crash", m.crashing}, {"duplicate", m.duplicate},
	} {
		for range k.n {
			kinds = append(kinds, k.kind)
		}
	}
	shuffled(newMersenne(daySeed), kinds)
	for i, kind := range kinds {
		r := dayRequest{ID: fmt.Sprintf("case-%03d", i+1), Kind: kind, Amount: repairCase, Crash: kind == "crash"}
		switch kind {
		case "partial_hand":
			r.ByHand = int64(5+i%11) * 100
		case "full_hand":
			r.ByHand = repairCase
		}
		all = append(all, r)
	}
	return all
}

// The columns.
const (
	repairNone   = "no-gate"
	repairHand   = "hand-check"
	repairGate   = "gate"
	repairRepair = "gate+repair"
)

// Repair is a scripted agent that may decide again after a refusal.
func Repair() *Experiment {
	e := &Experiment{
		Name:  "repair",
		Short: "can an agent repair a refused refund without paying out wrong",
		Long: `A scripted agent, no model, works off 100 cases that approve $20 each. It decides,
asks for the refund, and may decide again up to three times. People refund by hand
between its decision and the send, some decisions ask for $30, calls are delivered
twice, and the process is killed in the middle of five sends. The service keeps no
keys and can be asked what landed. The mix is an assumption; the rows sweep it.
Counted are the cases that ended with a person, and those that got another amount
than $20 in all.`,
		Example: "  interlock-bench repair\n  interlock-bench repair --row reference --column gate+repair --keep kept",
		Run:     runRepair, Judge: judgeRepair, Child: repairChild, Page: repairPage,
		Columns: []Column{
			{Name: repairNone, What: "calls the service, and again where no answer came"},
			{Name: repairHand, What: "asks what landed and reads the facts before each send, and tells the agent what is left", Holds: true},
			{Name: repairGate, What: "the gate under a lease of at most $20; what it refuses goes to a person", Holds: true},
			{Name: repairRepair, What: "the gate, whose lease accepts two corrections of a case", Holds: true},
		},
	}
	for _, m := range repairMixes {
		e.Rows = append(e.Rows, Row{Name: m.name, Group: "mix", What: m.what})
		for _, c := range e.Columns {
			e.Cells = append(e.Cells, Cell{Row: m.name, Column: c.Name, Declared: declaredRepairs[m.name+"/"+c.Name],
				Trials: []faults.Trial{{Experiment: e.Name, Row: m.name, Column: c.Name, Faults: kills(m.crashing)}}})
		}
	}
	return e
}

// declaredRepairs are the reference's figures, but for the gate without repair: it
// is to have no wrong payout, which takes 13 cases more to a person.
var declaredRepairs = map[string]string{
	"reference/" + repairNone:   "0_persons 40_wrong BAD",
	"reference/" + repairHand:   "3_persons 0_wrong ok",
	"reference/" + repairGate:   "30_persons 0_wrong ok",
	"reference/" + repairRepair: "3_persons 0_wrong ok",
}

// judgeRepair is judgeDay, and a case that is a person's by now may still be owed:
// that is no wrong payout. More than the case approves is.
func judgeRepair(h history.History) oracle.Verdict {
	v := judgeDay(h)
	t := tallied(h)
	wrong := 0
	v.Why = nil
	for _, r := range t.overs {
		wrong++
		v.Why = append(v.Why, r+" got more than its case approves")
	}
	v.Shown = fmt.Sprintf("%d_wrong", wrong)
	if v.Class != oracle.Unknown {
		v.Class = oracle.Correct
		if wrong > 0 {
			v.Class = oracle.Duplicate
		}
	}
	return v
}

func runRepair(ctx context.Context, t faults.Trial) (Outcome, error) {
	at := slices.IndexFunc(repairMixes, func(m repairMix) bool { return m.name == t.Row })
	if at < 0 {
		return Outcome{}, fmt.Errorf("experiments: no mix is called %q", t.Row)
	}
	profile, _ := sim.ProfileNamed("t2")
	cases := repairMixes[at].cases()
	h, err := runDay(ctx, t, profile, func(s *faults.Stage) (*dayWorld, error) {
		w := &dayWorld{requests: cases, every: time.Minute, latency: time.Hour, eager: true, gate: t.Column == repairGate || t.Column == repairRepair}
		l := protocol.Lease{
			ID: repairLease, Principal: principal, Holder: agentID, Actions: []string{actionRefund},
			Limits: []protocol.Limit{{Field: "amount", Max: fmt.Sprint(repairCase)}}, Expires: s.Now().Add(leaseLife),
		}
		if t.Column == repairRepair {
			l.Corrections = repairTries - 1
		}
		return newDayWorld(ctx, s, w, profile, l, nil)
	})
	if err != nil {
		return Outcome{}, err
	}
	count := tallied(h)
	o := Outcome{Trial: t, History: h, Verdict: judgeRepair(h), Status: fmt.Sprintf("%d_persons", count.persons), Record: "none"}
	switch t.Column {
	case repairGate, repairRepair:
		o.Record = "full"
	case repairHand:
		o.Record = "partial"
	}
	kinds := map[string]int{} // kind and what came of it: cases
	for _, r := range cases {
		if slices.Contains(count.overs, r.ID) {
			kinds[r.Kind+" wrong"]++
		}
		if slices.Contains(count.handed, r.ID) {
			kinds[r.Kind+" person"]++
		}
	}
	o.Extra = map[string]any{"persons": count.persons, "wrong": len(count.overs), "killed": count.kills, "over": count.over, "kinds": kinds}
	return o, nil
}

// What a call of the refund came to, for the agent.
type repairAnswer struct {
	done   bool
	again  bool  // it may decide again
	left   int64 // what is left of the case
	person bool
}

// repairTool is the refund as the agent calls it.
type repairTool interface {
	recover(ctx context.Context) error
	call(ctx context.Context, r dayRequest, amount int64, seen sim.Order) (repairAnswer, error)
	Close() error
}

// repairChild is the scripted agent.
func repairChild(c *faults.Child) error {
	var t dayTask
	if err := c.Task(&t); err != nil {
		return err
	}
	client := sim.Client{Network: t.Network, Address: t.Address, Clock: c, Timeout: clientTimeout, Trace: c.At}
	var tool repairTool = &plainRefund{baselines.Sim{Client: client}, t.Column == repairHand}
	if t.Column == repairGate || t.Column == repairRepair {
		gate, err := openDayGate(c, t, client)
		if err != nil {
			return err
		}
		tool = &gatedRefund{c, gate, client, t.Column == repairRepair}
	}
	defer tool.Close()
	ctx := context.Background()
	if err := tool.recover(ctx); err != nil {
		return err
	}
	for again := c.Start() > 1; ; again = false {
		var e dayEvent
		if err := c.Ask(askEvent, eventQuestion{Again: again}, &e); err != nil {
			return err
		}
		if e.What == "end" {
			c.Tell(history.Finished, "", nil)
			return nil
		}
		if err := c.Wait(ctx, e.At-c.Mono()); err != nil {
			return err
		}
		person, err := workOff(ctx, c, client, tool, e.Request)
		if err != nil {
			return err
		}
		status := "ENDED"
		if person {
			status = "PERSON"
		}
		c.Tell(history.Told, e.Request.ID, history.Answer{Request: e.Request.ID, Status: status, Says: history.SaysNot, During: "submit"})
	}
}

// workOff is the agent on one case: it decides, calls, and after a refusal decides
// what is left, but for a stubborn one.
func workOff(ctx context.Context, c *faults.Child, client sim.Client, tool repairTool, r dayRequest) (person bool, err error) {
	amount := int64(repairCase)
	if r.Kind == "overshoot" || r.Kind == "stubborn" {
		amount = repairOver
	}
	seen, err := client.Order(ctx, r.order(), r.ID, r.ID)
	if err != nil {
		return false, err
	}
	if err := c.Ask(askHand, handQuestion{Request: r.ID}, nil); err != nil {
		return false, err
	}
	for try := range repairTries {
		answer, err := tool.call(ctx, r, amount, seen)
		if r.Kind == "duplicate" && try == 0 && err == nil {
			answer, err = tool.call(ctx, r, amount, seen) // delivered twice
		}
		switch {
		case err != nil:
			return false, err
		case answer.done:
			return false, nil
		case answer.person || !answer.again:
			return true, nil
		case answer.left <= 0:
			return false, nil // the customer has it already
		}
		if r.Kind != "stubborn" {
			amount = answer.left
		}
	}
	return true, nil
}

// plainRefund calls the service; the hand check looks before.
type plainRefund struct {
	service baselines.Service
	checks  bool
}

func (p *plainRefund) recover(context.Context) error { return nil }
func (p *plainRefund) Close() error                  { return nil }

func (p *plainRefund) call(ctx context.Context, r dayRequest, amount int64, _ sim.Order) (repairAnswer, error) {
	if p.checks {
		found, err := p.service.Find(ctx, r.ID)
		if err != nil || found.Landed {
			return repairAnswer{done: found.Landed}, err
		}
		now, err := p.service.Order(ctx, r.order(), r.ID, r.ID)
		if err != nil {
			return repairAnswer{}, err
		}
		if left := repairCase - now.Others; amount > left {
			return repairAnswer{again: true, left: left}, nil
		}
	}
	p.service.Refund(ctx, sim.Refund{Order: r.order(), Case: r.ID, Amount: amount, Effect: r.ID})
	return repairAnswer{done: true}, nil
}

// gatedRefund is the gate. With repair, a refusal is answered with a correction
// that the lease itself accepts; the gate decides whether it may be sent.
type gatedRefund struct {
	child   *faults.Child
	gate    *protocol.Gate
	service sim.Client
	repairs bool
}

func (g *gatedRefund) Close() error { return g.gate.Close() }

func (g *gatedRefund) recover(ctx context.Context) error {
	_, err := g.gate.Recover(ctx, protocol.RecoverOptions{Wait: true})
	return err
}

func (g *gatedRefund) call(ctx context.Context, r dayRequest, amount int64, seen sim.Order) (repairAnswer, error) {
	got, err := g.gate.Submit(ctx, dayProposal(r, amount, repairLease, seen, g.child.Now()))
	if err != nil {
		return repairAnswer{}, err
	}
	if got.Status.Reason == protocol.ConflictingPayload && g.repairs {
		// Another payload for the case: a correction of what was refused, if the
		// lease accepts it.
		body, err := json.Marshal(dayPayload(r, amount))
		if err != nil {
			return repairAnswer{}, err
		}
		if got.Receipt.Question == nil {
			return repairAnswer{person: true}, nil
		}
		_, err = g.gate.Correct(ctx, protocol.Correction{
			Namespace: namespace, Effect: got.Effect, Answers: *got.Receipt.Question, Payload: body, At: g.child.Now(),
		})
		if errors.Is(err, protocol.ErrCorrection) {
			return repairAnswer{person: true}, nil
		}
		if err != nil {
			return repairAnswer{}, err
		}
		if got, err = g.gate.Submit(ctx, dayProposal(r, amount, repairLease, seen, g.child.Now())); err != nil {
			return repairAnswer{}, err
		}
	}
	switch {
	case got.Status.Final == protocol.Committed:
		return repairAnswer{done: true}, nil
	case got.Status.Final != protocol.Refused || !g.repairs:
		return repairAnswer{person: true}, nil
	}
	now, err := g.service.Order(ctx, r.order(), r.ID, got.Effect.String())
	return repairAnswer{again: true, left: repairCase - now.Others}, err
}
