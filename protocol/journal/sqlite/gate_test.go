package sqlite_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
)

const namespace = "desk"

// ledger is a target of tier 2: an effect is a line of a file.
type ledger struct {
	path string
	step func(string) // "sending", "landed"; nil for none
}

func (l ledger) Capabilities() protocol.Capabilities {
	return protocol.Capabilities{Lookup: true, LandingBound: time.Millisecond}
}

func (l ledger) Prepare(_ context.Context, r protocol.Request) (protocol.Attempt, error) {
	return request{l, r}, nil
}

func (l ledger) Lookup(_ context.Context, r protocol.Request) (protocol.Finding, error) {
	n, err := l.landed(r.Effect)
	return protocol.Finding{Landed: n > 0, Same: true, Result: json.RawMessage(`{"found":true}`)}, err
}

func (l ledger) Observe(context.Context, protocol.Premise, protocol.Request) (json.RawMessage, error) {
	return nil, fmt.Errorf("there are no premises")
}

func (l ledger) landed(id journal.ID) (int, error) {
	text, err := os.ReadFile(l.path)
	if os.IsNotExist(err) {
		return 0, nil
	}
	return strings.Count(string(text), id.String()+"\n"), err
}

func (l ledger) at(step string) {
	if l.step != nil {
		l.step(step)
	}
}

type request struct {
	l ledger
	r protocol.Request
}

func (r request) Send(context.Context, protocol.Envelope) protocol.Answer {
	r.l.at("sending")
	f, err := os.OpenFile(r.l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString(r.r.Effect.String() + "\n")
		f.Close()
	}
	if err != nil {
		return protocol.Answer{Reason: err.Error()}
	}
	r.l.at("landed")
	return protocol.Answer{Outcome: protocol.Done, Result: json.RawMessage(`{"ok":true}`)}
}

func (r request) Close() error { return nil }

