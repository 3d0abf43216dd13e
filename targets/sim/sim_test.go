package sim_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/protocol/wire"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

func profile(t *testing.T, name string, edit func(*sim.Profile)) sim.Profile {
	t.Helper()
	p, ok := sim.ProfileNamed(name)
	if !ok {
		t.Fatalf("there is no profile %q", name)
	}
	if edit != nil {
		edit(&p)
	}
	return p
}

// step is one thing that is done to the service and what it says.
type step struct {
	do   func(w *world) string
	want string
}

// The steps of the tables below.
func ask(want string) step { return step{func(w *world) string { return w.refund(nil) }, want} }
func askFor(edit func(*sim.Refund), want string) step {
	return step{func(w *world) string { return w.refund(edit) }, want}
}
func look(want string) step { return step{func(w *world) string { return w.found() }, want} }
func do(f func(w *world)) step {
	return step{func(w *world) string { f(w); return "" }, ""}
}
func sleep(d time.Duration) step { return do(func(w *world) { w.sleep(d) }) }
func next(f sim.Fault) step      { return do(func(w *world) { w.Next(f, 1) }) }
func delay(d time.Duration) step { return do(func(w *world) { w.DelayNext(d, 1) }) }
func kill(p trace.Point) step    { return do(func(w *world) { w.killAt(p) }) }
func byHand(caseID string, cents int64) step {
	return step{func(w *world) string {
		if err := w.RefundByHand(order, caseID, cents); err != nil {
			return "refused"
		}
		return ""
	}, ""}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestService(t *testing.T) {
	other := func(r *sim.Refund) { r.Amount = 3000 }
	noKey := func(r *sim.Refund) { r.Key = "" }
	token := func(s string) func(*sim.Refund) { return func(r *sim.Refund) { r.Token = s; r.Key = "" } }
	given := func(name, value string) func(*sim.Refund) {
		return func(r *sim.Refund) { r.Premises = map[string]json.RawMessage{name: raw(value)} }
	}
	onAcceptance := func(p *sim.Profile) { p.KeyOnAcceptance = true }
	conditional := func(p *sim.Profile) { p.Conditional = true }
	fencing := func(p *sim.Profile) { p.Fencing = true }
	for _, tc := range []struct {
		name    string
		profile string
		edit    func(*sim.Profile)
		steps   []step
		money   int64
		why     string
	}{
		// Keys.
		{"repeat", "t1", nil, []step{ask("200 ok"), ask("200 already_processed replayed")}, 2000, "the key absorbs it"},
		{"repeat without keys", "t2", nil, []step{ask("200 ok"), ask("200 ok")}, 4000, "the service ignores keys"},
		{"repeat without a key", "t1", nil, []step{askFor(noKey, "200 ok"), askFor(noKey, "200 ok")}, 4000, "there is nothing to tell them apart"},
		{"other params", "t1", nil, []step{ask("200 ok"), askFor(other, "422 key_reused_with_different_params"), ask("200 already_processed replayed")}, 2000, "the first request keeps the key"},
		{"last instant of the window", "t1", nil, []step{ask("200 ok"), sleep(24 * time.Hour), ask("200 already_processed replayed")}, 2000, "the window includes its end"},
		{"after the window", "t1", nil, []step{ask("200 ok"), sleep(24*time.Hour + 1), ask("200 ok")}, 4000, "a pruned key is a new request, without a sign of it"},
		{"a repeat doesn't prolong", "t1", nil, []step{ask("200 ok"), sleep(23 * time.Hour), ask("200 already_processed replayed"), sleep(2 * time.Hour), ask("200 ok")}, 4000, "the window runs from the first"},
		{"forgotten", "t1", nil, []step{ask("200 ok"), do(func(w *world) { w.ForgetKeys() }), ask("200 ok")}, 4000, "a service may forget early"},
		{"error after applying", "t1", nil, []step{next(sim.ErrorAfterApply), ask("500 server_error"), ask("500 server_error replayed"), look("landed 2000")}, 2000, "the stored error is replayed (C11)"},
		{"error after applying, no keys", "t2", nil, []step{next(sim.ErrorAfterApply), ask("500 server_error"), ask("200 ok")}, 4000, "nothing is stored"},
		{"final no is not kept", "t1", nil, []step{byHand(caseID, 9000), ask("422 over_refund"), ask("422 over_refund")}, 9000, "judged anew"},
		{"final no is kept", "t1", func(p *sim.Profile) { p.KeepErrors = true }, []step{
			askFor(func(r *sim.Refund) { r.Order = "882" }, "404 unknown_order"), do(func(w *world) { w.SetOrder("882", true, 10000, "") }),
			askFor(func(r *sim.Refund) { r.Order = "882" }, "404 unknown_order replayed")}, 0, "also after its cause is gone"},
		{"in progress", "t1", onAcceptance, []step{delay(10 * time.Second), ask("unknown"), ask("409 in_progress after 1s"), askFor(other, "422 key_reused_with_different_params"),
			sleep(10 * time.Second), ask("200 already_processed replayed")}, 2000, "the key is taken on acceptance"},
		{"two under way", "t1", nil, []step{delay(10 * time.Second), ask("unknown"), ask("200 ok"), sleep(10 * time.Second)}, 2000, "the key is taken with the landing: the later one is absorbed"},
		{"window from acceptance", "t1", onAcceptance, []step{delay(20 * time.Second), ask("unknown"), sleep(24*time.Hour - timeout), ask("200 already_processed replayed"), sleep(1), ask("200 ok")}, 4000, "the landing doesn't prolong it"},
		{"claims to be in progress", "t1", nil, []step{next(sim.ClaimInProgress), ask("409 in_progress after 1s"), ask("200 ok")}, 2000, "nothing was done by the first"},
		{"discarded key", "t1", onAcceptance, []step{delay(31 * time.Second), ask("unknown"), sleep(31 * time.Second), ask("200 ok")}, 2000, "a discarded request gives its key back"},

		// Lookup.
		{"found", "t2", nil, []step{look("absent"), ask("200 ok"), look("landed 2000")}, 2000, "no lag"},
		{"found twice", "t2", nil, []step{ask("200 ok"), ask("200 ok"), look("landed 2000 2000")}, 4000, "all of them are shown"},
		{"no lookup", "t3", nil, []step{ask("200 ok"), look("error")}, 2000, "it can't be asked"},
		{"lag", "t2", func(p *sim.Profile) { p.LookupLag = 5 * time.Second }, []step{ask("200 ok"), sleep(5*time.Second - 1), look("absent"), sleep(1), look("landed 2000")}, 2000, "stale for five seconds (C1)"},
		{"lookup window", "t2", func(p *sim.Profile) { p.LookupWindow = time.Hour }, []step{ask("200 ok"), sleep(time.Hour), look("landed 2000"), sleep(1), look("absent")}, 2000, "it has forgotten (C25)"},
		{"lookup fails", "t2", nil, []step{ask("200 ok"), next(sim.LookupFails), look("error"), next(sim.LookupMalformed), look("error"), look("landed 2000")}, 2000, "an error is no absence"},
		{"other amount", "t2", nil, []step{ask("200 ok"), next(sim.LookupOtherAmount), look("landed 2100")}, 2000, "C24"},

		// Landing.
		{"late", "t2", nil, []step{delay(30 * time.Second), ask("unknown"), sleep(28*time.Second - 1), look("absent"), sleep(1), look("landed 2000")}, 2000, "lands at the bound, long after its client has given up"},
		{"late, and its client waits", "t2", nil, []step{delay(time.Second), ask("200 ok")}, 2000, "the answer comes with the landing"},
		{"late by a decision at the point", "t2", nil, []step{do(func(w *world) {
			w.late = true
			w.on(sim.Accepted, func() bool { w.DelayNext(20*time.Second, 1); return true })
		}), ask("unknown"),
			sleep(18*time.Second - 1), look("absent"), sleep(1), look("landed 2000")}, 2000, "the first timer is out of date"},
		{"too late", "t2", nil, []step{delay(30*time.Second + 1), ask("unknown"), sleep(time.Minute), look("absent")}, 0, "older than the bound: discarded"},
		{"no bound", "t2", func(p *sim.Profile) { p.LandingBound = 0 }, []step{delay(30 * time.Hour), ask("unknown"), sleep(30 * time.Hour)}, 2000, "nothing is discarded"},
		{"killed when read", "t2", nil, []step{kill(sim.RequestRead), ask("unknown"), sleep(time.Minute)}, 0, "not accepted"},
		{"killed when accepted", "t2", nil, []step{kill(sim.Accepted), ask("unknown"), look("absent"), sleep(0), look("landed 2000")}, 2000, "lands when the clock moves"},
		{"killed when accepted, asked again", "t1", nil, []step{kill(sim.Accepted), ask("unknown"), ask("200 ok"), sleep(time.Minute)}, 2000, "the first is absorbed"},
		{"killed when applied", "t1", nil, []step{kill(sim.Applied), ask("unknown"), ask("200 already_processed replayed")}, 2000, "landed, and the answer is lost"},
		{"killed when answered", "t1", nil, []step{kill(sim.AnswerReady), ask("unknown"), ask("200 already_processed replayed")}, 2000, "the same to the client"},
		{"queue kept", "t2", nil, []step{do(func(w *world) { w.on(sim.Accepted, func() bool { w.Down(sim.KeepQueue); return true }) }), ask("unknown"), ask("not sent"),
			sleep(time.Second), do(func(w *world) { w.Up() }), look("absent"), sleep(0), look("landed 2000")}, 2000, "up again, the service may be asked before it replays its queue (C16)"},
		{"queue kept too long", "t2", nil, []step{delay(20 * time.Second), ask("unknown"), do(func(w *world) { w.Down(sim.KeepQueue) }), sleep(time.Minute), do(func(w *world) { w.Up() }), sleep(time.Minute)}, 0, "the bound covers the outage"},
		{"queue kept, timer late", "t2", nil, []step{do(func(w *world) { w.late = true }), delay(20 * time.Second), ask("unknown"), do(func(w *world) { w.Down(sim.KeepQueue) }), sleep(20 * time.Second),
			do(func(w *world) { w.Up() }), look("absent"), sleep(0), look("landed 2000")}, 2000, "nothing lands in a dead service"},
		{"queue lost, timer late", "t2", nil, []step{do(func(w *world) { w.late = true }), delay(20 * time.Second), ask("unknown"), do(func(w *world) { w.Down(sim.LoseQueue); w.Up() }), sleep(20 * time.Second), look("absent")}, 0, "what is lost doesn't land"},
		{"queue lost", "t1", onAcceptance, []step{delay(20 * time.Second), ask("unknown"), do(func(w *world) { w.Down(sim.LoseQueue) }), do(func(w *world) { w.Up() }), ask("200 ok"), sleep(time.Minute)}, 2000, "and its key with it"},
		{"down", "t3", nil, []step{do(func(w *world) { w.Down(sim.KeepQueue) }), ask("not sent"), do(func(w *world) { w.Up() }), ask("200 ok")}, 2000, "refused, then not"},
		{"down while the client connects", "t3", nil, []step{do(func(w *world) { w.on(sim.BeforeSend, func() bool { w.Down(sim.KeepQueue); return true }) }), ask("not sent")}, 0, "the last look before the first byte sees it"},
		{"down when applied", "t1", nil, []step{do(func(w *world) { w.on(sim.Applied, func() bool { w.Down(sim.KeepQueue); return true }) }), ask("unknown"), do(func(w *world) { w.Up() }), ask("200 already_processed replayed")}, 2000, "the ledger survives"},
		{"down while the client waits", "t1", nil, []step{do(func(w *world) { w.After(time.Second, "", func() { w.Down(sim.KeepQueue) }) }), next(sim.DropAnswer), ask("unknown")}, 2000, "a held answer dies with its connection"},

		// Answers that don't come, and temporary ones.
		{"answer dropped", "t1", nil, []step{next(sim.DropAnswer), ask("unknown"), ask("200 already_processed replayed")}, 2000, "landed and lost"},
		{"request lost", "t1", nil, []step{next(sim.LoseRequest), ask("unknown"), ask("200 ok")}, 2000, "never arrived: the same to the client"},
		{"temporary", "t1", nil, []step{next(sim.Unauthorized), ask("401 unauthorized"), next(sim.RateLimited), ask("429 rate_limited after 5s"),
			next(sim.ServerError), ask("500 server_error"), next(sim.Unavailable), ask("503 unavailable"), ask("200 ok")}, 2000, "none of them is stored"},

		// Final rejections.
		{"over-refund", "t3", nil, []step{askFor(func(r *sim.Refund) { r.Amount = 10001 }, "422 over_refund"), byHand("case-1", 8001), ask("422 over_refund")}, 8001, "more than is left"},
		{"unknown order", "t3", nil, []step{askFor(func(r *sim.Refund) { r.Order = "882" }, "404 unknown_order")}, 0, ""},
		{"no amount", "t1", nil, []step{askFor(func(r *sim.Refund) { r.Amount = -1 }, "400 bad_request"), ask("200 ok")}, 2000, "not executed, so not stored"},
		{"ineligible", "t1", nil, []step{do(func(w *world) { w.SetEligible(order, false) }), ask("200 ok")}, 2000, "the service doesn't check: the client must"},

		// Premises.
		{"premise holds", "t2", conditional, []step{askFor(given("eligible", "true"), "200 ok")}, 2000, ""},
		{"premise fails", "t2", conditional, []step{do(func(w *world) { w.SetEligible(order, false) }), askFor(given("eligible", "true"), "412 premise_failed eligible")}, 0, "decided with applying"},
		{"premise unknown", "t2", conditional, []step{askFor(given("weather", "1"), "412 premise_failed weather")}, 0, "what can't be checked doesn't hold"},
		{"own refund is no other", "t2", conditional, []step{askFor(given("others", "0"), "200 ok"), askFor(given("others", "0"), "200 ok")}, 4000, "the effect's own landing doesn't void it"},
		{"premise ignored", "t2", nil, []step{do(func(w *world) { w.SetEligible(order, false) }), askFor(given("eligible", "true"), "200 ok")}, 2000, "the service isn't conditional"},
		{"hand refund before applying", "t2", conditional, []step{delay(10 * time.Second), askFor(given("others", "0"), "unknown"), byHand(caseID, 2000), sleep(10 * time.Second)}, 2000, "judged as it lands, not as it was accepted"},
		{"goodwill before applying", "t2", conditional, []step{delay(10 * time.Second), askFor(given("others", "0"), "unknown"), byHand("case-9", 500), sleep(10 * time.Second)}, 2500, "another case's refund is not this one's premise"},
		{"total before applying", "t2", conditional, []step{delay(10 * time.Second), askFor(given("refunded", "0"), "unknown"), byHand("case-9", 500), sleep(10 * time.Second)}, 500, "but it is a total's"},
		{"changed and changed back", "t2", conditional, []step{
			do(func(w *world) { w.SetEligible(order, false); w.SetEligible(order, true) }),
			askFor(given("version", "1"), "412 premise_failed version"), askFor(given("eligible", "true"), "200 ok")}, 2000, "versions see it, values don't"},

		// Fences.
		{"fenced", "t2", fencing, []step{do(fence("2", nil)), askFor(token("1"), "412 fenced"), askFor(token("2"), "200 ok")}, 2000, "lesser tokens are refused"},
		{"fence before a late landing", "t2", fencing, []step{delay(10 * time.Second), askFor(token("1"), "unknown"), do(fence("2", nil)), sleep(10 * time.Second), look("absent")}, 0, "atomic with applying, not with acceptance (C32)"},
		{"fence survives", "t2", fencing, []step{do(fence("2", nil)), do(func(w *world) { w.Down(sim.LoseQueue); w.Up() }), askFor(token("1"), "412 fenced")}, 0, "it is durable"},
		{"fence of another effect", "t2", fencing, []step{do(fence("2", nil)), askFor(func(r *sim.Refund) { r.Effect = "e2"; r.Token = "1" }, "200 ok")}, 2000, "per effect (C17)"},
		{"applied token fences", "t2", fencing, []step{delay(10 * time.Second), askFor(token("1"), "unknown"), askFor(token("2"), "200 ok"), sleep(10 * time.Second)}, 2000, "an older attempt can't follow a newer"},
		{"fence goes up only", "t2", fencing, []step{do(fence("2", nil)), do(fence("1", sim.ErrFenced))}, 0, ""},
		{"no fence", "t2", nil, []step{do(fence("2", sim.ErrNoFacility)), askFor(token("1"), "200 ok")}, 2000, "the service can't"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, profile(t, tc.profile, tc.edit))
			for i, s := range tc.steps {
				if got := s.do(w); got != s.want {
					t.Fatalf("step %d: got %q, want %q: %s\n%s", i+1, got, s.want, tc.why, strings.Join(w.events, "\n"))
				}
			}
			if got := w.money(); got != tc.money {
				t.Errorf("%d cents left, want %d: %s\n%s", got, tc.money, tc.why, strings.Join(w.events, "\n"))
			}
		})
	}
}

