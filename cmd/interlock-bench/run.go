package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/explore"
)

// runFlags are what every command that runs experiments takes.
type runFlags struct {
	filter experiments.Filter
	seed   uint64
	out    string
	keep   string

	workers uint
	check   bool
	words   bool
	format  string
	cases   uint   // of a sweep; 0: as many as it has
	bounds  string // of the explorer
}

// add gives cmd the flags. of are the experiments whose rows and columns it
// takes.
func (f *runFlags) add(cmd *cobra.Command, of ...*experiments.Experiment) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.filter.Rows, "row", nil, "run these rows only and write nothing unless --out is given (repeatable, or a,b)")
	flags.StringSliceVar(&f.filter.Columns, "column", nil, "run these columns only, likewise")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of every trial")
	flags.StringVar(&f.out, "out", defaultOut, "folder for the results")
	flags.StringVar(&f.keep, "keep", "", "keep the history and the state of every trial in this folder")
	flags.UintVar(&f.workers, "workers", 2, "trials at once; they share nothing, so the results are the same")
	flags.BoolVar(&f.check, "check", false, "hold the results in --out against a new run, as check does")
	flags.BoolVar(&f.words, "words", false, "show each cell's status, in a table as wide as it is")
	addFormat(cmd, &f.format, tableFormats()...)
	complete(cmd, "row", func() (names []string) {
		for _, e := range of {
			for _, r := range e.Rows {
				names = append(names, r.Name)
			}
		}
		return names
	})
	complete(cmd, "column", func() (names []string) {
		for _, e := range of {
			for _, c := range e.Columns {
				names = append(names, c.Name)
			}
		}
		return names
	})
	for _, name := range []string{"row", "column", "seed", "keep", "words"} {
		cmd.MarkFlagsMutuallyExclusive("check", name)
	}
}

// defaultOut is where results lie in the project.
const defaultOut = "results"

func (b *bench) run() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "run [EXPERIMENT...]",
		Short:   "run experiments and write their results; without a name, all",
		Long:    "Run runs experiments, prints their tables and writes records and pages into\nthe folder of results. Without a name it runs all that a check runs again; what\nis made once, in minutes, is run by its name.",
		Example: "  interlock-bench run\n  interlock-bench run refund --out /tmp/results",
		GroupID: "experiments",

		ValidArgsFunction: b.completeExperiments,
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := experiments.Find(b.all, args)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				chosen = slices.DeleteFunc(slices.Clone(chosen), func(e *experiments.Experiment) bool { return e.Once })
			}
			return b.runAll(cmd, chosen, f)
		},
	}
	f.add(cmd, b.all...)
	return cmd
}

// experiment is the command of one experiment: "run" with its name.
func (b *bench) experiment(e *experiments.Experiment) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     e.Name,
		Short:   e.Short,
		Long:    e.Long,
		Example: e.Example,
		GroupID: "experiments",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch f.bounds {
			case "":
			case explore.BoundsFull:
				return b.runAll(cmd, []*experiments.Experiment{experiments.ExploreFull()}, f)
			default:
				if err := experiments.CheckName("bounds", f.bounds, []string{explore.BoundsSmall, explore.BoundsFull}); err != nil {
					return err
				}
			}
			if f.cases > 0 {
				return b.runAll(cmd, []*experiments.Experiment{experiments.Sweep(int(f.cases))}, f)
			}
			return b.runAll(cmd, []*experiments.Experiment{e}, f)
		},
	}
	f.add(cmd, e)
	if e.Name == experiments.SweepName {
		cmd.Flags().UintVar(&f.cases, "cases", 0, "run so many cases in all and write nothing unless --out is given")
		cmd.MarkFlagsMutuallyExclusive("check", "cases")
	}
	if e.Name == experiments.ExploreName {
		cmd.Flags().StringVar(&f.bounds, "bounds", explore.BoundsSmall, "small, or full: ten million states and more, in minutes; its results are explore_full")
	}
	return cmd
}

