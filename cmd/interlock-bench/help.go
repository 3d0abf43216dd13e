package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/table"
)

// help prints what cobra says of a command, no line but an example's longer than
// the terminal.
func (b *bench) help(cmd *cobra.Command, _ []string) {
	text := filled(strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short))) + "\n\n" + cmd.UsageString()
	io.WriteString(b.stdout, fit(text, cmd.Example, widthOf(b.stdout)))
}

// helpOf is the command that prints the help of another one.
func (b *bench) helpOf() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND...]",
		Short:   "print the help of a command",
		Long:    "Help prints what a command does, with its flags and examples, as --help does.",
		Example: "  interlock-bench help refund\n  interlock-bench help journal verify",
		GroupID: "command",
		RunE: func(cmd *cobra.Command, args []string) error {
			of := cmd.Root()
			for _, name := range args {
				next := slices.IndexFunc(of.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
				if next < 0 {
					return experiments.CheckName("command of "+of.Name(), name, namesOf(of))
				}
				of = of.Commands()[next]
			}
			return of.Help()
		},
	}
}

// completion puts cobra's completion command among the others, and has it refuse
// a shell that it doesn't know.
func (b *bench) completion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.GroupID, c.Short, c.RunE = "command", "print a script that completes commands in a shell", needsCommand
		c.Args, c.Example = cobra.ArbitraryArgs, "  source <(interlock-bench completion bash)"
		for _, shell := range c.Commands() {
			shell.Short = "print the script for " + shell.Name()
			shell.Example = "  interlock-bench completion " + shell.Name()
		}
	}
}

func namesOf(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// filled joins the lines of each paragraph, to be broken anew; lines that are
// indented, or stand below a line that ends in a colon, stay as they are.
func filled(text string) string {
	var b strings.Builder
	before := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if before != "" {
			if line == "" || strings.HasPrefix(line, " ") || strings.HasPrefix(before, " ") || strings.HasSuffix(before, ":") {
				b.WriteString("\n")
			} else {
				b.WriteString(" ")
			}
		} else if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString(line)
		before = line
	}
	return b.String()
}

// described is what stands in front of a line's description: a name, a flag or a
// code.
var described = regexp.MustCompile(`^ *(?:-\w, )?\S+(?: \w+)? {2,}|^  \S+ `)

// fit breaks the lines of a help below their descriptions, but for those of the
// examples, which are to be copied.
func fit(text, examples string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" || !strings.Contains(examples, line) {
			line = table.Wrap(line, len(described.FindString(line)), width)
		}
		fmt.Fprintln(&b, line)
	}
	return b.String()
}