func fence(token string, want error) func(w *world) {
	return func(w *world) {
		if err := w.client.Fence(w.t.Context(), "e1", token); !errors.Is(err, want) || want == nil && err != nil {
			w.t.Errorf("fence %s: got %v, want %v", token, err, want)
		}
	}
}

// What is recorded, in which order.
func TestHistory(t *testing.T) {
	for _, tc := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"answered", []step{ask("200 ok"), ask("200 already_processed replayed")}, "requested applied answered requested answered"},
		{"late", []step{delay(30 * time.Second), ask("unknown"), look("absent"), sleep(time.Minute)}, "requested asked applied answered"},
		{"too late", []step{delay(time.Minute), ask("unknown"), sleep(time.Minute)}, "requested discarded"},
		{"killed when applied", []step{kill(sim.Applied), ask("unknown"), ask("200 already_processed replayed")}, "requested applied requested answered"},
		{"killed when accepted", []step{kill(sim.Accepted), ask("unknown"), look("absent"), sleep(0)}, "requested asked applied"},
		{"by hand", []step{byHand(caseID, 2000), do(func(w *world) { w.SetEligible(order, false); w.ForgetKeys() })}, "applied changed changed forgot"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var first []string
			for range 3 { // the same trial gives the same history
				w := newWorld(t, profile(t, "t1", nil))
				for i, s := range tc.steps {
					if got := s.do(w); got != s.want {
						t.Fatalf("step %d: got %q, want %q", i+1, got, s.want)
					}
				}
				if got := strings.Join(w.kinds(), " "); got != tc.want {
					t.Errorf("got %s, want %s", got, tc.want)
				}
				if first == nil {
					first = w.events
				}
				if !slices.Equal(first, w.events) {
					t.Errorf("the histories differ:\n%s\n\n%s", strings.Join(first, "\n"), strings.Join(w.events, "\n"))
				}
			}
		})
	}
}

