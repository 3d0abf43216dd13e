package sweep

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-bench/interlock-bench/faults/disk"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// desk is a gate and everything around it, which may do to it whatever may
// happen. What the gate does is held to beliefs.
type desk struct {
	t  *rapid.T // of the step under way
	n  Counts
	on ground

	clock     *clock
	service   *service
	authority *protocol.Authority
	gate      *protocol.Gate
	drain     *journal.Drain // the gate's
	bytes     *journal.Drain // the principals'
	person    ed25519.PrivateKey

	beliefs beliefs
	leases  leases
	lease   string // that the agent uses now
	granted int
	budget  string // that all effects draw on; "" for none
	cap     int

	calling  int // number of the step under way
	dead     bool
	poisoned bool
	calls    []protocol.Proposal // submits under way, the innermost last
	events   []event
}

// event is something that happens when so many more points have been passed.
type event struct {
	in int
	do string
}

const (
	agent  = "agent-7"
	person = "ruth"
	action = "refund"
)

var requests = []string{"case-1", "case-2", "case-3"}

// killed ends a call of the gate where its process died.
type killed struct{}

// gateOn is the machine of the gate on one kind of ground. spoil plants a wrong
// that it must find; nil plants none.
func gateOn(make func() (ground, error), spoil func(*desk)) func(*rapid.T, Counts) {
	return func(t *rapid.T, n Counts) {
		on, err := make()
		if err != nil {
			t.Fatal(err)
		}
		d := newDesk(t, n, on)
		defer d.close()
		if spoil != nil {
			spoil(d)
		}
		t.Repeat(d.steps())
		d.leftAlone(t)
	}
}

func newDesk(t *rapid.T, n Counts, on ground) *desk {
	all := profiles()
	p := all[rapid.IntRange(0, len(all)-1).Draw(t, "profile")]
	t.Logf("a service of profile %s", p.name)
	n["profile "+p.name]++
	d := &desk{
		t: t, n: n, on: on, clock: &clock{}, beliefs: beliefs{}, leases: leases{},
		person: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)),
	}
	d.service = newService(p, d.clock)
	d.service.step = func(name string, id journal.ID) { d.at(trace.Point("service/"+name), id.String()) }
	d.service.sending = d.sending
	d.openAuthority()
	d.open()
	d.grant("")
	if rapid.Bool().Draw(t, "shares a cap") {
		n["with a cap"]++
		d.budget, d.cap = "desk", 40
		if err := d.authority.SetBudget(context.Background(), protocol.Budget{
			Name: d.budget, Principal: "finance", Holders: []string{agent}, Field: "amount", Cap: fmt.Sprint(d.cap),
		}); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d *desk) close() {
	d.shut()
	d.closeAuthority()
	d.on.close()
}

func (d *desk) closeAuthority() {
	d.authority.Close()
	if d.bytes != nil {
		d.bytes.Close()
	}
}

func (d *desk) steps() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"submit":    d.step(func() { d.submit(d.decide()) }),
		"again":     d.step(func() { d.submit(d.decide()) }), // half of what happens should be that something is asked for
		"and again": d.step(func() { d.submit(d.decide()) }),
		"recover":   d.step(func() { d.recovers(rapid.Bool().Draw(d.t, "wait")) }),
		"restart":   d.step(d.restart),
		"time":      d.step(d.wait),
		"service":   d.step(d.unkind),
		"world":     d.step(d.turn),
		"revoke":    d.step(d.revoke),
		"renew":     d.step(d.renew),
		"approve":   d.step(func() { d.grant("") }),
		"resolve":   d.step(d.resolve),
		"bad disk":  d.step(d.breakDisk),
	}
}

// step lets events happen on the way, a kill among them.
func (d *desk) step(do func()) func(*rapid.T) {
	return func(t *rapid.T) {
		d.t, d.events = t, nil
		d.calling++
		for range rapid.SampledFrom([]int{0, 0, 1, 1, 2}).Draw(t, "events") {
			d.events = append(d.events, event{
				rapid.IntRange(0, 30).Draw(t, "in"),
				rapid.SampledFrom([]string{"kill", "kill", "revoke", "turn", "submit", "recover", "time"}).Draw(t, "event"),
			})
		}
		d.alive(do)
		d.events = nil
	}
}

