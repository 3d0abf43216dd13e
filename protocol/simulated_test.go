package protocol_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// simulatedClock stands still until somebody waits; what is due on the way
// happens then.
type simulatedClock struct {
	mu   sync.Mutex
	mono time.Duration
	skew time.Duration
	due  []simulatedEvent
}

type simulatedEvent struct {
	at time.Duration
	do func()
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (c *simulatedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return epoch.Add(c.mono + c.skew)
}

func (c *simulatedClock) Mono() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mono
}

func (c *simulatedClock) Wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.advance(d)
	return ctx.Err()
}

func (c *simulatedClock) Timeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

func (c *simulatedClock) after(d time.Duration, do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = append(c.due, simulatedEvent{c.mono + d, do})
	slices.SortStableFunc(c.due, func(a, b simulatedEvent) int { return int(a.at - b.at) })
}

func (c *simulatedClock) advance(d time.Duration) {
	c.mu.Lock()
	end := c.mono + max(d, 0)
	for len(c.due) > 0 && c.due[0].at <= end {
		e := c.due[0]
		c.due, c.mono = c.due[1:], e.at
		c.mu.Unlock()
		e.do()
		c.mu.Lock()
	}
	c.mono = end
	c.mu.Unlock()
}

// simulatedDisk is a directory in memory that forgets, at a crash, what was not
// synced.
type simulatedDisk struct {
	mu    sync.Mutex
	files map[string]*simulatedFile
	kept  map[string]bool // names whose creation was synced
	bad   error           // what a sync of a file fails with
}

type simulatedFile struct {
	disk           *simulatedDisk
	bytes, durable []byte
}

func newDisk() *simulatedDisk {
	return &simulatedDisk{files: map[string]*simulatedFile{}, kept: map[string]bool{}}
}

func (d *simulatedDisk) List() (map[string]int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := map[string]int64{}
	for name, f := range d.files {
		list[name] = int64(len(f.bytes))
	}
	return list, nil
}

func (d *simulatedDisk) Open(name string, create bool) (journal.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.files[name]
	if create == ok {
		if create {
			return nil, fs.ErrExist
		}
		return nil, fs.ErrNotExist
	}
	if !ok {
		f = &simulatedFile{disk: d}
		d.files[name] = f
	}
	return f, nil
}

func (d *simulatedDisk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.files, name)
	return nil
}

func (d *simulatedDisk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.kept)
	for name := range d.files {
		d.kept[name] = true
	}
	return nil
}

func (d *simulatedDisk) crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, f := range d.files {
		if !d.kept[name] {
			delete(d.files, name)
			continue
		}
		f.bytes = slices.Clone(f.durable)
	}
}

func (f *simulatedFile) ReadAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if off >= int64(len(f.bytes)) {
		return 0, io.EOF
	}
	n := copy(p, f.bytes[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *simulatedFile) WriteAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if need := off + int64(len(p)); need > int64(len(f.bytes)) {
		f.bytes = append(f.bytes, make([]byte, need-int64(len(f.bytes)))...)
	}
	return copy(f.bytes[off:], p), nil
}

func (f *simulatedFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.bad != nil {
		return f.disk.bad
	}
	f.durable = slices.Clone(f.bytes)
	return nil
}

func (f *simulatedFile) Truncate(size int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.bytes = f.bytes[:size]
	return nil
}

func (f *simulatedFile) Close() error { return nil }

// simulatedService is a target with a ledger. What it does with the n-th request
// is scripted; beyond the script it applies and answers.
type simulatedService struct {
	can   protocol.Capabilities
	clock *simulatedClock

	mu      sync.Mutex
	ledger  []simulatedLanding
	keys    map[journal.ID]time.Duration // when a key was taken
	failed  map[journal.ID]bool          // keys that replay a failure
	fences  map[journal.ID]journal.Token
	facts   map[string]string
	script  []simulatedAnswer
	sent    []simulatedSend
	asked   int
	dials   int
	open    int   // connections that nobody has given up
	refuse  int   // dials to refuse
	lookup  error // what a lookup fails with
	fence   error
	observe func(name string) error
	value   func(protocol.Premise) (string, bool) // another value than the fact's
	asking  func()                                // between the question of a lookup and its answer
	hook    func(step string)                     // "prepare", "observe", "send", "applied", "lookup", "fence"
}

