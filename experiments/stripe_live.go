package experiments

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	api "github.com/stripe/stripe-go/v76"

	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/protocol/wire"
	"github.com/interlock-bench/interlock-bench/targets/stripe"
)

// LiveOptions say how the reference rows are run against Stripe's test mode.
type LiveOptions struct {
	Key    string
	Base   string        // of the API; "" is Stripe's
	Bound  time.Duration // after which a refund that isn't found counts as not made; 0 is two minutes, for this trial only
	Limit  time.Duration // for each start of a program under test; 0 is fifteen minutes
	Filter Filter
	Say    func(done, total int) // progress; nil is silent
}

// LiveTrial is one cell of a live run.
type LiveTrial struct {
	Row, Column string
	Status      string // the column's own word
	Money       int64  // cents, of all refunds of the payment that neither failed nor were cancelled
	Payment     string // id of its payment intent
	Refunds     []LiveRefund
	Why         string // why it could not be judged; "" where it was
}

// LiveRefund is one refund as Stripe lists it.
type LiveRefund struct {
	ID     string
	Amount int64
	Status string
}

// LiveReport is a live run.
type LiveReport struct {
	Run            string // names it in metadata
	Base           string
	Started, Ended time.Time
	Bound          time.Duration
	Trials         []LiveTrial // those that were begun
	Whole          bool        // every cell of every reference row was run
}

// ErrLive is returned where a live run could not begin, or could not be carried
// through. It wraps why, and holds no key.
var ErrLive = errors.New("experiments: the run against Stripe's test mode")

// StripeLive runs the reference rows against Stripe's test mode, one trial after
// the other. Before anything is paid it asks whether the key may refund. What was
// begun is in the report, with an error too. Errors are ErrLive with those of
// package stripe, *NameError, ErrNoCell, and ctx's.
func StripeLive(ctx context.Context, o LiveOptions) (LiveReport, error) {
	r := LiveReport{Base: orElse(o.Base, api.APIURL), Started: time.Now().UTC(), Bound: orElse(o.Bound, 2*time.Minute)}
	r.Run = "interlock-" + strconv.FormatInt(r.Started.UnixNano(), 36)
	client, err := stripe.Open(stripe.Options{Key: o.Key, Base: o.Base})
	if err != nil {
		return r, fmt.Errorf("%w did not begin: %w", ErrLive, err)
	}
	cells, err := o.Filter.Cells(liveCells())
	if err != nil {
		return r, err
	}
	err = client.MayRefund(ctx, r.Run)
	if errors.Is(err, wire.ErrNotSent) {
		return r, fmt.Errorf("%w did not begin: %s can't be reached, and nothing was sent; check the network, or unset %s to run on the emulator: %w", ErrLive, r.Base, KeyVariable, err)
	}
	if err != nil {
		return r, fmt.Errorf("%w did not begin, and nothing was refunded: %w", ErrLive, err)
	}
	r.Whole = len(cells) == referenceStripeRows*len(stripeColumns)
	for i, c := range cells {
		l := live{options: o, client: client, report: &r, request: fmt.Sprintf("%s-%d", r.Run, i+1)}
		t, err := l.trial(ctx, c)
		if t.Payment != "" {
			r.Trials = append(r.Trials, t)
		}
		if err == nil && t.Why != "" {
			err = errors.New(t.Why)
		}
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		if err != nil {
			return r, fmt.Errorf("%w stopped at %s of %s: %s", ErrLive, c.Row, c.Column, strings.ReplaceAll(err.Error(), o.Key, "[the key]"))
		}
		if o.Say != nil {
			o.Say(i+1, len(cells))
		}
	}
	r.Ended = time.Now().UTC()
	return r, nil
}

// liveCells are the cells of a live run, as an experiment's that a filter can
// take.
func liveCells() *Experiment {
	e := Stripe()
	e.Rows = e.Rows[:referenceStripeRows]
	e.Cells = e.Cells[:referenceStripeRows*len(stripeColumns)]
	return e
}

// live is one trial.
type live struct {
	options LiveOptions
	client  *stripe.Client
	report  *LiveReport
	request string
}

// trial makes a payment, runs one column and lists what was refunded.
func (l live) trial(ctx context.Context, c Cell) (LiveTrial, error) {
	t := LiveTrial{Row: c.Row, Column: c.Column}
	row := referenceRow(c.Row, "")
	for i, f := range row.Faults {
		if f.What == faults.Kill && f.At != stripe.BeforeSend {
			row.Faults[i].At = stripe.ReplyReceived // no point of Stripe's own can be held
		}
	}
	for range row.Submits {
		row.requests = append(row.requests, l.request)
	}
	column, _ := findColumn(stripeColumns, c.Column)
	self, err := os.Executable()
	if err != nil {
		return t, err
	}
	if t.Payment, err = l.client.Pay(ctx, paid, "usd", "pm_card_visa", l.request+"-payment"); err != nil {
		return t, err
	}
	var given stripeTask
	limit := orElse(l.options.Limit, 15*time.Minute)
	h, err := faults.Run(ctx, faults.Plan{
		Trial:    faults.Trial{Experiment: c.Table, Row: c.Row, Column: c.Column, Faults: row.Faults},
		Outage:   row.Outage,
		Restarts: 1,
		Command: func(int) *exec.Cmd {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), KeyVariable+"="+l.options.Key)
			return cmd
		},
		Task:     &given,
		World:    func(s *faults.Stage) (faults.World, error) { return l.world(s, row, column, t.Payment, &given, limit) },
		Patience: limit + time.Minute,
	})
	if err != nil {
		return t, err
	}
	for _, e := range h {
		if x, err := history.Body[history.Exit](e); err == nil && (e.Kind == history.Hung || e.Kind == history.Exited && x.Code != 0) {
			t.Why = "the program gave up: " + strings.TrimSpace(x.Text)
		}
		if e.Kind == history.Unfired {
			t.Why = "its fault did not happen"
		}
	}
	t.Status = statusOf(h, l.request)
	refunds, err := l.client.Refunds(ctx, t.Payment)
	if err != nil {
		return t, errors.Join(errors.New(orElse(t.Why, "its refunds can't be listed")), err)
	}
	for _, r := range refunds {
		t.Refunds = append(t.Refunds, LiveRefund{r.ID, r.Amount, string(r.Status)})
	}
	t.Money = stripe.Others(refunds, "", "")
	return t, nil
}

