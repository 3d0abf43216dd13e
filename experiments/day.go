package experiments

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/clock"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// A day is a hundred refund requests that one process works off, with people who
// answer what it asks them and who refund by hand meanwhile. The process is killed
// in the middle of some sends, and started again.

// daySeed is what the reference days were drawn with.
const daySeed = 4471

// midSend is passed by the service, in place of a point of its own, when it has
// applied the refund of a request whose sender is to be killed then.
const midSend trace.Point = "day/mid-send"

// dayRequest is one request.
type dayRequest struct {
	ID, Kind   string
	Amount     int64 // cents that are approved for its case
	Flagged    bool
	Ineligible bool
	ByHand     int64 // cents that a person refunds in the service's own console meanwhile
	Late       bool  // that person is quicker than the send, but not than the reviewer
	Crash      bool  // its first sender is killed as the refund lands
}

func (r dayRequest) order() string { return "order-" + r.ID }

// owed is what its customer is to get, by whomever.
func (r dayRequest) owed() int64 {
	if r.Flagged || r.Ineligible {
		return 0
	}
	return r.Amount
}

// What the process under test asks its world.
const (
	askEvent = "event" // eventQuestion, dayEvent
	askHand  = "hand"  // handQuestion: a refund is decided, or approved, and about to be sent
	askQueue = "queue" // dayItem: a person is to look at it
)

type eventQuestion struct {
	Again  bool // the process began again: the event before it died is not done
	Listed bool // Items are all that wait, from the column's own journal
	Items  []dayItem
}

type handQuestion struct {
	Request  string
	Approved bool // by a reviewer
}

// dayItem is what a person is asked.
type dayItem struct {
	ID       string // of the question: another one for another question
	Request  string
	Effect   journal.ID // of the gate's columns
	Amount   int64
	Eligible bool
	Others   int64 // refunded by others under its case, as the column saw
	Group    string
	Due      time.Duration // the deadline, since the day began; 0 is none
}

// dayEvent is what happens next.
type dayEvent struct {
	What    string        // "arrival", "answer", "tick" or "end"
	At      time.Duration // since the day began
	Number  int           // of the arrival
	Request dayRequest
	Item    dayItem
	Verdict string // "approve", "reject" or "correct"
	Amount  int64  // that is approved
	// Signed is the person's protocol.Decision or protocol.Correction, for a gate.
	Signed json.RawMessage
}

// dayTask is what the process under test is given.
type dayTask struct {
	Experiment, Column, Network, Address, State string
	Profile                                     sim.Profile
}

// dayWorld is everything around the process.
type dayWorld struct {
	stage    *faults.Stage
	service  *sim.Server
	requests []dayRequest
	arrivals int // handed out
	every    time.Duration
	latency  time.Duration // mean of a reviewer's
	eager    bool          // hands are quicker than the first send; else than the send of what was approved
	gate     bool
	rng      *mersenne

	items   []dayItem
	ready   map[string]time.Duration // when the question's reviewer answers
	current *dayEvent
	handed  map[string]bool // orders that were refunded by hand
	killed  map[string]bool // requests whose first sender was killed
	keep    func(state string) error
}

// dayPaid is what every order's customer paid.
const dayPaid = 1000_00

// the people of the days: who is in which group.
var dayGroups = []struct{ group, person string }{
	{"ap-leads", "ana"}, {"controller", "cy"}, {"finance-manager", "fm"}, {"risk", "rita"},
}

func personOf(group string) string {
	for _, g := range dayGroups {
		if g.group == group {
			return g.person
		}
	}
	return "ana"
}

