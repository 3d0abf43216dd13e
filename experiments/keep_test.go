package experiments_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

func TestKeptTrialsReadBack(t *testing.T) {
	dir := t.TempDir() + "/new"
	if _, err := experiments.Run(t.Context(), tiny(right), experiments.Filter{Columns: []string{"naive"}}, experiments.Options{Keep: dir}); err != nil {
		t.Fatal(err)
	}
	files, err := experiments.ReadKept(dir)
	if err != nil || len(files) != 4 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		if f.Err != nil {
			t.Errorf("%s: %v", f.Name, f.Err)
		}
	}
	f := files[3]
	if f.Name != "tiny-one_happy_path_naive_2.jsonl" || f.Kept.Trial.String() != "tiny-one/happy_path/naive file=lossy seed=1" ||
		f.Kept.Status != "COMMITTED" || len(f.Kept.History) != 1 {
		t.Errorf("read %+v", f)
	}
	// The tiny experiment makes its verdict up, and the judge can't judge such a
	// history.
	if f.Kept.Said.Class != oracle.Correct || f.Kept.Verdict.Class != oracle.Unknown || f.Kept.Same() {
		t.Errorf("said %+v then and %+v today", f.Kept.Said, f.Kept.Verdict)
	}
	var b bytes.Buffer
	if err := experiments.EncodeKept(&b, f.Kept); err != nil {
		t.Fatal(err)
	}
	again, err := experiments.DecodeKept(&b)
	if err != nil || !reflect.DeepEqual(again, f.Kept) {
		t.Errorf("%v\n got %+v\nwant %+v", err, again, f.Kept)
	}
}

const keptHead = `{"kept":1,"trial":"refund/happy_path/naive seed=1","status":"APPLIED","money":2000,"verdict":"CORRECT","broke":[]}` + "\n"

func TestFilesThatAreNoKeptTrials(t *testing.T) {
	for _, c := range []struct{ why, text string }{
		{"empty", ""},
		{"a text", "# Results\n"},
		{"another JSON", `{"v":1,"id":"refund/happy_path/naive"}` + "\n"},
		{"a history of before there were first lines", `{"n":1,"at":0,"who":"supervisor","kind":"declared"}` + "\n"},
		{"a later version", strings.Replace(keptHead, `"kept":1`, `"kept":3`, 1)},
		{"an unknown field", strings.Replace(keptHead, `"money"`, `"more":1,"money"`, 1)},
		{"no trial", strings.Replace(keptHead, "seed=1", "", 1)},
		{"no verdict", strings.Replace(keptHead, "CORRECT", "FINE", 1)},
		{"a torn first line", keptHead[:40]},
		{"a torn history", keptHead + `{"n":1,"at":0,"who":"sup`},
		{"a gap", keptHead + `{"n":2,"at":0,"who":"supervisor","kind":"declared"}` + "\n"},
		{"a line without an end", strings.Repeat("x", 2<<20)},
	} {
		if k, err := experiments.DecodeKept(strings.NewReader(c.text)); !errors.Is(err, experiments.ErrKept) {
			t.Errorf("%s: %+v, %v", c.why, k, err)
		}
	}
	if _, err := experiments.DecodeKept(strings.NewReader(keptHead)); err != nil {
		t.Errorf("a trial without events is one that is not judged: %v", err)
	}
}

func TestFolderWithoutKeptTrials(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Join(dir, "nowhere")} {
		if _, err := experiments.ReadKept(d); !errors.Is(err, experiments.ErrNothingKept) {
			t.Errorf("%s: %v", d, err)
		}
	}
}

func TestReplay(t *testing.T) {
	e := tiny(right)
	e.Run = func(_ context.Context, t faults.Trial) (experiments.Outcome, error) {
		if t.Seed != 7 || len(t.Faults) != 1 {
			return experiments.Outcome{}, errors.New("another trial than the line says")
		}
		return right(t), nil
	}
	all := []*experiments.Experiment{e}
	const line = "tiny-one/crash_before_ack/naive file=plain kill@decided#2 seed=7"
	k, err := experiments.Replay(t.Context(), all, line, "")
	if err != nil || k.Trial.String() != line || k.Status != "COMMITTED" {
		t.Errorf("%+v, %v", k, err)
	}

	var name *experiments.NameError
	for _, c := range []struct {
		why, line string
		want      func(error) bool
	}{
		{"no trial", "tiny-one", func(err error) bool { return errors.Is(err, faults.ErrTrial) }},
		{"no seed", "tiny-one/happy_path/naive", func(err error) bool { return errors.Is(err, faults.ErrTrial) }},
		{"an unknown experiment", "tiny/happy_path/naive seed=1", func(err error) bool { return errors.As(err, &name) && name.Kind == "experiment" }},
		{"an unknown row", "tiny-one/hapy_path/naive seed=1", func(err error) bool { return errors.As(err, &name) && name.Kind == "row" }},
		{"an unknown column", "tiny-one/happy_path/naif seed=1", func(err error) bool { return errors.As(err, &name) && name.Kind == "column" }},
		{"an unknown table", "tiny-one.other/happy_path/naive seed=1", func(err error) bool { return errors.Is(err, experiments.ErrNoCell) }},
		{"a trial that fails", "tiny-one/happy_path/naive seed=1", func(err error) bool { return errors.Is(err, experiments.ErrTrial) }},
	} {
		if _, err := experiments.Replay(t.Context(), all, c.line, ""); !c.want(err) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
}

// TestStateIsKeptAsItWas runs a real trial: what its process left behind can be
// opened as it could be where it ran.
func TestStateIsKeptAsItWas(t *testing.T) {
	dir := t.TempDir()
	const line = "refund/crash_before_ack/gate@t2 file=plain kill@sim/applied#1 seed=1"
	for range 2 { // what was kept before is replaced
		if _, err := experiments.Replay(t.Context(), experiments.All(), line, dir); err != nil {
			t.Fatal(err)
		}
	}
	state := filepath.Join(dir, "refund_crash_before_ack_gate@t2_1.state")
	for name, mode := range map[string]fs.FileMode{"journal": fs.ModeDir | 0o700, "authority": fs.ModeDir | 0o700, "journal/0000000002.seg": 0o600} {
		info, err := os.Stat(filepath.Join(state, name))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	files, err := experiments.ReadKept(dir)
	if err != nil || len(files) != 1 || files[0].Err != nil || !files[0].Kept.Same() {
		t.Errorf("%+v, %v", files, err)
	}
}

func FuzzDecodeKept(f *testing.F) {
	f.Add([]byte(keptHead))
	f.Add([]byte(keptHead + `{"n":1,"at":0,"who":"supervisor","kind":"declared","body":{}}` + "\n"))
	f.Add([]byte(`{"kept":1,"trial":"a/b/c seed=1","status":"<x>","money":-1,"verdict":"UNKNOWN","broke":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := experiments.DecodeKept(bytes.NewReader(text))
		if err != nil {
			if !errors.Is(err, experiments.ErrKept) {
				t.Errorf("an error of no class: %v", err)
			}
			return
		}
		var first, second bytes.Buffer
		if err := experiments.EncodeKept(&first, k); err != nil {
			t.Skip("escapes may make an event longer than its bound")
		}
		again, err := experiments.DecodeKept(bytes.NewReader(first.Bytes()))
		if err != nil {
			t.Fatalf("what was written is not read: %v\n%s", err, first.Bytes())
		}
		if err := experiments.EncodeKept(&second, again); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("two encodings differ: %v\n%s%s", err, first.Bytes(), second.Bytes())
		}
	})
}