// alive runs do, and starts the next process where this one is killed in it.
func (d *desk) alive(do func()) {
	defer func() {
		if v := recover(); v != nil {
			if _, ok := v.(killed); !ok {
				panic(v)
			}
			d.n["kills"]++
			d.events, d.calls = nil, nil
			d.resume()
		}
	}()
	do()
}

// at is passed at every point of the gate, its journal and the service.
func (d *desk) at(p trace.Point, subject string) {
	if d.dead {
		return
	}
	d.follow(p, subject)
	for i := 0; i < len(d.events); i++ {
		e := &d.events[i]
		if e.in--; e.in >= 0 || !meets(e.do, p) {
			continue
		}
		what := e.do
		d.events = slices.Delete(d.events, i, i+1)
		i--
		d.n["event "+what]++
		switch what {
		case "kill":
			d.kill()
		case "revoke":
			d.revoke()
		case "turn":
			d.turn()
		case "submit":
			d.submit(d.decide())
		case "recover":
			d.recovers(false)
		case "time":
			d.wait()
		}
	}
}

// meets says where an event can happen. A kill can anywhere; the others where no
// lock of a store is held, since all is one goroutine. Between last check and first
// byte neither time passes nor does another call find the disk broken: that window
// is outside of what the gate promises. Nor does time pass within the last reading
// of the facts, which is not made again where it took long itself.
func meets(what string, p trace.Point) bool {
	ours := strings.HasPrefix(string(p), "gate/") || strings.HasPrefix(string(p), "service/")
	switch {
	case what == "kill":
		return true
	case !ours || p == protocol.PointRechecked || p == protocol.PointOpened:
		return false
	case what == "time":
		return p != protocol.PointLastChecked && p != "service/observe"
	case what == "submit", what == "recover":
		return p != protocol.PointLastChecked
	}
	return true
}

// open starts a process of the gate.
func (d *desk) open() {
	var err error
	d.dead, d.poisoned = false, false
	if d.drain, err = d.on.drain(); err != nil {
		d.t.Fatal(err)
	}
	d.gate, err = protocol.Open(context.Background(), protocol.Config{
		Namespace: namespace, Journal: d.on.owner(d.clock.Now, d.at), Authority: d.on.follower(d.clock.Now), Drain: d.drain,
		Clock: d.clock, Trace: d.at, People: map[string]ed25519.PublicKey{person: d.person.Public().(ed25519.PublicKey)},
	})
	if err != nil {
		d.t.Fatalf("the gate can't be opened: %v", err)
	}
	if err := d.gate.Register(action, d.service); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) openAuthority() {
	var err error
	if d.bytes, err = d.on.drain(); err != nil {
		d.t.Fatal(err)
	}
	if d.authority, err = protocol.OpenAuthority(d.on.principal(d.clock.Now), d.bytes, protocol.AuthorityOptions{Clock: impatient{d.clock}}); err != nil {
		d.t.Fatal(err)
	}
}

// kill ends the process where it stands. One that is just opening goes on, and
// what it still does is for nothing: only so does it give back its locks, which a
// dead process does by itself.
func (d *desk) kill() {
	d.dead = true
	if err := d.on.freeze(); err != nil {
		d.t.Fatal(err)
	}
	if d.gate != nil {
		panic(killed{})
	}
}

// shut lets go of what a dead process held.
func (d *desk) shut() {
	d.dead = true
	if d.gate != nil {
		d.gate.Close()
	}
	if d.drain != nil {
		d.drain.Close()
	}
	d.gate, d.drain = nil, nil
}

// resume starts a process on what the last one left, and may kill it, too, while
// it opens.
func (d *desk) resume() {
	again := rapid.SampledFrom([]int{-1, -1, -1, 2, 5, 9, 14}).Draw(d.t, "killed in opening at")
	for d.gate == nil || d.dead {
		d.shut()
		if d.on.moves() {
			d.closeAuthority()
		}
		if err := d.on.resume(d.lost); err != nil {
			d.t.Fatal(err)
		}
		if d.on.moves() {
			d.openAuthority()
		}
		d.events = nil
		if again >= 0 {
			d.events = []event{{again, "kill"}}
		}
		d.open()
		if d.dead {
			d.n["kills in opening"]++
		}
		again = -1
	}
	d.events = nil
	d.learn()
}

