package emulator_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/targets/stripe/emulator"
)

// Idempotency keys, as "Idempotent requests" and "Advanced error handling" have
// them.
func TestKeys(t *testing.T) {
	type step struct {
		pass time.Duration
		key  string
		more string
		want string
	}
	for _, tc := range []struct {
		why   string
		steps []step
		made  int
	}{
		{"the same request under the same key is answered from what is stored", []step{{key: "k", want: "200 succeeded"}, {key: "k", want: "200 succeeded replayed"}}, 1},
		{"without a key, or under two, it is two requests", []step{{want: "200 succeeded"}, {want: "200 succeeded"}, {key: "k", want: "200 succeeded"}}, 3},
		{"metadata is a parameter, and a differing one is an error that leaves what is stored alone",
			[]step{{key: "k", want: "200 succeeded"}, {key: "k", more: "&metadata[retry]=1", want: "400 idempotency_error"}, {key: "k", want: "200 succeeded replayed"}}, 1},
		{"the order of parameters is not their content", []step{{key: "k", more: "&reason=duplicate&metadata[a]=1", want: "200 succeeded"}, {key: "k", more: "&metadata[a]=1&reason=duplicate", want: "200 succeeded replayed"}}, 1},
		{"a key is kept until it is 24 hours old", []step{{key: "k", want: "200 succeeded"}, {pass: 24*time.Hour - 1, key: "k", want: "200 succeeded replayed"}}, 1},
		{"and then the same request is a new one, and nothing says so", []step{{key: "k", want: "200 succeeded"}, {pass: 24 * time.Hour, key: "k", want: "200 succeeded"}}, 2},
		{"a replay doesn't make a key younger", []step{{key: "k", want: "200 succeeded"}, {pass: 23 * time.Hour, key: "k", want: "200 succeeded replayed"}, {pass: time.Hour, key: "k", want: "200 succeeded"}}, 2},
		{"parameters that are refused before anything runs leave no answer behind", []step{{key: "k", more: "&tip=1", want: "400 parameter_unknown"}, {key: "k", want: "200 succeeded"}}, 1},
	} {
		w := newWorld(t, "pm_card_visa", emulator.Options{})
		for i, s := range tc.steps {
			w.pass(s.pass)
			if got := w.refund(s.key, s.more); got.String() != s.want {
				t.Errorf("%s: step %d: got %s, want %s", tc.why, i+1, got, s.want)
			}
		}
		if got := len(w.refunds()); got != tc.made {
			t.Errorf("%s: %d refunds, want %d", tc.why, got, tc.made)
		}
	}
}

// A key belongs to the endpoint it was used at first ("Errors",
// idempotency_error).
func TestKeyAtAnotherEndpoint(t *testing.T) {
	w := newWorld(t, "pm_card_visa", emulator.Options{})
	w.refund("k", "")
	if got := w.post("/v1/payment_intents", "amount=1&currency=usd", "k"); got.String() != "400 idempotency_error" {
		t.Error(got)
	}
}

