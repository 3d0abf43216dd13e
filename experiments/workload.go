package experiments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/interlock-bench/interlock-bench/baselines"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/clock"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/git/premise"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// The points that every column passes alike, in order. Those on either side of
// the send, sim.BeforeSend and sim.ReplyReceived, are passed by the client of
// the service.
const (
	pointStarted trace.Point = "started" // the process runs and has opened nothing
	pointDecided trace.Point = "decided" // the agent read the facts and the model answered; nothing was submitted
	pointTold    trace.Point = "told"    // the caller has its answer

	pointNoJournal trace.Point = "no-journal" // the column's journal failed, and the caller was told
)

// task is what the supervisor gives to the program under test. A restart gets
// the same.
type task struct {
	Experiment string
	Column     string // as in the list of columns
	Network    string // of the service
	Address    string
	State      string // folder that outlives the process
	File       string // "plain" or "lossy"
	Store      string // the gate's: "" is the file store, else storeSQLite
	Disk       bool   // the world is asked before every write and sync of the journal
	Profile    sim.Profile
	Premises   string // "", or what else the decision rests on
	Agent      string
	Lease      string
	Order      string
	Case       string
	Request    string
	Amount     int64 // that the caller asks for at first
	Cap        int64 // cents that all cases together may take; 0 is no cap
}

// What the program under test asks the world.
const (
	askNext  = "next"  // nextQuestion, nextAnswer
	askModel = "model" // modelQuestion, modelAnswer
	askDisk  = "disk"  // a write or sync of the journal's, the syscall.Errno that it meets
)

type nextQuestion struct {
	Settled bool // recovery found something to settle
}

type nextAnswer struct {
	Submit bool // false: there is nothing more to do
	Repeat bool // the same was asked before the process died, or before it was told to try again
	// Request is the request, and the case, to submit; "" is the task's.
	Request string
	Lease   string // for Request; "" is the task's
}

type modelQuestion struct{ Request string }

type modelAnswer struct {
	Amount   int64
	Request  string // another request than the one asked about; "" is that one
	Lease    string // another lease than the task's; "" is that one
	Spelling string // of the payload; "" is the usual one
}

// ServeChild becomes the program that this process was started for, and does not
// return then: the column under test of a supervisor, or code of a repository that
// is confined. It is called first in main.
func ServeChild() {
	premise.ServeSandbox()
	if given, ok := os.LookupEnv(secondVariable); ok {
		if err := serveSecond(given); err != nil {
			fmt.Fprintln(os.Stderr, "interlock-bench:", err)
			os.Exit(70)
		}
		os.Exit(0)
	}
	c, err := faults.Attach()
	if c == nil && err == nil {
		return
	}
	if err == nil {
		err = child(c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "interlock-bench:", err)
		os.Exit(70)
	}
	os.Exit(0)
}

// child runs the program under test of the experiment that the task names.
func child(c *faults.Child) error {
	var t struct{ Experiment string }
	if err := c.Task(&t); err != nil {
		return err
	}
	for _, e := range All() {
		if e.Name == t.Experiment && e.Child != nil {
			return e.Child(c)
		}
	}
	return fmt.Errorf("no experiment called %q runs in a process of this program", t.Experiment)
}

// maxTries bounds how often a submit that isn't settled is tried again: a column
// that never settles ends as it stands, for the judge to see.
const maxTries = 5

// pause is how long a caller waits before it tries again.
const pause = 5 * time.Second

// work is the refund experiment's program under test.
func work(c *faults.Child) error {
	var t task
	if err := c.Task(&t); err != nil {
		return err
	}
	return act(context.Background(), c, t, deskSetting(t, c, c.At))
}

// deskSetting is the refund desk as a column meets it.
func deskSetting(t task, time clock.Clock, at trace.Func) setting {
	service := sim.Client{Network: t.Network, Address: t.Address, Clock: time, Timeout: clientTimeout, Trace: at}
	return setting{
		columns: deskColumns, clock: time, service: baselines.Sim{Client: service}, lookup: t.Profile.Lookup, key: t.Profile.DedupWindow > 0,
		target: refundTarget{service, t.Profile}, propose: proposal{t.Profile.Conditional, t.Premises}.refund,
	}
}