// newSimulatedService is a service of tier 1 with a clock of its own.
func newSimulatedService() *simulatedService {
	return &simulatedService{
		can: tier1(), clock: &simulatedClock{}, keys: map[journal.ID]time.Duration{}, failed: map[journal.ID]bool{},
		fences: map[journal.ID]journal.Token{}, facts: map[string]string{"eligible": "true", "refunded": "0"},
	}
}

type simulatedLanding struct {
	effect  journal.ID
	payload string
	at      time.Duration
}

type simulatedSend struct {
	protocol.Request
	protocol.Envelope
}

type simulatedAnswer struct {
	lost  bool          // never arrives
	late  time.Duration // applied that much later
	says  protocol.Answer
	fails bool // applied, and the key replays a failure from then on
	does  func()
}

// answers that a script is made of.
var (
	applies    = simulatedAnswer{says: protocol.Answer{Outcome: protocol.Done}}
	ackLost    = simulatedAnswer{}
	neverLands = simulatedAnswer{lost: true}
)

func lands(late time.Duration) simulatedAnswer { return simulatedAnswer{late: late} }

func says(o protocol.Outcome) simulatedAnswer {
	return simulatedAnswer{lost: true, says: protocol.Answer{Outcome: o, Reason: "scripted"}}
}

func (s *simulatedService) step(name string) {
	if s.hook != nil {
		s.hook(name)
	}
}

func (s *simulatedService) Capabilities() protocol.Capabilities { return s.can }

func (s *simulatedService) Prepare(ctx context.Context, r protocol.Request) (protocol.Attempt, error) {
	s.step("prepare")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials++
	if s.refuse > 0 {
		s.refuse--
		return nil, errors.New("connection refused")
	}
	s.open++
	return &simulatedConnection{s: s, r: r}, nil
}

type simulatedConnection struct {
	s    *simulatedService
	r    protocol.Request
	once sync.Once
}

func (c *simulatedConnection) Close() error {
	c.once.Do(func() {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		c.s.open--
	})
	return nil
}