// What is stored of answers that say no: "Idempotent requests" names the status
// code and body of the first request, whether it succeeds or fails, once its
// endpoint began to execute.
func TestStoredErrors(t *testing.T) {
	for _, tc := range []struct {
		why    string
		o      emulator.Options
		before func(*world)
		form   string
		want   string
		after  func(*world)
		again  string
	}{
		{"a 500 is stored although the refund was made", emulator.Options{}, func(w *world) { w.Next(emulator.ErrorAfterApply, 1) }, "payment_intent=" + intent, "500 api_error", nil, "500 api_error replayed"},
		{"and where it was not", emulator.Options{}, func(w *world) { w.Next(emulator.ServerError, 1) }, "payment_intent=" + intent, "500 api_error", nil, "500 api_error replayed"},
		{"a refusal found while executing is stored, also when its cause is gone", emulator.Options{},
			func(w *world) { w.Chargeback(intent) }, "payment_intent=" + intent, "400 charge_disputed",
			func(w *world) { w.CloseDispute(intent, "won") }, "400 charge_disputed replayed"},
		{"so is a 404", emulator.Options{}, nil, "charge=ch_none", "404 resource_missing", nil, "404 resource_missing replayed"},
		{"unless the account is set up otherwise", emulator.Options{ForgetMissing: true}, nil, "charge=ch_none", "404 resource_missing", nil, "404 resource_missing"},
		{"a 429 stands before the endpoint", emulator.Options{}, func(w *world) { w.Next(emulator.RateLimited, 1) }, "payment_intent=" + intent, "429 rate_limit", nil, "200 succeeded"},
		{"as does a lock that isn't had", emulator.Options{}, func(w *world) { w.Next(emulator.LockTimeout, 1) }, "payment_intent=" + intent, "429 lock_timeout", nil, "200 succeeded"},
		{"and a bad key", emulator.Options{}, func(w *world) { w.Next(emulator.Unauthorized, 1) }, "payment_intent=" + intent, "401 invalid_request_error", nil, "200 succeeded"},
		{"and a missing parameter", emulator.Options{}, nil, "amount=1", "400 invalid_request_error", nil, "400 invalid_request_error"},
	} {
		w := newWorld(t, "pm_card_visa", tc.o)
		if tc.before != nil {
			tc.before(w)
		}
		if got := w.post("/v1/refunds", tc.form, "k"); got.String() != tc.want {
			t.Errorf("%s: got %s, want %s", tc.why, got, tc.want)
		}
		if tc.after != nil {
			tc.after(w)
		}
		if got := w.post("/v1/refunds", tc.form, "k"); got.String() != tc.again {
			t.Errorf("%s: again: got %s, want %s", tc.why, got, tc.again)
		}
	}
}

// The limiter runs before the idempotency layer, so a 429 on a repeat says
// nothing of the first request ("Advanced error handling").
func TestRateLimitBeforeReplay(t *testing.T) {
	w := newWorld(t, "pm_card_visa", emulator.Options{RateLimit: 2})
	w.refund("k", "")
	w.refund("k", "")
	got := w.refund("k", "")
	if got.String() != "429 rate_limit" || got.header.Get("Stripe-Rate-Limited-Reason") != "global-rate" {
		t.Errorf("got %s, reason %q", got, got.header.Get("Stripe-Rate-Limited-Reason"))
	}
	w.pass(time.Second)
	if got := w.refund("k", ""); got.String() != "200 succeeded replayed" {
		t.Errorf("a second later: %s", got)
	}
}

// A repeat that comes while the first request runs is a 409 ("Advanced error
// handling"), and the first one's answer is the key's.
func TestInProgress(t *testing.T) {
	w := newWorld(t, "pm_card_visa", emulator.Options{})
	w.DelayNext(10*time.Second, 1)
	first := make(chan said)
	go func() { first <- w.refund("k", "") }()
	<-w.withheld
	if got := w.refund("k", ""); got.String() != "409 idempotency_key_in_use" {
		t.Errorf("beside it: %s", got)
	}
	if got := w.refund("k", "&reason=duplicate"); got.String() != "400 idempotency_error" {
		t.Errorf("beside it, with other parameters: %s", got)
	}
	w.pass(10 * time.Second)
	if got := <-first; got.String() != "200 succeeded" {
		t.Errorf("the first: %s", got)
	}
	if got := w.refund("k", ""); got.String() != "200 succeeded replayed" {
		t.Errorf("after it: %s", got)
	}
}

