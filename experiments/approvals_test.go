package experiments

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// TestPlotsOfDays holds the drawings in results/ against the records there.
func TestPlotsOfDays(t *testing.T) {
	for _, c := range []struct {
		name string
		draw func([]Record) string
	}{{"approvals", approvalsPlot}, {"repair", repairPlot}} {
		text, err := os.ReadFile(filepath.Join("../results", c.name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		records, err := DecodeRecords(text)
		if err != nil {
			t.Fatal(err)
		}
		path, want := filepath.Join("../results", c.name+".svg"), c.draw(records)
		if flag.Lookup("update").Value.String() == "true" {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(path); err != nil || string(have) != want {
			t.Errorf("%s isn't drawn from its records (%v); go test ./experiments -run TestPlotsOfDays -update draws it", path, err)
		}
	}
}

// TestTheDayIsTheReferences: the requests that the reference's figures turn on.
func TestTheDayIsTheReferences(t *testing.T) {
	day := dayMixes[0].requests()
	if len(day) != 100 {
		t.Fatalf("%d requests", len(day))
	}
	hands, above := 0, 0
	for _, r := range day {
		if r.ByHand > 0 {
			hands++
		}
		if r.ByHand > 0 && r.ByHand < r.Amount && r.Amount > largeLimit*100 {
			above++
		}
	}
	if hands != 10 || above != 1 {
		t.Errorf("%d are refunded by hand, %d of them in part and above the large limit", hands, above)
	}
	for _, m := range repairMixes {
		if n := len(m.cases()); n != 100 {
			t.Errorf("%s has %d cases", m.name, n)
		}
	}
}
