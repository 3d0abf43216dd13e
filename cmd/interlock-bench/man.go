package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/interlock-bench/interlock-bench/experiments"
)

// man writes the manual pages.
func (b *bench) man() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "write the manual pages into a folder",
		Long:    "Man writes one page for each command into a folder, interlock-bench.1 and\ninterlock-bench-COMMAND.1, made from the same words as the help.",
		Example: "  interlock-bench man /tmp/man1\n  interlock-bench man /usr/local/share/man/man1",
		GroupID: "command",
		Args:    takes(1, 1, "one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := experiments.Writable(args[0]); err != nil {
				return err
			}
			return writePages(cmd.Root(), args[0])
		},
	}
}

func writePages(cmd *cobra.Command, dir string) error {
	name := pageName(cmd)
	if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(manPage(cmd)), 0o644); err != nil {
		return fmt.Errorf("%w: %w", experiments.ErrOut, err)
	}
	for _, c := range paged(cmd) {
		if err := writePages(c, dir); err != nil {
			return err
		}
	}
	return nil
}

// paged are the commands of cmd that have a page: those that its help lists,
// but for those that cobra adds.
func paged(cmd *cobra.Command) (commands []*cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" && c.Name() != "completion" {
			commands = append(commands, c)
		}
	}
	return commands
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is cmd's page for man(7).
func manPage(cmd *cobra.Command) string {
	var p page
	p.line(`.TH "%s" "1" "" "interlock-bench" "Interlock-bench"`, strings.ToUpper(pageName(cmd)))
	p.section("NAME", roff(pageName(cmd))+` \- `+roff(cmd.Short))
	p.section("SYNOPSIS", `\fB`+roff(cmd.UseLine())+`\fR`)
	p.section("DESCRIPTION")
	for paragraph := range strings.SplitSeq(cmd.Long, "\n\n") {
		p.paragraph(paragraph)
	}
	p.flags("OPTIONS", cmd.NonInheritedFlags())
	if cmd.Example != "" {
		p.section("EXAMPLES")
		p.verbatim(cmd.Example)
	}
	if cmd.HasParent() {
		p.section("EXIT STATUS")
		for _, c := range exitCodes {
			p.line(".TP\n%d\n%s.", c.code, roff(c.what))
		}
	}
	var see []string
	if cmd.HasParent() {
		see = append(see, `\fB`+roff(pageName(cmd.Parent()))+`\fR(1)`)
	}
	for _, c := range paged(cmd) {
		see = append(see, `\fB`+roff(pageName(c))+`\fR(1)`)
	}
	p.section("SEE ALSO", strings.Join(see, ", "))
	return p.String()
}

// page is a manual page under way.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *page) section(name string, lines ...string) {
	p.line(".SH %s", name)
	for _, l := range lines {
		p.line("%s", l)
	}
}

// paragraph is text that is filled, or stays as it is where its lines are
// indented.
func (p *page) paragraph(text string) {
	if strings.Contains(text, "\n  ") {
		p.verbatim(text)
		return
	}
	p.line(".PP\n%s", roff(text))
}

func (p *page) verbatim(text string) { p.line(".PP\n.nf\n%s\n.fi", roff(text)) }

func (p *page) flags(name string, of *pflag.FlagSet) {
	if !of.HasAvailableFlags() {
		return
	}
	p.section(name)
	of.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			value = ` \fI` + roff(value) + `\fR`
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" {
			usage += " (by default " + f.DefValue + ")"
		}
		p.line(".TP\n\\fB\\-\\-%s\\fR%s\n%s", roff(f.Name), value, roff(usage))
	})
}

// roff keeps text from being read as requests or escapes.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