// What Stripe refuses ("Create a refund", "Error codes").
func TestRefusals(t *testing.T) {
	all := "payment_intent=" + intent
	for _, tc := range []struct {
		why    string
		before func(*world)
		form   string
		want   string
		param  any
	}{
		{"more than was paid", nil, all + "&amount=10001", "400 invalid_request_error", "amount"},
		{"more than is left", func(w *world) { w.refund("", "") }, all + "&amount=8001", "400 invalid_request_error", "amount"},
		{"used up", func(w *world) { w.post("/v1/refunds", all, "") }, all, "400 charge_already_refunded", nil},
		{"used up is said before the amount is looked at", func(w *world) { w.post("/v1/refunds", all, "") }, all + "&amount=999999", "400 charge_already_refunded", nil},
		{"charged back", func(w *world) { w.Chargeback(intent) }, all, "400 charge_disputed", nil},
		{"an inquiry can still be refunded", func(w *world) { w.Inquiry(intent) }, all, "200 succeeded", nil},
		{"nothing", nil, all + "&amount=0", "400 parameter_invalid_integer", "amount"},
		{"less than nothing", nil, all + "&amount=-1", "400 parameter_invalid_integer", "amount"},
		{"no number", nil, all + "&amount=ten", "400 parameter_invalid_integer", "amount"},
		{"no payment named", nil, "amount=1", "400 invalid_request_error", nil},
		{"no such charge", nil, "charge=ch_none", "404 resource_missing", "id"},
		{"no such payment", nil, "payment_intent=pi_none", "404 resource_missing", "payment_intent"},
		{"an unknown parameter", nil, all + "&tip=1", "400 parameter_unknown", "tip"},
		{"a metadata key of 41 characters", nil, all + "&metadata[" + strings.Repeat("a", 41) + "]=1", "400 invalid_request_error", "metadata[" + strings.Repeat("a", 41) + "]"},
		{"a metadata value of 501 characters", nil, all + "&metadata[a]=" + strings.Repeat("a", 501), "400 invalid_request_error", "metadata[a]"},
		{"no forms", nil, "%zz", "400 invalid_request_error", nil},
	} {
		w := newWorld(t, "pm_card_visa", emulator.Options{})
		if tc.before != nil {
			tc.before(w)
		}
		got := w.post("/v1/refunds", tc.form, "k")
		e, _ := got.body["error"].(map[string]any)
		if got.String() != tc.want || e["param"] != tc.param {
			t.Errorf("%s: got %s of %v, want %s of %v", tc.why, got, e["param"], tc.want, tc.param)
		}
	}
	w := newWorld(t, "pm_card_pendingRefund", emulator.Options{})
	w.post("/v1/refunds", all, "")
	if got := w.post("/v1/refunds", all, ""); got.String() != "400 charge_already_refunded" {
		t.Errorf("what is pending is spoken for: %s", got)
	}
	unpaid := w.post("/v1/payment_intents", "amount=100&currency=usd", "").body["id"].(string)
	if got := w.post("/v1/refunds", "payment_intent="+unpaid, ""); got.code != 400 {
		t.Errorf("an unpaid intent: %s", got)
	}
}

// Without an amount what remains is refunded ("Create a refund").
func TestAmountDefaultsToTheRest(t *testing.T) {
	w := newWorld(t, "pm_card_visa", emulator.Options{})
	w.refund("", "")
	if got := w.post("/v1/refunds", "payment_intent="+intent, ""); got.body["amount"] != 8000.0 {
		t.Errorf("the rest is %v, want 8000", got.body["amount"])
	}
	charge := w.get("/v1/payment_intents/"+intent, "expand[]=latest_charge").body["latest_charge"].(map[string]any)
	if charge["refunded"] != true || charge["amount_refunded"] != 10000.0 {
		t.Errorf("the charge: refunded %v, %v", charge["refunded"], charge["amount_refunded"])
	}
}