// newDayWorld brings the service up, and the authority where the column is a gate.
// rules are the gate's.
func newDayWorld(ctx context.Context, stage *faults.Stage, w *dayWorld, profile sim.Profile, lease protocol.Lease, rules []protocol.Rule) (*dayWorld, error) {
	w.stage, w.rng = stage, newMersenne(daySeed)
	w.ready, w.handed, w.killed = map[string]time.Duration{}, map[string]bool{}, map[string]bool{}
	w.keep = func(state string) error { return keepState(ctx, state) }
	w.service = sim.New(dayHost{stage.As("service"), w}, profile)
	declared := history.Declaration{Service: profile.Service()}
	for _, r := range w.requests {
		if slices.ContainsFunc(declared.Approved, func(a history.Approval) bool { return a.Request == r.ID }) {
			continue
		}
		declared.Approved = append(declared.Approved, history.Approval{
			Request: r.ID, Order: r.order(), Case: r.ID, Amount: r.owed(), Agent: agentID, Lease: lease.ID,
		})
		w.service.SetOrder(r.order(), !r.Ineligible, dayPaid, "")
	}
	stage.As("supervisor").Record(history.Declared, "", declared)
	w.service.SetLease(sim.Lease{Lease: lease.ID, Holder: lease.Holder, Max: dayPaid, Expires: lease.Expires})
	if w.gate {
		if err := w.authority(lease, rules); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", w.socket())
	if err != nil {
		return nil, fmt.Errorf("experiments: the simulated service can't listen: %w", err)
	}
	return w, w.service.Start(l)
}

func (w *dayWorld) socket() string { return filepath.Join(w.stage.Dir(), "service") }

// authority records the lease, the groups and the rules, as a principal does.
func (w *dayWorld) authority(lease protocol.Lease, rules []protocol.Rule) error {
	dir := authorityDir(w.stage.State())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("experiments: no folder for the authority log: %w", err)
	}
	a, err := protocol.OpenAuthority(journal.FileOpener(dir, journal.Options{
		Mode: journal.Appender, Namespace: namespace, Now: w.stage.Now,
	}), nil, protocol.AuthorityOptions{Clock: principalClock{clock.System, w.stage}})
	if err != nil {
		return err
	}
	ctx := context.Background()
	err = a.Grant(ctx, lease)
	for _, g := range dayGroups {
		err = errors.Join(err, a.SetGroup(ctx, protocol.Group{Name: g.group, Principal: principal, Members: []protocol.Member{
			{Name: g.person, Key: SampleKey(g.person).Public().(ed25519.PublicKey)},
		}}))
	}
	for _, r := range rules {
		err = errors.Join(err, a.SetRule(ctx, r))
	}
	return errors.Join(err, a.Close())
}

// dayHost kills the first sender of some requests as their refund lands.
type dayHost struct {
	faults.Role
	world *dayWorld
}

func (h dayHost) Pass(p trace.Point, subject string) bool {
	if p == sim.Applied {
		for _, r := range h.world.requests {
			if r.Crash && !h.world.killed[r.ID] && (subject == r.ID || subject == protocol.EffectID(namespace, r.ID, 0).String()) {
				h.world.killed[r.ID] = true
				return h.Role.Pass(midSend, subject)
			}
		}
	}
	return h.Role.Pass(p, subject)
}

func (w *dayWorld) Do(action string, _ func(...trace.Point)) error {
	return fmt.Errorf("experiments: a day has no act called %q", action)
}

func (w *dayWorld) Idle(context.Context) error { return nil }

func (w *dayWorld) Close() error { return errors.Join(w.service.Close(), w.keep(w.stage.State())) }

func (w *dayWorld) Answer(what string, question json.RawMessage) (any, error) {
	switch what {
	case askEvent:
		var q eventQuestion
		if err := json.Unmarshal(question, &q); err != nil {
			return nil, err
		}
		if q.Listed {
			w.items = q.Items
		}
		if q.Again && w.current != nil {
			return w.current, nil
		}
		return w.next()
	case askQueue:
		var i dayItem
		if err := json.Unmarshal(question, &i); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(w.items, func(o dayItem) bool { return o.ID == i.ID }) {
			w.items = append(w.items, i)
		}
		return nil, nil
	case askHand:
		var q handQuestion
		if err := json.Unmarshal(question, &q); err != nil {
			return nil, err
		}
		return nil, w.hand(q)
	}
	return nil, fmt.Errorf("experiments: the program under test asked for %q", what)
}

