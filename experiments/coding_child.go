package experiments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/targets/git"
	"github.com/interlock-bench/interlock-bench/targets/git/premise"
)

// codingTask is what the supervisor gives to agent B's process. A restart gets
// the same.
type codingTask struct {
	Experiment string
	Column     string
	Repo       string // path of the repository
	Journal    string // path of the database with decisions and grants
	Branch     string
	Agent      string
}

// What agent B's process asks the world.
const (
	askRead    = "read"     // readQuestion, script: the model plans
	askWrite   = "write"    // nil, []git.Edit: the model writes
	askReview  = "review"   // []git.Edit, []git.Edit: the model looks at it once more
	askNotice  = "notice"   // []premise.Fact, noticeAnswer: what B's work rests on so far
	askLease   = "lease"    // id, bool: a desk says whether it is live
	askSubmits = "submits"  // git.Change, nil: what B is about to submit
	tellWhy    = "said-why" // saidBody
)

// saidBody is why a column refused, in its own words.
type saidBody struct {
	Why  string `json:"why"`
	Held string `json:"held,omitempty"` // request of the effect that holds what was needed
}

type codingNext struct {
	Submit bool
	Again  bool // the same change once more
	Repeat bool // the process died over it
	Lease  string
}

type readQuestion struct {
	There []string // symbols of the commit
}

type noticeAnswer struct {
	Changed []string // what B's work rests on and is no longer so
}

// codingWork is agent B, with its column.
func codingWork(c *faults.Child) error {
	var t codingTask
	if err := c.Task(&t); err != nil {
		return err
	}
	ctx := context.Background()
	c.At(pointStarted, "")
	repo, err := git.Open(ctx, t.Repo)
	if err != nil {
		return err
	}
	reader := &premise.Reader{Repo: repo}
	defer reader.Close()
	column, ok := codingColumnNamed(t.Column)
	if !ok {
		return fmt.Errorf("no column is called %q", t.Column)
	}
	open, err := column.open(coderEnv{task: t, child: c, repo: repo, reader: reader, column: column})
	if err != nil {
		return err
	}
	defer open.Close()
	a := coder{c, t, repo, reader, column, open}
	settled, err := a.settle(ctx)
	if err != nil {
		return err
	}
	var last *written
	for {
		var next codingNext
		if err := c.Ask(askNext, nextQuestion{Settled: settled}, &next); err != nil {
			return err
		}
		if !next.Submit {
			c.Tell(history.Finished, "", nil)
			return nil
		}
		settled = true
		if !next.Again {
			if last, err = a.decide(ctx, next); err != nil {
				return err
			}
		}
		if err := a.submit(ctx, *last); err != nil {
			return err
		}
	}
}

// written is a decision of agent B: a change, and the session in which it was
// made.
type written struct {
	change  git.Change
	session *premise.Session
	at      time.Time
	lease   string
	repeat  bool
}

// coder is agent B in one process.
type coder struct {
	child  *faults.Child
	task   codingTask
	repo   *git.Repo
	reader *premise.Reader
	column codingColumn
	open   coderColumn
}

// decide reads, plans, writes and reviews. Where B is told meanwhile that what it
// rests on has changed, it begins anew.
func (a coder) decide(ctx context.Context, next codingNext) (*written, error) {
	for {
		tip, err := a.repo.Tip(ctx, a.task.Branch)
		if err != nil {
			return nil, err
		}
		m, err := a.reader.Module(ctx, tip, nil)
		if err != nil {
			return nil, err
		}
		session := a.reader.Begin(tip, nil)
		var plan script
		if err := a.child.Ask(askRead, readQuestion{m.Symbols()}, &plan); err != nil {
			return nil, err
		}
		for _, path := range plan.Open {
			if _, err := session.Open(ctx, path); err != nil {
				return nil, err
			}
		}
		for _, call := range plan.Try {
			if _, err := session.Try(ctx, call); err != nil && !errors.Is(err, premise.ErrBroken) {
				return nil, err
			}
		}
		a.child.At(pointPlanned, codingRequest)
		w := &written{session: session, at: a.child.Now(), lease: next.Lease, repeat: next.Repeat}
		w.change = git.Change{Branch: a.task.Branch, Base: tip, Author: a.task.Agent, At: w.at, Message: "invoice: add the report"}
		if told, err := a.told(ctx, session); err != nil {
			return nil, err
		} else if told {
			continue
		}
		if err := a.child.Ask(askWrite, nil, &w.change.Edits); err != nil {
			return nil, err
		}
		if err := a.child.Ask(askReview, w.change.Edits, &w.change.Edits); err != nil {
			return nil, err
		}
		a.child.At(pointDecided, codingRequest)
		if told, err := a.told(ctx, session); err != nil {
			return nil, err
		} else if !told {
			return w, a.child.Ask(askSubmits, w.change, nil)
		}
	}
}

// told asks whether anything that the work rests on so far has changed, where the
// column listens. What it rests on is taken from the session.
func (a coder) told(ctx context.Context, s *premise.Session) (bool, error) {
	if !a.column.listens {
		return false, nil
	}
	var heard noticeAnswer
	err := a.child.Ask(askNotice, s.SoFar(ctx, a.column.rests), &heard)
	return len(heard.Changed) > 0, err
}

// submit submits, and lets the column recover where that came to nothing.
func (a coder) submit(ctx context.Context, w written) error {
	for try := 1; ; try++ {
		told, err := a.open.Submit(ctx, w)
		if err != nil {
			return err
		}
		a.tell(told, "submit")
		a.child.At(pointTold, codingRequest)
		if told.says != history.SaysPending || try == maxTries {
			return nil
		}
		if settled, err := a.settle(ctx); settled || err != nil {
			return err
		}
		if err := a.child.Wait(ctx, pause); err != nil {
			return err
		}
		w.repeat = true
	}
}

func (a coder) settle(ctx context.Context) (bool, error) {
	told, found, err := a.open.Recover(ctx)
	if err == nil && found {
		a.tell(told, "recover")
	}
	return found, err
}

func (a coder) tell(told coderTold, during string) {
	if told.why != "" {
		a.child.Tell(tellWhy, codingRequest, saidBody{told.why, told.held})
	}
	a.child.Tell(history.Told, codingRequest, history.Answer{Request: codingRequest, Status: told.status, Says: told.says, During: during})
}

// saidWhy is what was said last of why.
func saidWhy(h history.History) (said saidBody) {
	for _, e := range h {
		if e.Kind == tellWhy {
			said, _ = history.Body[saidBody](e)
		}
	}
	return said
}

// codingStatus is the cell's word: what the caller was told last.
func codingStatus(h history.History) string {
	status := "NOTHING_SAID"
	for _, e := range h {
		if e.Kind == history.Told {
			if a, err := history.Body[history.Answer](e); err == nil {
				status = a.Status
			}
		}
	}
	return status
}
