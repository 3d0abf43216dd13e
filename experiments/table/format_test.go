package table_test

import (
	"encoding/csv"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments/table"
)

var update = flag.Bool("update", false, "write the golden files anew")

// awkward has what an encoder can stumble over.
var awkward = []table.Table{
	{Name: "refund.unbounded", Header: []string{"row", "gate@t2", "50% & more"}, Rows: [][]string{
		{"`happy_path`", "COMMITTED $20 ✅", `a "quoted", \back|slash`},
		{"two\nlines", "{<~^#>}"},
	}},
	{Header: []string{"only"}, Rows: nil},
}

func TestFormatsAreAsTheGoldenFilesSay(t *testing.T) {
	for _, f := range table.Formats {
		golden := filepath.Join("testdata", f.Name+".golden")
		got := f.Write(80, awkward...)
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s\n got %q\nwant %q", f.Name, got, want)
		}
		if f.What == "" || !strings.HasSuffix(got, "\n") {
			t.Errorf("%s has no help, or doesn't end its last line", f.Name)
		}
	}
}

// TestCellsReadBack reads what the two formats for machines say.
func TestCellsReadBack(t *testing.T) {
	in := awkward[0]
	want := [][]string{in.Header, in.Rows[0], append(in.Rows[1], "")}

	read, err := csv.NewReader(strings.NewReader(in.CSV())).ReadAll()
	if err != nil || !slices.EqualFunc(read, want, slices.Equal) {
		t.Errorf("CSV: %v, %q", err, read)
	}
	var doc struct {
		V      int
		Table  string
		Header []string
		Rows   [][]string
	}
	if err := json.Unmarshal([]byte(in.JSON()), &doc); err != nil || doc.V != 1 || doc.Table != in.Name ||
		!slices.EqualFunc(append([][]string{doc.Header}, doc.Rows...), want, slices.Equal) {
		t.Errorf("JSON: %v, %+v", err, doc)
	}
}
