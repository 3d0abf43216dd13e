package experiments

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/interlock-bench/interlock-bench/baselines"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol/clock"
)

// secondVariable names the environment variable that tells a process of this
// program that it is a second agent's, and what it is to do.
const secondVariable = "INTERLOCK_SECOND"

// secondTask is what a second agent's process is given: it submits once, another
// request than the program under test, and says what it was told. Nobody follows
// it step by step; the program under test stands still meanwhile, or is dead.
type secondTask struct {
	Task   task
	Now    time.Time
	Amount int64
}

// secondSaid is what came of it.
type secondSaid struct {
	Status string
	Says   baselines.Says
}

// serveSecond is the second agent's whole life.
func serveSecond(given string) error {
	var t secondTask
	if err := json.Unmarshal([]byte(given), &t); err != nil {
		return err
	}
	said, err := t.submit(context.Background())
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}

func (t secondTask) submit(ctx context.Context) (secondSaid, error) {
	in := deskSetting(t.Task, stillClock{clock.System, t.Now}, nil)
	column, err := openColumn(t.Task, in, secondStart, nil, nil)
	if err != nil {
		return secondSaid{}, err
	}
	defer column.Close()
	seen, err := in.service.Order(ctx, t.Task.Order, t.Task.Case, "")
	if err != nil {
		return secondSaid{}, err
	}
	told, err := column.Submit(ctx, baselines.Decision{
		Request: t.Task.Request, Order: t.Task.Order, Case: t.Task.Case, Amount: t.Amount,
		Agent: t.Task.Agent, Lease: t.Task.Lease, Seen: seen, SeenAt: t.Now, Cap: t.Task.Cap,
	})
	return secondSaid{told.Status, told.Says}, err
}

// stillClock is the trial's wall time, which doesn't pass for the trial while the
// second agent acts. What that waits for is over at once.
type stillClock struct {
	clock.Clock
	now time.Time
}

func (c stillClock) Now() time.Time                                  { return c.now }
func (c stillClock) Wait(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// startSecond starts the second agent's process, waits for its end and records
// what it was told.
func (w *refundWorld) startSecond(t task) error {
	defer w.stage.Guest()()
	given, err := json.Marshal(secondTask{t, w.stage.Now(), approved})
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var complaint bytes.Buffer
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), secondVariable+"="+string(given), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	var said secondSaid
	if err == nil {
		err = json.Unmarshal(out, &said)
	}
	if err != nil {
		return fmt.Errorf("experiments: the second agent: %w: %s", err, complaint.String())
	}
	w.seconds = append(w.seconds, said)
	w.stage.As(secondAgent).Record(history.Told, t.Request, history.Answer{
		Request: t.Request, Amount: approved, Status: said.Status, Says: history.Says(said.Says), During: "submit",
	})
	return nil
}

// secondAgent is its name in the history.
const secondAgent = "second-agent"

// secondStart is a number that no start of the program under test has.
const secondStart = 1000