// lost says how much of a file's unsynced end a kill takes.
func (d *desk) lost(unsynced int) int {
	switch rapid.SampledFrom([]string{"all", "nothing", "some"}).Draw(d.t, "unsynced bytes lost") {
	case "all":
		return unsynced
	case "nothing":
		return 0
	}
	return rapid.IntRange(1, unsynced).Draw(d.t, "of them")
}

func (d *desk) restart() {
	if err := d.on.freeze(); err != nil {
		d.t.Fatal(err)
	}
	d.n["restarts"]++
	d.dead = true
	d.resume()
}

func (d *desk) wait() {
	d.clock.advance(time.Duration(rapid.SampledFrom([]int{1, 4, 20, 31, 3600, 80000}).Draw(d.t, "seconds")) * time.Second)
}

// turn changes a fact.
func (d *desk) turn() {
	d.n["facts changed"]++
	if rapid.Bool().Draw(d.t, "refunded") {
		d.service.facts["refunded"] = rapid.SampledFrom([]string{"0", "20"}).Draw(d.t, "to")
		return
	}
	d.service.facts["eligible"] = rapid.SampledFrom([]string{"true", "true", "true", "false"}).Draw(d.t, "to")
}

// unkind says how the service treats the next requests.
func (d *desk) unkind() {
	late := 29
	if can := d.service.can; can.LandingBound == 0 {
		late = 40000
	}
	all := []manner{
		{name: "answer lost"}, {name: "never arrives", lost: true}, {name: "late"}, {name: "late"},
		{name: "not sent", lost: true, says: protocol.NotSent}, {name: "429", lost: true, says: protocol.NotExecuted},
		{name: "rejected", lost: true, says: protocol.Rejected}, {name: "500 after it was applied", fails: true},
		{name: "500", lost: true},
		{name: "refuses connections"}, {name: "lookup fails"}, {name: "reads fail"},
	}
	how := all[rapid.IntRange(0, len(all)-1).Draw(d.t, "manner")]
	d.t.Logf("the service: %s", how.name)
	d.n["service: "+how.name]++
	switch how.name {
	case "refuses connections":
		d.service.deaf = 1
	case "lookup fails":
		d.service.mute = 1
	case "reads fail":
		d.service.blind = 1
	case "late":
		how.late = time.Duration(rapid.IntRange(1, late).Draw(d.t, "seconds late")) * time.Second
		fallthrough
	default:
		d.service.next = append(d.service.next, how)
	}
}

func (d *desk) breakDisk() {
	after := rapid.SampledFrom([]disk.After{disk.Kept, disk.Zeros, disk.Old, disk.Half}).Draw(d.t, "a failed sync leaves")
	if !d.on.fail(rapid.IntRange(1, 20).Draw(d.t, "call of the disk"), after) {
		d.t.Skip()
	}
}

// decide is what an agent proposes, on what it sees now. Few of them are wrong.
func (d *desk) decide() protocol.Proposal {
	p := protocol.Proposal{
		Request: rapid.SampledFrom(requests).Draw(d.t, "request"), Agent: agent, Lease: d.lease, Budget: d.budget,
		Effect: protocol.Effect{Action: action, Payload: fmt.Appendf(nil, `{"amount":%d,"order":"881"}`,
			rapid.SampledFrom([]int{20, 20, 20, 15, 30}).Draw(d.t, "amount"))},
	}
	switch rapid.IntRange(0, 19).Draw(d.t, "oddity") {
	case 0:
		p.Agent = "agent-9"
	case 1:
		p.Lease = "L-nobody-granted"
	}
	eligible := protocol.Premise{Name: "eligible", Seen: json.RawMessage(d.service.facts["eligible"]), Holds: protocol.Equals, Want: json.RawMessage("true")}
	if d.service.can.Conditional {
		eligible.Holds = protocol.ByTarget
	}
	p.Premises = []protocol.Premise{eligible, {Name: "refunded", Whose: "others", Seen: json.RawMessage(d.service.facts["refunded"]), Holds: protocol.Unchanged}}
	for i := range p.Premises {
		p.Premises[i].At = d.clock.Now()
	}
	return p
}

func (d *desk) submit(p protocol.Proposal) {
	d.n["submits"]++
	heard := d.beliefs.of(effectID(p.Request)).heard
	d.calls = append(d.calls, p)
	got, err := d.gate.Submit(context.Background(), p)
	d.calls = d.calls[:len(d.calls)-1]
	if d.failed(err) {
		return
	}
	b := d.beliefs.of(got.Effect)
	b.maybe = nil
	if b.heard == heard {
		d.told(got, &p)
	}
}

