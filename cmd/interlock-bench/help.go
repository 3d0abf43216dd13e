package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments/table"
)

// help prints what cobra says of a command, no line but an example's longer than
// the terminal.
func (b *bench) help(cmd *cobra.Command, _ []string) {
	text := strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short)) + "\n\n" + cmd.UsageString()
	io.WriteString(b.stdout, fit(text, cmd.Example, widthOf(b.stdout)))
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
