package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/clock"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/git"
	"github.com/interlock-bench/interlock-bench/targets/git/premise"
)

// codingWorld is everything around agent B in one trial: the repository, agent A,
// the principal, the model and, at the end, the compiler.
type codingWorld struct {
	ctx    context.Context
	stage  *faults.Stage
	row    codingRow
	column codingColumn
	repo   *git.Repo
	reader *premise.Reader
	base   string

	asked   int
	revoked bool
	landed  bool // agent A's change
	there   []string
	submits git.Change
	told    bool // B has submitted
	seen    inspection
	record  string
}

// codingRepo copies the repository that every trial begins with. Files, dates and
// names are pinned, and so are its commits.
func codingRepo(ctx context.Context, dir string) (*git.Repo, string, error) {
	files, err := shopFiles(ctx)
	if err != nil {
		return nil, "", err
	}
	for name, content := range files {
		to := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, content, 0o644)); err != nil {
			return nil, "", err
		}
	}
	r, err := git.Open(ctx, dir)
	if err != nil {
		return nil, "", err
	}
	tip, err := r.Tip(ctx, codingBranch)
	return r, tip, err
}

func newCodingWorld(ctx context.Context, stage *faults.Stage, row codingRow, c codingColumn, t faults.Trial, given *codingTask) (*codingWorld, error) {
	repo, tip, err := codingRepo(ctx, filepath.Join(stage.Dir(), "shop.git"))
	if err != nil {
		return nil, err
	}
	w := &codingWorld{ctx: ctx, stage: stage, row: row, column: c, repo: repo, reader: &premise.Reader{Repo: repo}, base: tip}
	stage.As("supervisor").Record(codingDeclared, codingRequest, codingDeclaration{
		Request: codingRequest, Lease: codingLease, Defines: row.defines, Retries: row.Group == groupNotice,
	})
	for _, lease := range []struct{ id, holder string }{{otherLease, otherAgent}, {codingLease, codingAgent}, {codingLease + "-2", codingAgent}} {
		if err := w.grant(lease.id, lease.holder); err != nil {
			return nil, err
		}
	}
	*given = codingTask{
		Experiment: t.Experiment, Column: t.Column, Repo: filepath.Join(stage.Dir(), "shop.git"),
		Journal: codingJournal(stage.State()), Branch: codingBranch, Agent: codingAgent,
	}
	return w, nil
}

// clock is the principal's and agent A's: the time of the trial.
func (w *codingWorld) clock() clock.Clock { return principalClock{clock.System, w.stage} }

func (w *codingWorld) grant(id, holder string) error {
	expires := w.stage.Now().Add(leaseLife)
	w.stage.As("principal").Record(history.Granted, id, history.Lease{Lease: id, Holder: holder, Expires: w.stage.Mono() + leaseLife})
	if !w.column.gate {
		return nil
	}
	return w.authority(func(a *protocol.Authority) error {
		return a.Grant(w.ctx, protocol.Lease{ID: id, Principal: "maintainer", Holder: holder, Actions: []string{codingAction}, Expires: expires})
	})
}

// authority opens the shared database as the principal, in this process.
func (w *codingWorld) authority(do func(*protocol.Authority) error) error {
	path := codingJournal(w.stage.State())
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	a, err := protocol.OpenAuthority(sqlite.Opener(path, sqlite.Options{Namespace: codingNamespace, Now: w.stage.Now, Identity: "maintainer"}), nil,
		protocol.AuthorityOptions{Clock: w.clock()})
	if err != nil {
		return err
	}
	return errors.Join(do(a), a.Close())
}

func ignore(journal.Entry) error { return nil }