func (c *simulatedConnection) Send(ctx context.Context, e protocol.Envelope) protocol.Answer {
	s := c.s
	s.step("send")
	s.mu.Lock()
	s.sent = append(s.sent, simulatedSend{c.r, e})
	a := applies
	if len(s.script) > 0 {
		a, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()
	if a.does != nil {
		a.does()
	}
	for _, p := range c.r.Premises {
		if s.fact(p.Name) != string(p.Seen) {
			return protocol.Answer{Outcome: protocol.PremiseFailed, Premise: p.Name, Reason: "412"}
		}
	}
	s.mu.Lock()
	if s.can.DedupWindow > 0 && s.failed[c.r.Effect] && s.knows(c.r.Effect) {
		s.mu.Unlock()
		return protocol.Answer{Replayed: true, Reason: "500, replayed"}
	}
	s.mu.Unlock()
	switch {
	case a.lost:
	case a.late > 0:
		s.clock.after(a.late, func() { s.apply(c.r, e.Token) })
	default:
		s.apply(c.r, e.Token)
		s.step("applied")
	}
	if a.fails {
		s.mu.Lock()
		s.failed[c.r.Effect], s.keys[c.r.Effect] = true, s.clock.Mono()
		s.mu.Unlock()
	}
	if a.says.Outcome == protocol.Done && a.says.Result == nil {
		a.says.Result = json.RawMessage(`{"id":"re_1","state":"succeeded"}`)
	}
	return a.says
}

func (s *simulatedService) knows(id journal.ID) bool {
	at, ok := s.keys[id]
	return ok && s.clock.Mono() < at+s.can.DedupWindow
}

// apply applies a request unless its key or a fence says that it may not: both
// are looked at as it lands (C32).
func (s *simulatedService) apply(r protocol.Request, t journal.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.can.DedupWindow > 0 && s.knows(r.Effect) || s.can.Fencing && t.Less(s.fences[r.Effect]) {
		return
	}
	s.keys[r.Effect] = s.clock.Mono()
	s.ledger = append(s.ledger, simulatedLanding{r.Effect, string(r.Payload), s.clock.Mono()})
}

func (s *simulatedService) Lookup(ctx context.Context, r protocol.Request) (protocol.Finding, error) {
	s.step("lookup")
	found, err := s.find(r)
	if s.asking != nil {
		s.asking()
	}
	return found, err
}

// without is an object without some of its top-level fields.
func without(object string, fields []string) string {
	var members map[string]json.RawMessage
	if len(fields) == 0 || json.Unmarshal([]byte(object), &members) != nil {
		return object
	}
	for _, name := range fields {
		delete(members, name)
	}
	text, _ := json.Marshal(members)
	return string(text)
}

func (s *simulatedService) find(r protocol.Request) (protocol.Finding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.lookup != nil {
		return protocol.Finding{}, s.lookup
	}
	for _, l := range s.ledger {
		age := s.clock.Mono() - l.at
		if l.effect == r.Effect && age >= s.can.LookupLag && (s.can.LookupWindow == 0 || age < s.can.LookupWindow) {
			same := without(l.payload, r.Withheld) == without(string(r.Payload), r.Withheld)
			return protocol.Finding{Landed: true, Same: same, Result: json.RawMessage(l.payload)}, nil
		}
	}
	return protocol.Finding{}, nil
}

func (s *simulatedService) Observe(ctx context.Context, p protocol.Premise, r protocol.Request) (json.RawMessage, error) {
	s.step("observe")
	if s.observe != nil {
		if err := s.observe(p.Name); err != nil {
			return nil, err
		}
	}
	if s.value != nil {
		if v, ok := s.value(p); ok {
			return json.RawMessage(v), nil
		}
	}
	return json.RawMessage(s.fact(p.Name)), nil
}

func (s *simulatedService) Fence(ctx context.Context, id journal.ID, t journal.Token) error {
	s.step("fence")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fence != nil {
		return s.fence
	}
	if !s.fences[id].Less(t) {
		return fmt.Errorf("token %s is not above %s", t, s.fences[id])
	}
	s.fences[id] = t
	return nil
}

func (s *simulatedService) fact(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.facts[name]
}

func (s *simulatedService) set(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts[name] = value
}

func (s *simulatedService) landings(id journal.ID) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.ledger {
		if l.effect == id {
			n++
		}
	}
	return n
}

// The profiles of the refund desk.
func tier1() protocol.Capabilities {
	return protocol.Capabilities{
		ClientTimeout: 10 * time.Second, DedupWindow: 24 * time.Hour, DedupMargin: 2 * time.Hour,
		Lookup: true, LandingBound: 30 * time.Second,
	}
}

func tier2() protocol.Capabilities {
	return protocol.Capabilities{ClientTimeout: 10 * time.Second, Lookup: true, LandingBound: 30 * time.Second}
}

func tier3() protocol.Capabilities { return protocol.Capabilities{ClientTimeout: 10 * time.Second} }

const namespace = "desk"

// rig is a gate with a service, an authority and a clock, whose process can die.
type rig struct {
	testing.TB
	clock     *simulatedClock
	disk      *simulatedDisk
	service   *simulatedService
	dir       string
	drain     *journal.Drain
	authority *protocol.Authority
	gate      *protocol.Gate
	store     func(journal.Store) journal.Store // wraps the gate's journal
	margin    time.Duration
	restored  bool     // the journal is opened as restored from a backup
	keys      [][]byte // for secrets
	onDisk    bool     // the journal is on the real disk

	dead   bool
	onStep func(p string) // every point, and every step of the service
	mu     sync.Mutex
	passed map[trace.Point]bool
	person ed25519.PrivateKey
}

type killed struct{}

