package oracle

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/interlock-bench/interlock-bench/faults/history"
)

// state is where a process stands.
type state int

const (
	absent   state = iota
	running        // started
	stopped        // stands still for another one
	finished       // said that it is done; it may still exit or be killed
	ended          // killed, exited or hung
)

// read decodes a history and says what is wrong with it as a history. A history
// with flaws can't be judged; what could be read of it still gives figures.
func read(h history.History) (*reading, []string) {
	r := &reading{}
	var flaws []string
	flaw := func(pos int, format string, args ...any) {
		flaws = append(flaws, event(pos)+" "+fmt.Sprintf(format, args...))
	}
	var passages []passage
	newest, born := "", 0 // the process that has the stage, and where it began
	processes, begins := map[string]state{}, map[string]int{}
	refunds, requests := map[string]bool{}, map[int]request{}

	if len(h) == 0 {
		flaws = append(flaws, "the history is empty")
	}
	for pos, e := range h {
		r.at = append(r.at, e.At)
		if e.N != pos+1 {
			flaw(pos, "is numbered %d", e.N)
		}
		if pos > 0 && e.At < h[pos-1].At {
			flaw(pos, "is earlier than the one before it")
		}
		if (e.Kind == history.Declared) != (pos == 0) {
			flaw(pos, "is %q: a history begins with its one declaration", e.Kind)
		}
		var err error
		switch e.Kind {
		case history.Declared:
			var d history.Declaration
			if d, err = history.Body[history.Declaration](e); err == nil {
				err = r.open(d)
			}
		case history.Started:
			if !isProcess(e.Who) || processes[e.Who] != absent {
				flaw(pos, "starts %q, which is no new process", e.Who)
			}
			processes[e.Who], newest, born = running, e.Who, pos
			begins[e.Who] = pos
		case history.Stopped:
			if processes[e.Who] != running {
				flaw(pos, "stops %q, which was not running", e.Who)
			}
			processes[e.Who] = stopped
		case history.Continued:
			if processes[e.Who] != stopped {
				flaw(pos, "lets %q go on, which was not stopped", e.Who)
			}
			processes[e.Who], newest, born = running, e.Who, begins[e.Who]
		case history.Passed, history.Modelled, history.Told, history.Finished:
			if isProcess(e.Who) && processes[e.Who] != running {
				flaw(pos, "is by %s, which was not running", e.Who)
			}
			switch e.Kind {
			case history.Passed:
				if e.Point == "" {
					flaw(pos, "passed a point without a name")
				}
				if isBeforeSend(string(e.Point)) {
					passages = append(passages, passage{pos: pos, who: e.Who, subject: e.Subject})
				}
			case history.Modelled:
				r.modelled++
				_, err = history.Body[history.Decision](e)
			case history.Told:
				var a history.Answer
				if a, err = history.Body[history.Answer](e); err == nil {
					r.answers = append(r.answers, at[history.Answer]{pos, a})
					err = wellFormed(a)
				}
			case history.Finished:
				processes[e.Who] = finished
			}
		case history.Killed:
			if p := processes[e.Who]; p != running && p != finished {
				flaw(pos, "kills %q, which was not running", e.Who)
			}
			processes[e.Who] = ended
			r.deaths = append(r.deaths, pos)
		case history.Exited:
			var x history.Exit
			if x, err = history.Body[history.Exit](e); err == nil && x.Code != 0 {
				flaw(pos, "is %s ending by itself with code %d: %s", e.Who, x.Code, x.Text)
			}
			processes[e.Who] = ended
		case history.Hung:
			processes[e.Who] = ended
			r.hung = append(r.hung, fmt.Sprintf("%s: %s did not come to an end", event(pos), e.Who))
		case history.Acted:
			_, err = history.Body[history.Action](e)
		case history.Granted, history.Revoking, history.Revoked:
			var l history.Lease
			if l, err = history.Body[history.Lease](e); err == nil && l.Lease == "" {
				flaw(pos, "names no lease")
			}
			r.leases = append(r.leases, leaseEvent{at[history.Lease]{pos, l}, e.Kind})
		case history.Changed:
			var o history.Order
			if o, err = history.Body[history.Order](e); err == nil && o.Order == "" {
				flaw(pos, "names no order")
			}
			r.orders = append(r.orders, at[history.Order]{pos, o})
		case history.Forgot:
			r.forgot = append(r.forgot, pos)
		case history.Requested:
			var q history.Request
			if q, err = history.Body[history.Request](e); err == nil {
				if _, again := requests[q.Number]; again || q.Number < 1 {
					flaw(pos, "is request %d, which is no new number", q.Number)
				}
				requests[q.Number] = request{at[history.Request]{pos, q}, r.looksOf(q, lookOf(passages, e, q, pos, newest), born)}
				r.requests = append(r.requests, requests[q.Number])
			}
		case history.Applied:
			var l history.Landing
			if l, err = history.Body[history.Landing](e); err == nil {
				look := looks{pos, pos, pos}
				if l.Request != 0 {
					by, ok := requests[l.Request]
					if !ok {
						flaw(pos, "lands request %d, which the service had not read", l.Request)
					}
					look = by.looks
				}
				if l.ID == "" || refunds[l.ID] || l.Order == "" || l.Amount <= 0 {
					flaw(pos, "is no landing: it needs a new id, an order and an amount")
				}
				refunds[l.ID] = true
				r.landings = append(r.landings, landing{at[history.Landing]{pos, l}, look})
			}
		case history.Discarded:
			_, err = history.Body[history.Request](e)
		case history.Answered:
			_, err = history.Body[history.Reply](e)
		case history.Asked:
			var q history.Question
			if q, err = history.Body[history.Question](e); err == nil && q.Effect != "" {
				r.questions = append(r.questions, question{pos, e.Subject, q.Effect})
			}
			if q.Wrong {
				r.wrong = append(r.wrong, pos)
			}
			r.asked++
		case history.Unfired:
			r.unfired++
			flaw(pos, "is a planned fault that never happened")
		default:
			flaw(pos, "is of the unknown kind %q", e.Kind)
		}
		if err != nil {
			flaw(pos, "can't be read: %v", err)
		}
	}
	if len(processes) == 0 {
		flaws = append(flaws, "no process was ever started")
	}
	for _, who := range slices.Sorted(maps.Keys(processes)) {
		if p := processes[who]; p == running || p == stopped {
			flaws = append(flaws, "the history ends while "+who+" is running")
		}
	}
	return r, flaws
}

