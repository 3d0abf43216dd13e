package experiments

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/proxy"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/clock"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// The refund desk's case.
const (
	caseID    = "case-4471"
	orderID   = "881"
	agentID   = "agent-7"
	leaseID   = "L-refund"
	principal = "support-lead"
	paid      = 100_00
	approved  = 20_00
	leaseLife = 30 * 24 * time.Hour

	budgetName = "refunds" // over all cases, in rows that have a cap
)

// refundWorld is everything around the column in one trial: the service, the
// people, the authority and the model.
type refundWorld struct {
	stage   *faults.Stage
	service *sim.Server
	column  column
	row     faults.Row
	on      terms
	now     func() time.Time // that leases begin at; nil is the trial's
	middle  *proxy.Proxy     // nil: the column speaks to the service itself
	network string           // where the column finds the service
	address string

	disk     journalDisk
	seconds  []secondSaid // what the second agent was told
	asked    int          // submits handed out
	failed   error        // what the world could not do at its time
	settled  string       // what became of the case's money, once the world is closed
	evidence string       // what the column's artefacts show, once the world is closed
	keep     func(state string) error
}

func newRefundWorld(ctx context.Context, stage *faults.Stage, row faults.Row, c column, on terms) (*refundWorld, error) {
	w := &refundWorld{stage: stage, column: c, row: row, on: on,
		keep: func(state string) error { return keepState(ctx, state) }}
	declared := history.Declaration{
		Approved: []history.Approval{{
			Request: caseID, Order: orderID, Case: caseID, Amount: approved, Agent: agentID, Lease: leaseID,
		}},
		Service: on.profile.Service(),
	}
	for _, s := range row.Submits {
		if s.Apart {
			declared.Approved = append(declared.Approved, history.Approval{
				Request: s.Request, Order: orderID, Case: s.Request, Amount: s.Amount, Agent: agentID, Lease: leaseOf(s.Request),
			})
		}
	}
	if on.second {
		declared.Approved = append(declared.Approved, secondBot.approval())
	}
	if on.cap > 0 {
		cases := []string{otherCase}
		for _, p := range declared.Approved {
			cases = append(cases, p.Case)
		}
		declared.Caps = []history.Cap{{Name: budgetName, Max: on.cap, Cases: cases}}
	}
	w.record(history.Declared, "", declared)
	w.service = sim.New(behindMiddle{stage.As("service"), w}, on.profile)
	w.service.SetOrder(orderID, true, paid, "")
	if err := w.grant(w.lease(leaseID)); err != nil {
		return nil, err
	}
	for _, p := range declared.Approved[1:] {
		if err := w.grant(grant{id: p.Lease, holder: p.Agent, forCase: p.Case, max: p.Amount, life: leaseLife}); err != nil {
			return nil, err
		}
	}
	if on.cap > 0 && c.gate {
		if err := w.authority(nil, func(a *protocol.Authority) error {
			return a.SetBudget(context.Background(), protocol.Budget{
				Name: budgetName, Principal: principal, Holders: []string{agentID, secondBot.agent}, Field: "amount", Cap: fmt.Sprint(on.cap),
			})
		}); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", w.socket())
	if err != nil {
		return nil, fmt.Errorf("experiments: the simulated service can't listen: %w", err)
	}
	if err := w.service.Start(l); err != nil {
		return nil, err
	}
	w.network, w.address = "unix", w.socket()
	if on.wire {
		if err := w.putMiddle(); err != nil {
			return nil, fmt.Errorf("experiments: the middle can't listen: %w", err)
		}
	}
	return w, nil
}

// socket is where the service listens.
func (w *refundWorld) socket() string { return filepath.Join(w.stage.Dir(), "service") }

func (w *refundWorld) record(kind history.Kind, subject string, body any) {
	w.stage.As("supervisor").Record(kind, subject, body)
}

// grant is a lease that the principal gives.
type grant struct {
	id, holder string
	forCase    string // "" is any
	max        int64  // cents
	life       time.Duration
	uses       int
	replaces   string
}

// lease is a grant to the agent for the approved refund, on the trial's terms.
func (w *refundWorld) lease(id string) grant {
	return grant{id: id, holder: agentID, forCase: caseID, max: approved, life: w.on.life, uses: w.on.uses}
}

// grant gives a lease, at the desk that anybody can ask and in the authority log
// that the gate follows.
func (w *refundWorld) grant(g grant) error {
	sinceBegin := w.stage.Mono() + g.life
	w.stage.As("principal").Record(history.Granted, g.id, history.Lease{
		Lease: g.id, Holder: g.holder, Case: g.forCase, Max: g.max, Expires: sinceBegin, Uses: g.uses, Replaces: g.replaces,
	})
	till := w.stage.Now().Add(g.life)
	if w.now != nil {
		till = w.now().Add(g.life)
	}
	w.service.SetLease(sim.Lease{Lease: g.id, Holder: g.holder, Case: g.forCase, Max: g.max, Expires: till})
	w.service.RenewLease(g.replaces, g.id)
	if !w.column.gate {
		return nil
	}
	limits := []protocol.Limit{{Field: "amount", Max: fmt.Sprint(g.max)}}
	if g.forCase != "" {
		limits = append(limits, protocol.Limit{Field: "case", Equals: json.RawMessage(`"` + g.forCase + `"`)})
	}
	return w.authority(nil, func(a *protocol.Authority) error {
		return a.Grant(context.Background(), protocol.Lease{
			ID: g.id, Principal: principal, Holder: g.holder, Actions: []string{actionRefund},
			Limits: limits, Expires: till, Uses: g.uses, Replaces: g.replaces,
		})
	})
}

// authority opens the authority log as the principal, in this process, which is
// not the process under test.
func (w *refundWorld) authority(watch trace.Func, do func(*protocol.Authority) error) error {
	dir := authorityDir(w.stage.State())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("experiments: no folder for the authority log: %w", err)
	}
	drain, err := journal.OpenDrain(dir)
	if err != nil {
		return err
	}
	defer drain.Close()
	a, err := protocol.OpenAuthority(journal.FileOpener(dir, journal.Options{
		Mode: journal.Appender, Namespace: namespace, Now: w.stage.Now,
	}), drain, protocol.AuthorityOptions{Clock: principalClock{clock.System, w.stage}, Trace: watch})
	if err != nil {
		return err
	}
	defer a.Close()
	return do(a)
}

