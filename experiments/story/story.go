// Package story tells the history of a trial in words, for people.
//
// It adds nothing: every line is an event of the history, under its number, and
// the verdict is the judge's own.
package story

import (
	"fmt"
	"strings"
	"time"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// Part is a stretch of a history: the life of one process, or what happened
// around them.
type Part struct {
	Title string
	Lines []Line
}

// Line is one event, or several alike that followed each other.
type Line struct {
	From, To int           // numbers of the events
	At       time.Duration // virtual time since the trial began
	Who      string
	Words    string
}

// Tell tells h in order, in as much detail.
func Tell(h history.History, detail Detail) []Part {
	var parts []Part
	part := func(title string) { parts = append(parts, Part{Title: title}) }
	part("Before")
	ended := false // the process of this part has ended
	for i, e := range h {
		switch {
		case e.Kind == history.Started:
			part(fmt.Sprintf("Process %s", e.Who))
			ended = false
		case ended:
			part("No process lives")
			ended = false
		}
		text, from := words(e)
		if from > detail || detail < Every && saidNext(h, i) {
			continue
		}
		lines := &parts[len(parts)-1].Lines
		if n := len(*lines); n > 0 && (*lines)[n-1].Who == e.Who && (*lines)[n-1].Words == text && (*lines)[n-1].At == e.At {
			(*lines)[n-1].To = e.N
		} else {
			*lines = append(*lines, Line{e.N, e.N, e.At, e.Who, text})
		}
		ended = e.Kind == history.Killed || e.Kind == history.Exited || e.Kind == history.Hung
	}
	if len(parts) > 0 && len(parts[0].Lines) == 0 {
		parts = parts[1:]
	}
	return parts
}

// saidNext says whether the next step of the same process tells more of this
// one: the gate names what the journal has synced.
func saidNext(h history.History, i int) bool {
	if h[i].Point != "journal/synced" || i+1 == len(h) {
		return false
	}
	next := h[i+1]
	return next.Who == h[i].Who && next.Kind == history.Passed && strings.HasPrefix(string(next.Point), "gate/")
}

// Where the words of a line begin: behind its number and its actor.
const (
	numbers = 7
	actors  = 11
)

// Text is a whole trial for a terminal of the given width, no line of it longer:
// what it was, its story, and why the judge said what it said. A width below 40
// counts as 40.
func Text(k experiments.Kept, detail Detail, width int) string {
	var b strings.Builder
	b.WriteString(table.Wrap(k.Trial.String(), 2, width) + "\n")
	parts := Tell(k.History, detail)
	told := 0
	now := time.Duration(0)
	for _, p := range parts {
		b.WriteString("\n" + table.Wrap(printable(p.Title), 2, width) + "\n")
		for _, l := range p.Lines {
			told += l.To - l.From + 1
			if l.At > now {
				fmt.Fprintf(&b, "%*s%s\n", numbers, "", "… "+Since(l.At-now)+" later")
				now = l.At
			}
			n := fmt.Sprint(l.From)
			if l.To > l.From {
				n = fmt.Sprintf("%d-%d", l.From, l.To)
			}
			line := fmt.Sprintf("%*s  %-*s%s", numbers-2, n, actors, printable(l.Who), printable(l.Words))
			b.WriteString(table.Wrap(line, numbers+actors, width) + "\n")
		}
	}
	b.WriteString("\nThe judge\n")
	for _, s := range Judged(k) {
		b.WriteString(table.Wrap("  "+printable(s), 4, width) + "\n")
	}
	if left := len(k.History) - told; left > 0 {
		b.WriteString("\n" + table.Wrap(fmt.Sprintf("%d of %d events are told; --all tells every one.", told, len(k.History)), 0, width) + "\n")
	}
	return b.String()
}

// Judged says what the judge found and why, a sentence each.
func Judged(k experiments.Kept) []string {
	v := k.Verdict
	said := []string{fmt.Sprintf("%s %s: %s, %s", k.Status, experiments.Money(v.Money), v.Class, v.Class.Word())}
	said = append(said, v.Why...)
	switch {
	case v.Class == oracle.Unknown:
		said = append(said, "so it is not judged, and no pass.")
	case len(v.Broke) > 0:
		said = append(said, "by "+strings.Join(v.Broke, ", ")+".")
	default:
		said = append(said, fmt.Sprintf("None of the %d rules found anything: whatever landed was approved, allowed and still right at its sender's last look, and nothing was lost or left open.", len(oracle.Rules)))
	}
	said = append(said, fmt.Sprintf("What the caller was told %s with the ledger. %s for money, %s to the service in all, %s of the model.",
		v.Answer, count(v.Attempts, "request"), count(v.Requests, "request"), count(v.ModelCalls, "answer")))
	if v.Settled > 0 {
		said = append(said, "From the first death to the last answer: "+Since(v.Settled)+" of virtual time.")
	}
	return said
}

// printable keeps somebody else's words from writing lines of their own.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e {
			return ' '
		}
		return r
	}, s)
}
