package experiments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/clock"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/git"
	"github.com/interlock-bench/interlock-bench/targets/git/premise"
)

// codingColumn is one way for an agent to land its change.
type codingColumn struct {
	Column
	rests   premise.Granularity // what a change rests on; "" is nothing
	gate    bool
	listens bool // to notices
	quiet   bool // not in the rows about notices
	open    func(coderEnv) (coderColumn, error)
}

// coderColumn is a column that a process has opened.
type coderColumn interface {
	// Recover takes up what an earlier process left; found is false where there was
	// nothing.
	Recover(ctx context.Context) (told coderTold, found bool, err error)
	Submit(ctx context.Context, w written) (coderTold, error)
	Close() error
}

// coderTold is what a column tells agent B.
type coderTold struct {
	status string
	says   history.Says
	why    string
	held   string // request of the effect that holds what was needed
}

// coderEnv is what a column is opened with.
type coderEnv struct {
	task   codingTask
	child  *faults.Child
	repo   *git.Repo
	reader *premise.Reader
	column codingColumn
}

// codingColumns are the columns, in the order of the page.
var codingColumns = []codingColumn{
	{Column: Column{Name: "naive", What: "puts its change on the branch as it stands, and after a restart does its task again"}, open: openNaive},
	{Column: Column{Name: "message-only", What: "the same, and agents tell each other what they changed; the message comes late"}, listens: true, rests: premise.Symbol, open: openNaive},
	{Column: Column{Name: "hand-check-files", What: "before it lands: is the change there, is the lease live, do the files that were read have the hashes that they had"}, quiet: true, open: openFilesCheck},
	{Column: Column{Name: "hand-check", What: "the same without the hashes: where the branch has moved it builds the merged tree and runs its own tests on it, which are the calls that it tried"}, quiet: true, open: openTestsCheck},
	codingGate(premise.File),
	codingGate(premise.Symbol),
	codingGate(premise.Body),
	codingGate(premise.Behaviour),
}

func codingGate(g premise.Granularity) codingColumn {
	what := map[premise.Granularity]string{
		premise.File:      "the files that B opened",
		premise.Symbol:    "name and signature of what B's code references",
		premise.Body:      "the syntax trees of what B's code references, and of what that uses in the module",
		premise.Behaviour: "the results of the calls that B tried, made again",
	}
	return codingColumn{
		Column: Column{Name: "gate-" + string(g), What: "the gate, on " + what[g], Holds: true},
		rests:  g, gate: true, listens: true, open: openCodingGate,
	}
}

func codingColumnNamed(name string) (codingColumn, bool) {
	for _, c := range codingColumns {
		if c.Name == name {
			return c, true
		}
	}
	return codingColumn{}, false
}

// land puts w on its branch for a column without a gate.
func (e coderEnv) land(ctx context.Context, w written, effect string, again bool, holds func(context.Context, string) error) error {
	_, err := e.repo.Land(ctx, git.Landing{
		Effect: effect, Request: codingRequest, Change: w.change, Again: again, Holds: holds, Trace: e.child.At,
	})
	return err
}

// naiveCoder lands whatever it is given where the branch stands.
type naiveCoder struct {
	coderEnv
	calls int
}

func openNaive(e coderEnv) (coderColumn, error) { return &naiveCoder{coderEnv: e}, nil }

func (n *naiveCoder) Recover(context.Context) (coderTold, bool, error) {
	return coderTold{}, false, nil
}

func (n *naiveCoder) Submit(ctx context.Context, w written) (coderTold, error) {
	told := coderTold{status: "APPLIED", says: history.SaysDone}
	if w.repeat {
		told.status = "RETRIED"
	}
	tip, err := n.repo.Tip(ctx, w.change.Branch)
	if err != nil {
		return told, err
	}
	w.change.Base = tip
	n.calls++
	err = n.land(ctx, w, fmt.Sprintf("call-%d-%d", n.child.Start(), n.calls), true, nil)
	if errors.Is(err, git.ErrChange) {
		return coderTold{status: "STOPPED:no_such_file", says: history.SaysNot, why: err.Error()}, nil
	}
	return told, err
}

func (n *naiveCoder) Close() error { return nil }

// handCoder is what a careful team does before it pushes.
type handCoder struct {
	coderEnv
	tests bool
}

