package faults_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// TestMain is also the program under test: started by a supervisor, the test
// binary does what its task says.
func TestMain(m *testing.M) {
	child, err := faults.Attach()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if child == nil {
		os.Exit(m.Run())
	}
	var t task
	if err := child.Task(&t); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	program := programs[t.Program]
	if program == nil {
		fmt.Fprintln(os.Stderr, "no program is called", t.Program)
		os.Exit(2)
	}
	program(child, t)
}

type task struct {
	Program string `json:"program"`
	Service string `json:"service"` // socket of the service
}

// client speaks HTTP to the service, one connection a request.
func client(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
}

// get asks the service for path under a timeout of the virtual clock.
func get(c *faults.Child, t task, path string, timeout time.Duration) (string, error) {
	ctx, cancel := c.Timeout(context.Background(), timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://service"+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := client(t.Service).Do(r)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return "", cause
		}
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// lock takes a kernel lock on a file beside the service's socket.
func lock(t task) (unlock func()) {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(t.Service), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		panic(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		panic(err)
	}
	return func() { f.Close() }
}

// note is the body of what the test programs tell.
type note struct {
	Text  string        `json:"text"`
	Start int           `json:"start,omitempty"`
	Mono  time.Duration `json:"mono,omitempty"`
}

const said history.Kind = "said"

var programs = map[string]func(c *faults.Child, t task){
	// Two points and the end.
	"steps": func(c *faults.Child, _ task) {
		c.At("one", "")
		c.At("two", "x")
		c.Tell(said, "x", note{Text: "done", Start: c.Start()})
		c.Tell(history.Finished, "", nil)
	},
	// A request to the service.
	"request": func(c *faults.Child, t task) {
		c.At("before", "")
		text, err := get(c, t, "/apply", 10*time.Second)
		c.Tell(said, "", note{Text: fmt.Sprint(text, err)})
		c.Tell(history.Finished, "", nil)
	},
	// A request whose answer never comes, and a wait afterwards.
	"timeout": func(c *faults.Child, t task) {
		_, err := get(c, t, "/withhold", 10*time.Second)
		c.Tell(said, "", note{Text: fmt.Sprint(errors.Is(err, context.DeadlineExceeded)), Mono: c.Mono()})
		err = c.Wait(context.Background(), 30*time.Second)
		c.Tell(said, "", note{Text: fmt.Sprint(err), Mono: c.Mono()})
		c.Tell(history.Finished, "", nil)
	},
	// A process of its own that outlives it, where nobody ends it.
	"parent": func(c *faults.Child, _ task) {
		relative(nil)
		c.At("one", "")
	},
	"stuck parent": func(c *faults.Child, t task) {
		relative(nil)
		get(c, t, "/withhold", 0)
	},
	"parent of a session": func(c *faults.Child, _ task) {
		pid, held := relative(&syscall.SysProcAttr{Setsid: true})
		fmt.Fprintln(held, pid)
	},
	// A request whose answer never comes and that nobody limits.
	"stuck": func(c *faults.Child, t task) {
		get(c, t, "/withhold", 0)
	},
	// A timer that is armed while the process stands still.
	"stands": func(c *faults.Child, _ task) {
		ctx, cancel := c.Timeout(context.Background(), time.Minute)
		c.At("one", "")
		c.Tell(said, "", note{Text: fmt.Sprint(context.Cause(ctx) == context.DeadlineExceeded), Mono: c.Mono()})
		cancel()
		c.Tell(history.Finished, "", nil)
	},
	// Silence.
	"circles": func(c *faults.Child, _ task) {
		for {
			c.At("one", "")
			c.Wait(context.Background(), time.Minute)
		}
	},
	"silent": func(c *faults.Child, _ task) {
		c.At("one", "")
		park()
	},
	"exit": func(c *faults.Child, _ task) {
		c.At("one", "")
		fmt.Fprintln(os.Stderr, "no more of this")
		os.Exit(3)
	},
	// Two flows, one of which waits longer.
	"flows": func(c *faults.Child, _ task) {
		var both sync.WaitGroup
		for i := 1; i <= 2; i++ {
			end := c.Flow()
			both.Go(func() {
				defer end()
				c.Wait(context.Background(), time.Duration(i)*time.Minute)
				c.Tell(said, "", note{Text: fmt.Sprint("flow ", i), Mono: c.Mono()})
			})
		}
		c.Join(both.Wait)
		c.Tell(history.Finished, "", nil)
	},
	// A wait that ends with a timer, not with its time.
	"interrupted": func(c *faults.Child, _ task) {
		ctx, cancel := c.Timeout(context.Background(), time.Minute)
		err := c.Wait(ctx, time.Hour)
		c.Tell(said, "", note{Text: fmt.Sprint(err != nil, context.Cause(ctx) == context.DeadlineExceeded), Mono: c.Mono()})
		cancel()
		err = c.Wait(context.Background(), time.Hour)
		c.Tell(said, "", note{Text: fmt.Sprint(err), Mono: c.Mono()})
		c.Tell(history.Finished, "", nil)
	},
	// Clocks as seen from inside, and the world's answer.
	"clocks": func(c *faults.Child, _ task) {
		var answer string
		err := c.Ask("weather", 7, &answer)
		c.Tell(said, "", note{Text: fmt.Sprint(answer, err, c.Now().Format(time.RFC3339), c.Mono())})
		err = c.Ask("nothing", nil, nil)
		c.Tell(said, "", note{Text: fmt.Sprint(err != nil)})
		c.Tell(history.Finished, "", nil)
	},
	// A kernel lock, held over one point or two and released before the last.
	"locked": func(c *faults.Child, t task) {
		unlock := lock(t)
		c.At("locked", "")
		unlock()
		c.At("released", "")
		c.Tell(history.Finished, "", nil)
	},
	"locked-long": func(c *faults.Child, t task) {
		unlock := lock(t)
		c.At("locked", "")
		c.At("still-locked", "")
		unlock()
		c.At("released", "")
		c.Tell(history.Finished, "", nil)
	},
	// A lossy file: one record synced, one not.
	"lossy": func(c *faults.Child, _ task) {
		d := faults.LossyDir(".")
		f, err := d.Open("log", c.Start() == 1)
		if err != nil {
			panic(err)
		}
		if c.Start() == 1 {
			f.WriteAt([]byte("synced"), 0)
			f.Sync()
			d.Sync()
			f.WriteAt([]byte(" and not"), 6)
		}
		text := make([]byte, 32)
		n, _ := f.ReadAt(text, 0)
		c.Tell(said, "", note{Text: string(text[:n])})
		c.At("written", "")
		c.Tell(history.Finished, "", nil)
	},
	// The supervisor's end of this one is closed by the test.
	"orphan": func(c *faults.Child, _ task) {
		fmt.Println("attached")
		park()
	},
}

// world is the service and the acts of these tests.
type world struct {
	stage   *faults.Stage
	service faults.Role
	task    *task
	server  *http.Server
	busy    sync.WaitGroup
	acts    map[string]func(proceed func(...trace.Point)) error
}

func newWorld(s *faults.Stage, t *task) (*world, error) {
	t.Service = filepath.Join(s.Dir(), "service")
	listener, err := net.Listen("unix", t.Service)
	if err != nil {
		return nil, err
	}
	w := &world{stage: s, service: s.As("service"), task: t, acts: map[string]func(func(...trace.Point)) error{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/apply", func(rw http.ResponseWriter, r *http.Request) {
		if w.service.Pass("sim/applied", "") {
			io.WriteString(rw, "ok")
		}
	})
	mux.HandleFunc("/withhold", func(rw http.ResponseWriter, r *http.Request) {
		w.service.Record(history.Answered, "", history.Reply{Word: "ok", Withheld: true})
		s.Withhold(r.Context())
	})
	w.server = &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.busy.Add(1)
		defer w.busy.Done()
		mux.ServeHTTP(rw, r)
	})}
	go w.server.Serve(listener)
	return w, nil
}