// setting is what a column meets: the time, and the service as the baselines and
// as the gate see it.
type setting struct {
	columns []column
	clock   clock.Clock
	service baselines.Service
	lookup  bool // the service can be asked what landed
	key     bool // the service dedupes by idempotency key
	target  protocol.Target
	propose func(baselines.Decision) (payload any, premises []protocol.Premise)
}

// act is the agent. Where its column's journal fails it, it says so, and begins
// again with a column opened anew, as whatever restarts a service does.
func act(ctx context.Context, c *faults.Child, t task, in setting) error {
	c.At(pointStarted, "")
	for try := 1; ; try++ {
		err := serve(ctx, c, t, in)
		word := journalWord(err)
		if word == "" {
			return err
		}
		agent{c, t, in.clock, nil}.tell(t.Request, baselines.Told{Amount: t.Amount, Status: word, Says: baselines.Pending}, "submit")
		c.At(pointNoJournal, "")
		if try == maxTries {
			c.Tell(history.Finished, "", nil)
			return nil
		}
		if err := in.clock.Wait(ctx, pause); err != nil {
			return err
		}
	}
}

// journalWord is what a caller hears where a journal can't be opened or written;
// "" where it isn't the journal. The owner's own name is in it.
func journalWord(err error) string {
	var held *journal.HeldError
	switch {
	case errors.As(err, &held):
		owner, _, _ := strings.Cut(held.Owner, " ")
		return "LOCKED_OUT:" + owner
	case errors.Is(err, journal.ErrFull):
		return "NO_JOURNAL:full"
	case errors.Is(err, journal.ErrPoisoned):
		return "NO_JOURNAL:failed"
	case errors.Is(err, journal.ErrCorrupt):
		return "NO_JOURNAL:damaged"
	}
	return ""
}

// serve lets the column recover, and then submits what there is to submit.
func serve(ctx context.Context, c *faults.Child, t task, in setting) error {
	column, err := openColumn(t, in, c.Start(), c.At, diskOf(c, t))
	if err != nil {
		return err
	}
	defer column.Close()
	a := agent{c, t, in.clock, column}
	settled, err := a.settle(ctx)
	if err != nil {
		return err
	}
	for {
		var next nextAnswer
		if err := c.Ask(askNext, nextQuestion{Settled: settled}, &next); err != nil {
			return err
		}
		if !next.Submit {
			c.Tell(history.Finished, "", nil)
			return nil
		}
		if next.Request != "" {
			t.Request, t.Case, t.Lease = next.Request, next.Request, next.Lease
			a.task = t
		}
		seen, err := in.service.Order(ctx, t.Order, t.Case, "")
		if err != nil {
			return fmt.Errorf("the agent can't read order %s: %w", t.Order, err)
		}
		var model modelAnswer
		if err := c.Ask(askModel, modelQuestion{Request: t.Request}, &model); err != nil {
			return err
		}
		c.At(pointDecided, t.Request)
		d := baselines.Decision{
			Request: cmp.Or(model.Request, t.Request), Order: t.Order, Case: t.Case, Amount: model.Amount, Spelling: model.Spelling,
			Agent: t.Agent, Lease: cmp.Or(model.Lease, t.Lease), Seen: seen, SeenAt: in.clock.Now(), Repeat: next.Repeat, Cap: t.Cap,
		}
		if err := a.submit(ctx, d); err != nil {
			return err
		}
		settled = true // from here on the row decides what comes next
	}
}

// agent is the caller of a column.
type agent struct {
	child  *faults.Child
	task   task
	clock  clock.Clock
	column baselines.Column
}

// submit submits d. While that is pending it lets the column recover, and
// submits again where there was nothing to recover.
func (a agent) submit(ctx context.Context, d baselines.Decision) error {
	for try := 1; ; try++ {
		told, err := a.column.Submit(ctx, d)
		if err != nil {
			return err
		}
		a.tell(d.Request, told, "submit")
		a.child.At(pointTold, d.Request)
		if told.Says != baselines.Pending || try == maxTries {
			return nil
		}
		if settled, err := a.settle(ctx); settled || err != nil {
			return err
		}
		if err := a.clock.Wait(ctx, pause); err != nil {
			return err
		}
		d.Repeat = true
	}
}