func TestPointsArePassedInOrder(t *testing.T) {
	w := newWorld(t, profile(t, "t1", nil))
	w.refund(nil)
	client, service := sim.ClientPoints(), sim.Points()
	want := slices.Concat(client[:1], service, client[1:])
	if !slices.Equal(w.points, want) {
		t.Errorf("passed %v, want %v", w.points, want)
	}
}

// Nothing is passed or recorded after a point at which the client died: its next
// start is under way already. So nothing is sent by a process that is as good as
// dead (B90).
func TestNothingFollowsADeath(t *testing.T) {
	for i, p := range sim.Points() {
		w := newWorld(t, profile(t, "t1", nil))
		w.killAt(p)
		w.refund(nil)
		want := slices.Concat(sim.ClientPoints()[:1], sim.Points()[:i+1])
		if !slices.Equal(w.points, want) {
			t.Errorf("killed at %s: passed %v, want %v", p, w.points, want)
		}
		if slices.Contains(w.kinds(), "answered") {
			t.Errorf("killed at %s: recorded %v", p, w.kinds())
		}
	}
}

func TestNotSentPassesNoPoint(t *testing.T) {
	w := newWorld(t, profile(t, "t1", nil))
	p, err := w.client.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	w.Down(sim.KeepQueue)
	for p.Peek() == nil { // the end of the connection is on its way
	}
	reply, err := p.Refund(t.Context(), sim.Refund{Order: order, Case: caseID, Amount: 2000})
	if reply.Outcome != wire.NotSent || !errors.Is(err, wire.ErrNotSent) || len(w.points) > 0 {
		t.Errorf("got %v, %v, and passed %v", reply.Outcome, err, w.points)
	}
}

