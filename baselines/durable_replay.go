package baselines

import (
	"context"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// NewDurableReplay returns the durable execution column: the request id is the
// workflow id, the arguments of its first start are recorded, a completed step
// replays its recorded result, and a step that died is run again under the same
// idempotency key. It checks neither lease nor premises, as no engine does of
// itself.
func NewDurableReplay(e Env) (Column, error) {
	l, err := openLog(e.Journal, journal.Owner)
	if err != nil {
		return nil, err
	}
	return &durableReplay{e, l}, nil
}

type durableReplay struct {
	Env
	log *log
}

// Recover runs again every step that was started and has no recorded result.
func (r *durableReplay) Recover(ctx context.Context) (Told, bool, error) {
	var told Told
	settled := false
	for _, request := range r.log.order {
		if _, done := r.log.last[request][journal.Committed]; done {
			continue
		}
		at, started := r.log.last[request][journal.Proposed]
		if !started {
			continue
		}
		var err error
		if told, err = r.run(ctx, at.decision(), "RERUN:"); err != nil {
			return told, false, err
		}
		settled = true
	}
	return told, settled, nil
}

func (r *durableReplay) Submit(ctx context.Context, d Decision) (Told, error) {
	at, done, err := r.log.read(ctx, d.Request, journal.Committed)
	if err != nil {
		return Told{}, err
	}
	if done {
		return Told{Amount: d.Amount, Status: "REPLAYED:" + at.Result, Says: at.Says}, nil
	}
	if err := r.log.write(ctx, journal.Proposed, lineOf(d)); err != nil {
		return Told{}, err
	}
	return r.run(ctx, d, "")
}

// run executes the step and records its result. The recorded result of a rerun
// says that it is one.
func (r *durableReplay) run(ctx context.Context, d Decision, prefix string) (Told, error) {
	reply := r.send(ctx, d, d.Request)
	status := prefix + reply.Word
	if prefix == "" {
		status = "COMPLETED:" + reply.Word
	}
	told := said(d, status, reply)
	if told.Says == Pending {
		return told, nil // no result: the step is run again
	}
	at := lineOf(d)
	at.Result, at.Says = prefix+reply.Word, told.Says
	return told, r.log.write(ctx, journal.Committed, at)
}

func (r *durableReplay) Close() error { return r.log.store.Close() }