// The refund test cards of "Testing", and the events of "Types of events".
func TestCards(t *testing.T) {
	for _, tc := range []struct {
		why, card string
		declined  bool
		newer     bool
		at, later string
		reason    any
		events    []string
	}{
		{"succeeds at once and stays", "pm_card_visa", false, false, "succeeded", "succeeded", nil, []string{"charge.succeeded", "charge.refunded"}},
		{"waits, then succeeds", "pm_card_pendingRefund", false, false, "pending", "succeeded", nil, []string{"charge.succeeded", "charge.refund.updated", "charge.refunded"}},
		{"succeeds, then fails", "pm_card_refundFail", false, false, "succeeded", "failed", "expired_or_canceled_card", []string{"charge.succeeded", "charge.refunded", "charge.refund.updated"}},
		{"the same with the newer events", "pm_card_refundFail", false, true, "succeeded", "failed", "expired_or_canceled_card",
			[]string{"charge.succeeded", "charge.refunded", "refund.created", "charge.refund.updated", "refund.updated", "refund.failed"}},
		{"is declined", "pm_card_visa", true, false, "failed", "failed", "declined", []string{"charge.succeeded"}},
	} {
		w := newWorld(t, tc.card, emulator.Options{Settles: time.Hour, NewerEvents: tc.newer})
		if tc.declined {
			w.Next(emulator.Declined, 1)
		}
		if got := w.refund("k", ""); got.word() != tc.at {
			t.Errorf("%s: at first %s, want %s", tc.why, got.word(), tc.at)
		}
		w.pass(time.Hour)
		got := w.list("/v1/refunds", "payment_intent="+intent)[0]
		if got["status"] != tc.later || got["failure_reason"] != tc.reason {
			t.Errorf("%s: later %v for %v, want %s for %v", tc.why, got["status"], got["failure_reason"], tc.later, tc.reason)
		}
		if d := cmp.Diff(tc.events, w.events()); d != "" {
			t.Errorf("%s: events (-want +got):\n%s", tc.why, d)
		}
		if got := w.refund("k", ""); got.word() != tc.at {
			t.Errorf("%s: the key's stored answer says %s, want the first one's %s", tc.why, got.word(), tc.at)
		}
	}
}

// A failed refund can be made again, since its money is back ("Refund and cancel
// payments").
func TestFailedRefundGivesItsMoneyBack(t *testing.T) {
	w := newWorld(t, "pm_card_refundFail", emulator.Options{Settles: time.Hour})
	w.post("/v1/refunds", "payment_intent="+intent, "a")
	w.pass(time.Hour)
	if got := w.post("/v1/refunds", "payment_intent="+intent, "b"); got.code != http.StatusOK {
		t.Errorf("after the failure: %s", got)
	}
}

// Disputes ("The Dispute object", "Testing").
func TestDisputes(t *testing.T) {
	for _, tc := range []struct {
		why, card  string
		refundable bool
		status     string
		events     []string
	}{
		{"a chargeback takes the funds", "pm_card_createDispute", false, "needs_response", []string{"charge.succeeded", "charge.dispute.created", "charge.dispute.funds_withdrawn"}},
		{"an inquiry asks first", "pm_card_createDisputeInquiry", true, "warning_needs_response", []string{"charge.succeeded", "charge.dispute.created"}},
	} {
		w := newWorld(t, tc.card, emulator.Options{})
		w.pass(time.Minute)
		d := w.list("/v1/disputes", "payment_intent="+intent)[0]
		if d["is_charge_refundable"] != tc.refundable || d["status"] != tc.status || d["amount"] != 10000.0 {
			t.Errorf("%s: %v", tc.why, d)
		}
		if diff := cmp.Diff(tc.events, w.events()); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", tc.why, diff)
		}
		if got := w.refund("", "").code == http.StatusOK; got != tc.refundable {
			t.Errorf("%s: refunded %t, want %t", tc.why, got, tc.refundable)
		}
	}
	w := newWorld(t, "pm_card_pendingRefund", emulator.Options{Settles: time.Hour})
	w.refund("", "")
	w.Chargeback(intent)
	w.pass(time.Hour)
	if got := w.list("/v1/refunds", "")[0]; got["status"] != "failed" || got["failure_reason"] != "charge_for_pending_refund_disputed" {
		t.Errorf("a pending refund of a charge that is charged back: %v", got)
	}
}

