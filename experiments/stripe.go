package experiments

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// StripeName is the experiment on the emulator; its files say which it was.
const StripeName = "stripe-emulated"

// Stripe is the refund at Stripe, on the local emulator of it: the target, the
// library and the rows are those of a run against Stripe's test mode, which
// StripeLive is.
func Stripe() *Experiment {
	e := &Experiment{
		Name:  StripeName,
		Short: "the refund at Stripe, on a local emulator of Stripe's documented behaviour",
		Long: `A customer paid $100 by card; a case approves one $20 refund, which is made with
Stripe's own library. The service is an emulator in this program: it answers as
Stripe's documentation says, and it is not Stripe. Columns are killed by SIGKILL
as in the refund experiment.

With a test key in STRIPE_API_KEY, "interlock-bench stripe" runs the reference
rows against Stripe's test mode instead.`,
		Example: `  interlock-bench stripe-emulated
  interlock-bench stripe-emulated --row key_expired --column gate`,
		Run:   runStripe,
		Child: stripeWork,
		Page:  stripePage,
	}
	for _, r := range stripeRows {
		e.Rows = append(e.Rows, Row{Name: r.Name, Group: r.Group, What: r.What})
		for _, c := range stripeColumns {
			e.Cells = append(e.Cells, Cell{
				Row: r.Name, Column: c.Name, Trials: stripeTrials(e.Name, r, c), Declared: declaredStripeCell(r.Name, c.Name),
			})
		}
	}
	for _, c := range stripeColumns {
		e.Columns = append(e.Columns, c.Column)
	}
	return e
}

func stripeTrials(experiment string, r stripeRow, c column) []faults.Trial {
	t := faults.Trial{Experiment: experiment, Row: r.Name, Column: c.Name, Faults: r.Faults}
	if !c.journaled {
		return []faults.Trial{t}
	}
	var trials []faults.Trial
	for _, kind := range []string{filePlain, fileLossy} {
		t.Axes = []faults.Axis{{Name: "file", Value: kind}}
		trials = append(trials, t)
	}
	return trials
}

// settleStripe is how much virtual time passes after the last process is done:
// a bank may take days to return a refund.
const settleStripe = 10 * 24 * time.Hour

// runStripe runs one trial on the emulator.
func runStripe(ctx context.Context, t faults.Trial) (Outcome, error) {
	at := slices.IndexFunc(stripeRows, func(r stripeRow) bool { return r.Name == t.Row })
	c, ok := findColumn(stripeColumns, t.Column)
	if at < 0 || !ok {
		return Outcome{}, fmt.Errorf("experiments: stripe has no row %q with a column %q", t.Row, t.Column)
	}
	row := stripeRows[at]
	self, err := os.Executable()
	if err != nil {
		return Outcome{}, fmt.Errorf("experiments: this program can't start itself: %w", err)
	}
	var world *stripeWorld
	var given stripeTask
	h, err := faults.Run(ctx, faults.Plan{
		Trial:    t,
		Outage:   row.Outage,
		Restarts: maxTries,
		Command:  func(int) *exec.Cmd { return exec.Command(self) },
		Task:     &given,
		World: func(s *faults.Stage) (faults.World, error) {
			var err error
			world, err = newStripeWorld(ctx, s, row, c, t, &given)
			return world, err
		},
		Patience: patience,
		Settle:   settleStripe,
	})
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{
		Trial: t, History: h, Verdict: oracle.Judge(h), Status: statusOf(h, row.shown()), Record: world.evidence, Extra: world.after,
	}, nil
}

// statusOf is the cell's word for one request: that of a history in which
// nothing was said of others.
func statusOf(h history.History, request string) string {
	return cellStatus(slices.DeleteFunc(slices.Clone(h), func(e history.Event) bool {
		return e.Kind == history.Told && e.Subject != request
	}))
}