func (w *world) Do(action string, proceed func(...trace.Point)) error {
	if do := w.acts[action]; do != nil {
		return do(proceed)
	}
	return fmt.Errorf("nobody knows how to %s", action)
}

func (w *world) Answer(what string, question json.RawMessage) (any, error) {
	if what != "weather" {
		return nil, errors.New("no answer")
	}
	return "fine, " + string(question), nil
}

func (w *world) Idle(context.Context) error { w.busy.Wait(); return nil }

func (w *world) Close() error { return w.server.Close() }

// plan is a plan for one of the programs, with the trial's faults in their text
// form.
func plan(t *testing.T, program string, planned ...string) faults.Plan {
	t.Helper()
	return planFor(t, program, nil, planned...)
}

func planFor(t *testing.T, program string, setup func(*world), planned ...string) faults.Plan {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	trial := faults.Trial{Experiment: "faults", Row: program, Column: "self", Seed: 1}
	for _, text := range planned {
		var f faults.Fault
		if err := f.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		trial.Faults = append(trial.Faults, f)
	}
	task := &task{Program: program}
	return faults.Plan{
		Trial:    trial,
		Restarts: 1,
		Command:  func(int) *exec.Cmd { return exec.Command(self) },
		Task:     task,
		Patience: time.Minute,
		World: func(s *faults.Stage) (faults.World, error) {
			w, err := newWorld(s, task)
			if err == nil && setup != nil {
				setup(w)
			}
			return w, err
		},
	}
}

