package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

func (b *bench) judge() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "judge DIR",
		Short: "apply today's rules to stored histories",
		Long: `Judge reads the trials that --keep stored in a folder and judges their histories
by the rules of today. One that is judged otherwise than when it was stored is
named, with why; so is a file that can't be read. Nothing is run.`,
		Example: "  interlock-bench refund --row crash_before_ack --keep /tmp/histories\n  interlock-bench judge /tmp/histories",
		GroupID: "results",
		Args:    takes(1, 1, "one folder of kept trials"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkFormat(format, tableFormats()...); err != nil {
				return err
			}
			files, err := experiments.ReadKept(args[0])
			if err != nil {
				return err
			}
			return b.judgeAll(files, format)
		},
	}
	addFormat(cmd, &format, tableFormats()...)
	return cmd
}

func (b *bench) judgeAll(files []experiments.KeptFile, format string) error {
	t := table.Table{Header: []string{"file", "trial", "then", "today"}}
	var notes []string
	count := map[string]int{}
	note := func(kind, sentence string, args ...any) {
		count[kind]++
		notes = append(notes, kind+": "+fmt.Sprintf(sentence, args...))
	}
	for _, f := range files {
		if f.Err != nil {
			note("not read", "%s: %s", f.Name, strings.TrimPrefix(f.Err.Error(), "experiments: "))
			continue
		}
		k, v := f.Kept, f.Kept.Verdict
		then := k.Said.Shows() + " " + k.Said.Class.Word()
		today := k.Shows() + " " + v.Class.Word()
		t.Rows = append(t.Rows, []string{f.Name, k.Trial.String(), then, today})
		why := strings.Join(v.Why, "; ")
		if len(v.Broke) > 0 {
			why = "by " + strings.Join(v.Broke, ", ") + ": " + why
		}
		switch {
		case len(k.History) == 0:
			note("not judged", "%s (%s): it has no history", f.Name, k.Trial)
		case !k.Same():
			note("judged otherwise", "%s (%s): from %s %s to %s %s; %s", f.Name, k.Trial, k.Said.Class, then, v.Class, today, cmp.Or(why, "no rule finds anything"))
		case v.Class == oracle.Unknown:
			note("not judged", "%s (%s): %s", f.Name, k.Trial, why)
		}
	}
	if format == tableFormats()[0] { // the names say which trial it is, and there is no room for both
		t = t.Without(1)
	}
	b.print(format, widthOf(b.stdout), t)
	to := b.notices(format)
	for _, n := range notes {
		fmt.Fprintln(to, table.Wrap(n, 2, widthOf(to)))
	}
	switch {
	case count["judged otherwise"] > 0:
		return &exit{exitBroken, fmt.Sprintf("judged otherwise than when stored: %d of %d", count["judged otherwise"], len(files))}
	case len(notes) > 0:
		return &exit{exitUnjudged, fmt.Sprintf("not judged: %d of %d", len(notes), len(files))}
	}
	if format == tableFormats()[0] {
		fmt.Fprintf(b.stdout, "\n%d judged as when stored\n", len(files))
	}
	return nil
}