func openFilesCheck(e coderEnv) (coderColumn, error) { return &handCoder{e, false}, nil }
func openTestsCheck(e coderEnv) (coderColumn, error) { return &handCoder{e, true}, nil }

func (h *handCoder) Recover(context.Context) (coderTold, bool, error) {
	return coderTold{}, false, nil
}

// stopError is a check that didn't hold.
type stopError struct{ status, why string }

func (e *stopError) Error() string { return e.status + ": " + e.why }

func (h *handCoder) Submit(ctx context.Context, w written) (coderTold, error) {
	_, found, err := h.repo.Find(ctx, w.change.Branch, "", codingRequest)
	if err != nil {
		return coderTold{}, err
	}
	if found {
		return coderTold{status: "FOUND", says: history.SaysDone}, nil
	}
	var live bool
	if err := h.child.Ask(askLease, w.lease, &live); err != nil {
		return coderTold{}, err
	}
	if !live {
		return coderTold{status: "STOPPED:lease", says: history.SaysNot, why: "the lease is revoked"}, nil
	}
	err = h.land(ctx, w, codingRequest, false, func(ctx context.Context, tip string) error { return h.check(ctx, w, tip) })
	var stop *stopError
	switch {
	case errors.As(err, &stop):
		return coderTold{status: stop.status, says: history.SaysNot, why: stop.why}, nil
	case errors.Is(err, git.ErrConflict), errors.Is(err, git.ErrMoved):
		return coderTold{status: "STOPPED:conflict", says: history.SaysNot, why: err.Error()}, nil
	case err != nil:
		return coderTold{}, err
	}
	return coderTold{status: "PUSHED", says: history.SaysDone}, nil
}

// check looks at what the change is about to be put on: at the files that were
// read, or, where the branch has moved, at what the tests say.
func (h *handCoder) check(ctx context.Context, w written, tip string) error {
	if h.tests {
		if tip == w.change.Base {
			return nil
		}
		return h.runTests(ctx, w, tip)
	}
	for _, f := range w.session.SoFar(ctx, premise.File) {
		now, err := h.reader.Again(ctx, tip, f)
		if err != nil {
			return err
		}
		if now.Is != f.Is {
			return &stopError{"STOPPED:files", f.Of + " is no longer what was read"}
		}
	}
	return nil
}

// runTests builds the merged tree and runs the tests that B has on it.
func (h *handCoder) runTests(ctx context.Context, w written, tip string) error {
	tree, err := h.repo.Merged(ctx, w.change, tip)
	if err != nil {
		return err
	}
	m, err := h.reader.Module(ctx, tree, nil)
	if err != nil {
		return err
	}
	if m.Broken != "" {
		return &stopError{"STOPPED:build", m.Broken}
	}
	for _, f := range w.session.SoFar(ctx, premise.Behaviour) {
		now, err := h.reader.Again(ctx, tree, f)
		if err != nil {
			return err
		}
		if now.Is != f.Is {
			return &stopError{"STOPPED:tests", fmt.Sprintf("%s gives %s, not %s", f.Of, now.Is, f.Is)}
		}
	}
	return nil
}

func (h *handCoder) Close() error { return nil }

// gateCoder is the gate as a column.
type gateCoder struct {
	coderEnv
	gate *protocol.Gate
}

func openCodingGate(e coderEnv) (coderColumn, error) {
	gate, err := openCodingJournal(e.task.Journal, e.child, e.task.Column, e.child.At)
	if err != nil {
		return nil, err
	}
	g := &gateCoder{e, gate}
	if err := gate.Register(codingAction, codingTarget(e.repo, e.reader, e.child.At)); err != nil {
		return nil, errors.Join(err, gate.Close())
	}
	return g, nil
}

// openCodingJournal opens a gate over the database that the agents of a trial
// share, for decisions and for grants.
func openCodingJournal(path string, clock clock.Clock, who string, passed trace.Func) (*protocol.Gate, error) {
	return protocol.Open(context.Background(), protocol.Config{
		Namespace: codingNamespace,
		Journal:   sqlite.Opener(path, sqlite.Options{Namespace: codingNamespace, Now: clock.Now, Identity: who, Trace: passed}),
		Authority: sqlite.Opener(path, sqlite.Options{Namespace: codingNamespace, Now: clock.Now, Reader: true}),
		Clock:     clock,
		Trace:     passed,
	})
}

