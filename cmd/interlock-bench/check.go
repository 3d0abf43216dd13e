package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
)

func (b *bench) check() *cobra.Command {
	var out string
	var bytesOnly bool
	var format string
	cmd := &cobra.Command{
		Use:   "check [EXPERIMENT...]",
		Short: "hold committed results against themselves and a new run",
		Long: `Check first compares bytes: a page must be the rendering of its records. Then it
runs every trial again and compares the records. Each cell that differs is named
with what it was and what it is. Without a name it checks all experiments. With
--format json each finding is a line, and no line says that all is well.`,
		Example: "  interlock-bench check\n  interlock-bench check refund --bytes\n  interlock-bench check --bytes --format json",
		GroupID: "results",

		ValidArgsFunction: b.completeExperiments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(format, formatText, formatJSON); err != nil {
				return err
			}
			chosen, err := experiments.Find(b.all, args)
			if err != nil {
				return err
			}
			return b.checkAll(cmd, chosen, out, bytesOnly, format)
		},
	}
	addFormat(cmd, &format, formatText, formatJSON)
	cmd.Flags().StringVar(&out, "out", defaultOut, "folder of the results")
	cmd.Flags().BoolVar(&bytesOnly, "bytes", false, "compare the page with the records and run nothing")
	return cmd
}

func (b *bench) checkAll(cmd *cobra.Command, chosen []*experiments.Experiment, out string, bytesOnly bool, format string) error {
	var all []experiments.Finding
	for _, e := range chosen {
		update, clear := progress(b.stderr, e.Name)
		findings, err := experiments.Check(cmd.Context(), e, out, bytesOnly, experiments.Options{Progress: update})
		clear()
		if err != nil {
			return err
		}
		if len(findings) == 0 && format == formatText {
			fmt.Fprintf(b.stdout, "%s: as committed and as declared\n", e.Name)
		}
		all = append(all, findings...)
	}
	if format == formatJSON {
		for _, f := range all {
			if err := b.line(findingLine{findingVersion, f.Kind.String(), f.Where, f.From, f.To}); err != nil {
				return err
			}
		}
		return b.report(io.Discard, all)
	}
	return b.report(b.stdout, all)
}

// findingVersion is the "v" of every finding's line.
const findingVersion = 1

// findingLine is a finding as one line of JSON.
type findingLine struct {
	V     int    `json:"v"`
	Kind  string `json:"kind"`
	Where string `json:"where"`
	From  string `json:"from"`
	To    string `json:"to"`
}