func (l live) world(s *faults.Stage, row stripeRow, c column, payment string, given *stripeTask, limit time.Duration) (faults.World, error) {
	w := &liveWorld{live: l, payment: payment}
	w.refundWorld = refundWorld{stage: s, column: c, row: row.Row, now: time.Now}
	w.submits, w.given = row, given
	*given = stripeTask{
		task: task{
			Experiment: StripeName, Column: c.Name, State: s.State(), File: filePlain,
			Agent: agentID, Order: payment, Request: l.request, Case: l.request, Lease: leaseOf(l.request),
		},
		Base: l.options.Base, Desk: w.deskAddress(), Live: true, Bound: l.report.Bound, Lag: min(l.report.Bound, time.Minute), Limit: limit,
	}
	return w, w.approve(payment, []string{l.request}, history.Service{})
}

// liveWorld is what is around the column: the desk, and a person who refunds.
type liveWorld struct {
	approvals
	live
	payment string
}

// Do is what rows name: a person's refund, which carries no metadata.
func (w *liveWorld) Do(action string, _ func(until ...trace.Point)) error {
	if action != "refund-by-hand" {
		return fmt.Errorf("experiments: nobody can do %q at Stripe", action)
	}
	p, err := w.client.Prepare(context.Background())
	if err != nil {
		return err
	}
	defer p.Close()
	if r := p.Refund(context.Background(), stripe.Refund{PaymentIntent: w.payment, Amount: approved}, w.request+"-hand"); r.Refund == nil {
		return fmt.Errorf("experiments: the refund by hand was not made: %s", r.Reason)
	}
	return nil
}

func (w *liveWorld) Close() error { return w.service.Close() }

// Cell is the trial as a table shows it: right is exactly one refund's worth.
func (t LiveTrial) Cell() string {
	switch {
	case t.Why != "":
		return "— " + t.Why
	case t.Money == approved:
		return t.Status + " " + Money(t.Money) + " ✅"
	}
	return t.Status + " " + Money(t.Money) + " ❌"
}

// Held says whether a promise was kept: the gate's cells have to be right.
func (r LiveReport) Held() bool {
	for _, t := range r.Trials {
		if t.Column == "gate" && (t.Why != "" || t.Money != approved) {
			return false
		}
	}
	return true
}

// Stripe says whether it was Stripe that was run against.
func (r LiveReport) Stripe() bool { return r.Base == api.APIURL }

// Table is the run as a table: rows and columns, and what each cell is.
func (r LiveReport) Table() table.Table {
	t := table.Table{Header: []string{"row", "column", "result", "payment", "refunds"}}
	for _, trial := range r.Trials {
		var refunds []string
		for _, f := range trial.Refunds {
			refunds = append(refunds, fmt.Sprintf("%s %s %s", f.ID, Money(f.Amount), f.Status))
		}
		t.Rows = append(t.Rows, []string{trial.Row, trial.Column, trial.Cell(), trial.Payment, strings.Join(refunds, ", ")})
	}
	return t
}

// LivePage renders results/stripe_live.md. with says which program ran it.
func LivePage(r LiveReport, with string) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	where := "Stripe's test mode"
	if !r.Stripe() {
		where = r.Base + ", **which is not Stripe**"
	}
	p("# The refund at Stripe, test mode")
	p("Run against %s from %s to %s, by %s, with API version %s and Stripe's library for Go %s. A run is made once and is not compared with another.",
		where, r.Started.Format(time.RFC3339), r.Ended.Format(time.RFC3339), with, api.APIVersion, api.ClientVersion)
	p("Each cell is a test payment of $100 and real processes killed by SIGKILL, judged from Stripe's own list of the payment's refunds. The ids can be looked up in the dashboard, in test mode; everything carries metadata that begins with `interlock`, of run `%s`.", r.Run)
	p("`crash_before_ack` is killed when the answer has been read and before anything of it is recorded: no point inside Stripe can be held. The gate counts a refund that isn't found as not made after %v, which is this run's assumption.", r.Bound)
	if !r.Whole {
		p("Some cells only: the others were not asked for.")
	}
	b.WriteString(r.Table().Markdown())
	return b.String()
}

// LiveNobody is results/stripe_live.md while nobody has run it.
const LiveNobody = `# The refund at Stripe, test mode

Nobody has run this. No figure here is Stripe's: what the emulator of Stripe's
documented behaviour gives is in ` + "`results/stripe_emulated.md`" + `. The README says how
to run it with a test key; the run replaces this page.
`

// LiveFile is the name of the page in the folder of results.
const LiveFile = "stripe_live.md"

// SaveLive writes the page of a run.
func SaveLive(path string, r LiveReport, with string) error {
	if err := replace(path, []byte(LivePage(r, with))); err != nil {
		return fmt.Errorf("%w: %w", ErrOut, err)
	}
	return nil
}
