package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// listed is what can be listed, by the word that lists it.
var listed = []struct {
	what string
	of   func([]*experiments.Experiment) table.Table
}{
	{"experiments", listExperiments},
	{"rows", listRows},
	{"columns", listColumns},
	{"profiles", listProfiles},
}

func (b *bench) list() *cobra.Command {
	var format string
	var words []string
	for _, l := range listed {
		words = append(words, l.what)
	}
	cmd := &cobra.Command{
		Use:       "list [experiments|rows|columns|profiles]",
		Short:     "list experiments, rows, columns or profiles",
		Long:      "List prints what there is: experiments, their rows, their columns, or the profiles\nof the simulated service. Without a word it lists experiments. In a pipe each has\none line, however long.",
		Example:   "  interlock-bench list\n  interlock-bench list columns\n  interlock-bench list rows --format csv",
		GroupID:   "experiments",
		ValidArgs: words,
		Args:      takes(0, 1, "one kind of thing"),
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

// listProfiles are the services that refund columns speak to, by the name behind
// their @.
func listProfiles([]*experiments.Experiment) table.Table {
	t := table.Table{Header: []string{"profile", "absorbs keys", "can be asked", "bound", "fences", "conditional"}}
	for _, p := range sim.Profiles() {
		c := p.Declared()
		t.Rows = append(t.Rows, []string{p.Name, orNo(c.DedupWindow > 0, c.DedupWindow.String()), orNo(c.Lookup, "yes"),
			orNo(c.LandingBound > 0, c.LandingBound.String()), orNo(c.Fencing, "yes"), orNo(c.Conditional, "yes")})
	}
	return t
}

func orNo(is bool, what string) string {
	if is {
		return what
	}
	return "no"
}