// Pages ("Pagination"): the newest first, ten by default, a hundred at most.
func TestPages(t *testing.T) {
	w := newWorld(t, "pm_card_visa", emulator.Options{})
	w.Pay("pi_big", 1_000_000, "usd", "pm_card_visa")
	var want []string
	for i := range 250 {
		got := w.post("/v1/refunds", fmt.Sprintf("payment_intent=pi_big&amount=%d", i+1), "")
		want = append([]string{got.body["id"].(string)}, want...)
	}
	w.refund("", "") // of the other payment
	if got := len(w.list("/v1/refunds", "payment_intent=pi_big")); got != 10 {
		t.Errorf("a page without a limit has %d, want 10", got)
	}
	var got []string
	more := "limit=100&payment_intent=pi_big"
	for pages := 1; ; pages++ {
		page := w.get("/v1/refunds", more)
		for _, d := range page.body["data"].([]any) {
			got = append(got, d.(map[string]any)["id"].(string))
		}
		if page.body["has_more"] != true {
			if pages != 3 {
				t.Errorf("%d pages, want 3", pages)
			}
			break
		}
		more = "limit=100&payment_intent=pi_big&starting_after=" + got[len(got)-1]
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("all pages (-want +got):\n%s", d)
	}
	before := w.get("/v1/refunds", "limit=2&payment_intent=pi_big&ending_before="+want[5])
	if d := cmp.Diff(want[3:5], []string{
		before.body["data"].([]any)[0].(map[string]any)["id"].(string), before.body["data"].([]any)[1].(map[string]any)["id"].(string),
	}); d != "" || before.body["has_more"] != true {
		t.Errorf("before an id (-want +got):\n%s", d)
	}
	for form, why := range map[string]string{"limit=101": "too many", "limit=0": "too few", "starting_after=re_none": "behind none"} {
		if got := w.get("/v1/refunds", form); got.code/100 != 4 {
			t.Errorf("%s: %s", why, got)
		}
	}
}

// How long a refund takes to appear in lists is said nowhere; it can be set.
func TestListLag(t *testing.T) {
	w := newWorld(t, "pm_card_visa", emulator.Options{ListLag: 5 * time.Second})
	id := w.refund("", "").body["id"].(string)
	w.pass(5*time.Second - 1)
	if got := w.refunds(); len(got) != 0 {
		t.Errorf("too early: %v", got)
	}
	if got := w.get("/v1/refunds/"+id, ""); got.code != http.StatusOK {
		t.Errorf("by its id: %s", got)
	}
	w.pass(1)
	if got := w.refunds(); len(got) != 1 {
		t.Errorf("too late: %v", got)
	}
}

// Keys and their permissions ("API keys").
func TestAPIKeys(t *testing.T) {
	o := emulator.Options{
		Keys:       []string{"sk_test_good", "rk_test_reads", "rk_test_writes", "sk_live_good"},
		Restricted: map[string][]string{"rk_test_reads": {"refund_read", "charge_read"}, "rk_test_writes": {"refund_write"}},
	}
	for _, tc := range []struct {
		key, method, path string
		want              int
	}{
		{"sk_test_good", "POST", "/v1/refunds", 200},
		{"sk_test_other", "POST", "/v1/refunds", 401},
		{"", "GET", "/v1/refunds", 401},
		{"sk_live_good", "POST", "/v1/refunds", 401},
		{"rk_live_x", "GET", "/v1/refunds", 401},
		{"rk_test_reads", "GET", "/v1/refunds", 200},
		{"rk_test_reads", "POST", "/v1/refunds", 403},
		{"rk_test_reads", "GET", "/v1/disputes", 403},
		{"rk_test_writes", "POST", "/v1/refunds", 200},
		{"rk_test_writes", "GET", "/v1/refunds", 200}, // write implies read
		{"rk_test_writes", "GET", "/v1/payment_intents/" + intent, 403},
	} {
		w := newWorld(t, "pm_card_visa", o)
		form := ""
		if tc.method == "POST" {
			form = "payment_intent=" + intent
		}
		got := w.call(tc.method, tc.path, form, tc.key, "")
		if got.code != tc.want {
			t.Errorf("%s %s with %q: %s, want %d", tc.method, tc.path, tc.key, got, tc.want)
		}
		if e, _ := got.body["error"].(map[string]any); tc.key != "" && strings.Contains(fmt.Sprint(e["message"]), tc.key) {
			t.Errorf("%q is printed whole: %v", tc.key, e["message"])
		}
	}
}

