package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/targets/sim"
	"github.com/interlock-bench/interlock-bench/targets/stripe"
	"github.com/interlock-bench/interlock-bench/targets/stripe/emulator"
)

// stripe is the command that runs the refund at Stripe where there is a key, and
// else e, which is the same on the emulator.
func (b *bench) stripe(e *experiments.Experiment) *cobra.Command {
	var f runFlags
	var o experiments.LiveOptions
	cmd := &cobra.Command{
		Use:   "stripe",
		Short: "the refund at Stripe: test mode with a key in " + experiments.KeyVariable + ", else the emulator",
		Long: `With a test key in ` + experiments.KeyVariable + ` the three reference rows run against Stripe's
test mode and write ` + experiments.LiveFile + `: twelve payments of $100 with a test card, and their
refunds. Live keys are refused before anything is sent. The key needs to write
payment intents and refunds and to read both; it is printed and stored nowhere.

Without a key this is "` + experiments.StripeName + `": the local emulator, all rows.`,
		Example: "  interlock-bench stripe\n  interlock-bench stripe --row crash_before_ack --column gate\n  interlock-bench stripe emulate",
		GroupID: "experiments",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Key = os.Getenv(experiments.KeyVariable)
			if o.Key == "" {
				fmt.Fprintf(b.stderr, "No %s is set: this is the local emulator of Stripe's documented behaviour, not Stripe.\n", experiments.KeyVariable)
				return b.runAll(cmd, []*experiments.Experiment{e}, f)
			}
			return b.live(cmd, o, f)
		},
	}
	f.add(cmd, e)
	flags := cmd.Flags()
	flags.StringVar(&o.Base, "api", "", "with a key: another address of the API, such as that of \"stripe emulate\"; then nothing is written unless --out is given")
	flags.DurationVar(&o.Bound, "bound", 2*time.Minute, "with a key: after what time a refund that isn't found counts as not made")
	flags.DurationVar(&o.Limit, "limit", 15*time.Minute, "with a key: how long one program under test may take")
	cmd.AddCommand(b.emulate())
	return cmd
}

// live runs against Stripe's test mode. What was made is printed whatever
// happened: it has ids that can be looked up.
func (b *bench) live(cmd *cobra.Command, o experiments.LiveOptions, f runFlags) error {
	if err := checkFormat(f.format, tableFormats()...); err != nil {
		return err
	}
	if f.check {
		return &exit{exitUsage, "a run against Stripe is made once and can't be checked; without " + experiments.KeyVariable + " the emulator's can"}
	}
	write := cmd.Flags().Changed("out") || o.Base == "" && len(f.filter.Rows)+len(f.filter.Columns) == 0
	if write {
		if err := experiments.Writable(f.out); err != nil {
			return err
		}
	}
	update, clear := progress(b.stderr, "stripe")
	o.Filter, o.Say = f.filter, update
	r, err := experiments.StripeLive(cmd.Context(), o)
	clear()
	if len(r.Trials) > 0 {
		b.print(f.format, 0, r.Table())
	}
	switch {
	case errors.Is(err, stripe.ErrLiveKey), errors.Is(err, stripe.ErrKey), errors.Is(err, stripe.ErrBase):
		return &exit{exitUsage, err.Error()}
	case errors.Is(err, experiments.ErrLive) && len(r.Trials) > 0:
		return &exit{exitUnjudged, err.Error() + "\nNothing was written. The payments above exist in test mode; a refund that was under way is in none but this list."}
	case err != nil:
		return err
	}
	if write {
		path := filepath.Join(f.out, experiments.LiveFile)
		if err := experiments.SaveLive(path, r, version()); err != nil {
			return err
		}
		fmt.Fprintf(b.notices(f.format), "\nwrote %s\n", path)
	}
	if !r.Held() {
		return &exit{exitBroken, "a cell of the gate is not right; the ids above say where to look"}
	}
	return nil
}

// emulate serves the emulator to other programs.
func (b *bench) emulate() *cobra.Command {
	var listen, forward string
	var o emulator.Options
	cmd := &cobra.Command{
		Use:   "emulate",
		Short: "serve the local emulator of Stripe's documented behaviour, for other programs' tests",
		Long: `Emulate serves payment intents, charges, refunds, disputes and events as Stripe
documents them for API version ` + emulator.Version + `, until it is interrupted. It keeps what it
holds in memory, takes test keys only, and is not Stripe.`,
		Example: "  interlock-bench stripe emulate\n  interlock-bench stripe emulate --listen 127.0.0.1:4242 \\\n    --forward http://127.0.0.1:8080/hook",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if forward != "" {
				o.Notify = func(d emulator.Delivery) {
					if err := post(ctx, forward, d); err != nil {
						fmt.Fprintf(b.stderr, "webhook %s: %v\n", d.Type, err)
					}
				}
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return &exit{exitUsage, fmt.Sprintf("the emulator can't listen on %s: %v", listen, err)}
			}
			s := emulator.New(sim.RealHost{Started: time.Now()}, o)
			if err := s.Start(l); err != nil {
				return errors.Join(err, l.Close())
			}
			fmt.Fprintf(b.stdout, "The emulator listens on http://%s and is not Stripe. Interrupt it to end it.\n", l.Addr())
			<-ctx.Done()
			return s.Close()
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&listen, "listen", "127.0.0.1:12119", "address to listen on")
	flags.StringSliceVar(&o.Keys, "key", nil, "test keys that are valid; without one, every test key")
	flags.StringVar(&o.Secret, "secret", "whsec_emulated", "that webhooks are signed with")
	flags.StringVar(&forward, "forward", "", "URL that webhooks are posted to, once each and in no order")
	flags.IntVar(&o.RateLimit, "rate", 25, "requests a second, as in test mode; 0 sets no limit")
	flags.DurationVar(&o.Settles, "settles", 4*time.Second, "until a pending refund settles, or one that is to fail fails")
	flags.DurationVar(&o.ListLag, "lag", 0, "how long a refund stays invisible in lists")
	flags.BoolVar(&o.NewerEvents, "newer-events", false, "send refund.created, refund.updated and refund.failed too")
	return cmd
}

// post delivers one webhook once.
func post(ctx context.Context, url string, d emulator.Delivery) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(d.Payload))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Stripe-Signature", d.Header)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("answered with %s", resp.Status)
	}
	return nil
}