func run(t *testing.T, p faults.Plan) history.History {
	t.Helper()
	h, err := faults.Run(t.Context(), p)
	if err != nil {
		t.Fatalf("%s: %v\n%s", p.Trial, err, text(t, h))
	}
	return h
}

// text is a history, one line an event.
func text(t *testing.T, h history.History) string {
	t.Helper()
	var b bytes.Buffer
	if err := history.Encode(&b, h); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// lines are the events in short: who kind point-or-body.
func lines(h history.History) (out []string) {
	for _, e := range h {
		line := fmt.Sprint(e.Who, " ", e.Kind)
		if e.Point != "" {
			line += " " + string(e.Point)
		}
		switch e.Kind {
		case said:
			n, _ := history.Body[note](e)
			line += " " + n.Text
			if n.Mono != 0 {
				line += " " + n.Mono.String()
			}
		case history.Acted:
			a, _ := history.Body[history.Action](e)
			line += " " + a.Action
		case history.Unfired:
			f, _ := history.Body[faults.Fault](e)
			line += " " + f.String()
		case history.Exited, history.Hung:
			x, _ := history.Body[history.Exit](e)
			line += fmt.Sprint(" ", x.Code)
		}
		out = append(out, line)
	}
	return out
}

// revocation is an act that waits for the lock of the locked programs.
func revocation(until ...trace.Point) func(*world) {
	return func(w *world) {
		w.acts["revoke"] = func(proceed func(...trace.Point)) error {
			w.stage.As("principal").Record(history.Revoking, "", nil)
			proceed(until...)
			unlock := lock(*w.task)
			w.stage.As("principal").Record(history.Revoked, "", nil)
			unlock()
			return nil
		}
	}
}

func TestTrials(t *testing.T) {
	tests := []struct {
		name    string
		why     string
		program string
		setup   func(*world)
		faults  []string
		outage  []string
		want    []string
	}{
		{
			name: "undisturbed", why: "a program that does what it should leaves its own events and no others",
			program: "steps",
			want:    []string{"worker#1 started", "worker#1 passed one", "worker#1 passed two", "worker#1 said done", "worker#1 finished"},
		},
		{
			name: "kill at a point", why: "the point is the last thing the process did, and the next start begins anew",
			program: "steps", faults: []string{"kill@two#1"},
			want: []string{"worker#1 started", "worker#1 passed one", "worker#1 passed two", "worker#1 killed",
				"worker#2 started", "worker#2 passed one", "worker#2 passed two", "worker#2 said done", "worker#2 finished"},
		},
		{
			name: "passages count over the whole trial", why: "the second passage of a point is in the second start",
			program: "steps", faults: []string{"kill@one#1", "kill@one#2"},
			want: []string{"worker#1 started", "worker#1 passed one", "worker#1 killed",
				"worker#2 started", "worker#2 passed one", "worker#2 killed"},
		},
		{
			name: "kill at the service's point", why: "the answer is pending: the service learns that its client is dead",
			program: "request", faults: []string{"kill@sim/applied#1"}, outage: []string{"wait 25h"},
			want: []string{"worker#1 started", "worker#1 passed before", "service passed sim/applied", "worker#1 killed", "supervisor acted wait 25h",
				"worker#2 started", "worker#2 passed before", "service passed sim/applied", "worker#2 said ok<nil>", "worker#2 finished"},
		},
		{
			name: "act at a point", why: "the act and what it records come before anything else of the process",
			program: "steps", faults: []string{"change@one#1"},
			setup: func(w *world) {
				w.acts["change"] = func(func(...trace.Point)) error {
					w.stage.As("person").Record(history.Changed, "", nil)
					return nil
				}
			},
			want: []string{"worker#1 started", "worker#1 passed one", "supervisor acted change", "person changed",
				"worker#1 passed two", "worker#1 said done", "worker#1 finished"},
		},
		{
			name: "unfired", why: "a fault that did not happen is said, and is no pass",
			program: "steps", faults: []string{"kill@three#1", "change@one#2"},
			want: []string{"worker#1 started", "worker#1 passed one", "worker#1 passed two", "worker#1 said done", "worker#1 finished",
				"supervisor unfired kill@three#1", "supervisor unfired change@one#2"},
		},
		{
			name: "ends by itself", why: "an exit code is an event, not an error, and nobody restarts the program",
			program: "exit",
			want:    []string{"worker#1 started", "worker#1 passed one", "worker#1 exited 3"},
		},
		{
			name: "clocks and questions", why: "skew moves the wall clock alone; the world answers, or refuses",
			program: "clocks", setup: func(w *world) { w.stage.Skew(time.Hour) },
			want: []string{"worker#1 started", "worker#1 said fine, 7<nil>2026-01-02T04:04:05Z0s", "worker#1 said true", "worker#1 finished"},
		},
		{
			name: "a wait while the process stands still", why: "time passes at a fault as well",
			program: "stands", faults: []string{"wait:1h@one#1"},
			setup: func(w *world) {
				w.stage.After(time.Minute, "landing", func() { w.service.Pass("landed", "") })
			},
			want: []string{"worker#1 started", "worker#1 passed one", "supervisor acted wait:1h", "service passed landed", "worker#1 said true 1h0m0s", "worker#1 finished"},
		},
		{
			name: "time", why: "the timer of the request fires, as its answer is withheld, and the wait takes its time",
			program: "timeout",
			want:    []string{"worker#1 started", "service answered", "worker#1 said true 10s", "worker#1 said <nil> 40s", "worker#1 finished"},
		},
		{
			name: "time after a death", why: "the second start goes on with the trial's clock; nothing of the first start is waited for",
			program: "timeout", faults: []string{"kill@landed#1"}, outage: []string{"wait 1h"},
			setup: func(w *world) {
				w.stage.After(5*time.Second, "landing", func() { w.service.Pass("landed", "") })
			},
			want: []string{"worker#1 started", "service answered", "service passed landed", "worker#1 killed", "supervisor acted wait 1h",
				"worker#2 started", "service answered", "worker#2 said true 1h0m15s", "worker#2 said <nil> 1h0m45s", "worker#2 finished"},
		},
		{
			name: "two flows", why: "time moves only when both wait, to the earlier of the two",
			program: "flows",
			want:    []string{"worker#1 started", "worker#1 said flow 1 1m0s", "worker#1 said flow 2 2m0s", "worker#1 finished"},
		},
		{
			name: "a wait that a timer ends", why: "it ends at the timer's time, and the next wait counts from there",
			program: "interrupted",
			want:    []string{"worker#1 started", "worker#1 said true true 1m0s", "worker#1 said <nil> 1h1m0s", "worker#1 finished"},
		},
		{
			name: "the world's deadlines in order", why: "what is due at once happens in the order of its names, and before the process goes on",
			program: "timeout",
			setup: func(w *world) {
				for _, what := range []string{"b", "a"} {
					w.stage.After(10*time.Second, what, func() { w.service.Pass(trace.Point(what), "") })
				}
				stop := w.stage.After(time.Second, "never", func() { w.service.Pass("never", "") })
				stop()
			},
			want: []string{"worker#1 started", "service answered", "service passed a", "service passed b", "worker#1 said true 10s", "worker#1 said <nil> 40s", "worker#1 finished"},
		},
		{
			name: "an act that needs the process to go on", why: "the process is held at its next point until the act has returned",
			program: "locked", faults: []string{"revoke@locked#1"}, setup: revocation(),
			want: []string{"worker#1 started", "worker#1 passed locked", "supervisor acted revoke", "principal revoking", "principal revoked",
				"worker#1 passed released", "worker#1 finished"},
		},
		{
			name: "an act that needs the process to pass more points", why: "the act says where the process is held",
			program: "locked-long", faults: []string{"revoke@locked#1"}, setup: revocation("released"),
			want: []string{"worker#1 started", "worker#1 passed locked", "supervisor acted revoke", "principal revoking", "worker#1 passed still-locked", "principal revoked",
				"worker#1 passed released", "worker#1 finished"},
		},
		{
			name: "a kill beside an act", why: "the kernel frees what the dead process held; the act ends before anything goes on",
			program: "locked-long", faults: []string{"revoke@locked#1", "kill@still-locked#1"}, setup: revocation("released"),
			want: []string{"worker#1 started", "worker#1 passed locked", "supervisor acted revoke", "principal revoking", "worker#1 passed still-locked", "principal revoked",
				"worker#1 killed", "worker#2 started", "worker#2 passed locked", "worker#2 passed still-locked", "worker#2 passed released", "worker#2 finished"},
		},
		{
			name: "a lossy file", why: "a kill takes what was not synced, and only that",
			program: "lossy", faults: []string{"kill@written#1"},
			want: []string{"worker#1 started", "worker#1 said synced and not", "worker#1 passed written", "worker#1 killed",
				"worker#2 started", "worker#2 said synced", "worker#2 passed written", "worker#2 finished"},
		},
		{
			name: "nothing will ever happen", why: "all flows blocked without a deadline is known at once",
			program: "stuck",
			want:    []string{"worker#1 started", "service answered", "worker#1 hung 2"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := planFor(t, test.program, test.setup, test.faults...)
			p.Outage = test.outage
			h := run(t, p)
			if diff := cmp.Diff(test.want, lines(h)); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s\n%s", p.Trial, test.why, diff, text(t, h))
			}
		})
	}
}