func newRig(t testing.TB, can protocol.Capabilities) *rig {
	t.Helper()
	clock := &simulatedClock{}
	r := &rig{
		TB: t, clock: clock, disk: newDisk(), dir: t.TempDir(), passed: map[trace.Point]bool{},
		service: newSimulatedService(),
		person:  ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)),
	}
	r.service.can, r.service.clock = can, clock
	r.service.hook = func(step string) { r.step("service/" + step) }
	var err error
	r.authority, err = protocol.OpenAuthority(journal.FileOpener(r.path("authority"), journal.Options{
		Mode: journal.Appender, Namespace: namespace, Now: clock.Now,
	}), r.openDrain(), protocol.AuthorityOptions{Clock: clock, Trace: r.pass})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.authority.Close() })
	r.open()
	r.grant(lease("L-refund"))
	return r
}

func (r *rig) path(name string) string {
	dir := filepath.Join(r.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		r.Fatal(err)
	}
	return dir
}

func (r *rig) openDrain() *journal.Drain {
	d, err := journal.OpenDrain(r.path("authority"))
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { d.Close() })
	return d
}

func (r *rig) pass(p trace.Point, _ string) {
	r.mu.Lock()
	r.passed[p] = true
	r.mu.Unlock()
	r.step(string(p))
}

func (r *rig) step(p string) {
	if r.onStep != nil && !r.dead {
		r.onStep(p)
	}
}

// open starts a process of the gate.
func (r *rig) open() {
	r.Helper()
	r.dead, r.drain = false, r.openDrain()
	at := trace.Func(r.pass)
	open := journal.FileOpener(r.path("journal"), r.on(journal.Options{Namespace: namespace, Now: r.clock.Now, Trace: at, Restored: r.restored}))
	wrapped := func(apply func(journal.Entry) error) (journal.Store, error) {
		s, err := open(apply)
		if err == nil && r.store != nil {
			s = r.store(s)
		}
		return s, err
	}
	gate, err := protocol.Open(context.Background(), protocol.Config{
		Namespace: namespace, Journal: wrapped, Drain: r.drain, Clock: r.clock, Trace: at, ClockMargin: r.margin,
		Authority:  journal.FileOpener(r.path("authority"), journal.Options{Mode: journal.Reader, Namespace: namespace, Now: r.clock.Now}),
		SecretKeys: r.keys,
		People:     map[string]ed25519.PublicKey{"ruth": r.person.Public().(ed25519.PublicKey)},
	})
	if err != nil {
		r.Fatal(err)
	}
	if err := gate.Register("refund", r.service); err != nil {
		r.Fatal(err)
	}
	r.gate = gate
	r.Cleanup(func() { gate.Close() })
}

// kill ends the gate's process: what was not synced is gone.
func (r *rig) kill() {
	r.dead = true
	r.gate.Close()
	r.drain.Close()
	r.disk.crash()
}

// restart is a kill and another start.
func (r *rig) restart() {
	r.Helper()
	r.kill()
	r.onStep = nil
	r.open()
}

// dies runs f, in which the process is to be killed when a point is passed.
func (r *rig) dies(at string, f func()) {
	r.Helper()
	r.onStep = func(p string) {
		if p == at {
			r.dead = true
			panic(killed{})
		}
	}
	if !r.run(f) {
		r.Fatalf("%s was never passed", at)
	}
	r.restart()
}

// run calls f and reports whether the process was killed in it.
func (r *rig) run(f func()) (died bool) {
	defer func() {
		if v := recover(); v != nil {
			if _, ok := v.(killed); !ok {
				panic(v)
			}
			died = true
		}
	}()
	f()
	return false
}

// once calls f when a point is passed for the first time.
func (r *rig) once(at string, f func()) {
	r.onStep = func(p string) {
		if p == at {
			r.onStep = nil
			f()
		}
	}
}

func lease(id string) protocol.Lease {
	return protocol.Lease{
		ID: id, Principal: "finance", Holder: "agent-7", Actions: []string{"refund"},
		Limits:  []protocol.Limit{{Field: "amount", Max: "20"}},
		Expires: epoch.AddDate(0, 0, 30),
	}
}

