package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol/clock"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// Child is the program's side of a trial: its points, its words and its clock.
// Every method returns when the supervisor lets it, and the process ends when
// the supervisor is gone. It is safe for use by several goroutines.
//
// The supervisor moves time when all live flows are blocked in Wait, or in a
// request whose answer the service withholds. A flow is a goroutine that may
// block so; the process begins with one, and Flow announces others.
type Child struct {
	path  string
	start int
	task  json.RawMessage

	mu    sync.Mutex
	free  []*link
	waits map[*wait]bool
}

var _ clock.Clock = (*Child)(nil)

// Attach connects to the supervisor that the environment names. It returns nil
// and no error where none is named.
func Attach() (*Child, error) {
	path := os.Getenv(controlVariable)
	if path == "" {
		return nil, nil
	}
	c := &Child{path: path, waits: map[*wait]bool{}}
	l, err := c.dial()
	if err != nil {
		return nil, fmt.Errorf("faults: no supervisor at %s: %w", path, err)
	}
	var hello reply
	if err := errors.Join(l.write(question{Op: opHello}), l.read(&hello)); err != nil {
		return nil, fmt.Errorf("faults: the supervisor doesn't answer: %w", err)
	}
	c.start, c.task = hello.Start, hello.Body
	go func() { // this connection says nothing more; it ends with the supervisor
		c.orphaned(l.read(&hello))
	}()
	return c, nil
}

// Task decodes the task of the plan into what into points to.
func (c *Child) Task(into any) error {
	if err := json.Unmarshal(c.task, into); err != nil {
		return fmt.Errorf("faults: task: %w", err)
	}
	return nil
}

// Start says which start of the program in this trial this one is, from 1.
func (c *Child) Start() int { return c.start }

// At reports that p was passed. It is a trace.Func.
func (c *Child) At(p trace.Point, subject string) {
	c.call(question{Op: opAt, Point: p, Subject: subject})
}

// Tell records an event of the given kind with body as its body, nil for none.
func (c *Child) Tell(kind history.Kind, subject string, body any) {
	c.call(question{Op: opTell, Kind: kind, Subject: subject, Body: encode(body)})
}

// Ask puts a question to the world and decodes its answer into what answer
// points to. The world's refusal is the error.
func (c *Child) Ask(what string, put, answer any) error {
	r := c.call(question{Op: opAsk, Subject: what, Body: encode(put)})
	if r.Error != "" {
		return fmt.Errorf("faults: %s: %s", what, r.Error)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(r.Body, answer); err != nil {
		return fmt.Errorf("faults: answer to %s: %w", what, err)
	}
	return nil
}

// Flow says that one more goroutine may block from now on. Call it before the
// goroutine starts; call end once, as the last thing the goroutine does.
func (c *Child) Flow() (end func()) {
	c.call(question{Op: opFlow, N: 1})
	return sync.OnceFunc(func() { c.call(question{Op: opFlow, N: -1}) })
}

// Join runs wait, which waits for other flows of this process to end, and does
// not count the caller as a flow meanwhile.
func (c *Child) Join(wait func()) {
	c.call(question{Op: opFlow, N: -1})
	wait()
	c.call(question{Op: opFlow, N: 1})
}

// Now is the supervisor's wall clock, skew included.
func (c *Child) Now() time.Time { return c.call(question{Op: opTime}).Now }

// Mono is the virtual time since the trial began, the same in every start.
func (c *Child) Mono() time.Duration { return c.call(question{Op: opTime}).Mono }

// wait is one call of Wait.
type wait struct {
	ctx    context.Context
	cancel func()        // tells the supervisor that ctx has ended; once
	over   chan struct{} // closed when the supervisor has replied
}

// Wait blocks a flow until d has passed or ctx ends.
func (c *Child) Wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	c.reap()
	l := c.take()
	w := &wait{ctx: ctx, over: make(chan struct{})}
	w.cancel = sync.OnceFunc(func() { c.must(l.write(question{Op: opCancel})) })

	c.mu.Lock() // so that nobody cancels a wait that isn't there yet
	c.must(l.write(question{Op: opWait, For: d}))
	c.waits[w] = true
	c.mu.Unlock()

	var r reply
	stop := context.AfterFunc(ctx, w.cancel)
	c.must(l.read(&r))
	if !stop() {
		w.cancel() // it is under way: wait until it is written, or the connection isn't clean
	}
	c.mu.Lock()
	delete(c.waits, w)
	c.mu.Unlock()
	close(w.over)
	c.put(l)
	if r.Error != "" {
		return ctx.Err()
	}
	return nil
}

// reap makes the supervisor know of every wait whose context has ended, and
// says how many there were. Else a flow would count as blocked that isn't.
func (c *Child) reap() (n int) {
	c.mu.Lock()
	var ended []*wait
	for w := range c.waits {
		if w.ctx.Err() != nil {
			ended = append(ended, w)
		}
	}
	c.mu.Unlock()
	for _, w := range ended {
		w.cancel()
		<-w.over
	}
	return len(ended)
}

// Timeout arms a timer at the supervisor. It is no blocked flow.
func (c *Child) Timeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l := c.take()
	var armed reply
	c.must(l.write(question{Op: opArm, For: d}))
	c.must(l.read(&armed))

	var (
		mu       sync.Mutex
		disarmed bool
		over     = make(chan struct{})
	)
	go func() {
		defer close(over)
		for {
			var r reply
			c.must(l.read(&r))
			if !r.Fired { // the reply to the disarm
				return
			}
			cancel(context.DeadlineExceeded)
			mu.Lock()
			if !disarmed {
				c.must(l.write(question{Op: opFired, N: c.reap()}))
			}
			mu.Unlock()
		}
	}()
	return ctx, sync.OnceFunc(func() {
		mu.Lock()
		disarmed = true
		c.must(l.write(question{Op: opDisarm}))
		mu.Unlock()
		<-over
		cancel(context.Canceled)
		c.put(l)
	})
}

// call asks on a connection of its own.
func (c *Child) call(q question) reply {
	l := c.take()
	var r reply
	c.must(l.write(q))
	c.must(l.read(&r))
	c.put(l)
	return r
}

func (c *Child) dial() (*link, error) {
	conn, err := net.Dial("unix", c.path)
	if err != nil {
		return nil, err
	}
	return newLink(conn), nil
}

func (c *Child) take() *link {
	c.mu.Lock()
	if n := len(c.free); n > 0 {
		l := c.free[n-1]
		c.free = c.free[:n-1]
		c.mu.Unlock()
		return l
	}
	c.mu.Unlock()
	l, err := c.dial()
	c.must(err)
	return l
}

func (c *Child) put(l *link) {
	c.mu.Lock()
	c.free = append(c.free, l)
	c.mu.Unlock()
}

func (c *Child) must(err error) {
	if err != nil {
		c.orphaned(err)
	}
}

// orphaned ends the process: nobody follows it any more, and what it did from
// here on would be in no history.
func (c *Child) orphaned(err error) {
	fmt.Fprintln(os.Stderr, "faults: the supervisor is gone:", err)
	os.Exit(orphanCode)
}

// orphanCode is the exit code of a child that lost its supervisor.
const orphanCode = 70

func encode(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("faults: %T on the control channel: %w", v, err))
	}
	return text
}