func (b *bench) completeExperiments(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, e := range b.all {
		if !slices.Contains(args, e.Name) {
			names = append(names, e.Name)
		}
	}
	return startingWith(names, typed), cobra.ShellCompDirectiveNoFileComp
}

// runAll runs the chosen experiments one after the other. Whatever can be known
// to fail is said before the first of them runs.
func (b *bench) runAll(cmd *cobra.Command, chosen []*experiments.Experiment, f runFlags) error {
	if f.check {
		if !cmd.Flags().Changed("format") {
			f.format = formatText
		}
		if err := checkFormat(f.format, formatText, formatJSON); err != nil {
			return err
		}
		return b.checkAll(cmd, chosen, f.out, false, f.format)
	}
	if err := checkFormat(f.format, tableFormats()...); err != nil {
		return err
	}
	for _, e := range chosen {
		if _, err := f.filter.Cells(e); err != nil && e.Over == nil {
			return err
		}
	}
	if f.workers == 0 {
		return &exit{exitUsage, "--workers is 0, and then nobody runs a trial; give 1 or more"}
	}
	if f.keep != "" {
		if err := experiments.Writable(f.keep); err != nil {
			return err
		}
	}
	partial := len(f.filter.Rows)+len(f.filter.Columns) > 0 || f.cases > 0
	write := !partial || cmd.Flags().Changed("out")
	if write {
		if err := experiments.Writable(f.out); err != nil {
			return err
		}
	}
	var findings []experiments.Finding
	for i, e := range chosen {
		if e.Over != nil {
			if write {
				if err := experiments.Derive(f.out, e); err != nil {
					return err
				}
				fmt.Fprintf(b.notices(f.format), "\nwrote %s\n", experiments.FilesOf(f.out, e).Page)
			}
			continue
		}
		update, clear := progress(b.stderr, e.Name)
		records, err := experiments.Run(cmd.Context(), e, f.filter, experiments.Options{Seed: f.seed, Keep: f.keep, Workers: int(f.workers), Progress: update})
		clear()
		if err != nil {
			return err
		}
		show, width := f.show(b)
		if i > 0 && f.format != "json" {
			fmt.Fprintln(b.stdout)
		}
		b.print(f.format, width, experiments.Tables(e, records, show)...)
		if write {
			if err := experiments.Save(f.out, e, records); err != nil {
				return err
			}
			files := experiments.FilesOf(f.out, e)
			fmt.Fprintf(b.notices(f.format), "\nwrote %s and %s\n", files.Records, files.Page)
		}
		findings = append(findings, experiments.Promises(e, records)...)
	}
	return b.report(b.notices(f.format), findings)
}

// show says how cells are shown, and in which width: briefly for a terminal, with
// their status where somebody asks for it and in every other format.
func (f runFlags) show(b *bench) (experiments.Show, int) {
	switch {
	case f.format == "markdown":
		return experiments.Marks, 0
	case f.words || f.format != tableFormats()[0]:
		return experiments.Words, 0
	}
	return experiments.Brief, widthOf(b.stdout)
}

// notices is where goes what is said beside the tables: standard output holds
// nothing else in a format that a program reads.
func (b *bench) notices(format string) io.Writer {
	if format == tableFormats()[0] {
		return b.stdout
	}
	return b.stderr
}

// report prints findings and turns them into the exit code.
func (b *bench) report(w io.Writer, findings []experiments.Finding) error {
	count := map[experiments.Kind]int{}
	for _, f := range findings {
		fmt.Fprintln(w, f)
		count[f.Kind]++
	}
	var parts []string
	for _, p := range []struct {
		kind experiments.Kind
		what string
	}{
		{experiments.Broken, "promises broken"},
		{experiments.Drift, "places drifted"},
		{experiments.Unjudged, "cells not judged"},
	} {
		if n := count[p.kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", p.what, n))
		}
	}
	switch {
	case count[experiments.Broken]+count[experiments.Drift] > 0:
		return &exit{exitBroken, strings.Join(parts, "; ")}
	case count[experiments.Unjudged] > 0:
		return &exit{exitUnjudged, strings.Join(parts, "; ")}
	}
	return nil
}
