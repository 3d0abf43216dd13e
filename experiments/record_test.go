package experiments_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// aRecord has a value in every field.
func aRecord() experiments.Record {
	return experiments.Record{
		V: 1, ID: "refund.unbounded/crash_before_ack/gate@t2", Experiment: "refund", Row: "crash_before_ack", Column: "gate@t2",
		Axes: map[string]string{"file": "lossy"}, Cell: "COMMITTED_ON_QUERY $20", Verdict: "AMBIGUOUS",
		Trials: 2, Counts: map[string]int{"CORRECT": 1, "AMBIGUOUS": 1}, Broke: []string{"honest-doubt"}, Answer: "agrees", Record: "full",
		Attempts: 1, Requests: 2, ModelCalls: 1,
		Replay: "refund.unbounded/crash_before_ack/gate@t2 file=lossy kill@sim/applied#1 seed=1", Extra: map[string]any{"note": "a<b"},
	}
}

const aLine = `{"v":1,"id":"refund.unbounded/crash_before_ack/gate@t2","experiment":"refund","row":"crash_before_ack","column":"gate@t2",` +
	`"axes":{"file":"lossy"},"cell":"COMMITTED_ON_QUERY $20","verdict":"AMBIGUOUS","trials":2,"counts":{"AMBIGUOUS":1,"CORRECT":1},` +
	`"broke":["honest-doubt"],"unfired":0,"answer":"agrees","record":"full","attempts":1,"requests":2,"model_calls":1,` +
	`"replay":"refund.unbounded/crash_before_ack/gate@t2 file=lossy kill@sim/applied#1 seed=1","extra":{"note":"a<b"}}` + "\n"

func TestRecordIsOneLine(t *testing.T) {
	b, err := experiments.EncodeRecords([]experiments.Record{aRecord()})
	if err != nil || string(b) != aLine {
		t.Fatalf("%v\n got %s\nwant %s", err, b, aLine)
	}
	back, err := experiments.DecodeRecords(b)
	if err != nil || !reflect.DeepEqual(back, []experiments.Record{aRecord()}) {
		t.Fatalf("%v\n got %+v\nwant %+v", err, back, aRecord())
	}
	r := back[0]
	if r.Class() != oracle.Ambiguous || r.Money() != 20_00 || r.Table() != "unbounded" || r.Judged() != "COMMITTED_ON_QUERY $20 look" {
		t.Errorf("%v, %d, %q, %q", r.Class(), r.Money(), r.Table(), r.Judged())
	}
}

func TestRecordsThatContradictThemselves(t *testing.T) {
	for _, c := range []struct {
		why  string
		bend func(*experiments.Record)
	}{
		{"another schema", func(r *experiments.Record) { r.V = 2 }},
		{"an id of another cell", func(r *experiments.Record) { r.Row = "happy_path" }},
		{"a cell without money", func(r *experiments.Record) { r.Cell = "COMMITTED" }},
		{"a cell without a status", func(r *experiments.Record) { r.Cell = " $20" }},
		{"two words behind the status", func(r *experiments.Record) { r.Cell = "APPLIED landed twice" }},
		{"money spelled otherwise", func(r *experiments.Record) { r.Cell = "COMMITTED $20.00" }},
		{"no class", func(r *experiments.Record) { r.Verdict = "FINE" }},
		{"a class that isn't the worst", func(r *experiments.Record) { r.Verdict = "CORRECT" }},
		{"a count of no class", func(r *experiments.Record) { r.Counts = map[string]int{"FINE": 2} }},
		{"fewer counted than run", func(r *experiments.Record) { r.Trials = 3 }},
		{"nothing run", func(r *experiments.Record) { r.Trials, r.Counts = 0, nil }},
		{"an unfired fault passes", func(r *experiments.Record) { r.Unfired = 1 }},
		{"more attempts than requests", func(r *experiments.Record) { r.Attempts = 3 }},
		{"no answer", func(r *experiments.Record) { r.Answer = "" }},
		{"no grade", func(r *experiments.Record) { r.Record = "good" }},
		{"no replay", func(r *experiments.Record) { r.Replay = "" }},
		{"another cell's replay", func(r *experiments.Record) { r.Replay = "refund/happy_path/naive seed=1" }},
		{"axes of another trial", func(r *experiments.Record) { r.Axes = map[string]string{"file": "plain"} }},
		{"null for empty", func(r *experiments.Record) { r.Broke = nil }},
	} {
		r := aRecord()
		c.bend(&r)
		if err := r.Validate(); !errors.Is(err, experiments.ErrRecord) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
}

func TestDecodeTakesOneSpelling(t *testing.T) {
	for _, c := range []struct{ why, line string }{
		{"an unknown field", `{"v":1,"extras":{}}` + "\n"},
		{"no JSON", "V=1\n"},
		{"a line without an end", aLine[:len(aLine)-1]},
		{"a space", " " + aLine},
		{"two values", aLine[:len(aLine)-1] + "{}\n"},
		{"the same cell twice", aLine + aLine},
		{"an empty line", aLine + "\n"},
	} {
		if _, err := experiments.DecodeRecords([]byte(c.line)); !errors.Is(err, experiments.ErrRecord) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	if records, err := experiments.DecodeRecords(nil); len(records) != 0 || err != nil {
		t.Errorf("an empty file: %v, %v", records, err)
	}
}

func TestMoney(t *testing.T) {
	for cents, want := range map[int64]string{0: "$0", 20_00: "$20", 50_00: "$50", 20_50: "$20.50", 5: "$0.05"} {
		if got := experiments.Money(cents); got != want {
			t.Errorf("%d is %s, not %s", cents, got, want)
		}
		if got := (experiments.Record{Cell: "APPLIED:ok " + want}).Money(); got != cents {
			t.Errorf("%s is read as %d", want, got)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(aLine))
	f.Add([]byte(`{"v":1,"extra":{"n":1.50,"s":"\u2028"}}` + "\n"))
	f.Add(bytes.Replace([]byte(aLine), []byte("$20"), []byte("$20.50"), 1))
	f.Add(bytes.Replace([]byte(aLine), []byte(`"a<b"`), []byte(`[null,1e400,{"a":-0}]`), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		records, err := experiments.DecodeRecords(b)
		if err != nil {
			if !errors.Is(err, experiments.ErrRecord) {
				t.Errorf("refused with %v", err)
			}
			return
		}
		back, err := experiments.EncodeRecords(records)
		if err != nil || !bytes.Equal(back, b) {
			t.Errorf("%v\nread  %q\nwrote %q", err, b, back)
		}
	})
}
