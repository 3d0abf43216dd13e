package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

func (b *bench) journal() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "journal",
		Short:   "read a journal",
		Long:    "Journal reads the log that a gate, or a principal, has written. It takes no lock\nand changes nothing, so the journal may be in use. Takeover can end the process\nthat has an effect.",
		Example: "  interlock-bench journal dump state/journal",
		GroupID: "journal",
		RunE:    needsCommand,
	}
	cmd.AddCommand(b.journalDump(), b.journalVerify(), b.journalTakeover())
	return cmd
}

func (b *bench) journalDump() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "dump DIR",
		Short: "print every entry of a journal",
		Long: `Dump prints the entries of a journal in their order, as a page for people or as
JSON lines, up to where every hash and checksum holds. Where that isn't the end it
says what is behind, and exits with 1. DIR is the folder of a journal or authority
log, which may be a copy that nobody trusts, a database of SQLite, or the state
that --keep stored of a trial.`,
		Example: "  interlock-bench journal dump state/journal\n  interlock-bench journal dump state/authority --format json",
		Args:    takes(1, 1, "the folder or database of one journal"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkFormat(format, formatText, formatJSON); err != nil {
				return err
			}
			log, err := experiments.FindLog(args[0])
			if err != nil {
				return err
			}
			return b.dump(log, format)
		},
	}
	addFormat(cmd, &format, formatText, formatJSON)
	return cmd
}

// dumpVersion is the "v" of every dumped line.
const dumpVersion = 1

func (b *bench) dump(log experiments.Log, format string) error {
	width := widthOf(b.stdout)
	segment := uint64(0)
	in, err := log.Read(func(e journal.Entry) error {
		if len(e.Body) > 0 && !json.Valid(e.Body) {
			return fmt.Errorf("%w: entry %d has a body that is no JSON; this journal was not written by a gate", journal.ErrCorrupt, e.Seq)
		}
		if format == formatJSON {
			return b.line(struct {
				V int `json:"v"`
				journal.Entry
			}{dumpVersion, e})
		}
		if e.Segment != segment {
			segment = e.Segment
			fmt.Fprintf(b.stdout, "segment %d\n", e.Segment)
		}
		_, err := fmt.Fprint(b.stdout, entryText(e, width))
		return err
	})
	if err != nil {
		return err
	}
	if whole(in) {
		if format == formatText {
			fmt.Fprintln(b.stdout, table.Wrap(fmt.Sprintf("%d entries, consistent to the last; its hash is %s", in.Seq, in.Hash), 2, width))
		}
		return nil
	}
	if format == formatText {
		fmt.Fprint(b.stdout, "\n"+verifiedText(in, width))
	}
	return partly(in)
}

// shownBody is how many bytes of a body a page shows.
const shownBody = 400

// entryText is one entry for people: its place, time, kind and effect, and below
// them the beginning of its body.
func entryText(e journal.Entry, width int) string {
	effect := ""
	if !e.Effect.IsZero() {
		effect = e.Effect.String()[:12] + "…"
	}
	const indent = 7
	text := table.Wrap(strings.TrimRight(fmt.Sprintf("%5d  %s  %-10s  %s", e.Seq, e.Time.UTC().Format(time.RFC3339), e.Kind, effect), " "), indent, width) + "\n"
	body := strings.ToValidUTF8(string(e.Body), "�")
	if len(body) > shownBody {
		body = strings.ToValidUTF8(body[:shownBody], "") + "…"
	}
	if body != "" {
		text += table.Wrap(strings.Repeat(" ", indent)+visible(body), indent, width) + "\n"
	}
	return text
}

// visible is s with everything escaped that isn't seen but obeyed by a terminal,
// and that would look like something else: control characters, and those that
// turn the direction of text.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
	}
	return b.String()
}
