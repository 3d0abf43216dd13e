package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/table"
)

// listed is what can be listed, by the word that lists it.
var listed = []struct {
	what string
	of   func([]*experiments.Experiment) table.Table
}{
	{"experiments", listExperiments},
	{"rows", listRows},
	{"columns", listColumns},
}

func (b *bench) list() *cobra.Command {
	var format string
	var words []string
	for _, l := range listed {
		words = append(words, l.what)
	}
	cmd := &cobra.Command{
		Use:       "list [experiments|rows|columns]",
		Short:     "list experiments, rows or columns; without a word, experiments",
		Long:      "List prints what there is: experiments, their rows or their columns. In a pipe each\nhas one line, however long.",
		Example:   "  interlock-bench list\n  interlock-bench list columns\n  interlock-bench list rows --format csv",
		GroupID:   "experiments",
		ValidArgs: words,
		Args:      cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			what := words[0]
			if len(args) > 0 {
				what = args[0]
			}
			if err := experiments.CheckName("list", what, words); err != nil {
				return err
			}
			if err := checkFormat(format, tableFormats()...); err != nil {
				return err
			}
			for _, l := range listed {
				if l.what == what {
					width, _ := sizeOf(b.stdout)
					b.print(format, width, l.of(b.all))
				}
			}
			return nil
		},
	}
	addFormat(cmd, &format, tableFormats()...)
	return cmd
}

func listExperiments(all []*experiments.Experiment) table.Table {
	t := table.Table{Header: []string{"experiment", "cells", "what"}, Prose: true}
	for _, e := range all {
		t.Rows = append(t.Rows, []string{e.Name, fmt.Sprint(len(e.Cells)), e.Short})
	}
	return t
}

func listRows(all []*experiments.Experiment) table.Table {
	t := table.Table{Header: []string{"experiment", "group", "row", "what"}, Prose: true}
	for _, e := range all {
		for _, r := range e.Rows {
			t.Rows = append(t.Rows, []string{e.Name, r.Group, r.Name, r.What})
		}
	}
	return t
}

func listColumns(all []*experiments.Experiment) table.Table {
	t := table.Table{Header: []string{"experiment", "column", "promises", "what"}, Prose: true}
	for _, e := range all {
		for _, c := range e.Columns {
			promises := "nothing"
			if c.Holds {
				promises = "its cells"
			}
			t.Rows = append(t.Rows, []string{e.Name, c.Name, promises, c.What})
		}
	}
	return t
}
