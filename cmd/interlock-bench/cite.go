package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/table"
)

const formatBibTeX = "bibtex"

func (b *bench) cite() *cobra.Command {
	var out, format string
	cmd := &cobra.Command{
		Use:   "cite ID | EXPERIMENT ROW COLUMN",
		Short: "quote one cell: value, commit, replay line, BibTeX",
		Long: `Cite prints what is needed to quote one cell of the results: its value, the
commit that holds it, the line that runs it again, and an entry for BibTeX. An id
is EXPERIMENT/ROW/COLUMN, or EXPERIMENT.TABLE/ROW/COLUMN for a table beside the
main one. Where git can't vouch for the value, it says why.`,
		Example: "  interlock-bench cite refund crash_before_ack gate@t2\n" +
			"  interlock-bench cite refund.unbounded/crash_before_send/gate@t2\n" +
			"  interlock-bench cite refund/crash_before_ack/naive --format bibtex",
		GroupID:           "results",
		Args:              oneOrThree,
		ValidArgsFunction: b.completeCell,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(format, formatText, formatJSON, formatBibTeX); err != nil {
				return err
			}
			c, err := experiments.Cite(cmd.Context(), b.all, out, strings.Join(args, "/"))
			if err != nil {
				return err
			}
			switch format {
			case formatJSON:
				e := json.NewEncoder(b.stdout)
				e.SetEscapeHTML(false)
				return e.Encode(c)
			case formatBibTeX:
				fmt.Fprint(b.stdout, c.BibTeX)
				return nil
			}
			b.citeText(c)
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", defaultOut, "folder of the results")
	addFormat(cmd, &format, formatText, formatJSON, formatBibTeX)
	return cmd
}

func oneOrThree(_ *cobra.Command, args []string) error {
	if len(args) != 1 && len(args) != 3 {
		return fmt.Errorf("cite takes the ID of a cell, or EXPERIMENT ROW COLUMN, and not %d arguments; see interlock-bench cite --help", len(args))
	}
	return nil
}

func (b *bench) citeText(c experiments.Citation) {
	width := widthOf(b.stdout)
	line := func(name, value string) {
		fmt.Fprintln(b.stdout, table.Wrap(fmt.Sprintf("%-9s%s", name, value), 9, width))
	}
	line("cell", c.ID)
	line("value", fmt.Sprintf("%s, %s, the worst of %d", c.Value, c.Verdict, c.Trials))
	line("page", c.Page)
	line("record", c.Records)
	line("made by", c.Command)
	if c.Commit != "" {
		line("commit", c.Commit+" of "+c.Date)
	}
	if c.Caveat != "" {
		line("but", c.Caveat)
	}
	line("again by", c.Replay)
	fmt.Fprintf(b.stdout, "\n%s", c.BibTeX)
}

// completeCell completes an id, or experiment, row and column one after the
// other.
func (b *bench) completeCell(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	var names []string
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, e := range b.all {
		for _, c := range e.Cells {
			id := c.ID(e.Name)
			parts := strings.Split(id, "/")
			if len(args) < len(parts) && strings.HasPrefix(id, strings.Join(append(args, ""), "/")) {
				add(parts[len(args)])
			}
			if len(args) == 0 && strings.Contains(typed, "/") {
				add(id)
			}
		}
	}
	return startingWith(names, typed), cobra.ShellCompDirectiveNoFileComp
}