// TestSettle: what may still land lands after the last process is done.
func TestSettle(t *testing.T) {
	p := planFor(t, "exit", func(w *world) {
		w.stage.After(time.Minute, "landing", func() { w.service.Pass("landed", "") })
		w.stage.After(time.Hour, "too late", func() { w.service.Pass("too-late", "") })
	})
	p.Settle = 30 * time.Minute
	h := run(t, p)
	if last := h[len(h)-1]; last.Point != "landed" || last.At != time.Minute {
		t.Errorf("the last event is %s %s at %v, want landed at 1m", last.Kind, last.Point, last.At)
	}
}

// TestHungInCircles: a process that goes on for ever on a clock that is moved for
// it is ended after so many steps.
func TestHungInCircles(t *testing.T) {
	t.Parallel()
	p := plan(t, "circles")
	p.Steps = 1000
	h := run(t, p)
	if last := h[len(h)-1]; last.Kind != history.Hung || len(h) > p.Steps {
		t.Errorf("%d events, the last is %s, want hung", len(h), last.Kind)
	}
}

// park waits for its end.
func park() {
	for {
		syscall.Pause() // it returns for each signal that the runtime takes
	}
}

// TestHungSilent: a process without a sign of life is ended, with its stacks.
func TestHungSilent(t *testing.T) {
	t.Parallel()
	p := plan(t, "silent")
	p.Patience = 2 * time.Second // also the time to start in
	h := run(t, p)
	last := h[len(h)-1]
	if last.Kind != history.Hung {
		t.Fatalf("the last event is %s, want hung:\n%s", last.Kind, text(t, h))
	}
	exit, err := history.Body[history.Exit](last)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(exit.Text, "faults_test.park") || strings.Contains(exit.Text, "0x") {
		t.Errorf("the stacks don't show where it hangs, or show addresses:\n%s", exit.Text)
	}
}