// openGate opens journal and authority in one database.
func openGate(path string, l ledger) (*protocol.Gate, error) {
	open := sqlite.Opener(path, sqlite.Options{Namespace: namespace, Identity: "a worker"})
	g, err := protocol.Open(context.Background(), protocol.Config{
		Namespace: namespace, Journal: open, Authority: open, ClockMargin: time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	return g, g.Register("refund", l)
}

func proposal(request string) protocol.Proposal {
	return protocol.Proposal{Request: request, Agent: "agent-7", Lease: "L-refund",
		Effect: protocol.Effect{Action: "refund", Payload: json.RawMessage(`{"amount":20}`)}}
}

// gateTask is what another process does with a gate.
type gateTask struct {
	Ledger  string
	Do      string // "submit", "until-refused", "work", "recover"
	Request string
	StopAt  string // a step of the ledger at which it stands still
}

func gateChild(path string, k gateTask) error {
	in := bufio.NewReader(os.Stdin)
	l := ledger{path: k.Ledger, step: func(step string) {
		if step == k.StopAt || k.Do == "work" {
			fmt.Println(step)
		}
		if step == k.StopAt {
			io.Copy(io.Discard, os.Stdin)
		}
	}}
	g, err := openGate(path, l)
	if err != nil {
		return err
	}
	defer g.Close()
	fmt.Println("ready")
	ctx := context.Background()
	switch k.Do {
	case "submit": // a request for each line
		for {
			request, err := in.ReadString('\n')
			if err != nil {
				return nil
			}
			r, err := g.Submit(ctx, proposal(strings.TrimSpace(request)))
			if err != nil {
				return err
			}
			fmt.Printf("%s %s\n", r.Status, r.Owner)
		}
	case "until-refused":
		for n := 0; ; n++ {
			r, err := g.Submit(ctx, proposal(fmt.Sprint(k.Request, n)))
			if err != nil {
				return err
			}
			fmt.Println(r.Status)
			if r.Status.Final != protocol.Committed {
				return nil
			}
		}
	case "work": // until four requests are committed, by whomever
		for n := 0; n < 4; {
			fmt.Println("submits", n)
			r, err := g.Submit(ctx, proposal(fmt.Sprint("case-", n)))
			if err != nil {
				return err
			}
			switch r.Status.Final {
			case protocol.Committed:
				n++
			case protocol.InFlight, protocol.NotYetSent: // somebody is at it, or it may still land
			default:
				return fmt.Errorf("request %d: %s", n, r.Status)
			}
		}
	case "recover":
		in.ReadString('\n')
		results, err := g.Recover(ctx, protocol.RecoverOptions{})
		if err != nil {
			return err
		}
		for _, r := range results {
			fmt.Printf("%s %s\n", r.Status, r.Owner)
		}
	}
	return nil
}

// desk is a database with a lease granted in it, and a ledger.
func desk(t *testing.T) (path string, l ledger, a *protocol.Authority) {
	t.Helper()
	path = newPath(t)
	a, err := protocol.OpenAuthority(sqlite.Opener(path, sqlite.Options{Namespace: namespace}), nil, protocol.AuthorityOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	if err := a.Grant(t.Context(), protocol.Lease{
		ID: "L-refund", Principal: "finance", Holder: "agent-7", Actions: []string{"refund"}, Expires: time.Now().AddDate(1, 0, 0),
	}); err != nil {
		t.Fatal(err)
	}
	return path, ledger{path: filepath.Join(t.TempDir(), "ledger")}, a
}

func worker(t *testing.T, path string, k gateTask) *process {
	t.Helper()
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, "gate", path, string(text))
	p.want(t, "ready")
	return p
}

func mustGate(t *testing.T, path string, l ledger) *protocol.Gate {
	t.Helper()
	g, err := openGate(path, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

func effect(request string) journal.ID { return protocol.EffectID(namespace, request, 0) }

// once checks that the effect landed and was committed exactly once.
func once(t *testing.T, path string, l ledger, request string) {
	t.Helper()
	s, _ := mustOpen(t, path, sqlite.Options{Reader: true})
	defer s.Close()
	entries, err := protocol.EntriesOf(s, effect(request))
	if err != nil {
		t.Fatal(err)
	}
	landed, err := l.landed(effect(request))
	if n := count(entries, journal.Committed, effect(request)); err != nil || landed != 1 || n != 1 {
		t.Errorf("%s landed %d times and was committed %d times (%v): %v", request, landed, n, err, kinds(entries))
	}
}

// TestTwoProcessesSubmitOneRequest: one commits it; the other is told that it is
// being worked on, and by whom, or that it is done (B68: a dispatch excludes other
// processes, not only other callers).
func TestTwoProcessesSubmitOneRequest(t *testing.T) {
	path, l, _ := desk(t)
	k := gateTask{Ledger: l.path, Do: "submit"}
	workers := []*process{worker(t, path, k), worker(t, path, k)}
	told := map[string]int{}
	for n := range 30 {
		request := fmt.Sprint("case-", n)
		for _, w := range workers {
			fmt.Fprintln(w.in, request)
		}
		committed := 0
		for i, w := range workers {
			status, owner, _ := strings.Cut(w.line(), " ")
			told[status]++
			switch status {
			case "COMMITTED":
				committed++
			case "DUPLICATE_IGNORED":
			case "IN_FLIGHT":
				if other := workers[1-i].cmd.Process.Pid; !strings.Contains(owner, strconv.Itoa(other)) {
					t.Errorf("%s is in flight with %q, want process %d", request, owner, other)
				}
			default:
				t.Fatalf("%s: %s %s", request, status, owner)
			}
		}
		if committed != 1 {
			t.Errorf("%s: %d processes committed it", request, committed)
		}
		once(t, path, l, request)
	}
	t.Logf("told: %v", told)
}

// TestAnyProcessHasTheReceipt: what one process committed another answers with
// the same receipt, though it never worked on it.
func TestAnyProcessHasTheReceipt(t *testing.T) {
	path, l, _ := desk(t)
	g, other := mustGate(t, path, l), mustGate(t, path, l)
	if _, err := other.Report(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, err := g.Submit(t.Context(), proposal("case-1"))
	if err != nil || first.Status.String() != "COMMITTED" {
		t.Fatal(first.Status, err)
	}
	again, err := other.Submit(t.Context(), proposal("case-1"))
	if err != nil || again.Status.String() != "DUPLICATE_IGNORED" || again.Receipt.String() != first.Receipt.String() {
		t.Errorf("%v (%v), with the receipt\n%s\nwant\n%s", again.Status, err, again.Receipt, first.Receipt)
	}
	once(t, path, l, "case-1")
}

// TestADeadOwnerIsTakenOverAtOnce: whoever submits the request next settles it,
// wherever its first owner died.
func TestADeadOwnerIsTakenOverAtOnce(t *testing.T) {
	for _, c := range []struct{ stop, status, why string }{
		{"landed", "COMMITTED_ON_QUERY", "the lookup finds it, so nothing is waited for"},
		{"sending", "REAPPLIED_AFTER_QUERY", "it isn't found once it can't land any more"},
	} {
		path, l, _ := desk(t)
		g := mustGate(t, path, l)
		p := worker(t, path, gateTask{Ledger: l.path, Do: "submit", StopAt: c.stop})
		fmt.Fprintln(p.in, "case-1")
		p.want(t, c.stop)
		p.kill()
		if c.stop == "sending" {
			results, err := g.Recover(t.Context(), protocol.RecoverOptions{Wait: true})
			if err != nil || len(results) != 1 || results[0].Status.String() != c.status {
				t.Errorf("%s: %v, %v", c.why, results, err)
			}
		} else if r, err := g.Submit(t.Context(), proposal("case-1")); err != nil || r.Status.String() != c.status {
			t.Errorf("%s: %v, %v, want %s", c.why, r.Status, err, c.status)
		}
		once(t, path, l, "case-1")
	}
}

// TestProcessesShareACap: what a dead process has in doubt holds the cap for the
// others, and of several processes at once no more than fits is dispatched (I9,
// B96).
func TestProcessesShareACap(t *testing.T) {
	for _, stop := range []string{"landed", "sending"} {
		path, l, a := desk(t)
		capped := func(cap string) {
			t.Helper()
			if err := a.SetBudget(t.Context(), protocol.Budget{
				Name: "refunds", Principal: "finance", Holders: []string{"agent-7"}, Field: "amount", Cap: cap,
			}); err != nil {
				t.Fatal(err)
			}
		}
		capped("30")
		if err := a.Grant(t.Context(), protocol.Lease{
			ID: "L-capped", Principal: "finance", Holder: "agent-7", Actions: []string{"refund"}, Expires: time.Now().AddDate(1, 0, 0),
			Replaces: "L-refund", Budget: "refunds",
		}); err != nil {
			t.Fatal(err)
		}
		p := worker(t, path, gateTask{Ledger: l.path, Do: "submit", StopAt: stop})
		fmt.Fprintln(p.in, "case-1")
		p.want(t, stop)
		p.kill()
		gates := []*protocol.Gate{mustGate(t, path, l), mustGate(t, path, l)}
		for _, g := range gates {
			r, err := g.Submit(t.Context(), proposal("case-2"))
			if err != nil || r.Status.String() != "REFUSED:over_budget" || len(r.Receipt.Held) != 1 || r.Receipt.Held[0].Request != "case-1" {
				t.Errorf("%s: %v, %v, held by %v", stop, r.Status, err, r.Receipt.Held)
			}
		}
		if _, err := gates[1].Recover(t.Context(), protocol.RecoverOptions{Wait: true}); err != nil {
			t.Fatal(err)
		}
		once(t, path, l, "case-1")

		capped("130") // room for five more
		var all sync.WaitGroup
		for i, g := range gates {
			for n := range 6 {
				all.Go(func() {
					if _, err := g.Submit(t.Context(), proposal(fmt.Sprintf("case-%d-%d", i, n))); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		text, err := os.ReadFile(l.path)
		if n := strings.Count(string(text), "\n"); err != nil || n != 6 {
			t.Errorf("%s: %d effects of 20 landed under a cap of 130 (%v)", stop, n, err)
		}
	}
}

// TestAHungOwnerIsReported: nobody takes over from a process that stands still,
// and everybody is told who it is and since when; what another recovers is left
// alone too.
func TestAHungOwnerIsReported(t *testing.T) {
	path, l, _ := desk(t)
	g := mustGate(t, path, l)
	before := time.Now()
	p := worker(t, path, gateTask{Ledger: l.path, Do: "submit", StopAt: "sending"})
	fmt.Fprintln(p.in, "case-1")
	p.want(t, "sending")
	pid := p.cmd.Process.Pid
	p.cmd.Process.Signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("it doesn't stop: %v", err)
	}
	check := func(r protocol.Result, err error) {
		t.Helper()
		if err != nil || r.Status.String() != "IN_FLIGHT" || !strings.Contains(r.Owner, strconv.Itoa(pid)) ||
			r.Since.Before(before) || r.Since.After(time.Now()) {
			t.Errorf("%v by %q since %v (%v), want IN_FLIGHT by process %d", r.Status, r.Owner, r.Since, err, pid)
		}
	}
	check(g.Submit(t.Context(), proposal("case-1")))
	results, err := g.Recover(t.Context(), protocol.RecoverOptions{Wait: true})
	if err != nil || len(results) != 1 {
		t.Fatal(results, err)
	}
	check(results[0], nil)
	if r, err := g.Submit(t.Context(), proposal("case-2")); err != nil || r.Status.String() != "COMMITTED" {
		t.Errorf("another request: %v, %v", r.Status, err)
	}
	if n, err := l.landed(effect("case-1")); n != 0 || err != nil {
		t.Errorf("it landed %d times, %v", n, err)
	}
	p.kill()
	if results, err = g.Recover(t.Context(), protocol.RecoverOptions{Wait: true}); err != nil || len(results) != 1 || results[0].Status.String() != "REAPPLIED_AFTER_QUERY" {
		t.Errorf("after its death: %v, %v", results, err)
	}
	once(t, path, l, "case-1")
}

// TestOneOfTwoRecoverersWins: both recover what a dead process left; one settles
// it, and it lands once.
func TestOneOfTwoRecoverersWins(t *testing.T) {
	path, l, _ := desk(t)
	told := map[string]int{}
	for n := range 5 {
		request := fmt.Sprint("case-", n)
		p := worker(t, path, gateTask{Ledger: l.path, Do: "submit", StopAt: "landed"})
		fmt.Fprintln(p.in, request)
		p.want(t, "landed")
		p.kill()
		k := gateTask{Ledger: l.path, Do: "recover"}
		recoverers := []*process{worker(t, path, k), worker(t, path, k)}
		for _, r := range recoverers {
			fmt.Fprintln(r.in)
		}
		for _, r := range recoverers {
			status, _, _ := strings.Cut(r.line(), " ")
			told[status]++
			if status != "COMMITTED_ON_QUERY" && status != "IN_FLIGHT" && status != "" {
				t.Errorf("a recoverer says %s", status)
			}
			if err := r.cmd.Wait(); err != nil {
				t.Error(err)
			}
		}
		once(t, path, l, request)
	}
	t.Logf("told: %v", told)
}

// TestNothingIsDispatchedAfterARevocationReturned: with journal and authority in
// one database no drain is needed. Revoking names what is in doubt.
func TestNothingIsDispatchedAfterARevocationReturned(t *testing.T) {
	path, l, a := desk(t)
	stuck := worker(t, path, gateTask{Ledger: l.path, Do: "submit", StopAt: "landed"})
	fmt.Fprintln(stuck.in, "case-stuck")
	stuck.want(t, "landed")
	var workers []*process
	for _, name := range []string{"a-", "b-"} {
		w := worker(t, path, gateTask{Ledger: l.path, Do: "until-refused", Request: name})
		for range 3 {
			w.want(t, "COMMITTED")
		}
		workers = append(workers, w)
	}
	reader := sqlite.Opener(path, sqlite.Options{Reader: true})
	v, err := a.Revoke(t.Context(), "L-refund", protocol.RevokeOptions{Journal: reader})
	if err != nil || v.Undecided {
		t.Fatal(v, err)
	}
	found := false
	for _, d := range v.Doubt {
		found = found || d.Request == "case-stuck"
	}
	if !found {
		t.Errorf("in doubt under it: %+v, want case-stuck", v.Doubt)
	}
	for _, w := range workers {
		last := ""
		for line := w.line(); line != ""; line = w.line() {
			last = line
		}
		if last != "REFUSED:lease" {
			t.Errorf("a worker ended with %s", last)
		}
	}
	s, entries := mustOpen(t, path, sqlite.Options{Reader: true})
	s.Close()
	var revoked journal.Seq
	for _, e := range *entries {
		switch {
		case e.Kind == journal.Revoked:
			revoked = e.Seq
		case e.Kind == journal.Dispatched && revoked != 0:
			t.Errorf("entry %d was dispatched after revocation %d", e.Seq, revoked)
		}
	}
	if revoked == 0 {
		t.Error("there is no revocation in the log")
	}
}

// TestRoundsOfTwoGates: two gates work on the same requests and one is killed,
// wherever it has got to; nothing is lost and nothing lands twice.
func TestRoundsOfTwoGates(t *testing.T) {
	rounds := 10
	if flag.Lookup("long").Value.String() == "true" {
		rounds = 1000
	}
	seed := flag.Lookup("seed").Value.(flag.Getter).Get().(uint64)
	t.Logf("run it again with -seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	ways := map[string]int{}
	for range rounds {
		path, l, a := desk(t)
		k := gateTask{Ledger: l.path, Do: "work"}
		dies, lives := worker(t, path, k), worker(t, path, k)
		for range 1 + r.IntN(12) {
			if dies.line() == "" {
				break
			}
		}
		dies.kill()
		for lives.line() != "" {
		}
		if err := lives.cmd.Wait(); err != nil {
			t.Fatalf("the other gate: %v", err)
		}
		s, _ := mustOpen(t, path, sqlite.Options{Reader: true})
		for n := range 4 {
			request := fmt.Sprint("case-", n)
			once(t, path, l, request)
			entries, err := protocol.EntriesOf(s, effect(request))
			if err != nil {
				t.Fatal(err)
			}
			receipt, err := protocol.ReceiptFromEntries(entries)
			if err != nil || receipt.Executed.Is != protocol.Yes {
				t.Errorf("%s: executed %s (%v)", request, receipt.Executed.Is, err)
			}
			ways[receipt.Status.String()]++
		}
		s.Close()
		a.Close()
		if t.Failed() {
			break
		}
	}
	t.Logf("%d rounds: %v", rounds, ways)
}

// TestB05NoWorkersRequestIsLost: several gates at once on one database record and
// carry out every request that any of them was given.
func TestB05NoWorkersRequestIsLost(t *testing.T) {
	path, l, _ := desk(t)
	const workers, each = 4, 5
	var all sync.WaitGroup
	for w := range workers {
		g := mustGate(t, path, l)
		all.Go(func() {
			for n := range each {
				r, err := g.Submit(context.Background(), proposal(fmt.Sprintf("case-%d-%d", w, n)))
				if err != nil || r.Status.String() != "COMMITTED" {
					t.Errorf("worker %d, request %d: %s, %v", w, n, r.Status, err)
				}
			}
		})
	}
	all.Wait()
	for w := range workers {
		for n := range each {
			once(t, path, l, fmt.Sprintf("case-%d-%d", w, n))
		}
	}
}