// Metadata merges; an empty value unsets one ("Metadata"). It is all of a refund
// that can be changed ("Update a refund").
func TestMetadata(t *testing.T) {
	w := newWorld(t, "pm_card_visa", emulator.Options{})
	id := w.refund("", "&metadata[a]=1&metadata[b]=2").body["id"].(string)
	got := w.post("/v1/refunds/"+id, "metadata[a]=&metadata[c]=3", "")
	if d := cmp.Diff(map[string]any{"b": "2", "c": "3"}, got.body["metadata"]); d != "" {
		t.Errorf("merged (-want +got):\n%s", d)
	}
	if got := w.post("/v1/refunds/"+id, "amount=1", ""); got.String() != "400 parameter_unknown" {
		t.Errorf("changing the amount: %s", got)
	}
	if got := w.post("/v1/refunds/"+id, "metadata=", ""); len(got.body["metadata"].(map[string]any)) != 0 {
		t.Errorf("unset all: %v", got.body["metadata"])
	}
	if got := w.post("/v1/refunds/"+id+"/cancel", "", ""); got.code != 400 {
		t.Errorf("cancelling a card refund: %s", got) // "Cancel a refund": only what requires action
	}
}

// Events can be listed by type and name the request that caused them ("The Event
// object").
func TestEvents(t *testing.T) {
	w := newWorld(t, "pm_card_refundFail", emulator.Options{})
	w.refund("k", "")
	w.pass(time.Minute)
	for _, tc := range []struct {
		form string
		want int
		key  any
	}{{"type=charge.refunded", 1, "k"}, {"types[]=charge.refund.updated", 1, nil}, {"types[0]=charge.refunded&types[1]=charge.refund.updated", 2, nil}, {"type=none", 0, nil}} {
		got := w.list("/v1/events", tc.form)
		if len(got) != tc.want {
			t.Errorf("%s: %d events, want %d", tc.form, len(got), tc.want)
			continue
		}
		if len(got) > 0 {
			if key := got[0]["request"].(map[string]any)["idempotency_key"]; key != tc.key {
				t.Errorf("%s: of key %v, want %v", tc.form, key, tc.key)
			}
		}
	}
	if got := w.list("/v1/events", "type=charge.refund.updated")[0]["data"].(map[string]any)["previous_attributes"]; fmt.Sprint(got) != "map[status:succeeded]" {
		t.Errorf("previous attributes: %v", got)
	}
}

//go:embed openapi.json
var openapi []byte