func (r *rig) grant(l protocol.Lease) {
	r.Helper()
	if err := r.authority.Grant(context.Background(), l); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) revoke(id string) protocol.Revocation {
	r.Helper()
	v, err := r.authority.Revoke(context.Background(), id, protocol.RevokeOptions{Journal: r.reader(), Deadline: time.Minute})
	if err != nil {
		r.Fatal(err)
	}
	return v
}

func (r *rig) reader() journal.Opener {
	return journal.FileOpener(r.path("journal"), r.on(journal.Options{Mode: journal.Reader, Namespace: namespace, Now: r.clock.Now}))
}

// on is o with the disk that the journal is on.
func (r *rig) on(o journal.Options) journal.Options {
	if !r.onDisk {
		o.Dir = r.disk
	}
	return o
}

// proposal is a refund as the agent decides it on what it sees now.
func (r *rig) proposal(request string, amount int) protocol.Proposal {
	now := r.clock.Now()
	return protocol.Proposal{
		Request: request, Agent: "agent-7", Lease: "L-refund",
		Premises: []protocol.Premise{
			{Name: "eligible", Seen: json.RawMessage(r.service.fact("eligible")), At: now, Holds: protocol.Equals, Want: json.RawMessage("true")},
			{Name: "refunded", Whose: "others", Seen: json.RawMessage(r.service.fact("refunded")), At: now, Holds: protocol.Unchanged},
		},
		Effect: protocol.Effect{Action: "refund", Payload: fmt.Appendf(nil, `{"order":"881","amount":%d}`, amount)},
	}
}

func id(request string) journal.ID { return protocol.EffectID(namespace, request, 0) }

func (r *rig) submit(p protocol.Proposal) protocol.Result {
	r.Helper()
	result, err := r.gate.Submit(context.Background(), p)
	if err != nil {
		r.Fatal(err)
	}
	return result
}

// recover recovers, and returns the one result there is.
func (r *rig) recover(wait bool) protocol.Result {
	r.Helper()
	results, err := r.gate.Recover(context.Background(), protocol.RecoverOptions{Wait: wait})
	if err != nil {
		r.Fatal(err)
	}
	if len(results) != 1 {
		r.Fatalf("recover gave %d results, want 1", len(results))
	}
	return results[0]
}

// want checks a status, that the receipt says the same where it can, and how
// often the effect landed.
func (r *rig) want(got protocol.Result, status string, landings int) {
	r.Helper()
	if got.Status.String() != status {
		r.Errorf("status %s, want %s (%v)\n%s", got.Status, status, got.Err, got.Receipt)
	}
	if n := r.service.landings(got.Effect); n != landings {
		r.Errorf("it landed %d times, want %d", n, landings)
	}
	switch exec := got.Receipt.Executed.Is; {
	case exec == protocol.Yes && landings == 0, exec == protocol.No && landings > 0:
		r.Errorf("the receipt says executed: %s, and it landed %d times\n%s", exec, landings, got.Receipt)
	}
}

func (r *rig) kinds(effect journal.ID) (kinds []journal.Kind) {
	r.Helper()
	store, err := r.reader()(func(journal.Entry) error { return nil })
	if err != nil {
		r.Fatal(err)
	}
	defer store.Close()
	entries, err := protocol.EntriesOf(store, effect)
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range entries {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (d *simulatedDisk) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bad = err
}

// last is the segment written last.
func (d *simulatedDisk) last() *simulatedFile {
	names := slices.Sorted(maps.Keys(d.files))
	return d.files[names[len(names)-1]]
}

func (d *simulatedDisk) size() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.last().bytes)
}

// rot makes what was written last unreadable, but for the first n bytes of the
// segment that it is in.
func (d *simulatedDisk) rot(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(d.files))) {
		if f := d.files[name]; len(f.bytes) > n {
			for i := range f.bytes[n:] {
				f.bytes[n+i] = 0xff
			}
			f.durable = slices.Clone(f.bytes)
			return
		}
	}
}