// open takes the declaration, and sorts its approvals into accounts.
func (r *reading) open(d history.Declaration) error {
	r.declared, r.accounts = history.Declaration{Service: d.Service, Caps: d.Caps}, nil
	if len(d.Approved) == 0 {
		return errors.New("nothing is approved")
	}
	for _, p := range d.Approved {
		if _, again := r.approved(p.Request); again || p.Request == "" || p.Order == "" || p.Case == "" || p.Amount <= 0 {
			return fmt.Errorf("approval %+v is not one new request, order, case and amount", p)
		}
		r.declared.Approved = append(r.declared.Approved, p)
		a := r.under(p.Order, p.Case)
		if a == nil {
			r.accounts = append(r.accounts, account{order: p.Order, case_: p.Case})
			a = &r.accounts[len(r.accounts)-1]
		}
		a.approved = append(a.approved, p)
	}
	return nil
}

// wellFormed says what an answer lacks.
func wellFormed(a history.Answer) error {
	says := []history.Says{history.SaysDone, history.SaysNot, history.SaysUnknown, history.SaysPending}
	if a.Request == "" || a.Status == "" || !slices.Contains(says, a.Says) {
		return fmt.Errorf("answer %+v names no request or status, or claims nothing that an answer can", a)
	}
	return nil
}
