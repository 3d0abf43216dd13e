package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/story"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

func (b *bench) replay() *cobra.Command {
	var format, keep string
	var every bool
	cmd := &cobra.Command{
		Use:   "replay 'TRIAL'",
		Short: "run one trial again and tell what happened in it",
		Long: `Replay runs one trial again, in processes of its own, and tells its history in
order: what was decided, written, sent, applied, killed and recovered, by whom,
and why the judge said what it said. The numbers are those of the events.

A trial is a line as records, findings and cite print it: EXPERIMENT/ROW/COLUMN,
axes, faults and a seed. Faults may be changed or left out to try something else.
--format json prints the kept trial, as --keep stores it.`,
		Example: "  interlock-bench replay \\\n    'refund/crash_before_ack/naive kill@sim/applied#1 seed=1'\n" +
			"  interlock-bench replay --all \\\n    'refund/crash_before_ack/gate@t2 file=plain kill@sim/applied#1 seed=1'\n" +
			"  interlock-bench replay 'refund/happy_path/naive seed=1' --format json",
		GroupID: "results",
		Args:    takes(1, -1, "a trial, in quotes, as records and findings print it"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return startingWith(b.trials(), typed), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(format, formatText, formatJSON); err != nil {
				return err
			}
			line := strings.Join(args, " ")
			if of := b.trialsOf(line); len(of) > 0 {
				return &exit{exitUsage, fmt.Sprintf("%s is a cell; its trials are:\n  %s", line, strings.Join(of, "\n  "))}
			}
			k, err := experiments.Replay(cmd.Context(), append(slices.Clone(b.all), experiments.ExploreFull()), line, keep)
			if err != nil {
				return err
			}
			if format == formatJSON {
				err = experiments.EncodeKept(b.stdout, k)
			} else {
				detail := story.Most
				if every {
					detail = story.Every
				}
				b.say(story.Text(k, detail, widthOf(b.stdout)))
			}
			if err == nil && k.Verdict.Class == oracle.Unknown {
				return &exit{exitUnjudged, "the trial was not judged, or a planned fault did not happen"}
			}
			return err
		},
	}
	addFormat(cmd, &format, formatText, formatJSON)
	cmd.Flags().StringVar(&keep, "keep", "", "keep its history and its state in this folder")
	cmd.Flags().BoolVar(&every, "all", false, "tell every event")
	return cmd
}

// trialsOf are the lines of the trials of a cell; none where id is not that of
// one.
func (b *bench) trialsOf(id string) (lines []string) {
	for _, line := range b.trials() {
		if strings.HasPrefix(line, id+" ") && !strings.Contains(id, " ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// trials are the lines of all trials, with the seed that runs have by default.
func (b *bench) trials() (lines []string) {
	for _, e := range b.all {
		for _, c := range e.Cells {
			for _, t := range c.Trials {
				t.Seed = 1
				lines = append(lines, t.String())
			}
		}
	}
	return lines
}