// codingNamespace is that of the shop's developers.
const codingNamespace = "shop"

func codingJournal(state string) string { return filepath.Join(state, "journal", "agents.db") }

// codingTarget is the repository as the gate sees it, with premises of Go code.
func codingTarget(repo *git.Repo, reader *premise.Reader, passed trace.Func) git.Target {
	return git.Target{Repo: repo, Trace: passed, Facts: func(ctx context.Context, commit string, p protocol.Premise) (json.RawMessage, error) {
		var f premise.Fact
		if err := json.Unmarshal(p.Seen, &f); err != nil {
			return nil, err
		}
		now, err := reader.Again(ctx, commit, f)
		if err != nil {
			return nil, err
		}
		return json.Marshal(now)
	}}
}

// proposeCode is a change as the gate journals it. Each fact is a premise twice:
// read by the gate before it dispatches, and checked by the target on the commit
// that the change is put on.
func proposeCode(request, agent, lease string, w written, rests premise.Rests) (protocol.Proposal, error) {
	p := protocol.Proposal{Request: request, Agent: agent, Lease: lease, Symbols: rests.Symbols}
	payload, err := git.PayloadOf(w.change)
	if err != nil {
		return p, err
	}
	p.Effect = protocol.Effect{Action: codingAction, Payload: payload}
	for _, f := range rests.Facts {
		seen, err := json.Marshal(f)
		if err != nil {
			return p, err
		}
		m := protocol.Premise{Name: f.Name(), Seen: seen, At: w.at, Holds: protocol.Unchanged}
		p.Premises = append(p.Premises, m)
		m.Holds = protocol.ByTarget
		p.Premises = append(p.Premises, m)
	}
	return p, nil
}

func (g *gateCoder) Recover(ctx context.Context) (coderTold, bool, error) {
	results, err := g.gate.Recover(ctx, protocol.RecoverOptions{Wait: true})
	if err != nil || len(results) == 0 {
		return coderTold{}, false, err
	}
	return codeTold(results[len(results)-1]), true, nil
}

func (g *gateCoder) Submit(ctx context.Context, w written) (coderTold, error) {
	rests, err := w.session.Rests(ctx, g.column.rests, w.change)
	if errors.Is(err, premise.ErrBroken) {
		return coderTold{status: "STOPPED:build", says: history.SaysNot, why: err.Error()}, nil
	}
	if err != nil {
		return coderTold{}, err
	}
	p, err := proposeCode(codingRequest, g.task.Agent, w.lease, w, rests)
	if err != nil {
		return coderTold{}, err
	}
	result, err := g.gate.Submit(ctx, p)
	if err != nil {
		return coderTold{}, err
	}
	return codeTold(result), nil
}

func (g *gateCoder) Close() error { return g.gate.Close() }

// codeTold says what a result claims.
func codeTold(r protocol.Result) coderTold {
	told := coderTold{status: r.Status.String(), says: history.SaysPending}
	switch r.Status.Final {
	case protocol.Committed:
		told.says = history.SaysDone
	case protocol.Refused:
		told.says, told.why = history.SaysNot, r.Receipt.Why
		if len(r.Receipt.Held) > 0 {
			told.held = r.Receipt.Held[0].Request
		}
	case protocol.Ambiguous, protocol.Unresolved:
		told.says = history.SaysUnknown
	}
	return told
}

// codingRecord grades what the gate's journal shows of B's change.
func codingRecord(path string) string {
	store, err := sqlite.Open(path, sqlite.Options{Namespace: codingNamespace, Reader: true}, ignore)
	if err != nil {
		return recordNone
	}
	defer store.Close()
	entries, err := protocol.EntriesOf(store, protocol.EffectID(codingNamespace, codingRequest, 0))
	if err != nil || len(entries) == 0 {
		return recordNone
	}
	r, err := protocol.ReceiptFromEntries(entries)
	if err != nil {
		return recordNone
	}
	full := r.Agent != "" && r.Lease != "" && bytes.HasPrefix(r.Payload, []byte("{")) && r.Authorized.Basis != ""
	for _, a := range r.Attempts {
		full = full && len(a.Read) > 0
	}
	if !full {
		return recordPartial
	}
	return recordFull
}