// TestSameHistory: a trial that is run again gives the same bytes, also beside
// others.
func TestSameHistory(t *testing.T) {
	plans := map[string]func() faults.Plan{
		"request": func() faults.Plan { return plan(t, "request", "kill@sim/applied#1", "kill@none#1") },
		"timeout": func() faults.Plan { return plan(t, "timeout", "kill@none#1") },
		"revoke":  func() faults.Plan { return planFor(t, "locked-long", revocation("released"), "revoke@locked#1") },
		"exit":    func() faults.Plan { return plan(t, "exit") },
	}
	for name, fresh := range plans {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := text(t, run(t, fresh()))
			for range 19 {
				if diff := cmp.Diff(first, text(t, run(t, fresh()))); diff != "" {
					t.Fatalf("two runs differ (-first +this):\n%s", diff)
				}
			}
		})
	}
}

// TestCancel: an interrupted trial leaves no process, no folder and no goroutine.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var dir string
	p := planFor(t, "silent", func(w *world) {
		dir = w.stage.Dir()
		w.acts["interrupt"] = func(func(...trace.Point)) error { cancel(); return nil }
	}, "interrupt@one#1")
	var child *exec.Cmd
	command := p.Command
	p.Command = func(start int) *exec.Cmd { child = command(start); return child }

	h, err := faults.Run(ctx, p)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("Run returned %v, want the context's error\n%s", err, text(t, h))
	}
	if child.ProcessState == nil {
		t.Error("the process was not waited for")
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the trial is still there: %v", err)
	}
	noneLeft(t)
}

