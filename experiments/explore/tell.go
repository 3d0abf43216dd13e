package explore

import (
	"fmt"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// teller writes an execution down as a history, which the judge of histories can
// read and a reader be told. A nil teller writes nothing.
type teller struct {
	x        *execution
	record   *history.Recorder
	requests int
	landings int
}

func (t *teller) add(who string, kind history.Kind, point trace.Point, subject string, body any) {
	if t == nil {
		return
	}
	t.record.Record(history.Event{Who: who, Kind: kind, Point: point, Subject: subject}, body)
}

// listen has x told from now on.
func (x *execution) listen() {
	x.tell = &teller{x: x, record: history.NewRecorder(func() time.Duration { return x.w.now })}
	x.tell.begins()
}

func (t *teller) worker() string { return fmt.Sprintf("worker#%d", t.x.w.lives) }

func order(e int) string      { return fmt.Sprintf("order-%d", e) }
func case_(e int) string      { return fmt.Sprintf("case-%d", e) }
func cents(payload int) int64 { return int64(2000 + 1000*payload) }

// begins declares what may happen.
func (t *teller) begins() {
	if t == nil {
		return
	}
	b := t.x.w.bound
	can := b.profiles[0].Can
	d := history.Declaration{Service: history.Service{
		DedupWindow: can.DedupWindow, Lookup: can.Lookup, LookupWindow: can.LookupWindow,
		LandingBound: can.LandingBound, Conditional: can.Conditional, Fencing: can.Fencing,
	}}
	for e := range b.profiles {
		d.Approved = append(d.Approved, history.Approval{Request: request(e), Order: order(e), Case: case_(e), Amount: cents(0), Agent: holder, Lease: leaseID})
	}
	t.add("supervisor", history.Declared, "", "", d)
	t.add("principal", history.Granted, "", leaseID, history.Lease{Lease: leaseID, Holder: holder, Max: 10000})
}

func (t *teller) started() {
	if t != nil {
		t.add(t.worker(), history.Started, "", "", nil)
	}
}

// died is the end of a process.
func (t *teller) died(how way) {
	switch {
	case t == nil:
	case how == exits:
		t.add(t.worker(), history.Exited, "", "", history.Exit{Text: "its journal failed"})
	default:
		t.add(t.worker(), history.Killed, "", "", nil)
	}
}

func (t *teller) point(p trace.Point, e int) {
	if t == nil {
		return
	}
	subject := ""
	if e >= 0 {
		subject = t.x.w.bound.hex[e]
	}
	t.add(t.worker(), history.Passed, p, subject, nil)
}

func (t *teller) asked(what string, e int, answer string) {
	if t == nil {
		return
	}
	t.add(t.worker(), history.Asked, "", order(e), history.Question{What: what, Answer: answer, Effect: t.x.w.bound.hex[e]})
}

// sent is a request that leaves, as what it is when it arrives: the judge reads no
// others.
func (t *teller) sent(e, payload int, token journal.Token) (number int) {
	if t == nil {
		return 0
	}
	t.requests++
	hex := t.x.w.bound.hex[e]
	t.add(t.worker(), history.Passed, oracle.BeforeSend, hex, nil)
	t.add(t.worker(), history.Requested, "", order(e), history.Request{
		Order: order(e), Case: case_(e), Amount: cents(payload), Effect: hex, Key: hex, Token: token.String(), Number: t.requests,
	})
	return t.requests
}

// arrived is what became of a request at the service.
func (t *teller) arrived(e, payload, number int, v verdict) {
	if t == nil {
		return
	}
	if v == applied {
		t.landings++
		t.add("service", history.Applied, "", order(e), history.Landing{
			ID: fmt.Sprintf("re_%d", t.landings), Order: order(e), Case: case_(e), Amount: cents(payload), Effect: t.x.w.bound.hex[e], Request: number,
		})
	}
}

func (t *teller) answered(number int, word string) {
	if t != nil {
		t.add("service", history.Answered, "", "", history.Reply{Request: number, Word: word, Withheld: word == "nothing"})
	}
}

func (t *teller) answer(e, asked int, r protocol.Result, during string) {
	if t == nil {
		return
	}
	a := history.Answer{Request: request(e), Amount: cents(max(asked, 0)), Status: r.Status.String(), During: during}
	if asked < 0 {
		a.Amount = cents(t.x.w.fixed[e] - 1)
	}
	switch r.Status.Final {
	case protocol.Committed:
		a.Says = history.SaysDone
	case protocol.Refused:
		a.Says = history.SaysNot
	case protocol.Ambiguous:
		a.Says = history.SaysUnknown
	default:
		a.Says = history.SaysPending
	}
	t.add(t.worker(), history.Told, "", request(e), a)
}

// acted is a change of the world.
func (t *teller) acted(m move) {
	if t == nil {
		return
	}
	e := int(m.arg)
	t.add("supervisor", history.Acted, "", "", history.Action{Action: m.way.String()})
	switch m.way {
	case change:
		t.add("service", history.Changed, "", order(e), history.Order{Order: order(e), Paid: cents(0)})
	case hand:
		t.landings++
		t.add("person", history.Applied, "", order(e), history.Landing{ID: fmt.Sprintf("re_%d", t.landings), Order: order(e), Case: case_(e), Amount: cents(0)})
	case day:
		t.add("service", history.Forgot, "", "", nil)
	}
}

func (t *teller) revoking(kind history.Kind, doubt int) {
	if t != nil {
		t.add("principal", kind, "", leaseID, history.Lease{Lease: leaseID, Doubt: doubt})
	}
}

// ends closes the history: a process that is left alive is killed.
func (t *teller) ends() {
	switch {
	case t == nil || t.x.proc == nil:
	case t.x.over:
		t.add(t.worker(), history.Finished, "", "", nil)
		t.add(t.worker(), history.Exited, "", "", history.Exit{})
	default:
		t.died(kill)
	}
}
