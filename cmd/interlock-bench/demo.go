package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/story"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// demos are the shows, by the word that asks for each.
var demos = []struct {
	word   string
	column string
	about  string
}{
	{"naive", "naive", "Plain retry: the step runs, and after a restart it runs again."},
	{"1", "gate@t1", "The gate, at a service that absorbs a repeated key for 24 hours."},
	{"2", "gate@t2", "The gate, at a service that absorbs nothing and can be asked what landed."},
	{"3", "gate@t3", "The gate, at a service that neither absorbs repeats nor can be asked."},
}

// beat is how long an audience has for a line, with --slow.
const beat = 900 * time.Millisecond

func (b *bench) demo() *cobra.Command {
	var slow bool
	var words []string
	for _, d := range demos {
		words = append(words, d.word)
	}
	cmd := &cobra.Command{
		Use:   "demo " + strings.Join(words, "|"),
		Short: "one refund, one kill, one restart, and the receipt",
		Long: `Demo runs the crash that the experiments are about, in real processes, and tells
it: an agent sends an approved $20 refund, the service pays, and the process is
killed by SIGKILL before it hears so. The same command is started again. At the
end stands the receipt, read from the journal that the process left behind.

naive is a plain retry. 1, 2 and 3 are the gate at services that offer less and
less. --slow is for an audience.`,
		Example:   "  interlock-bench demo naive\n  interlock-bench demo 2 --slow",
		GroupID:   "experiments",
		ValidArgs: words,
		Args:      takes(1, 1, "one name of those in its help"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := experiments.CheckName("demo", args[0], words); err != nil {
				return err
			}
			for _, d := range demos {
				if d.word == args[0] {
					return b.show(cmd.Context(), d.column, d.about, slow)
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&slow, "slow", false, "leave an audience time to read")
	return cmd
}

// show runs the trial, and tells it when nothing of it is left but its story.
func (b *bench) show(ctx context.Context, column, about string, slow bool) error {
	k, receipt, err := crashed(ctx, b.all, column)
	if err != nil {
		return err
	}
	width := widthOf(b.stdout)
	var lines []string
	add := func(line string, indent int) { lines = append(lines, table.Wrap(line, indent, width)) }
	add(about, 0)
	lines = append(lines, "")
	for _, p := range story.Tell(k.History, story.Main) {
		for _, l := range p.Lines {
			add(fmt.Sprintf("  %-10s %s", l.Who, l.Words), 13)
		}
	}
	lines = append(lines, "")
	for i, s := range story.Judged(k) {
		if i == 0 || len(k.Verdict.Broke) > 0 && i <= len(k.Verdict.Why) {
			add(s, 2)
		}
	}
	lines = append(lines, "")
	if receipt == "" {
		add("There is no receipt: this column writes nothing down. What happened is known from the service's ledger alone.", 0)
	} else {
		for line := range strings.Lines(receipt) {
			add(strings.TrimSuffix(line, "\n"), receiptIndent)
		}
	}
	add(fmt.Sprintf("(Told just now from real processes; interlock-bench replay '%s' tells more.)", k.Trial), 2)
	for _, line := range lines {
		b.say(line + "\n")
		if slow {
			if err := pause(ctx, beat); err != nil {
				return err
			}
		}
	}
	if k.Verdict.Class == oracle.Unknown {
		return &exit{exitUnjudged, "the trial was not judged"}
	}
	return nil
}

// pause returns when d has passed or ctx ended, with its error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// crashed runs crash_before_ack in the given column and returns the trial and
// the receipt of its effect; "" where the column has no journal of effects. No
// file is left.
func crashed(ctx context.Context, all []*experiments.Experiment, column string) (k experiments.Kept, receipt string, err error) {
	line, err := crashLine(all, column)
	if err != nil {
		return k, "", err
	}
	dir, err := os.MkdirTemp("", "interlock-demo-")
	if err != nil {
		return k, "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if k, err = experiments.Replay(ctx, all, line, dir); err != nil {
		return k, "", err
	}
	states, err := filepath.Glob(filepath.Join(dir, "*.state"))
	if err != nil || len(states) != 1 {
		return k, "", err
	}
	receipts, _, err := receiptsIn(states[0])
	if errors.Is(err, experiments.ErrNoLog) {
		return k, "", nil
	}
	if err != nil || len(receipts) == 0 {
		return k, "", err
	}
	return k, receipts[len(receipts)-1].String(), nil
}

// crashLine is the line of the trial that demo shows.
func crashLine(all []*experiments.Experiment, column string) (string, error) {
	chosen, err := experiments.Find(all, []string{"refund"})
	if err != nil {
		return "", err
	}
	cells, err := experiments.Filter{Rows: []string{"crash_before_ack"}, Columns: []string{column}}.Cells(chosen[0])
	if err != nil {
		return "", err
	}
	t := cells[0].Trials[0]
	t.Seed = 1
	return t.String(), nil
}