// principalClock is a principal's clock: true wall time of the trial, and real
// time for whatever it waits, since nothing of it is under test.
type principalClock struct {
	clock.Clock
	stage *faults.Stage
}

func (c principalClock) Now() time.Time { return c.stage.Now() }

func (w *refundWorld) journalReader() journal.Opener {
	return gateJournal(w.stage.State(), w.on.store, journal.Options{Mode: journal.Reader, Namespace: namespace, Now: w.stage.Now})
}

func (w *refundWorld) revoke(proceed func(until ...trace.Point)) error {
	lease := history.Lease{Lease: leaseID}
	w.stage.As("principal").Record(history.Revoking, leaseID, lease)
	w.service.RevokeLease(leaseID)
	if w.column.gate {
		var probe error
		recorded := func(p trace.Point, _ string) {
			if p == protocol.PointRevoked {
				probe = w.letFinish(proceed)
			}
		}
		err := w.authority(recorded, func(a *protocol.Authority) error {
			revocation, err := a.Revoke(context.Background(), leaseID, protocol.RevokeOptions{Journal: w.journalReader()})
			lease.Doubt = len(revocation.Doubt)
			return err
		})
		if err := errors.Join(err, probe); err != nil {
			return err
		}
	}
	w.stage.As("principal").Record(history.Revoked, leaseID, lease)
	return nil
}

// letFinish lets a dispatch finish that holds the lease's byte, since a
// revocation waits for it. One that is told so before its last check gives the
// byte back ahead of the next point; one that has checked, with its intent
// durable. Where nobody holds the byte the process stands still, so that the
// revocation and its next steps are in one order.
func (w *refundWorld) letFinish(proceed func(until ...trace.Point)) error {
	dir := authorityDir(w.stage.State())
	var granted journal.Seq // its byte
	authority, err := journal.OpenFile(dir, journal.Options{Mode: journal.Reader, Namespace: namespace, Now: w.stage.Now},
		func(e journal.Entry) error {
			if e.Kind == journal.Granted && granted == 0 {
				granted = e.Seq
			}
			return nil
		})
	if err != nil {
		return err
	}
	defer authority.Close()
	drain, err := journal.OpenDrain(dir)
	if err != nil {
		return err
	}
	defer drain.Close()
	once, cancel := context.WithCancel(context.Background())
	cancel()
	switch err := drain.Exclude(once, granted); {
	case err == nil:
	case !errors.Is(err, context.Canceled):
		return err
	case w.stage.Last() == protocol.PointLeaseShared:
		proceed()
	default:
		proceed(protocol.PointIntentDurable)
	}
	return nil
}

