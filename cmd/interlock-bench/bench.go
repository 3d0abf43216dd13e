package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	measure "github.com/interlock-bench/interlock-bench/experiments/bench"
)

// benchmark is the command that measures what the gate costs.
func (b *bench) benchmark() *cobra.Command {
	var o measure.Options
	var out string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "measure what the gate costs: effects a second, memory, opening, takeover",
		Long: `Bench measures effects a second on each store, syncs and allocations, what an
effect costs in a long journal, how long opening, recovery and takeover take, and
beside them a bare loop of append and sync and the hand check. All figures are
taken in turn, five times, over some minutes, in a folder for temporary files that
takes two gigabytes. They are written to bench.md and bench.jsonl and are never
compared: a missed target is a figure like others.`,
		Example: "  interlock-bench bench\n  interlock-bench bench --quick",
		GroupID: "experiments",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			write := !o.Quick || cmd.Flags().Changed("out")
			if write {
				if err := experiments.Writable(out); err != nil {
					return err
				}
			}
			began := time.Now()
			o.Say = func(what string) {
				fmt.Fprintf(b.stderr, "bench: %4.0f s: %s\n", time.Since(began).Seconds(), what)
			}
			measures, err := measure.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			made := experiments.Made(time.Since(began)) + load()
			page := measure.Page(made, measures)
			fmt.Fprint(b.stdout, page)
			if !write {
				return nil
			}
			lines, err := measure.Encode(made, measures)
			if err != nil {
				return err
			}
			for name, content := range map[string][]byte{"bench.jsonl": lines, "bench.md": []byte(page)} {
				if err := os.WriteFile(filepath.Join(out, name), content, 0o644); err != nil {
					return &exit{exitFailed, fmt.Sprintf("results can't be written: %v", err)}
				}
			}
			fmt.Fprintf(b.stdout, "\nwrote %s and %s\n", filepath.Join(out, "bench.jsonl"), filepath.Join(out, "bench.md"))
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.Quick, "quick", false, "one short turn over small journals, to see that it runs; nothing is written unless --out is given")
	cmd.Flags().StringVar(&o.Dir, "dir", "", "folder in which journals are made and taken away again; the system's for temporary files where none is given")
	cmd.Flags().StringVar(&out, "out", defaultOut, "folder for the results")
	return cmd
}

// load is how busy the machine was at the end, by the kernel, and with what
// priority this ran.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	said := ", load " + strings.Join(strings.Fields(string(text))[:3], " ")
	// The system call says 20 less the nice value.
	if p, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil && p != 20 {
		said += fmt.Sprintf(", run at a nice value of %d", 20-p)
	}
	return said
}
