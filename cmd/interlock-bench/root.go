package main

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
)

// bench is one invocation.
type bench struct {
	all            []*experiments.Experiment
	stdout, stderr io.Writer
	began          bool // the command line was understood and a command runs
}

// The groups of the root help. A group is shown when it has a command.
var groups = []*cobra.Group{
	{ID: "experiments", Title: "Experiments:"},
	{ID: "results", Title: "Results:"},
	{ID: "journal", Title: "Journal:"},
	{ID: "command", Title: "This command:"},
}

func (b *bench) root() *cobra.Command {
	cobra.EnableCommandSorting = false // help keeps the order of the slices
	root := &cobra.Command{
		Use:   "interlock-bench",
		Short: "measure what happens to an agent's effect when things go wrong",
		Long: `Interlock-bench runs ways of doing one approved effect as real processes, kills
them, revokes their authority and changes the facts under them, and judges from
the service's own ledger what came of it.

` + exitHelp(),
		Example: `  interlock-bench refund
  interlock-bench refund --row crash_before_ack --column naive,gate@t2
  interlock-bench demo naive
  interlock-bench replay 'refund/happy_path/naive seed=1'
  interlock-bench check --bytes
  interlock-bench list rows`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
	}
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return experiments.CheckName("command", args[0], namesOf(root))
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpFunc(b.help)
	root.SetFlagErrorFunc(flagError)
	help := b.helpOf()
	root.SetHelpCommand(help)

	for _, e := range b.all {
		if e.Name == experiments.CodingName {
			root.AddCommand(b.coding(e))
			continue
		}
		root.AddCommand(b.experiment(e))
		if e.Name == experiments.StripeName {
			root.AddCommand(b.stripe(e))
		}
	}
	root.AddCommand(b.benchmark(), b.run(), b.demo(), b.list(), b.check(), b.replay(), b.timeline(), b.judge(), b.cite(), b.receipt(), b.inbox(), b.journal(), help, b.man())
	b.completion(root)
	b.noteBegin(root.Commands())
	for _, g := range groups {
		for _, c := range root.Commands() {
			if c.GroupID == g.ID {
				root.AddGroup(g)
				break
			}
		}
	}
	return root
}

// noteBegin has every command note that it begins: by then cobra has accepted
// names, flags and arguments.
func (b *bench) noteBegin(commands []*cobra.Command) {
	for _, c := range commands {
		b.noteBegin(c.Commands())
		do := c.RunE
		c.RunE = func(cmd *cobra.Command, args []string) error {
			b.began = true
			return do(cmd, args)
		}
	}
}

// needsCommand is a command that only has further ones.
func needsCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return experiments.CheckName("command of "+cmd.Name(), args[0], namesOf(cmd))
}

// exitHelp is the exit codes for the help.
func exitHelp() string {
	s := "Exit codes:"
	for _, c := range exitCodes {
		s += fmt.Sprintf("\n  %-4d %s", c.code, c.what)
	}
	return s
}

// version is the module's version and the commit it was built from, as far as
// the build knows them.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	commit, changed := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ", with uncommitted changes"
		}
	}
	return fmt.Sprintf("interlock-bench %s, commit %s%s, %s", info.Main.Version, commit, changed, info.GoVersion)
}
