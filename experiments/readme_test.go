package experiments_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/bench"
	"github.com/interlock-bench/interlock-bench/experiments/table"
)

var update = flag.Bool("update", false, "write generated text anew")

// TestREADME compares the generated parts of the README with what they are
// generated from: the committed records and the source. A figure that somebody
// counted by hand is in none of them (B30, B40, B47).
func TestREADME(t *testing.T) {
	const path = "../README.md"
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := os.ReadFile("../results/refund.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	records, err := experiments.DecodeRecords(encoded)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err = os.ReadFile("../results/faults.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	faulty, err := experiments.DecodeRecords(encoded)
	if err != nil {
		t.Fatal(err)
	}
	costs, err := os.ReadFile("../results/bench.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	made, measures, err := bench.Decode(costs)
	if err != nil {
		t.Fatal(err)
	}
	want := string(have)
	for name, text := range map[string]string{
		"cost":  bench.Brief(made, measures),
		"pages": pages(),
		"table": experiments.RefundTable(records),
		"why":   experiments.RefundWhy(records, faulty),
	} {
		block := regexp.MustCompile(`(?s)<!-- generated: ` + name + ` -->\n.*?<!-- end -->`)
		if n := len(block.FindAllString(want, -1)); n != 1 {
			t.Fatalf("the README has %d places for %q", n, name)
		}
		want = block.ReplaceAllLiteralString(want, "<!-- generated: "+name+" -->\n"+strings.TrimSpace(text)+"\n<!-- end -->")
	}
	if want == string(have) {
		return
	}
	if !*update {
		t.Fatal("the README differs from the results or the source; run: go test ./experiments -run TestREADME -update")
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// pages are the pages of results, with what each experiment says of itself.
func pages() string {
	t := table.Table{Header: []string{"page", "what is measured"}}
	for _, e := range experiments.All() {
		t.Rows = append(t.Rows, []string{"`" + experiments.FilesOf("results", e).Page + "`", e.Short})
	}
	return t.Markdown()
}
