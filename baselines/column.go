// Package baselines is what people use instead of the gate, each written as
// strong as its idea allows.
//
// The baselines that remember anything write it to the same journal as the
// gate, so that they pay for the same syncs; none of them uses the gate.
package baselines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/clock"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/wire"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// Column is one way to carry out an approved refund. A process opens it, lets it
// recover, and then submits to it, one call after another.
type Column interface {
	// Recover takes up what an earlier process left unfinished. settled is false
	// where there was nothing to take up.
	Recover(ctx context.Context) (told Told, settled bool, err error)

	// Submit carries out one decision. An error means that the column itself
	// failed, not the refund.
	Submit(ctx context.Context, d Decision) (Told, error)

	Close() error
}

// Decision is what the agent decided, with the facts that it saw.
type Decision struct {
	Request  string // request id of the approved case
	Order    string
	Case     string
	Amount   int64  // cents
	Spelling string // another way to spell these values, where a column takes them as bytes; "" is the usual one
	Agent    string
	Lease    string
	Seen     sim.Order // the order when the agent decided
	SeenAt   time.Time
	Repeat   bool  // the caller asked the same before its process died
	Cap      int64 // cents that all cases together may take; 0 is no cap
}

// Told is what a column tells its caller.
type Told struct {
	Amount int64  // of the payload that Status speaks of
	Status string // the column's own word
	Says   Says
}

// Says is what a status claims about the world.
type Says string

const (
	Done    Says = "done"    // it happened
	Not     Says = "not"     // it did not, and will not by this answer
	Nobody  Says = "unknown" // nobody can tell: a person must look
	Pending Says = "pending" // not settled yet
)

// Env is what a column is opened with.
type Env struct {
	Service Service
	Clock   clock.Clock
	Journal func(journal.Mode, func(journal.Entry) error) (journal.Store, error) // opens this column's own log
	Lock    string                                                               // path of a lock file
	Start   int                                                                  // which start of the program this is, from 1
	Lookup  bool                                                                 // the service can be asked what landed
	Key     bool                                                                 // the service dedupes by idempotency key
}

// said turns the service's reply into what the caller hears, under the word of
// the column.
func said(d Decision, status string, r sim.Reply) Told {
	told := Told{Amount: d.Amount, Status: status}
	switch {
	case r.Outcome == wire.NotSent:
		told.Status, told.Says = "NOT_SENT", Pending
	case r.Outcome != wire.Answered || r.Code >= 500 || r.Code == 409:
		told.Status, told.Says = "IN_FLIGHT", Pending
	case r.Code < 300:
		told.Says = Done
	default:
		told.Says = Not
	}
	return told
}

// send makes one request for d under the given idempotency key.
func (e Env) send(ctx context.Context, d Decision, key string) sim.Reply {
	return e.Service.Refund(ctx, sim.Refund{Order: d.Order, Case: d.Case, Amount: d.Amount, Effect: d.Request, Key: key})
}

// callID is a fresh id, as a framework gives every tool call.
func (e Env) callID(n int) string { return fmt.Sprintf("call-%d-%d", e.Start, n) }

// line is one entry of a baseline's own log.
type line struct {
	Request string `json:"request"`
	Agent   string `json:"agent"`
	Order   string `json:"order"`
	Case    string `json:"case"`
	Amount  int64  `json:"amount"`
	Checked string `json:"checked,omitempty"` // which checks held
	Result  string `json:"result,omitempty"`
	Says    Says   `json:"says,omitempty"`
}

func (l line) checked(what string) line { l.Checked = what; return l }

func (l line) result(word string, says Says) line { l.Result, l.Says = word, says; return l }

func (l line) decision() Decision {
	return Decision{Request: l.Request, Agent: l.Agent, Order: l.Order, Case: l.Case, Amount: l.Amount}
}

func lineOf(d Decision) line {
	return line{Request: d.Request, Agent: d.Agent, Order: d.Order, Case: d.Case, Amount: d.Amount}
}

// log is a baseline's log and what it remembers of it: the last line of each
// kind per request.
type log struct {
	store journal.Store
	last  map[string]map[journal.Kind]line
	order []string // requests in the order of their first line
}

func openLog(open func(journal.Mode, func(journal.Entry) error) (journal.Store, error), mode journal.Mode) (*log, error) {
	l := &log{last: map[string]map[journal.Kind]line{}}
	store, err := open(mode, l.apply)
	if errors.Is(err, journal.ErrMode) { // a torn tail: only the log's owner cuts it
		owner, oerr := open(journal.Owner, func(journal.Entry) error { return nil })
		if oerr != nil {
			return nil, oerr
		}
		if err = owner.Close(); err == nil {
			store, err = open(mode, l.apply)
		}
	}
	l.store = store
	return l, err
}

func (l *log) apply(e journal.Entry) error {
	if len(e.Body) == 0 || e.Kind == journal.Opened {
		return nil
	}
	var at line
	if err := json.Unmarshal(e.Body, &at); err != nil {
		return fmt.Errorf("baselines: line %d of the log: %w", e.Seq, err)
	}
	if at.Request == "" {
		return nil
	}
	if l.last[at.Request] == nil {
		l.last[at.Request] = map[journal.Kind]line{}
		l.order = append(l.order, at.Request)
	}
	l.last[at.Request][e.Kind] = at
	return nil
}

// write appends one line and returns when it is durable.
func (l *log) write(ctx context.Context, kind journal.Kind, at line) error {
	body, err := json.Marshal(at)
	if err != nil {
		return err
	}
	_, err = l.store.Update(ctx, func(journal.Head) ([]journal.Entry, error) {
		return []journal.Entry{{Kind: kind, Body: body}}, nil
	})
	return err
}

// sent is the money of all sends that the log shows, but for one request's.
func (l *log) sent(ctx context.Context, but string) (sum int64, err error) {
	err = l.store.View(ctx, func(journal.Head) {
		for request, lines := range l.last {
			if request != but {
				sum += lines[journal.Dispatched].Amount
			}
		}
	})
	return sum, err
}

// read returns the last line of a kind for a request, lines of other processes
// included.
func (l *log) read(ctx context.Context, request string, kind journal.Kind) (at line, ok bool, err error) {
	err = l.store.View(ctx, func(journal.Head) { at, ok = l.last[request][kind] })
	return at, ok, err
}