// hand is the person who refunds by hand, between what the column saw and what it
// sends.
func (w *dayWorld) hand(q handQuestion) error {
	r := w.request(q.Request)
	if r.ByHand == 0 || w.handed[r.ID] || !q.Approved && (r.Late || !w.eager) {
		return nil
	}
	w.handed[r.ID] = true
	return w.service.RefundByHand(r.order(), r.ID, r.ByHand)
}

func (w *dayWorld) request(id string) dayRequest {
	return w.requests[slices.IndexFunc(w.requests, func(r dayRequest) bool { return r.ID == id })]
}

// next is the next event: an arrival, a person's answer, or a deadline that passes
// before its person answers.
func (w *dayWorld) next() (*dayEvent, error) {
	now := w.stage.Mono()
	for _, i := range w.items {
		if _, ok := w.ready[i.ID]; !ok {
			w.ready[i.ID] = now + time.Duration(w.rng.exponential(float64(w.latency)))
		}
	}
	e := &dayEvent{What: "end", At: now}
	if w.arrivals < len(w.requests) {
		e = &dayEvent{What: "arrival", At: time.Duration(w.arrivals+1) * w.every, Number: w.arrivals, Request: w.requests[w.arrivals]}
	}
	answers := -1
	for n, i := range w.items {
		at, what := max(w.ready[i.ID], now), "answer"
		if i.Due > 0 && i.Due <= at {
			at, what = max(i.Due, now), "tick"
		}
		if e.What == "end" || at < e.At {
			*e, answers = dayEvent{What: what, At: at, Item: i, Request: w.request(i.Request)}, n
		}
	}
	switch e.What {
	case "arrival":
		w.arrivals++
	case "answer":
		w.items = slices.Delete(slices.Clone(w.items), answers, answers+1)
		if err := w.review(e); err != nil {
			return nil, err
		}
	}
	w.current = e
	return e, nil
}

// review is a person's answer on the facts of the question: flagged and ineligible
// ones are rejected, and so is what was refunded by hand already; of what was
// refunded in part the rest is approved.
func (w *dayWorld) review(e *dayEvent) error {
	i, r := e.Item, e.Request
	left := r.Amount - i.Others
	switch {
	case r.Flagged || !i.Eligible || left <= 0:
		e.Verdict = "reject"
	case left == i.Amount:
		e.Verdict, e.Amount = "approve", left
	default:
		e.Verdict, e.Amount = "correct", left
	}
	person := personOf(i.Group)
	w.stage.As(person).Record(history.Acted, r.ID, history.Action{Action: "review: " + e.Verdict})
	if !w.gate {
		return nil
	}
	at := w.stage.Now().Add(e.At - w.stage.Mono()) // it is handed out before it is time
	answers, err := hex.DecodeString(i.ID)
	if err != nil {
		return fmt.Errorf("experiments: a question without a hash: %w", err)
	}
	var signed any
	if e.Verdict == "correct" {
		body, err := json.Marshal(dayPayload(r, e.Amount))
		if err != nil {
			return err
		}
		signed, err = protocol.SignCorrection(SampleKey(person), protocol.Correction{
			Namespace: namespace, Effect: i.Effect, Answers: journal.Hash(answers), Payload: body, Person: person, At: at,
		})
		if err != nil {
			return err
		}
	} else {
		signed, err = protocol.SignDecision(SampleKey(person), protocol.Decision{
			Namespace: namespace, Effect: i.Effect, Escalation: journal.Hash(answers), Approve: e.Verdict == "approve", Person: person, At: at,
		})
		if err != nil {
			return err
		}
	}
	e.Signed, err = json.Marshal(signed)
	return err
}

// dayRefund is a refund of a day as it is journaled.
type dayRefund struct {
	payload
	Flagged bool `json:"flagged"`
}

