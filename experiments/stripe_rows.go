package experiments

import (
	"time"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/targets/stripe/emulator"
)

// stripeRow is one thing that can go wrong with a refund at Stripe.
type stripeRow struct {
	faults.Row
	page     string   // of Stripe's documentation, that the right value comes from
	card     string   // test payment method; "" is pm_card_visa
	requests []string // approved requests, each its own case, in the order of Row.Submits; nil: the one case for all
	subject  string   // the request whose word the cell shows; "" is the one case
	drift    bool     // the caller adds metadata when it sends again
	settles  time.Duration
	service  func(*emulator.Server) // what is set before the program starts
}

// referenceRow is a row of the reference table, on the emulator's points.
func referenceRow(name, page string) stripeRow {
	for _, r := range faults.Reference {
		if r.Name == name {
			r.Faults = append([]faults.Fault(nil), r.Faults...)
			for i, f := range r.Faults {
				if f.At == "sim/applied" {
					r.Faults[i].At = emulator.Applied
				}
			}
			return stripeRow{Row: r, page: page}
		}
	}
	panic("experiments: no reference row is called " + name)
}

var (
	killApplied    = []faults.Fault{{What: faults.Kill, At: emulator.Applied, Passage: 1}}
	killBeforeSend = []faults.Fault{{What: faults.Kill, At: "before-send", Passage: 1}}
)

// stripeRows are the rows, the three reference rows first. What is right in each
// follows from the named page of Stripe's documentation.
var stripeRows = []stripeRow{
	referenceRow("crash_before_ack", "Idempotent requests"),
	referenceRow("duplicate_submit", "Idempotent requests"),
	referenceRow("refund_during_outage", "Create a refund"),

	// Keys are pruned once they are at least 24 hours old; a request under a pruned
	// key is a new one: "Idempotent requests".
	{Row: faults.Row{Name: "key_expired", Group: "stripe", What: "Killed after the refund was made; restarted 25 hours later, when the key has been pruned.",
		Faults: killApplied, Outage: []string{"wait 25h"}, Submits: faults.Amounts(2000)}, page: "Idempotent requests"},
	// A bank can return a refund that had succeeded; the money goes back to the
	// balance and another way to repay has to be found: "Refund and cancel
	// payments", failed refunds. Sending it again is no such way.
	{Row: faults.Row{Name: "refund_fails_later", Group: "stripe", What: "The refund succeeds; five days later the customer's bank returns it.",
		Submits: faults.Amounts(2000)}, page: "Refund and cancel payments", card: "pm_card_refundFail", settles: 5 * 24 * time.Hour},
	// A charge that was charged back can't be refunded: "Error codes",
	// charge_disputed.
	{Row: faults.Row{Name: "chargeback_during_outage", Group: "stripe", What: "Killed before the send; the cardholder's bank takes the whole payment back; restarted.",
		Faults: killBeforeSend, Outage: []string{"chargeback"}, Submits: faults.Amounts(2000)}, page: "Error codes"},
	// A dispute over the full amount can follow a partial refund, as an article of
	// Stripe's support says. The refund stays made.
	{Row: faults.Row{Name: "chargeback_after_commit", Group: "stripe", What: "The refund is made and told; then the bank takes the whole payment back.",
		Faults: []faults.Fault{{What: "chargeback", At: pointTold, Passage: 1}}, Submits: faults.Amounts(2000)}, page: "Dispute for full charge amount after a partial refund was issued"},
	// While the first request under a key runs, a repeat is a 409: "Advanced error
	// handling".
	{Row: faults.Row{Name: "in_progress", Group: "stripe", What: "Killed while Stripe still works on the request, which takes ten seconds more; the repeat is answered with 409.",
		Faults: []faults.Fault{{What: faults.Kill, At: emulator.Accepted, Passage: 1}}, Submits: faults.Amounts(2000)}, page: "Advanced error handling",
		service: func(s *emulator.Server) { s.DelayNext(10*time.Second, 1) }},
	// Parameters are compared with those the key came with first: "Idempotent
	// requests". Metadata is one of them.
	{Row: faults.Row{Name: "parameters_drifted", Group: "stripe", What: "Killed after the refund was made; the program, run again, adds a metadata field that says so.",
		Faults: killApplied, Submits: faults.Amounts(2000)}, page: "Idempotent requests", drift: true},
	// The answer is kept under the key whatever it is, a 500 included: "Idempotent
	// requests". A 500 says nothing of the outcome: "Advanced error handling".
	{Row: faults.Row{Name: "stored_500", Group: "stripe", What: "The refund is made and answered with 500, which the key replays.",
		Submits: faults.Amounts(2000)}, page: "Advanced error handling",
		service: func(s *emulator.Server) { s.Next(emulator.ErrorAfterApply, 1) }},
	// A charge can be refunded in parts until it is used up: "Create a refund".
	{Row: faults.Row{Name: "partial_refunds", Group: "stripe", What: "Five cases of $20 use the $100 payment up; killed after the third was made.",
		Faults: []faults.Fault{{What: faults.Kill, At: emulator.Applied, Passage: 3}}, Submits: faults.Amounts(2000, 2000, 2000, 2000, 2000)}, page: "Create a refund",
		requests: []string{caseID, "case-4472", "case-4473", "case-4474", "case-4475"}, subject: "case-4473"},
	{Row: faults.Row{Name: "two_cases", Group: "stripe", What: "Two approved cases on one payment; killed before the second is sent: the first one's refund is no reason against it.",
		Faults: []faults.Fault{{What: faults.Kill, At: "before-send", Passage: 2}}, Submits: faults.Amounts(2000, 2000)}, page: "Create a refund",
		requests: []string{caseID, "case-4472"}, subject: "case-4472"},
}

// referenceStripeRows is how many of stripeRows are rows of the reference table.
const referenceStripeRows = 3

// request names the n-th submit's request.
func (r stripeRow) request(n int) string {
	if r.requests == nil {
		return caseID
	}
	return r.requests[n]
}

func (r stripeRow) shown() string { return orElse(r.subject, caseID) }

// leaseOf names the lease that a request is approved under.
func leaseOf(request string) string {
	if request == caseID {
		return leaseID
	}
	return leaseID + "-" + request
}

// stripeColumns are the columns: those of the refund experiment that need a key
// and a lookup, which Stripe has.
var stripeColumns = []column{
	refundColumnAs("naive", "naive"),
	refundColumnAs("idempotency-key@t1", "idempotency-key"),
	refundColumnAs("hand-check@t1", "hand-check"),
	refundColumnAs("gate@t1", "gate"),
}

// refundColumnAs is a column of the refund experiment under the name that it has
// at Stripe.
func refundColumnAs(name, as string) column {
	c, ok := findColumn(refundColumns, name)
	if !ok {
		panic("experiments: no column is called " + name)
	}
	c.Name = as
	switch as {
	case "hand-check":
		c.What = "the careful hand-written check: stable key, lookup by metadata, lease and payment read again"
	case "gate":
		c.What = "the gate, with Stripe's library behind it"
	}
	return c
}
