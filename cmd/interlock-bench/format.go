package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/table"
)

// The two formats of what is no table.
const (
	formatText = "text"
	formatJSON = "json"
)

// addFormat gives cmd the flag --format with the names that it takes, the first
// by default.
func addFormat(cmd *cobra.Command, into *string, names ...string) {
	cmd.Flags().StringVar(into, "format", names[0], "how to print: "+strings.Join(names, ", "))
	complete(cmd, "format", func() []string { return names })
}

func tableFormats() (names []string) {
	for _, f := range table.Formats {
		names = append(names, f.Name)
	}
	return names
}

// checkFormat returns nil where a command that takes one of names was given
// name.
func checkFormat(name string, names ...string) error {
	return experiments.CheckName("format", name, names)
}

// print writes tables to standard output in a format that tableFormats has.
// width is that of the first.
func (b *bench) print(format string, width int, tables ...table.Table) {
	for _, f := range table.Formats {
		if f.Name == format {
			b.say(f.Write(width, tables...))
		}
	}
}

// say writes text to standard output, with its judgements in colour where that
// is a terminal.
func (b *bench) say(text string) {
	if coloured(b.stdout) {
		text = paint(text)
	}
	fmt.Fprint(b.stdout, text)
}

// judgement is a cell's money and mark.
var judgement = regexp.MustCompile(`(\$[0-9.]+:? (?:[A-Z_]+, )?)(ok|BAD|look|none)\b`)

var colours = map[string]string{"ok": "32", "BAD": "1;31", "look": "33", "none": "35"}

func paint(text string) string {
	return judgement.ReplaceAllStringFunc(text, func(s string) string {
		part := judgement.FindStringSubmatch(s)
		return part[1] + "\x1b[" + colours[part[2]] + "m" + part[2] + "\x1b[0m"
	})
}

// coloured says whether w shows colours: a terminal that isn't dumb, where
// NO_COLOR is not set or empty.
func coloured(w any) bool {
	f, ok := fileOf(w)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// complete has the shell complete a flag's value from names, also behind a comma.
func complete(cmd *cobra.Command, flag string, names func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := ""
		if comma := strings.LastIndexByte(typed, ','); comma >= 0 {
			before = typed[:comma+1]
		}
		var found []string
		for _, name := range names() {
			found = append(found, before+name)
		}
		return startingWith(found, typed), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag isn't there, or is completed twice
	}
}

func startingWith(names []string, typed string) (found []string) {
	for _, name := range names {
		if strings.HasPrefix(name, typed) {
			found = append(found, name)
		}
	}
	return found
}