func TestDownReleasesHeldAnswers(t *testing.T) {
	w := newWorld(t, profile(t, "t1", nil))
	w.After(time.Second, "", func() {
		w.Down(sim.KeepQueue)
		if n := w.hold(0); n > 0 {
			t.Errorf("%d answers are still held when Down has returned", n)
		}
	})
	w.Next(sim.DropAnswer, 1)
	if got := w.refund(nil); got != "unknown" {
		t.Errorf("got %s, want unknown", got)
	}
}

func TestLogs(t *testing.T) {
	w := newWorld(t, profile(t, "t1", nil))
	w.refund(func(r *sim.Refund) { r.Anchor = "a" })
	w.found()
	log := w.AccessLog()
	if len(log) != 2 || log[0].Number != 1 || log[0].Key != "k1" || log[1].Path != "/refunds?effect=e1" {
		t.Errorf("access log: %+v", log)
	}
	w.Ledger()[0].Amount = 1
	if got := w.Ledger()[0]; got.Amount != 2000 || got.Effect != "e1" || got.Request != 1 {
		t.Errorf("ledger: %+v", got)
	}
}

func TestOrder(t *testing.T) {
	for _, tc := range []struct {
		profile  string
		refunded int64
		version  int
		why      string
	}{
		{"t1", 2600, 5, "the refund carries the effect's own reference"},
		{"t2", 2600, 5, "the refund carries the effect's own reference"},
		{"t3", 600, 4, "a client's own refund would be an answer to the question that t3 doesn't answer"},
	} {
		w := newWorld(t, profile(t, tc.profile, nil))
		w.SetOrder(order, true, 10000, "thank you")
		w.refund(nil)
		w.RefundByHand(order, caseID, 500)
		w.RefundByHand(order, "case-9", 100)
		got, err := w.client.Order(t.Context(), order, caseID, "e1")
		want := sim.Order{Order: order, Eligible: true, Paid: 10000, Refunded: tc.refunded, Others: 500, Version: tc.version, Note: "thank you"}
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v: %s", tc.profile, got, err, want, tc.why)
		}
	}
	w := newWorld(t, sim.Profile{})
	if _, err := w.client.Order(t.Context(), "882", caseID, ""); !errors.Is(err, sim.ErrAnswer) {
		t.Errorf("unknown order: got %v", err)
	}
	if err := w.RefundByHand(order, caseID, 10001); !errors.Is(err, sim.ErrWorld) {
		t.Errorf("a hand can't pay back more than was paid: got %v", err)
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if err := w.Down(sim.KeepQueue); !errors.Is(err, sim.ErrWorld) {
		t.Errorf("what is not up can't go down: got %v", err)
	}
	if err := w.SetEligible("882", true); !errors.Is(err, sim.ErrWorld) {
		t.Errorf("unknown order: got %v", err)
	}
}

