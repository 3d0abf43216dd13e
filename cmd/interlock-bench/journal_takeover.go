package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
)

func (b *bench) journalTakeover() *cobra.Command {
	var path string
	var kill bool
	cmd := &cobra.Command{
		Use:   "takeover EFFECT",
		Short: "say who is at an effect, and end a process that hangs",
		Long: `Takeover says which process has an effect, a request id or an effect id, and since
when. A living process is never taken over; one that hangs has to be ended. With
--kill it is sent SIGKILL, if the kernel shows that it, and no other, holds the
lock right now; a process id that somebody wrote down is not enough. Then takeover
waits until the kernel has freed the lock. It settles nothing: the next recover,
there or anywhere on this host, does.

The owner of a file store has every effect in it. In a database a process has the
effects that it is at.`,
		Example: "  interlock-bench journal takeover case-4471 --journal state/journal\n" +
			"  interlock-bench journal takeover case-4471 --journal state/journal --kill",
		Args: takes(1, 1, "one request or effect"),
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := experiments.FindLog(path)
			if err != nil {
				return err
			}
			receipts, _, err := receiptsIn(path)
			if err != nil {
				return err
			}
			if receipts, err = chosen(receipts, "", args); err != nil {
				return err
			}
			if len(receipts) > 1 {
				return &exit{exitUsage, fmt.Sprintf("%q names %d effects; give more of the effect's id", args[0], len(receipts))}
			}
			r := receipts[0]
			b.sentence("%s of request %q, in %s, stands as %s", r.Effect.String()[:12]+"…", r.Request, r.Namespace, r.Status)
			h, err := holderOf(log, r.Effect)
			if err != nil {
				return err
			}
			if !h.Held() {
				b.sentence("nobody has it; the next recover settles what is open")
				return nil
			}
			since := "since when is unknown"
			if !h.Since.IsZero() {
				since = "since " + h.Since.UTC().Format(time.RFC3339)
			}
			b.sentence("%s is held by %s, %s; by the kernel that is process %v", h.What, h.Who, since, h.Processes)
			if !kill {
				b.sentence("with --kill that process gets SIGKILL; nothing was done")
				return nil
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			if err := h.Kill(ctx); errors.Is(err, journal.ErrNotProven) {
				return &exit{exitUnjudged, err.Error()}
			} else if err != nil {
				return err
			}
			b.sentence("killed, and the lock was free after %v; the next recover settles what is open", time.Since(began).Round(100*time.Microsecond))
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "journal", "", "folder or database of the journal")
	cmd.Flags().BoolVar(&kill, "kill", false, "end the process, if it is shown to be the right one")
	if err := cmd.MarkFlagRequired("journal"); err != nil {
		panic(err) // the flag isn't there
	}
	return cmd
}

// sentence prints one.
func (b *bench) sentence(format string, args ...any) {
	fmt.Fprintln(b.stdout, table.Wrap(fmt.Sprintf(format, args...), 2, widthOf(b.stdout)))
}

// holderOf says who has an effect.
func holderOf(log experiments.Log, effect journal.ID) (journal.Holder, error) {
	if log.SQLite {
		return sqlite.OwnerOf(log.Path, effect)
	}
	return journal.OwnerOf(log.Path)
}
