package experiments_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-bench/interlock-bench/experiments"
)

// saved runs e and saves its results in a folder of the test.
func saved(t *testing.T, e *experiments.Experiment) (string, experiments.Files) {
	t.Helper()
	dir := t.TempDir()
	if err := experiments.Save(dir, e, run(t, e)); err != nil {
		t.Fatal(err)
	}
	return dir, experiments.FilesOf(dir, e)
}

func check(t *testing.T, e *experiments.Experiment, dir string, bytesOnly bool) []experiments.Finding {
	t.Helper()
	findings, err := experiments.Check(t.Context(), e, dir, bytesOnly, experiments.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

// edit replaces the only place of old in a file.
func edit(t *testing.T, path, old, new string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), old); n != 1 {
		t.Fatalf("%s has %q %d times", path, old, n)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), old, new, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// end replaces what a file ends with.
func end(t *testing.T, path, old, new string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rest, ok := strings.CutSuffix(string(b), old)
	if !ok {
		t.Fatalf("%s doesn't end with %q", path, old)
	}
	if err := os.WriteFile(path, []byte(rest+new), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCheckFindsNothingInWhatWasJustSaved(t *testing.T) {
	e := tiny(right)
	dir, _ := saved(t, e)
	for _, bytesOnly := range []bool{true, false} {
		if findings := check(t, e, dir, bytesOnly); len(findings) != 0 {
			t.Errorf("bytes only %v: %v", bytesOnly, findings)
		}
	}
}

func TestCheckNamesWhatDrifted(t *testing.T) {
	for _, c := range []struct {
		why    string
		tamper func(t *testing.T, f experiments.Files)
		want   []experiments.Finding // Where below the folder
	}{
		{"a cell of the page", func(t *testing.T, f experiments.Files) {
			edit(t, f.Page, "| `tiny-one/crash_before_ack/naive` | COMMITTED $20 ✅ |", "| `tiny-one/crash_before_ack/naive` | COMMITTED $0 ✅ |")
		}, []experiments.Finding{{Kind: experiments.Drift, Where: "tiny_one.md, line 7, row `tiny-one/crash_before_ack/naive`, column result", From: "COMMITTED $20 ✅", To: "COMMITTED $0 ✅"}}},
		{"a sentence of the page", func(t *testing.T, f experiments.Files) { edit(t, f.Page, "Trials: 8.", "Trials: 9.") },
			[]experiments.Finding{{Kind: experiments.Drift, Where: "tiny_one.md, line 10", From: "Trials: 8.", To: "Trials: 9."}}},
		{"a line too many", func(t *testing.T, f experiments.Files) { edit(t, f.Page, "Trials: 8.\n", "Trials: 8.\nAll is well.\n") },
			[]experiments.Finding{
				{Kind: experiments.Drift, Where: "tiny_one.md, line 11", From: "an empty line", To: "All is well."},
			}},
		{"the end of a table's line", func(t *testing.T, f experiments.Files) {
			edit(t, f.Page, "| `tiny-one/crash_before_ack/naive` | COMMITTED $20 ✅ |\n", "| `tiny-one/crash_before_ack/naive` | COMMITTED $20 ✅\n")
		}, []experiments.Finding{{Kind: experiments.Drift, Where: "tiny_one.md, line 7", From: "| `tiny-one/crash_before_ack/naive` | COMMITTED $20 ✅ |", To: "| `tiny-one/crash_before_ack/naive` | COMMITTED $20 ✅"}}},
		{"an anchor", func(t *testing.T, f experiments.Files) {
			edit(t, f.Page, `<a id="tiny-one--happy_path--naive"></a>`, "")
		}, []experiments.Finding{{Kind: experiments.Drift, Where: "tiny_one.md, line 18",
			From: "| <a id=\"tiny-one--happy_path--naive\"></a>`tiny-one/happy_path/naive` | COMMITTED $20 ✅ | `tiny-one/happy_path/naive file=plain seed=1` |",
			To:   "| `tiny-one/happy_path/naive` | COMMITTED $20 ✅ | `tiny-one/happy_path/naive file=plain seed=1` |"}}},
		{"the last newline is gone", func(t *testing.T, f experiments.Files) { end(t, f.Page, "\n", "") },
			[]experiments.Finding{{Kind: experiments.Drift, Where: "tiny_one.md, byte 1096", From: `"\n"`, To: "the end of the file"}}},
		{"a newline more", func(t *testing.T, f experiments.Files) { end(t, f.Page, "\n", "\n\n") },
			[]experiments.Finding{{Kind: experiments.Drift, Where: "tiny_one.md, byte 1097", From: "the end of the file", To: `"\n"`}}},
		{"a record", func(t *testing.T, f experiments.Files) {
			edit(t, f.Records, `"row":"happy_path","column":"naive","axes":{"file":"plain"},"cell":"COMMITTED $20"`, `"row":"happy_path","column":"naive","axes":{"file":"plain"},"cell":"COMMITTED $0"`)
		}, []experiments.Finding{
			{Kind: experiments.Drift, Where: "tiny_one.md, line 5, row `tiny-one/happy_path/naive`, column result", From: "COMMITTED $0 ✅", To: "COMMITTED $20 ✅"},
			{Kind: experiments.Drift, Where: "tiny_one.md, line 18, row `tiny-one/happy_path/naive`, column result", From: "COMMITTED $0 ✅", To: "COMMITTED $20 ✅"},
			{Kind: experiments.Note, Where: "tiny-one/happy_path/naive", From: "COMMITTED $20 ok", To: "COMMITTED $0 ok (replay tiny-one/happy_path/naive file=plain seed=1)"},
		}},
		{"the page is gone", func(t *testing.T, f experiments.Files) { os.Remove(f.Page) },
			[]experiments.Finding{{Kind: experiments.Drift, Where: "tiny_one.md", From: "a file that can be read"}}},
		{"a line of the records is gone", func(t *testing.T, f experiments.Files) {
			b, err := os.ReadFile(f.Records)
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(string(b), "\n")
			if err := os.WriteFile(f.Records, []byte(rest), 0o644); err != nil {
				t.Fatal(err)
			}
			_ = os.WriteFile(f.Page, []byte(experiments.PageOf(tiny(right), must(experiments.DecodeRecords([]byte(rest))))), 0o644)
		}, []experiments.Finding{{Kind: experiments.Drift, Where: "tiny_one.jsonl, tiny-one/happy_path/naive", From: "a record", To: "none: it is new, or was taken out; run tiny-one to write it"}}},
	} {
		t.Run(c.why, func(t *testing.T) {
			e := tiny(right)
			dir, files := saved(t, e)
			c.tamper(t, files)
			got := check(t, e, dir, true)
			for i := range got {
				got[i].Where = strings.TrimPrefix(got[i].Where, dir+string(filepath.Separator))
				if c.why == "the page is gone" {
					got[i].To = "" // the system's words
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestCheckReruns(t *testing.T) {
	dir, _ := saved(t, tiny(right))
	e := tiny(except("crash_before_ack/naive", func(o *experiments.Outcome) { o.Verdict.Requests = 3 }))
	if findings := check(t, e, dir, true); len(findings) != 0 {
		t.Errorf("without a run there is nothing to see: %v", findings)
	}
	want := []experiments.Finding{{Kind: experiments.Drift, Where: "tiny-one/crash_before_ack/naive, requests", From: "2", To: "3"}}
	if diff := cmp.Diff(want, check(t, e, dir, false)); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

func TestCheckReadsNothingThatIsNoRecord(t *testing.T) {
	e := tiny(right)
	dir, files := saved(t, e)
	edit(t, files.Records, `"row":"happy_path","column":"naive"`, `"row":"happy_path", "column":"naive"`)
	findings := check(t, e, dir, true)
	if len(findings) != 1 || findings[0].Kind != experiments.Drift || findings[0].Where != files.Records {
		t.Errorf("found %v", findings)
	}
}

func TestPromises(t *testing.T) {
	for _, c := range []struct {
		why  string
		e    *experiments.Experiment
		want []experiments.Finding
	}{
		{"as declared", tiny(right), nil},
		{"a column that promises nothing", tiny(except("happy_path/naive file=plain", duplicate)),
			[]experiments.Finding{{Kind: experiments.Note, Where: "tiny-one/happy_path/naive", From: "COMMITTED $20 ok", To: "RETRIED $40 BAD (replay tiny-one/happy_path/naive file=plain seed=1)"}}},
		{"a column that holds its cells", tiny(except("happy_path/gate@t1 file=plain", duplicate)),
			[]experiments.Finding{{Kind: experiments.Broken, Where: "tiny-one/happy_path/gate@t1", From: "COMMITTED $20 ok", To: "RETRIED $40 BAD (replay tiny-one/happy_path/gate@t1 file=plain seed=1)"}}},
		{"a fault that did not happen", tiny(except("happy_path/naive file=lossy", unfired)),
			[]experiments.Finding{{Kind: experiments.Unjudged, Where: "tiny-one/happy_path/naive", From: "COMMITTED $20 ok", To: "COMMITTED $20 none (replay tiny-one/happy_path/naive file=lossy seed=1)"}}},
		{"violated where nothing is declared", func() *experiments.Experiment {
			e := tiny(except("happy_path", duplicate))
			for i := range e.Cells {
				e.Cells[i].Declared = ""
			}
			return e
		}(), []experiments.Finding{{Kind: experiments.Broken, Where: "tiny-one/happy_path/gate@t1", To: "RETRIED $40 BAD (replay tiny-one/happy_path/gate@t1 file=plain seed=1)"}}},
	} {
		if diff := cmp.Diff(c.want, experiments.Promises(c.e, run(t, c.e))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.why, diff)
		}
	}
}

// TestDeclaredCellsDontReachTheFiles runs the same trials with and without
// declared cells: what is written must not know the difference.
func TestDeclaredCellsDontReachTheFiles(t *testing.T) {
	declared, blank := tiny(right), tiny(right)
	for i := range blank.Cells {
		blank.Cells[i].Declared = ""
	}
	_, a := saved(t, declared)
	_, b := saved(t, blank)
	for _, pair := range [][2]string{{a.Records, b.Records}, {a.Page, b.Page}} {
		x, err := os.ReadFile(pair[0])
		if err != nil {
			t.Fatal(err)
		}
		y, err := os.ReadFile(pair[1])
		if err != nil {
			t.Fatal(err)
		}
		if string(x) != string(y) {
			t.Errorf("%s and %s differ", pair[0], pair[1])
		}
	}
}