// settle lets the column recover until nothing is pending or it was tried often
// enough. It says whether there was anything to recover.
func (a agent) settle(ctx context.Context) (settled bool, err error) {
	for try := 1; ; try++ {
		told, found, err := a.column.Recover(ctx)
		if err != nil || !found {
			return settled, err
		}
		settled = true
		a.tell(a.task.Request, told, "recover")
		if told.Says != baselines.Pending || try == maxTries {
			return settled, nil
		}
		if err := a.clock.Wait(ctx, pause); err != nil {
			return settled, err
		}
	}
}

func (a agent) tell(request string, told baselines.Told, during string) {
	a.child.Tell(history.Told, request, history.Answer{
		Request: request, Amount: told.Amount, Status: told.Status, Says: history.Says(told.Says), During: during,
	})
}

// clientTimeout is how long every client waits for the service.
const clientTimeout = 10 * time.Second

// diskOf says of each operation on the journal's disk whether it fails; nil is a
// disk that doesn't.
func diskOf(c *faults.Child, t task) func(op string) error {
	if !t.Disk {
		return nil
	}
	return func(op string) error {
		var errno syscall.Errno
		if err := c.Ask(askDisk, op, &errno); err != nil || errno == 0 {
			return err
		}
		return errno
	}
}

// openColumn opens the column that the task names in its state folder. start is
// which start of the program this is.
func openColumn(t task, in setting, start int, at trace.Func, fails func(op string) error) (baselines.Column, error) {
	column, ok := findColumn(in.columns, t.Column)
	if !ok {
		return nil, fmt.Errorf("no column is called %q", t.Column)
	}
	dir := filepath.Join(t.State, "journal")
	var disk journal.Dir
	if t.File == fileLossy {
		disk = faults.LossyDir(dir)
	}
	if fails != nil {
		disk = faults.FailingDir(orElse(disk, journal.RealDir(dir)), fails)
	}
	_, backup := os.Stat(filepath.Join(t.State, backupMark))
	return column.open(opening{
		task:     t,
		dir:      disk,
		restored: backup == nil,
		trace:    at,
		setting:  in,
		Env: baselines.Env{
			Service: in.service,
			Clock:   in.clock,
			Start:   start,
			Lock:    filepath.Join(t.State, "lock"),
			Lookup:  in.lookup,
			Key:     in.key,
			Journal: func(mode journal.Mode, apply func(journal.Entry) error) (journal.Store, error) {
				return journal.OpenFile(dir, journal.Options{
					Mode: mode, Namespace: namespace, Now: in.clock.Now, Dir: disk, Trace: at, Identity: t.Column, Restored: backup == nil && mode == journal.Owner,
				}, apply)
			},
		},
	})
}

// opening is what a column is opened with.
type opening struct {
	baselines.Env
	setting
	task     task
	dir      journal.Dir // where the journal's bytes go; nil is the real directory
	trace    trace.Func
	restored bool // the journal comes from a backup, and its operator says so
}

func (o opening) authorityDir() string { return authorityDir(o.task.State) }

func authorityDir(state string) string { return filepath.Join(state, "authority") }
func journalDir(state string) string   { return filepath.Join(state, "journal") }

// backupMark is a file beside the journal that says that it comes from a backup.
const backupMark = "restored"

// storeSQLite is the gate's store for several processes.
const storeSQLite = "sqlite"

// gateJournal opens the gate's journal in a trial's state, in the store that the
// trial is of. o is for the file store; the other takes of it what it knows.
func gateJournal(state, store string, o journal.Options) journal.Opener {
	if store == storeSQLite {
		return sqlite.Opener(filepath.Join(journalDir(state), "journal.db"), sqlite.Options{
			Namespace: o.Namespace, Now: o.Now, Trace: o.Trace, Reader: o.Mode == journal.Reader, Identity: o.Identity,
		})
	}
	return journal.FileOpener(journalDir(state), o)
}

// namespace is the refund desk's; one journal, one namespace.
const namespace = "refund-desk"

// The two kinds of file that a journal is written to.
const (
	filePlain = "plain" // the real one: a kill keeps what was written
	fileLossy = "lossy" // a kill loses what was not synced
)

func profileOf(column string) string {
	if _, profile, ok := strings.Cut(column, "@"); ok {
		return profile
	}
	return "t1"
}