// Do carries out what rows name.
func (w *codingWorld) Do(action string, _ func(until ...trace.Point)) error {
	switch action {
	case actLand:
		return w.land()
	case actRevoke:
		w.stage.As("principal").Record(history.Revoking, codingLease, history.Lease{Lease: codingLease})
		w.revoked = true
		if w.column.gate {
			err := w.authority(func(a *protocol.Authority) error {
				_, err := a.Revoke(w.ctx, codingLease, protocol.RevokeOptions{
					Journal: sqlite.Opener(codingJournal(w.stage.State()), sqlite.Options{Namespace: codingNamespace, Now: w.stage.Now, Reader: true}),
				})
				return err
			})
			if err != nil {
				return err
			}
		}
		w.stage.As("principal").Record(history.Revoked, codingLease, history.Lease{Lease: codingLease})
		return nil
	}
	return fmt.Errorf("experiments: the world of the agents can't do %q", action)
}

// land lands agent A's change: through a gate of its own over the same journal
// where B has one, and else onto the branch.
func (w *codingWorld) land() error {
	c := git.Change{Branch: codingBranch, Base: w.base, Author: otherAgent, At: w.stage.Now(), Message: "money: agent A's change", Edits: w.row.lands}
	w.landed = true
	if !w.column.gate {
		_, err := w.repo.Land(w.ctx, git.Landing{Effect: otherRequest, Request: otherRequest, Change: c})
		w.stage.As(otherAgent).Record(otherLanded, otherRequest, nil)
		return err
	}
	gate, err := openCodingJournal(codingJournal(w.stage.State()), w.clock(), otherAgent, nil)
	if err != nil {
		return err
	}
	defer gate.Close()
	if err := gate.Register(codingAction, codingTarget(w.repo, w.reader, nil)); err != nil {
		return err
	}
	session := w.reader.Begin(w.base, nil)
	if _, err := session.Open(w.ctx, "money/money.go"); err != nil {
		return err
	}
	rests, err := session.Rests(w.ctx, w.column.rests, c)
	if err != nil {
		return err
	}
	p, err := proposeCode(otherRequest, otherAgent, otherLease, written{change: c, at: w.stage.Now()}, rests)
	if err != nil {
		return err
	}
	result, err := gate.Submit(w.ctx, p)
	if err == nil && result.Status.Final != protocol.Committed {
		err = fmt.Errorf("experiments: agent A's change didn't land: %s: %s", result.Status, result.Receipt.Why)
	}
	w.stage.As(otherAgent).Record(otherLanded, otherRequest, nil)
	return err
}

// Answer is what agent B's process hears from the world.
func (w *codingWorld) Answer(what string, question json.RawMessage) (any, error) {
	switch what {
	case askNext:
		var q nextQuestion
		if err := json.Unmarshal(question, &q); err != nil {
			return nil, err
		}
		return w.next(q.Settled), nil
	case askRead:
		var q readQuestion
		if err := json.Unmarshal(question, &q); err != nil {
			return nil, err
		}
		w.there = q.There
		return w.model("plan", w.script())
	case askWrite:
		return w.model("write", w.script().Edits)
	case askReview:
		return w.model("review", question)
	case askNotice:
		var facts []premise.Fact
		if err := json.Unmarshal(question, &facts); err != nil {
			return nil, err
		}
		return w.notice(facts)
	case askLease:
		return !w.revoked, nil
	case askSubmits:
		w.told = true
		return nil, json.Unmarshal(question, &w.submits)
	}
	return nil, fmt.Errorf("experiments: agent B asked for %q", what)
}

// model is the scripted model: its answers are counted, and are no model's.
func (w *codingWorld) model(step string, answer any) (any, error) {
	w.stage.As("model").Record(history.Modelled, codingRequest, history.Decision{Request: step})
	return answer, nil
}

func (w *codingWorld) script() script {
	does := w.row.does
	if does == nil {
		does = invoices
	}
	return does(func(symbol string) bool { return slices.Contains(w.there, symbol) })
}

