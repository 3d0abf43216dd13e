package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
)

func (b *bench) check() *cobra.Command {
	var out string
	var bytesOnly bool
	cmd := &cobra.Command{
		Use:   "check [EXPERIMENT...]",
		Short: "hold committed results against themselves and a new run",
		Long: `Check first compares bytes: a page must be the rendering of its records. Then it
runs every trial again and compares the records. Each cell that differs is named
with what it was and what it is. Without a name it checks all experiments.`,
		Example: "  interlock-bench check\n  interlock-bench check refund --bytes",
		GroupID: "results",

		ValidArgsFunction: b.completeExperiments,
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := experiments.Find(b.all, args)
			if err != nil {
				return err
			}
			return b.checkAll(cmd, chosen, out, bytesOnly)
		},
	}
	cmd.Flags().StringVar(&out, "out", defaultOut, "folder of the results")
	cmd.Flags().BoolVar(&bytesOnly, "bytes", false, "compare the page with the records and run nothing")
	return cmd
}

func (b *bench) checkAll(cmd *cobra.Command, chosen []*experiments.Experiment, out string, bytesOnly bool) error {
	var all []experiments.Finding
	for _, e := range chosen {
		update, clear := progress(b.stderr, e.Name)
		findings, err := experiments.Check(cmd.Context(), e, out, bytesOnly, experiments.Options{Progress: update})
		clear()
		if err != nil {
			return err
		}
		if len(findings) == 0 {
			fmt.Fprintf(b.stdout, "%s: as committed and as declared\n", e.Name)
		}
		all = append(all, findings...)
	}
	return b.report(b.stdout, all)
}
