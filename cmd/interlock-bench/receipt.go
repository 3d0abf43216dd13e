package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

func (b *bench) receipt() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "receipt",
		Short: "show the receipts in a journal",
		Long: `A receipt is what a journal proves about one effect: four facts (proposed,
authorized, executed, recorded), where it stands, and what that rests on.`,
		Example: "  interlock-bench refund --row crash_before_ack --column gate@t2 --keep kept\n" +
			"  interlock-bench receipt show \\\n    --journal kept/refund_crash_before_ack_gate@t2_1.state",
		GroupID: "journal",
		RunE:    needsCommand,
	}
	cmd.AddCommand(b.receiptShow())
	return cmd
}

// errNoReceipt is returned for a request or effect that a journal doesn't have.
var errNoReceipt = errors.New("no such effect")

func (b *bench) receiptShow() *cobra.Command {
	var dir, namespace, format string
	cmd := &cobra.Command{
		Use:   "show [REQUEST|EFFECT]",
		Short: "show the receipts of a journal, or of one request or effect in it",
		Long: `Show reads a journal, which may be in use, and prints the receipt of every effect
in it, or of one: a request id, or an effect id of which the first eight digits
are enough. The journal is a folder of the file store, a database of SQLite, or
the state that --keep stored of a trial. It is read and nothing is changed, also
where nothing can be written.`,
		Example: "  interlock-bench receipt show --journal state/journal case-4471\n" +
			"  interlock-bench receipt show --journal state/journal --format json",
		Args: takes(0, 1, "one request or effect"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkFormat(format, formatText, formatJSON); err != nil {
				return err
			}
			receipts, in, err := receiptsIn(dir)
			if err != nil {
				return err
			}
			b.noteTails(in)
			receipts, err = chosen(receipts, namespace, args)
			if err != nil {
				return err
			}
			return b.showReceipts(receipts, format)
		},
	}
	cmd.Flags().StringVar(&dir, "journal", "", "folder or database of the journal")
	cmd.Flags().StringVar(&namespace, "namespace", "", "refuse a journal of another namespace")
	addFormat(cmd, &format, formatText, formatJSON)
	if err := cmd.MarkFlagRequired("journal"); err != nil {
		panic(err) // the flag isn't there
	}
	return cmd
}

// receiptIndent is where the words of a receipt's line begin.
const receiptIndent = 13

func (b *bench) showReceipts(receipts []protocol.Receipt, format string) error {
	if format == formatJSON {
		e := json.NewEncoder(b.stdout)
		e.SetEscapeHTML(false)
		for _, r := range receipts {
			if err := e.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	width := widthOf(b.stdout)
	for i, r := range receipts {
		if i > 0 {
			fmt.Fprintln(b.stdout)
		}
		for line := range strings.Lines(r.String()) {
			fmt.Fprintln(b.stdout, table.Wrap(strings.TrimSuffix(line, "\n"), receiptIndent, width))
		}
	}
	return nil
}

// chosen are the receipts of the namespace that args ask for.
func chosen(receipts []protocol.Receipt, namespace string, args []string) ([]protocol.Receipt, error) {
	var found []protocol.Receipt
	var requests, namespaces []string
	for _, r := range receipts {
		if namespace != "" && r.Namespace != namespace {
			namespaces = append(namespaces, r.Namespace)
			continue
		}
		requests = append(requests, r.Request)
		id := r.Effect.String()
		if len(args) == 0 || args[0] == r.Request || len(args[0]) >= 8 && strings.HasPrefix(id, args[0]) {
			found = append(found, r)
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case len(namespaces) > 0:
		return nil, experiments.CheckName("namespace", namespace, namespaces)
	case len(args) > 0 && len(requests) > 0:
		return nil, experiments.CheckName("request or effect", args[0], requests)
	}
	return nil, fmt.Errorf("%w: the journal holds no effect of a gate", errNoReceipt)
}

// receiptsIn derives the receipts of all effects in the log at path, in the order
// in which they were proposed, and says how far the log is consistent. A log that
// no gate wrote has none.
func receiptsIn(path string) (receipts []protocol.Receipt, in journal.Inspection, err error) {
	log, err := experiments.FindLog(path)
	if err != nil {
		return nil, in, err
	}
	var order []journal.ID
	entries := map[journal.ID][]journal.Entry{}
	in, err = log.Read(func(e journal.Entry) error {
		if e.Effect.IsZero() {
			return nil
		}
		if entries[e.Effect] == nil {
			order = append(order, e.Effect)
		}
		entries[e.Effect] = append(entries[e.Effect], e)
		return nil
	})
	if err == nil && in.Damage != nil {
		err = in.Damage // what is behind it would change what they say
	}
	if err != nil {
		return nil, in, err
	}
	for _, id := range order {
		r, err := protocol.ReceiptFromEntries(entries[id])
		if err != nil {
			return nil, in, err
		}
		receipts = append(receipts, r)
	}
	return receipts, in, nil
}
