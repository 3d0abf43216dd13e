package story_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/story"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/sim"
	"github.com/interlock-bench/interlock-bench/targets/stripe/emulator"
)

// TestMain is also the columns under test: a trial starts this binary again.
func TestMain(m *testing.M) {
	experiments.ServeChild()
	os.Exit(m.Run())
}

// TestEveryPointIsSaidInWords holds every declared point to a sentence that is
// more than its name.
func TestEveryPointIsSaidInWords(t *testing.T) {
	for _, points := range [][]trace.Point{protocol.Points(), journal.Points(), sim.Points(), sim.ClientPoints(), emulator.Points(), {"started", "decided", "told"}} {
		for _, p := range points {
			h := history.History{{N: 1, Who: "worker#1", Kind: history.Passed, Point: p}}
			parts := story.Tell(h, story.Every)
			if said := parts[0].Lines[0].Words; said == "passes "+string(p) {
				t.Errorf("%s is said as %q", p, said)
			}
		}
	}
}

func TestUnknownEventsAreSaidAsTheyStand(t *testing.T) {
	for _, e := range []history.Event{
		{N: 1, Who: "worker#1", Kind: history.Passed, Point: "engine/replayed"},
		{N: 1, Who: "worker#1", Kind: "webhooked", Subject: "engine/replayed"},
		{N: 1, Who: "worker#1", Kind: history.Told, Body: []byte(`{"is":"engine/replayed"}`)},
		{N: 1, Who: "worker#1", Kind: history.Told, Subject: "engine/replayed"},
	} {
		if said := story.Tell(history.History{e}, story.Most)[0].Lines[0].Words; !strings.Contains(said, "engine/replayed") {
			t.Errorf("%+v is said as %q", e, said)
		}
	}
}

// TestEveryKindIsTold runs each row in four columns: no line is too long for its
// terminal, nothing is left out that ends a process or moves money, and every
// event is told where every one is asked for.
func TestEveryKindIsTold(t *testing.T) {
	refund := experiments.Refund()
	columns := map[string]bool{"naive": true, "durable-replay@t1": true, "gate@t1": true, "gate@t3": true}
	for _, c := range refund.Cells {
		if !columns[c.Column] || c.Table != "" {
			continue
		}
		trial := c.Trials[0]
		trial.Seed = 1
		k, err := experiments.Replay(t.Context(), []*experiments.Experiment{refund}, trial.String(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{40, 60, 80, 200} {
			for line := range strings.Lines(story.Text(k, story.Every, width)) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s: %d characters in %d columns: %q", trial, n, width, line)
				}
			}
		}
		told := map[int]bool{}
		for _, p := range story.Tell(k.History, story.Every) {
			for _, l := range p.Lines {
				for n := l.From; n <= l.To; n++ {
					told[n] = true
				}
			}
		}
		brief := map[int]bool{}
		for _, p := range story.Tell(k.History, story.Main) {
			for _, l := range p.Lines {
				brief[l.From] = true
			}
		}
		for _, e := range k.History {
			if !told[e.N] {
				t.Errorf("%s: event %d (%s) is not told", trial, e.N, e.Kind)
			}
			switch e.Kind {
			case history.Started, history.Killed, history.Applied, history.Requested, history.Told, history.Acted, history.Revoked:
				if !brief[e.N] {
					t.Errorf("%s: event %d (%s) is left out", trial, e.N, e.Kind)
				}
			}
		}
		text := story.Text(k, story.Most, 80)
		if !strings.Contains(text, k.Verdict.Class.String()) || len(k.Verdict.Why) > 0 && !strings.Contains(strings.Join(strings.Fields(text), " "), k.Verdict.Why[0]) {
			t.Errorf("%s: the verdict isn't in\n%s", trial, text)
		}
	}
}

func ExampleTell() {
	h := history.History{
		{N: 1, Who: "worker#1", Kind: history.Started},
		{N: 2, Who: "worker#1", Kind: history.Passed, Point: "gate/intent-durable"},
		{N: 3, Who: "worker#1", Kind: history.Killed},
		{N: 4, Who: "service", Kind: history.Forgot},
		{N: 5, Who: "worker#2", Kind: history.Started},
	}
	for _, p := range story.Tell(h, story.Most) {
		fmt.Println(p.Title)
		for _, l := range p.Lines {
			fmt.Println(" ", l.From, l.Who, l.Words)
		}
	}
	// Output:
	// Process worker#1
	//   1 worker#1 starts
	//   2 worker#1 AUTHORIZED and DISPATCHED written and synced: only now may a byte leave
	//   3 worker#1 killed by SIGKILL
	// No process lives
	//   4 service forgets its idempotency keys
	// Process worker#2
	//   5 worker#2 starts
}

// FuzzText tells whatever decodes as a history.
func FuzzText(f *testing.F) {
	f.Add([]byte(`{"n":1,"at":0,"who":"a","kind":"told","body":{"amount":1}}` + "\n" + `{"n":2,"at":9,"who":"b\u001b[2J","kind":"asked","body":{"what":"x","answer":"paid 5"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := history.Decode(bytes.NewReader(text))
		if err != nil {
			return
		}
		for line := range strings.Lines(story.Text(experiments.Kept{History: h, Verdict: oracle.Judge(h)}, story.Every, 60)) {
			line = strings.TrimSuffix(line, "\n")
			if utf8.ValidString(line) && utf8.RuneCountInString(line) > 60 || strings.Contains(line, "\x1b") {
				t.Errorf("%q", line)
			}
		}
	})
}