func dayPayload(r dayRequest, amount int64) dayRefund {
	return dayRefund{payload{Amount: amount, Case: r.ID, Currency: "usd", Order: r.order()}, r.Flagged}
}

// runDay runs a day's process until it has ended, starting it again after a kill.
func runDay(ctx context.Context, t faults.Trial, profile sim.Profile, world func(*faults.Stage) (*dayWorld, error)) (history.History, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("experiments: this program can't start itself: %w", err)
	}
	var given dayTask
	return faults.Run(ctx, faults.Plan{
		Trial: t, Restarts: len(t.Faults), Task: &given, Patience: patience, Settle: settleTime,
		Command: func(int) *exec.Cmd { return exec.Command(self) },
		World: func(s *faults.Stage) (faults.World, error) {
			w, err := world(s)
			if err != nil {
				return nil, err
			}
			given = dayTask{Experiment: t.Experiment, Column: t.Column, Network: "unix", Address: w.socket(), State: s.State(), Profile: profile}
			return w, nil
		},
	})
}

// kills are the faults of a day: each request that crashes kills one sender.
func kills(n int) (list []faults.Fault) {
	for i := range n {
		list = append(list, faults.Fault{What: faults.Kill, At: midSend, Passage: i + 1})
	}
	return list
}

// dayCount is what came of a day, counted from its history.
type dayCount struct {
	reviews, wrong, kills, unfired int
	reviewed                       map[string]int // by request
	requests, asked                int
	money, over                    int64    // cents that left; of these, what no case approved
	wrongs                         []string // requests
	overs                          []string // of these, those that got more
	persons                        int      // requests handed to a person at their end
	handed                         []string // of these, which
	failed                         string
}

// tallied counts a day.
func tallied(h history.History) (t dayCount) {
	var declared history.Declaration
	got := map[string]int64{}
	t.reviewed = map[string]int{}
	for _, e := range h {
		switch e.Kind {
		case history.Declared:
			declared, _ = history.Body[history.Declaration](e)
		case history.Acted:
			t.reviews++
			t.reviewed[e.Subject]++
		case history.Killed:
			t.kills++
		case history.Unfired:
			t.unfired++
		case history.Requested:
			t.requests++
		case history.Asked:
			t.asked++
		case history.Applied:
			if l, err := history.Body[history.Landing](e); err == nil {
				got[l.Order] += l.Amount
				t.money += l.Amount
			}
		case history.Told:
			if a, err := history.Body[history.Answer](e); err == nil && a.Status == "PERSON" {
				t.persons++
				t.handed = append(t.handed, a.Request)
			}
		case history.Hung:
			t.failed = "the process hung"
		case history.Exited:
			if x, err := history.Body[history.Exit](e); err == nil && x.Code != 0 {
				t.failed = x.Text
			}
		}
	}
	for _, a := range declared.Approved {
		if got[a.Order] != a.Amount {
			t.wrong++
			t.wrongs = append(t.wrongs, a.Request)
			if more := got[a.Order] - a.Amount; more > 0 {
				t.over += more
				t.overs = append(t.overs, a.Request)
			}
		}
	}
	return t
}

// judgeDay holds a day against what its cases approve: every order got what it was
// to get, by whomever, and nothing else.
func judgeDay(h history.History) oracle.Verdict {
	t := tallied(h)
	v := oracle.Verdict{
		Class: oracle.Correct, Money: t.money, Shown: fmt.Sprintf("%d_wrong", t.wrong), Answer: oracle.Agrees,
		Attempts: t.requests, Requests: t.requests + t.asked, Unfired: t.unfired,
	}
	switch {
	case t.failed != "" || t.unfired > 0:
		v.Class = oracle.Unknown
		v.Why = append(v.Why, t.failed)
	case t.wrong > 0:
		v.Class = oracle.Duplicate
		for _, r := range t.wrongs {
			v.Why = append(v.Why, r+" got another amount than its case approves")
		}
	}
	return v
}
