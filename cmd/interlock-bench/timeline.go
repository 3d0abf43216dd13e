package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/timeline"
)

func (b *bench) timeline() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "timeline FILE|'TRIAL'",
		Short: "draw one trial as an SVG",
		Long: `Timeline draws what happened in a trial: the lives of the processes, what was
written to the journal, what went over the wire, what the service, the principals
and the world did, in one order, downwards. The drawing stands alone.

FILE is a trial that --keep stored. Anything else is a trial, as records and
findings print it, and is run first.`,
		Example: "  interlock-bench timeline --out naive.svg \\\n    'refund/crash_before_ack/naive kill@sim/applied#1 seed=1'\n" +
			"  interlock-bench timeline kept/refund_crash_before_ack_naive_1.jsonl > a.svg",
		GroupID: "results",
		Args:    takes(1, -1, "a kept file, or a trial in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := b.kept(cmd, args)
			if err != nil {
				return err
			}
			drawing := timeline.SVG(k)
			if out == "" {
				b.say(drawing)
				return nil
			}
			if err := os.WriteFile(out, []byte(drawing), 0o644); err != nil {
				return fmt.Errorf("%w: %w", experiments.ErrOut, err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "write it to this file instead of standard output")
	return cmd
}

// kept is the trial in a file, or the one of a line, run again.
func (b *bench) kept(cmd *cobra.Command, args []string) (experiments.Kept, error) {
	if len(args) == 1 {
		k, err := experiments.ReadTrial(args[0])
		if !errors.Is(err, fs.ErrNotExist) {
			return k, err
		}
	}
	return experiments.Replay(cmd.Context(), b.all, strings.Join(args, " "), "")
}