func (d *desk) recovers(wait bool) {
	d.n["recoveries"]++
	heard := map[journal.ID]int{}
	for id, b := range d.beliefs {
		heard[id] = b.heard
	}
	results, err := d.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: wait})
	for _, got := range results {
		if d.beliefs.of(got.Effect).heard == heard[got.Effect] { // else it was made before what others heard since
			d.told(got, nil)
		}
	}
	d.failed(err)
}

// failed reports an error, which only a broken disk may give. A call that begins
// behind it finds the journal poisoned (I11).
func (d *desk) failed(err error) bool {
	if err == nil {
		return false
	}
	if !d.broken(err) {
		d.t.Fatalf("an error without a cause: %v", err)
	}
	d.n["errors of the disk"]++
	d.poisoned = d.poisoned || errors.Is(err, journal.ErrPoisoned)
	return true
}

func (d *desk) broken(err error) bool {
	f, ok := d.on.(*files)
	return ok && f.decided.Fault != nil && f.decided.Ops() >= f.decided.Fault.Op &&
		(errors.Is(err, journal.ErrPoisoned) || errors.Is(err, f.decided.Fault.Err))
}

func (d *desk) grant(replaces string) {
	d.granted++
	l := protocol.Lease{
		ID: fmt.Sprintf("L-%d", d.granted), Principal: "finance", Holder: agent, Actions: []string{action},
		Limits: []protocol.Limit{{Field: "amount", Max: rapid.SampledFrom([]string{"20", "20", "30"}).Draw(d.t, "limit")}},
		Uses:   rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(d.t, "uses"), Expires: d.clock.Now().Add(30 * 24 * time.Hour), Replaces: replaces,
	}
	if old := d.leases[replaces]; old != nil {
		l.Limits, l.Uses, l.Expires = old.Limits, old.Uses, old.Expires
	}
	err := d.authority.Grant(context.Background(), l)
	var refused *protocol.LeaseError
	if errors.As(err, &refused) && replaces != "" && !d.leases.renewable(replaces) {
		return
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.leases.grant(l)
	d.lease = l.ID
}

func (d *desk) renew() {
	d.n["renewals"]++
	d.grant(d.lease)
}

// revoke ends the agent's lease; sometimes it is given another.
func (d *desk) revoke() {
	d.n["revocations"]++
	v, err := d.authority.Revoke(context.Background(), d.lease, protocol.RevokeOptions{Journal: d.on.reader(d.clock.Now)})
	var undecided *protocol.UndecidedError
	if err != nil && !errors.As(err, &undecided) && !d.failed(err) {
		d.t.Fatal(err)
	}
	d.leases.revoke(d.lease)
	if err == nil {
		d.inDoubt(v)
	}
	if rapid.Bool().Draw(d.t, "approved again") {
		d.grant("")
	}
}

// resolve is a person who waits until nothing can land any more, looks into the
// service's own books, and says what is so.
func (d *desk) resolve() {
	open, err := d.gate.Report(context.Background())
	if d.failed(err) {
		return
	}
	waits := open[:0]
	for _, o := range open {
		if o.Standing == "ambiguous" {
			waits = append(waits, o)
		}
	}
	if len(waits) == 0 {
		d.t.Skip()
	}
	of := waits[rapid.IntRange(0, len(waits)-1).Draw(d.t, "effect")].Effect
	for d.service.pending[of] > 0 {
		d.clock.advance(time.Second)
	}
	receipt, err := d.gate.Receipt(context.Background(), of)
	if d.failed(err) {
		return
	}
	r, err := protocol.SignResolution(d.person, protocol.Resolution{
		Namespace: namespace, Effect: of, Question: *receipt.Question, Landed: len(d.service.landings(of)) > 0,
		Person: person, Evidence: "the ledger", At: d.clock.Now(),
	})
	if err != nil {
		d.t.Fatal(err)
	}
	b := d.beliefs.of(of)
	b.closing = !r.Landed
	got, err := d.gate.Resolve(context.Background(), r)
	if d.failed(err) {
		return
	}
	d.n["resolutions"]++
	b.closed, b.closing = b.closed || b.closing, false
	d.told(got, nil)
}