func TestLease(t *testing.T) {
	w := newWorld(t, sim.Profile{})
	live := func() bool {
		l, err := w.client.Lease(t.Context(), "L-refund")
		if err != nil {
			t.Fatal(err)
		}
		return l.Live
	}
	if live() {
		t.Error("a lease that the desk doesn't know is live")
	}
	w.SetLease(sim.Lease{Lease: "L-refund", Holder: "agent", Case: caseID, Max: 2000, Expires: w.Now().Add(time.Hour)})
	if !live() {
		t.Error("a lease is not live")
	}
	w.sleep(time.Hour)
	if live() {
		t.Error("an expired lease is live")
	}
	w.SetLease(sim.Lease{Lease: "L-refund", Holder: "agent"})
	w.RevokeLease("L-refund")
	if live() {
		t.Error("a revoked lease is live")
	}
}

func TestSendsBytesAsTheyAre(t *testing.T) {
	w := newWorld(t, profile(t, "t1", nil))
	for _, tc := range []struct{ body, want string }{
		{`{"amount":2000,"case":"case-4471","currency":"usd","order":"881"}`, "200 ok"},
		{`{"order":"881","amount":2000,"case":"case-4471"}`, "200 already_processed replayed"},
		{`{"amount":"2000","order":"881"}`, "400 bad_request"},
		{`{"amount":2000,"order":"881","tip":1}`, "400 bad_request"},
		{`{"amount":2000,"case":"case-4471","order":"881"} {}`, "400 bad_request"},
		{``, "400 bad_request"},
	} {
		p, err := w.client.Prepare(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Peek(); err != nil {
			t.Error(err)
		}
		reply, err := p.Send(t.Context(), []byte(tc.body), sim.Envelope{Effect: "e1", Key: "k1"})
		if err != nil || describe(reply) != tc.want || reply.Outcome != wire.Answered {
			t.Errorf("%s: got %s, %v, want %s", tc.body, describe(reply), err, tc.want)
		}
		p.Close()
	}
}

func TestDeclared(t *testing.T) {
	for _, p := range sim.Profiles() {
		c := p.Declared()
		if bounded := !strings.HasSuffix(p.Name, "-unbounded") && p.Name != "t3"; (c.LandingBound > 0) != bounded {
			t.Errorf("%s declares a landing bound of %s", p.Name, c.LandingBound)
		}
		if p.LandingBound == 0 {
			t.Errorf("%s has no real bound", p.Name)
		}
		if s := p.Service(); s.LandingBound != c.LandingBound || s.Lookup != c.Lookup || s.DedupWindow != c.DedupWindow {
			t.Errorf("%s: the judge reads %+v, the client %+v", p.Name, s, c)
		}
	}
}
