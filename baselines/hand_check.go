package baselines

import (
	"context"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// NewHandCheck returns what a careful engineer writes without the gate: a
// stable key, a lookup, lease and facts read again before every send, a synced
// log line for each. Where the service offers neither key nor lookup it stops
// for a person when its log holds a send without a result.
func NewHandCheck(e Env) (Column, error) { return newHandCheck(e, true) }

// NewHandCheckUnmarked returns the hand check that doesn't look for a send
// without a result.
func NewHandCheckUnmarked(e Env) (Column, error) { return newHandCheck(e, false) }

func newHandCheck(e Env, marker bool) (*handCheck, error) {
	l, err := openLog(e.Journal, journal.Appender)
	if err != nil {
		return nil, err
	}
	return &handCheck{e, l, marker && !e.Key && !e.Lookup}, nil
}

type handCheck struct {
	Env
	log    *log
	marker bool
}

// Recover finds nothing: the caller asks again, and Submit checks.
func (h *handCheck) Recover(context.Context) (Told, bool, error) { return Told{}, false, nil }

// Submit is the hand-written check.
func (h *handCheck) Submit(ctx context.Context, d Decision) (Told, error) {
	if done, ok, err := h.log.read(ctx, d.Request, journal.Committed); err != nil || ok {
		return found(d, done.Amount), err
	}
	if _, sending, err := h.log.read(ctx, d.Request, journal.Dispatched); err != nil || h.marker && sending {
		return Told{d.Amount, "AMBIGUOUS", Nobody}, err
	}
	if h.Lookup {
		landed, err := h.Service.Find(ctx, d.Request)
		if err != nil {
			return Told{d.Amount, "IN_FLIGHT", Pending}, nil
		}
		if landed.Landed {
			return found(d, landed.Refunds[0].Amount), h.log.write(ctx, journal.Committed, lineOf(d).result("found", Done))
		}
	}
	if lease, err := h.Service.Lease(ctx, d.Lease); err != nil || !lease.Live || lease.Holder != d.Agent || lease.Case != d.Case || d.Amount > lease.Max {
		return h.stop(ctx, d, "lease", err)
	}
	if order, err := h.Service.Order(ctx, d.Order, d.Case, d.Request); err != nil || !order.Eligible || order.Others != 0 {
		return h.stop(ctx, d, "premise", err)
	}
	if others, err := h.log.sent(ctx, d.Request); err != nil || d.Cap > 0 && others+d.Amount > d.Cap {
		return h.stop(ctx, d, "cap", err)
	}
	if err := h.log.write(ctx, journal.Dispatched, lineOf(d).checked("lease, eligible, nothing refunded by others")); err != nil {
		return Told{}, err
	}
	reply := h.send(ctx, d, d.Request)
	told := said(d, "SENT:"+reply.Word, reply)
	if told.Says != Done {
		return told, nil
	}
	return told, h.log.write(ctx, journal.Committed, lineOf(d).result(reply.Word, Done))
}

// found is the answer where the refund is there already, of this amount or of
// another.
func found(d Decision, amount int64) Told {
	if amount != d.Amount {
		return Told{d.Amount, "STOPPED:other_amount", Not}
	}
	return Told{d.Amount, "FOUND", Done}
}

// stop writes why nothing was sent. A check that can't be read is tried again.
func (h *handCheck) stop(ctx context.Context, d Decision, why string, unread error) (Told, error) {
	if unread != nil {
		return Told{d.Amount, "NOT_SENT", Pending}, nil
	}
	return Told{d.Amount, "STOPPED:" + why, Not}, h.log.write(ctx, journal.Refused, lineOf(d).result(why, Not))
}

func (h *handCheck) Close() error { return h.log.store.Close() }
