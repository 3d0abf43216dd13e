package sweep

import (
	"flag"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// ordinary is how many cases of a machine an ordinary test runs: on SQLite a case
// takes ten times as long.
func (m Machine) ordinary() int {
	n := 2000
	if m.On == "sqlite" {
		n = 200
	}
	if testing.Short() {
		n /= 10
	}
	return n
}

func TestMachines(t *testing.T) {
	share := 0
	for _, m := range Machines() {
		share += m.Share
		t.Run(m.Name+"-"+m.On, func(t *testing.T) {
			t.Parallel()
			n, failed, err := m.Run(t.Context(), 1, 0, m.ordinary())
			if err != nil {
				t.Fatal(err)
			}
			if failed != nil {
				t.Fatalf("seed 1, case %d\n%s", failed.Case, failed.Text)
			}
			t.Log(n)
		})
	}
	if share != 100 {
		t.Errorf("the machines share %d of a hundred cases", share)
	}
}

// TestCasesAreTheSameAgain: a case's number and seed are all there is to it.
func TestCasesAreTheSameAgain(t *testing.T) {
	for _, m := range Machines() {
		for k := range 5 {
			first, _, err1 := m.Run(t.Context(), 7, k, 1)
			again, _, err2 := m.Run(t.Context(), 7, k, 1)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			for what, n := range first {
				if again[what] != n {
					t.Errorf("%s on %s, case %d: %s %d times, and then %d", m.Name, m.On, k, what, n, again[what])
				}
			}
			if len(first) != len(again) {
				t.Errorf("%s on %s, case %d: %v, and then %v", m.Name, m.On, k, first, again)
			}
		}
	}
}

// forgets is a disk that says yes to a sync and doesn't do it.
type forgets struct{ *files }

func (f forgets) resume(lost func(int) int) error {
	for name, b := range f.synced {
		f.synced[name] = b[:min(len(b), 1024)]
	}
	f.cached = f.synced
	return f.files.resume(lost)
}

// TestPlantedWrongsAreFound plants what no gate and no store can stand, and wants
// each machine to find it.
func TestPlantedWrongsAreFound(t *testing.T) {
	ready()
	before := flag.Lookup("rapid.shrinktime").Value.String()
	if err := flag.Set("rapid.shrinktime", "0s"); err != nil { // that they are found is enough
		t.Fatal(err)
	}
	t.Cleanup(func() { flag.Set("rapid.shrinktime", before) })
	forgetful := func() (ground, error) {
		f, err := newFiles()
		if err != nil {
			return nil, err
		}
		return forgets{f.(*files)}, nil
	}
	on := func(name string, do func(*desk)) func(*desk) {
		return func(d *desk) {
			step := d.service.step
			d.service.step = func(at string, id journal.ID) {
				if at == name {
					do(d)
				}
				step(at, id)
			}
		}
	}
	for _, c := range []struct {
		why     string
		machine Machine
	}{
		{"a disk that forgets what was synced, under the gate", Machine{run: gateOn(forgetful, nil)}},
		{"a disk that forgets what was synced, under the store", Machine{run: journalOn(forgetful)}},
		{"a service that forgets its keys", Machine{run: gateOn(newFiles, on("received", func(d *desk) { clear(d.service.keys) }))}},
		{"a service that forgets its fences", Machine{run: gateOn(newFiles, on("received", func(d *desk) { clear(d.service.fences) }))}},
		{"a ledger that loses what landed", Machine{run: gateOn(newFiles, on("lookup", func(d *desk) { d.service.ledger = nil }))}},
	} {
		found := false
		for k := 0; k < 300 && !found; k++ {
			_, text := c.machine.check(1, k)
			found = text != ""
		}
		if !found {
			t.Errorf("%s: nothing was found", c.why)
		}
	}
}
