package faults_test

import (
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
	"sync"
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
	// A request whose answer never comes and that nobody limits.
	"stuck": func(c *faults.Child, t task) {
		get(c, t, "/withhold", 0)
	},
	// Silence.
	"silent": func(c *faults.Child, _ task) {
		c.At("one", "")
		time.Sleep(time.Hour)
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
		c.Tell(said, "", note{Text: fmt.Sprint(answer, err, c.Now().Format(time.RFC3339)), Mono: c.Mono()})
		err = c.Ask("nothing", nil, nil)
		c.Tell(said, "", note{Text: fmt.Sprint(err != nil)})
		c.Tell(history.Finished, "", nil)
	},
	// A lock in a file, held over the first point and released before the second.
	"locked": func(c *faults.Child, t task) {
		lock := filepath.Join(filepath.Dir(t.Service), "lock")
		if err := os.WriteFile(lock, nil, 0o600); err != nil {
			panic(err)
		}
		c.At("locked", "")
		c.At("still-locked", "")
		if err := os.Remove(lock); err != nil {
			panic(err)
		}
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
		time.Sleep(time.Hour)
	},
}

// world is the service and the acts of these tests.
type world struct {
	stage   *faults.Stage
	service faults.Role
	server  *http.Server
	acts    map[string]func(proceed func(...trace.Point)) error
}

func newWorld(s *faults.Stage, t *task) (*world, error) {
	t.Service = filepath.Join(s.Dir(), "service")
	listener, err := net.Listen("unix", t.Service)
	if err != nil {
		return nil, err
	}
	w := &world{stage: s, service: s.As("service")}
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
	w.server = &http.Server{Handler: mux}
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

func (w *world) Idle(ctx context.Context) error { return nil }

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
				w.acts = map[string]func(func(...trace.Point)) error{"change": func(func(...trace.Point)) error {
					w.stage.As("person").Record(history.Changed, "", nil)
					return nil
				}}
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
			name: "a wait while the process stands still", why: "the world's time passes at a fault as well",
			program: "clocks", faults: []string{"wait:1h@none#1"},
			want: []string{"worker#1 started", "worker#1 said fine, 7<nil>2026-01-02T04:04:05Z", "worker#1 said true", "worker#1 finished",
				"supervisor unfired wait:1h@none#1"},
			setup: func(w *world) { w.stage.Skew(time.Hour) },
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
