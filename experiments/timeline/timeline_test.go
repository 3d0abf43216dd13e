package timeline_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/timeline"
	"github.com/interlock-bench/interlock-bench/faults/history"
)

var update = flag.Bool("update", false, "write the drawings that the documents show")

// TestMain is also the columns under test: a trial starts this binary again.
func TestMain(m *testing.M) {
	experiments.ServeChild()
	os.Exit(m.Run())
}

// TestDrawings runs the trials that the documents show and compares the drawings,
// byte for byte. With -update it writes them.
func TestDrawings(t *testing.T) {
	for _, c := range []struct{ file, trial string }{
		{"crash_before_ack_naive.svg", "refund/crash_before_ack/naive kill@sim/applied#1 seed=1"},
		{"crash_before_ack_gate_t2.svg", "refund/crash_before_ack/gate@t2 file=plain kill@sim/applied#1 seed=1"},
	} {
		k, err := experiments.Replay(t.Context(), experiments.All(), c.trial, "")
		if err != nil {
			t.Fatal(err)
		}
		got, path := timeline.SVG(k), "../../docs/timeline/"+c.file
		wellFormed(t, got)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is not what %s draws; -update writes it", path, c.trial)
		}
	}
}

// wellFormed holds a drawing to XML without anything that runs or is fetched.
func wellFormed(t *testing.T, drawing string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(drawing))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if name := e.Name.Local; name == "script" || name == "image" || name == "foreignObject" || name == "a" {
			t.Errorf("has a <%s>", name)
		}
		for _, a := range e.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Name.Local, "href") {
				t.Errorf("<%s> has %s=%q", e.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
}

// A history of somebody else's words, kinds and points is drawn all the same.
func TestAnyHistoryIsDrawn(t *testing.T) {
	for _, h := range []history.History{
		nil,
		{{N: 99, Who: "worker#1", Kind: history.Started}, {N: -1, Who: "worker#1", Kind: history.Told}},
		{{N: 1, Who: "</svg><script>", Kind: "unheard-of", Subject: "<b>", Body: []byte(`{"a":"</text>"}`)}},
		{
			{N: 1, Who: "worker#1", Kind: history.Started},
			{N: 2, At: 48 * time.Hour, Who: "worker#1", Kind: history.Passed, Point: "engine/step"},
			{N: 3, At: 72 * time.Hour, Who: "worker#1", Kind: history.Killed},
			{N: 4, At: 72 * time.Hour, Who: "service", Kind: history.Applied, Body: []byte(`{}`)},
		},
	} {
		wellFormed(t, timeline.SVG(experiments.Kept{Status: "<status>", History: h}))
	}
}