// noneLeft fails where a goroutine that the package started is still at work.
func noneLeft(t *testing.T) {
	t.Helper()
	var left string
	for range 10_000 { // one that has said that it is done may still be ending
		left = ""
		stacks := make([]byte, 1<<20)
		for _, g := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if strings.Contains(g, "interlock-bench/faults.(*") {
				left += g + "\n\n"
			}
		}
		if left == "" {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("goroutines are left:\n%s", left)
}

// TestNoneLeft: after trials of all kinds nothing of them is at work.
func TestNoneLeft(t *testing.T) {
	run(t, plan(t, "request", "kill@sim/applied#1"))
	run(t, plan(t, "timeout"))
	run(t, plan(t, "stuck"))
	run(t, planFor(t, "locked", revocation(), "revoke@locked#1"))
	noneLeft(t)
}

// TestRelatives: what the program started ends with it, however it ends, and
// says nothing about how it ended.
func TestRelatives(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why     string
		program string
		planned []string
		want    history.Kind // of the last event
	}{
		{"the program ends by itself", "parent", nil, history.Exited},
		{"the trial kills it", "parent", []string{"kill@one#1"}, history.Killed},
		{"it hangs", "stuck parent", nil, history.Hung},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			held, alive := pipe(t)
			p := plan(t, c.program, c.planned...)
			p.Restarts = 0
			withFile(&p, alive)
			h := run(t, p)
			alive.Close()
			if last := h[len(h)-1]; last.Kind != c.want {
				t.Errorf("the last event is %s, want %s:\n%s", last.Kind, c.want, text(t, h))
			}
			// The end of the file comes when nobody holds the pipe any more.
			held.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := held.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("a process that the program started still lives: %v", err)
			}
		})
	}
}

// TestRelativeThatLeft: one that left the group is not ended, and holding the
// program's output doesn't make a program hang that has exited.
func TestRelativeThatLeft(t *testing.T) {
	t.Parallel()
	held, alive := pipe(t)
	p := plan(t, "parent of a session")
	p.Patience = 3 * time.Second // less than what is waited for output
	withFile(&p, alive)
	h := run(t, p)
	alive.Close()
	if last := h[len(h)-1]; last.Kind != history.Exited {
		t.Errorf("the last event is %s, want exited:\n%s", last.Kind, text(t, h))
	}
	var pid int
	if _, err := fmt.Fscan(held, &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("it can't be ended: %v", err)
	}
}

// pipe is a pipe that is closed with the test.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// withFile has the program find f as its first further file.
func withFile(p *faults.Plan, f *os.File) {
	command := p.Command
	p.Command = func(start int) *exec.Cmd {
		cmd := command(start)
		cmd.ExtraFiles = []*os.File{f}
		return cmd
	}
}