// Answer is what the program under test hears from the world.
func (w *refundWorld) Answer(what string, question json.RawMessage) (any, error) {
	switch what {
	case askNext:
		var q nextQuestion
		if err := json.Unmarshal(question, &q); err != nil {
			return nil, err
		}
		return w.next(q.Settled), nil
	case askDisk:
		var op string
		if err := json.Unmarshal(question, &op); err != nil {
			return nil, err
		}
		return w.disk.meets(op), nil
	case askModel:
		submit := w.row.Submits[w.asked-1]
		request := cmp.Or(submit.Request, caseID)
		w.stage.As("model").Record(history.Modelled, request, history.Decision{Request: request, Amount: submit.Amount})
		return modelAnswer{Amount: submit.Amount, Request: submit.Request, // an apart one's is the task's, too
			Lease: submit.Lease, Spelling: submit.Bytes}, nil
	}
	return nil, fmt.Errorf("experiments: the program under test asked for %q", what)
}

// next hands out the row's submits in order. After a restart the last one is
// asked for again where recovery found nothing to settle and the row has no
// further one.
func (w *refundWorld) next(settled bool) nextAnswer {
	var next nextAnswer
	switch {
	case w.asked < len(w.row.Submits):
		w.asked++
		next.Submit = true
	case settled:
		return next
	default:
		next.Submit, next.Repeat = true, true
	}
	if s := w.row.Submits[w.asked-1]; s.Apart {
		next.Request, next.Lease = s.Request, leaseOf(s.Request)
	}
	return next
}

// Idle has nothing to wait for: the service records what becomes of a dead
// client's request by its timers only, and those are the stage's.
func (w *refundWorld) Idle(context.Context) error { return nil }

// Close stops the service and looks at what the column left behind.
func (w *refundWorld) Close() error {
	w.settled = w.service.Settlement(orderID, caseID).String()
	w.evidence = w.column.evidence(evidenceOf{state: w.stage.State(), store: w.on.store, now: w.stage.Now})
	if w.middle != nil {
		w.failed = errors.Join(w.failed, w.middle.Close())
	}
	return errors.Join(w.failed, w.service.Close(), w.keep(w.stage.State()))
}

// cellStatus is the cell's word. Where two processes were at work it is the last
// word of each, the first one's first.
func cellStatus(h history.History) string {
	stopped := func(e history.Event) bool { return e.Kind == history.Stopped }
	if !slices.ContainsFunc(h, stopped) {
		return lastWord(h)
	}
	var starts, words []string
	of := map[string]history.History{}
	for _, e := range h {
		if e.Kind == history.Started {
			starts = append(starts, e.Who)
		}
		of[e.Who] = append(of[e.Who], e)
	}
	for _, who := range starts {
		words = append(words, lastWord(of[who]))
	}
	return strings.Join(words, "+")
}

// lastWord is the last submit's status if it asked for something else than the
// first or recovery had nothing to settle, else recovery's.
func lastWord(h history.History) string {
	var first, lastSubmit, lastRecover *history.Answer
	for _, e := range h {
		if e.Kind != history.Told || e.Who == secondAgent {
			continue
		}
		a, err := history.Body[history.Answer](e)
		if err != nil {
			continue
		}
		if first == nil {
			first = &a
		}
		if a.During == "recover" {
			lastRecover = &a
		} else {
			lastSubmit = &a
		}
	}
	switch {
	case lastSubmit == nil && lastRecover == nil:
		return "NOTHING_SAID"
	case lastSubmit == nil:
		return lastRecover.Status
	case lastRecover == nil, lastSubmit.Amount != first.Amount, lastSubmit.Request != first.Request:
		return lastSubmit.Status
	}
	return lastRecover.Status
}