// TestShapes holds every object that is answered to the fields of the OpenAPI
// description in openapi.json: the required ones are there, each is known, and
// has one of its types and values.
func TestShapes(t *testing.T) {
	var doc struct {
		Source  string
		Objects map[string]struct {
			Required []string
			Fields   map[string]struct{ Types, Values []string }
		}
	}
	if err := json.Unmarshal(openapi, &doc); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	check := func(kind string, o map[string]any) {
		t.Helper()
		schema, ok := doc.Objects[kind]
		if !ok {
			t.Errorf("no object is called %q in %s", kind, doc.Source)
			return
		}
		seen[kind]++
		for _, name := range schema.Required {
			if _, ok := o[name]; !ok {
				t.Errorf("%s lacks %s", kind, name)
			}
		}
		for name, value := range o {
			f, ok := schema.Fields[name]
			if !ok {
				t.Errorf("%s has no field %q", kind, name)
				continue
			}
			if !slices.Contains(f.Types, typeOf(value)) {
				t.Errorf("%s.%s is %s, not one of %v", kind, name, typeOf(value), f.Types)
			}
			if text, is := value.(string); is && len(f.Values) > 0 && !slices.Contains(f.Values, text) {
				t.Errorf("%s.%s is %q, not one of %v", kind, name, text, f.Values)
			}
		}
	}
	for _, card := range []string{"pm_card_visa", "pm_card_pendingRefund", "pm_card_refundFail", "pm_card_createDispute", "pm_card_createDisputeInquiry"} {
		w := newWorld(t, card, emulator.Options{NewerEvents: true})
		check("refund", w.refund("k", "&reason=requested_by_customer&metadata[a]=1").body)
		check("api_errors", w.refund("k", "&tip=1").body["error"].(map[string]any))
		check("api_errors", w.post("/v1/refunds", "charge=none", "").body["error"].(map[string]any))
		w.pass(time.Minute)
		check("api_errors", w.post("/v1/refunds", "payment_intent="+intent+"&amount=99999", "").body["error"].(map[string]any))
		check("payment_intent", w.post("/v1/payment_intents", "amount=5&currency=usd&payment_method="+card, "").body)
		p := w.get("/v1/payment_intents/"+intent, "expand[]=latest_charge").body
		check("payment_intent", p)
		check("charge", p["latest_charge"].(map[string]any))
		check("charge", w.get("/v1/charges/"+p["latest_charge"].(map[string]any)["id"].(string), "").body)
		for _, r := range w.list("/v1/refunds", "") {
			check("refund", r)
		}
		for _, d := range w.list("/v1/disputes", "") {
			check("dispute", d)
		}
		for _, e := range w.list("/v1/events", "limit=100") {
			check("event", e)
			of := e["data"].(map[string]any)["object"].(map[string]any)
			check(of["object"].(string), of)
		}
	}
	for kind := range doc.Objects {
		if seen[kind] == 0 {
			t.Errorf("no %s was looked at", kind)
		}
	}
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	}
	return "unknown"
}

// What the history gets of a request, in its order, whoever the client is.
func TestHistory(t *testing.T) {
	w := newWorld(t, "pm_card_visa", emulator.Options{})
	w.kinds = nil
	w.refund("k", "&metadata[effect]=e1&metadata[case]=case-1")
	w.RefundByHand(intent, "case-1", 500)
	if d := cmp.Diff([]history.Kind{history.Requested, history.Applied, history.Answered, history.Applied, history.Changed}, w.kinds); d != "" {
		t.Errorf("recorded (-want +got):\n%s", d)
	}
	if d := cmp.Diff(emulator.Points(), w.passed); d != "" {
		t.Errorf("passed (-want +got):\n%s", d)
	}
}

// FuzzRefund gives the service bodies of any kind: it answers every one, and
// never pays more than was paid.
func FuzzRefund(f *testing.F) {
	for _, seed := range []string{"payment_intent=pi_881&amount=2000", "charge=x", "amount=99999999999999999999", "metadata[a][b]=1", "%zz", "expand[]=x&payment_intent=pi_881"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := newWorld(t, "pm_card_visa", emulator.Options{})
		for range 2 {
			r := httptest.NewRequest(http.MethodPost, "/v1/refunds", strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer sk_test_x")
			rec := httptest.NewRecorder()
			w.ServeHTTP(rec, r)
			if !json.Valid(rec.Body.Bytes()) {
				t.Errorf("the answer to %q is no JSON", body)
			}
		}
		var sum float64
		for _, r := range w.list("/v1/refunds", "limit=100") {
			sum += r["amount"].(float64)
		}
		if sum > 10000 {
			t.Errorf("%q refunded %v of 10000", body, sum)
		}
	})
}