// next hands out what B is to submit. After a restart it is asked for again where
// recovery settled nothing. In the rows about notices a refusal is followed by a
// new decision under a new lease.
func (w *codingWorld) next(settled bool) codingNext {
	lease := codingLease
	switch {
	case w.asked == 0:
		w.asked++
		return codingNext{Submit: true, Lease: lease}
	case !settled:
		return codingNext{Submit: true, Repeat: true, Lease: lease}
	case w.asked < len(w.row.Submits):
		w.asked++
		return codingNext{Submit: true, Again: true}
	case w.row.Group == groupNotice && w.asked == 1 && w.refused():
		w.asked++
		w.told = false
		return codingNext{Submit: true, Lease: lease + "-2"}
	}
	return codingNext{}
}

// refused says whether B's change is not on the branch.
func (w *codingWorld) refused() bool {
	commits, err := w.commits()
	return err == nil && commits == 0
}

// notice tells B which of what it rests on has changed on the branch, when the row
// lets it hear of it. What has changed is found by asking for the facts again.
func (w *codingWorld) notice(facts []premise.Fact) (noticeAnswer, error) {
	var heard noticeAnswer
	if w.row.notice != noticeInTime || !w.landed {
		return heard, nil // late ones come when B has submitted and asks no more
	}
	tip, err := w.repo.Tip(w.ctx, codingBranch)
	if err != nil {
		return heard, err
	}
	for _, f := range facts {
		now, err := w.reader.Again(w.ctx, tip, f)
		if err != nil {
			return heard, err
		}
		if now.Is != f.Is || now.Gone != f.Gone {
			heard.Changed = append(heard.Changed, f.Name())
		}
	}
	return heard, nil
}

// Idle has nothing to wait for: what a process started dies with it.
func (w *codingWorld) Idle(context.Context) error { return nil }

// Close compiles and runs what landed, and keeps the state.
func (w *codingWorld) Close() error {
	err := w.inspect()
	switch {
	case w.column.gate:
		w.record = codingRecord(codingJournal(w.stage.State()))
	case strings.HasPrefix(w.column.Name, "hand"):
		w.record = recordPartial // the commit's author and request; no checks, and nothing of what was refused
	default:
		w.record = recordNone
	}
	return errors.Join(err, w.reader.Close(), keepState(w.ctx, w.stage.State()))
}

// commits counts B's commits on the branch.
func (w *codingWorld) commits() (int, error) {
	return w.repo.Count(w.ctx, codingBranch, codingRequest)
}

// inspect looks at the branch as it stands: how often B's change is on it, what
// its program prints, and where it isn't, what it would have printed.
func (w *codingWorld) inspect() (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), time.Minute)
	defer cancel()
	if w.seen.Commits, err = w.commits(); err != nil {
		return err
	}
	tip, err := w.repo.Tip(ctx, codingBranch)
	if err != nil {
		return err
	}
	m, err := w.reader.Module(ctx, tip, nil)
	if err != nil {
		return err
	}
	w.seen.Builds, w.seen.Implementations = m.Broken == "", m.Declared("shop/money."+duplicated)
	if w.seen.Lines, err = w.run(ctx, tip); err != nil || w.seen.Commits > 0 || w.submits.Base == "" {
		return err
	}
	tree, err := w.repo.Merged(ctx, w.submits, tip)
	if errors.Is(err, git.ErrConflict) {
		return nil
	}
	if err == nil {
		w.seen.Otherwise, err = w.run(ctx, tree)
	}
	return err
}

// run compiles and runs the program of a commit or tree, and returns what it
// printed about B's report; nothing where it doesn't compile or fails.
func (w *codingWorld) run(ctx context.Context, commit string) ([]string, error) {
	out, err := w.reader.Run(ctx, commit, ".")
	var exit *exec.ExitError
	if errors.Is(err, premise.ErrBroken) || errors.As(err, &exit) {
		return nil, nil
	}
	lines := []string{}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, invoiceName+":") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines, err
}
