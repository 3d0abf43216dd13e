package experiments

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/table"
)

// stripePage renders results/stripe_emulated.md. Every figure in it is taken from
// the records.
func stripePage(records []Record) string {
	r := indexRecords(records)
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }

	p("# The refund at Stripe, emulated")
	p("**The service is a local emulator of Stripe's documented behaviour, not Stripe.** What Stripe itself did, where somebody ran it, is in `results/stripe_live.md`.")
	p("Made by `interlock-bench stripe-emulated --seed %s`. The columns use Stripe's library for Go, version 76, through the target in `targets/stripe`; they are real processes killed by SIGKILL, and are judged from the emulator's own ledger. `results/stripe_emulated.jsonl` holds one record per cell, with the line that replays it.", r.seed())
	p("✅ held · ❌ violated · ⚠️ held, and a person must look · — not judged, or the fault did not fire")

	p("## Rows of the reference table")
	b.WriteString(r.stripeTable(stripeRows[:referenceStripeRows]).Markdown() + "\n")
	p("## Rows that are Stripe's")
	b.WriteString(r.stripeTable(stripeRows[referenceStripeRows:]).Markdown() + "\n")

	p("## What became of the money")
	p("Read back from the service ten days later, for the request that the cell shows, in the gate's column. Webhooks were verified, each delivered twice and in no order; they say when to read and decide nothing. A settlement is evidence beside the receipt: a refund that the bank returned stays committed, and is not sent again.")
	b.WriteString(r.settlements().Markdown() + "\n")
	for _, row := range stripeRows {
		if record, ok := r[CellID(StripeName, "", row.Name, "gate")]; ok && record.Extra["receipt"] != nil {
			p("The receipt of `%s`, with its settlement:", row.Name)
			fmt.Fprintf(&b, "```\n%s```\n\n", record.Extra["receipt"])
		}
	}

	p("## Beside the money")
	p("`answer`: cells in which what the caller was told last disagrees with the ledger. `record`: cells whose own artefacts show who acted, what was done, which checks held and every attempt. Requests count everything that was sent to the service.")
	b.WriteString(r.besideStripe().Markdown() + "\n")

	p("## What happens in each row, and which page of Stripe's documentation says what is right")
	for _, row := range stripeRows {
		fmt.Fprintf(&b, "- `%s`: %s *%s*\n", row.Name, row.What, row.page)
	}
	b.WriteString("\n")

	p("## What the emulator assumes where no page says it")
	for _, line := range []string{
		"Parameters are compared decoded and sorted; headers don't count.",
		"A refusal found while executing (used up, charged back, too much) and a 404 are stored under the key; 401, 403, 409 and 429 are not.",
		"`amount_refunded` of a charge counts refunds that succeeded: pending ones not yet, failed ones no more.",
		"A refund made in the dashboard names no case. The gate and the hand check count it against every case.",
		"A new refund is in lists at once. The target waits a minute all the same, and an hour for what may still land: both are assumptions, and an absence that rests on them says so on the receipt.",
	} {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	b.WriteString("\n")

	p("## Findings")
	for _, f := range r.stripeFindings() {
		p("%s", f)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (r recordIndex) stripe(row, column string) (Record, bool) {
	record, ok := r[CellID(StripeName, "", row, column)]
	return record, ok
}

func (r recordIndex) stripeTable(rows []stripeRow) table.Table {
	t := table.Table{Header: []string{"row"}}
	for _, c := range stripeColumns {
		t.Header = append(t.Header, c.Name)
	}
	for _, row := range rows {
		cells := []string{"`" + row.Name + "`"}
		for _, c := range stripeColumns {
			cell := "—"
			if record, ok := r.stripe(row.Name, c.Name); ok {
				cell = record.Cell + " " + record.Class().Mark()
			}
			cells = append(cells, cell)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

func (r recordIndex) settlements() table.Table {
	t := table.Table{Header: []string{"row", "the gate said", "settlement", "webhooks about the payment"}}
	for _, row := range stripeRows {
		if record, ok := r.stripe(row.Name, "gate"); ok {
			word := func(name string) string { s, _ := record.Extra[name].(string); return orElse(s, "—") }
			t.Rows = append(t.Rows, []string{"`" + row.Name + "`", record.Cell, word("settlement"), word("webhooks")})
		}
	}
	return t
}

func (r recordIndex) besideStripe() table.Table {
	t := table.Table{Header: []string{"column", "cells", "violated", "to look at", "answer disagrees", "record full", "refunds asked for", "requests"}}
	for _, c := range stripeColumns {
		var cells, bad, look, wrong, full, attempts, requests int
		for _, row := range stripeRows {
			record, ok := r.stripe(row.Name, c.Name)
			if !ok {
				continue
			}
			cells++
			switch record.Class().Word() {
			case "BAD":
				bad++
			case "look":
				look++
			}
			if record.Answer == "disagrees" {
				wrong++
			}
			if record.Record == recordFull {
				full++
			}
			attempts += record.Attempts
			requests += record.Requests
		}
		t.Rows = append(t.Rows, append([]string{"`" + c.Name + "`"}, ints(cells, bad, look, wrong, full, attempts, requests)...))
	}
	return t
}

// stripeFindings are the sentences that the cells support.
func (r recordIndex) stripeFindings() []string {
	in := func(column string, f func(Record) bool) (rows []string) {
		for _, row := range stripeRows {
			if record, ok := r.stripe(row.Name, column); ok && f(record) {
				rows = append(rows, row.Name)
			}
		}
		return rows
	}
	disagrees := func(r Record) bool { return r.Answer == "disagrees" }
	naive, key := in("naive", isBad), in("idempotency-key", isBad)
	saved := slices.DeleteFunc(slices.Clone(naive), func(row string) bool { return slices.Contains(key, row) })
	return []string{
		fmt.Sprintf("**A stable key is what Stripe asks for, and it carries far.** Plain retry is violated in %d of %d rows (%s); a stable key repairs %d of them (%s) and leaves %d (%s).",
			len(naive), len(stripeRows), list(naive), len(saved), list(saved), len(key), list(key)),
		fmt.Sprintf("**The key's owner may still be told the wrong thing.** The last word of `idempotency-key` disagrees with the ledger in %d of %d rows (%s), the gate's in %d. Stripe answers a repeat whose parameters drifted with an error, and the caller concludes that nothing was refunded.",
			len(in("idempotency-key", disagrees)), len(stripeRows), list(in("idempotency-key", disagrees)), len(in("gate", disagrees))),
		fmt.Sprintf("**A careful hand check ties the gate on these rows**: it is violated in %d, the gate in %d. Like the gate it needs the effect's id in the refund's metadata and a list that is read to its last page.",
			len(in("hand-check", isBad)), len(in("gate", isBad))),
	}
}