// relative starts a process that lives on and holds the output of this one and
// its first further file.
func relative(attr *syscall.SysProcAttr) (pid int, held *os.File) {
	held = os.NewFile(3, "held")
	cmd := exec.Command("sleep", "600") // longer than any test may take
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles, cmd.SysProcAttr = os.Stdout, os.Stderr, []*os.File{held}, attr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return cmd.Process.Pid, held
}

// TestUnknownAct: what the harness can't do is its failure, not an event of a
// judged trial.
func TestUnknownAct(t *testing.T) {
	for _, p := range []faults.Plan{plan(t, "steps", "dance@one#1"), plan(t, "steps", "kill@one#1")} {
		p.Outage = []string{"dance"}
		if h, err := faults.Run(t.Context(), p); err == nil {
			t.Errorf("%s: no error\n%s", p.Trial, text(t, h))
		}
	}
}

// TestActThatHangs: an act that never returns ends the trial, not the caller.
func TestActThatHangs(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	defer close(hang)
	p := planFor(t, "steps", func(w *world) {
		w.acts["hang"] = func(func(...trace.Point)) error { <-hang; return nil }
	}, "hang@one#1")
	p.Patience = 2 * time.Second
	if h, err := faults.Run(t.Context(), p); err == nil {
		t.Errorf("no error\n%s", text(t, h))
	}
}

// TestOrphan: a child whose supervisor is gone ends by itself.
func TestOrphan(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "control")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), "INTERLOCK_CONTROL="+socket)
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(conn, `{"start":1,"body":{"program":"orphan"}}`)
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		t.Fatalf("the child said %q: %v", line, err)
	}
	conn.Close()
	var exit *exec.ExitError
	if err := child.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 70 {
		t.Errorf("the child ended with %v, want exit code 70", err)
	}
}

// TestAlone: without a supervisor in the environment nobody is attached.
func TestAlone(t *testing.T) {
	t.Setenv("INTERLOCK_CONTROL", "")
	if c, err := faults.Attach(); c != nil || err != nil {
		t.Errorf("Attach() = %v, %v; want nil, nil", c, err)
	}
	t.Setenv("INTERLOCK_CONTROL", filepath.Join(t.TempDir(), "nobody"))
	if _, err := faults.Attach(); err == nil {
		t.Error("a supervisor that isn't there was attached to")
	}
}

// The program under test is this test's own binary; see TestMain.
func ExampleRun() {
	self, err := os.Executable()
	if err != nil {
		fmt.Println(err)
		return
	}
	trial, err := faults.ParseTrial("example/killed_between_steps/steps kill@two#1 seed=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	task := &task{Program: "steps"}
	h, err := faults.Run(context.Background(), faults.Plan{
		Trial:    trial,
		Restarts: 1,
		Command:  func(start int) *exec.Cmd { return exec.Command(self) },
		Task:     task,
		World:    func(s *faults.Stage) (faults.World, error) { return newWorld(s, task) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range h {
		fmt.Println(strings.TrimSpace(fmt.Sprint(e.N, " ", e.Who, " ", e.Kind, " ", e.Point)))
	}
	// Output:
	// 1 worker#1 started
	// 2 worker#1 passed one
	// 3 worker#1 passed two
	// 4 worker#1 killed
	// 5 worker#2 started
	// 6 worker#2 passed one
	// 7 worker#2 passed two
	// 8 worker#2 said
	// 9 worker#2 finished
}

// BenchmarkTrial is one trial with a kill at the service and a restart.
func BenchmarkTrial(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		task := &task{Program: "request"}
		h, err := faults.Run(b.Context(), faults.Plan{
			Trial:    faults.Trial{Faults: []faults.Fault{{What: faults.Kill, At: "sim/applied", Passage: 1}}},
			Restarts: 1,
			Command:  func(int) *exec.Cmd { return exec.Command(self) },
			Task:     task,
			World:    func(s *faults.Stage) (faults.World, error) { return newWorld(s, task) },
		})
		if err != nil || h[len(h)-1].Kind != history.Finished {
			b.Fatalf("%v\n%v", err, lines(h))
		}
	}
}
