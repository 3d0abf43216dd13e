package experiments

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// TestIncidentsAreWhole: forty cases, each with where it can be read, and with a
// row or what it waits for.
func TestIncidentsAreWhole(t *testing.T) {
	link := regexp.MustCompile(`^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+[#!][0-9]+$`)
	for n, i := range incidents {
		if i.number != n+1 {
			t.Errorf("case %d stands at place %d", i.number, n+1)
		}
		if i.what == "" || i.right == "" || i.dated == "" {
			t.Errorf("case %d doesn't say what happens, what should, or when it was", i.number)
		}
		for _, l := range i.links {
			if !link.MatchString(l) {
				t.Errorf("case %d: %q is no thread", i.number, l)
			}
		}
		if _, ok := i.baseRow(); ok == (i.waits != "") {
			t.Errorf("case %d has a row and waits for %q", i.number, i.waits)
		}
	}
	if len(incidents) != 40 {
		t.Errorf("there are %d cases", len(incidents))
	}
	for _, c := range Incidents().Cells {
		if strings.HasPrefix(c.Column, "gate@") && c.Declared == "" {
			t.Errorf("nothing is prescribed for %s in %s", c.Row, c.Column)
		}
	}
}

// TestIncidentsCount reads the committed records: a case counts where some
// practice goes wrong in it, and then the gate doesn't. The page says how many do.
func TestIncidentsCount(t *testing.T) {
	encoded, err := os.ReadFile("../results/incidents.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	records, err := DecodeRecords(encoded)
	if err != nil {
		t.Fatal(err)
	}
	wrong := map[string]bool{}
	for _, r := range records {
		bad := r.Class().Word() == "BAD"
		switch isGate := strings.HasPrefix(r.Column, "gate@"); {
		case bad && isGate:
			t.Errorf("%s: the gate goes wrong: %s", r.ID, r.Judged())
		case bad:
			wrong[r.Row] = true
		case r.Class() == oracle.Unknown:
			t.Errorf("%s was not judged", r.ID)
		}
	}
	counts := 0
	for _, i := range incidents {
		switch {
		case i.waits != "":
		case wrong[i.rowName()]:
			counts++
		default:
			t.Errorf("%s turns nothing red: it doesn't count", i.rowName())
		}
	}
	page, err := os.ReadFile("../results/incidents.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d of the %d cases count", counts, len(incidents)); !strings.Contains(string(page), want) {
		t.Errorf("the page doesn't say %q", want)
	}
}
