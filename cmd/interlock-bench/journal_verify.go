package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

func (b *bench) journalVerify() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "say up to where a copy of a journal is consistent, and what is suspect",
		Long: `Verify reads a copy that nobody trusts, whoever owns it, and changes nothing. It
says up to which entry and byte every hash and checksum holds, where damage
begins, and which effects the next opening would mark suspect because of it. It
exits with 0 where all bytes are consistent and with 1 where they aren't. That
nothing is missing at the end can't be seen in a copy by itself.`,
		Example: "  interlock-bench journal verify backup/journal\n  interlock-bench journal verify backup/authority --format json",
		Args:    takes(1, 1, "the folder of one journal"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkFormat(format, formatText, formatJSON); err != nil {
				return err
			}
			log, err := experiments.FindLog(args[0])
			if err != nil {
				return err
			}
			if log.SQLite {
				return &exit{exitUsage, log.Path + " is a database, and verify reads the segments of a file store; journal dump checks every hash in it"}
			}
			in, err := log.Read(nil)
			if err != nil {
				return err
			}
			if format == formatJSON {
				err = b.verifiedLine(in)
			} else {
				_, err = fmt.Fprint(b.stdout, verifiedText(in, widthOf(b.stdout)))
			}
			if err == nil {
				err = partly(in)
			}
			return err
		},
	}
	addFormat(cmd, &format, formatText, formatJSON)
	return cmd
}

// whole reports whether every byte of a log was consistent.
func whole(in journal.Inspection) bool { return in.Damage == nil && len(in.Tails) == 0 }

// partly is how a command ends that read a log of which not all is consistent.
func partly(in journal.Inspection) error {
	if whole(in) {
		return nil
	}
	return &exit{exitBroken, fmt.Sprintf("the journal is consistent up to entry %d only", in.Seq)}
}

// noteTails says that something behind the last entry was not read.
func (b *bench) noteTails(in journal.Inspection) {
	for _, t := range in.Tails {
		fmt.Fprintf(b.stderr, "interlock-bench: behind entry %d %q has %d bytes that are no entry; journal verify says what may be in them\n", in.Seq, t.File, t.Bytes)
	}
}

// notShown is what no copy says about itself.
const notShown = "that this is all: a journal that ends early between two entries can't be told from a shorter one; compare its last hash with one that was kept elsewhere"

func verifiedText(in journal.Inspection, width int) string {
	var s strings.Builder
	line := func(what, format string, args ...any) {
		s.WriteString(table.Wrap(fmt.Sprintf("%-10s  ", what)+fmt.Sprintf(format, args...), 12, width) + "\n")
	}
	line("namespace", "%q", in.Namespace)
	line("consistent", "up to entry %d, in segment %d at byte %d; its hash is %s", in.Seq, in.Segment, in.Byte, in.Hash)
	line("proven", "up to entry %d: a later record says that it was durable", in.Proven)
	if d := in.Damage; d != nil {
		line("damaged", "%q at byte %d: %s; what is behind was not read", d.File, d.Offset, visible(d.Why))
	}
	for _, t := range in.Tails {
		line("tail", "%q from byte %d, %d bytes: %s; the next opening cuts it", t.File, t.Offset, t.Bytes, visible(t.Why))
		for _, id := range t.Suspects {
			line("suspect", "effect %s may have had an attempt there", id)
		}
	}
	line("not shown", "%s", notShown)
	return s.String()
}

func (b *bench) verifiedLine(in journal.Inspection) error {
	type damage struct {
		File     string       `json:"file"`
		Byte     int64        `json:"byte"`
		Bytes    int64        `json:"bytes,omitempty"`
		Why      string       `json:"why"`
		Suspects []journal.ID `json:"suspects,omitempty"`
	}
	line := struct {
		V         int         `json:"v"`
		Namespace string      `json:"namespace"`
		Segment   uint64      `json:"segment"`
		Byte      int64       `json:"byte"`
		Seq       journal.Seq `json:"seq"`
		Hash      string      `json:"hash"`
		Proven    journal.Seq `json:"proven"`
		Damage    *damage     `json:"damage"`
		Tails     []damage    `json:"tails"`
		NotShown  string      `json:"not_shown"`
	}{dumpVersion, in.Namespace, in.Segment, in.Byte, in.Seq, in.Hash.String(), in.Proven, nil, []damage{}, notShown}
	if d := in.Damage; d != nil {
		line.Damage = &damage{File: d.File, Byte: d.Offset, Why: d.Why}
	}
	for _, t := range in.Tails {
		line.Tails = append(line.Tails, damage{t.File, t.Offset, t.Bytes, t.Why, t.Suspects})
	}
	return b.line(line)
}

// line prints one value as one line of JSON. What a terminal would obey is
// escaped, and is the same value to whoever parses it.
func (b *bench) line(v any) error {
	var s strings.Builder
	e := json.NewEncoder(&s)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := fmt.Fprintln(b.stdout, visible(strings.TrimSuffix(s.String(), "\n")))
	return err
}
