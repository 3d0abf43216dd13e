// Package sweep holds state machines over the gate, the journal and the judge to
// models that are simpler than they are. A case is one run of one machine: what
// happens in it is drawn at random from the case's seed, and so a case is run
// again, exactly, by its number.
//
// Nothing here is a process, a network or a disk. A kill ends a gate between two
// points of its code, and the next one is opened on what a disk in memory, or a
// copy of a database's files, held at that instant.
package sweep

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"pgregory.net/rapid"
)

// Machine is one state machine on one kind of ground.
type Machine struct {
	Name string // what is held to a model
	On   string // "file" or "sqlite": the store; "history" for the judge
	What string // in one sentence
	// Share is how many of a hundred cases of a sweep it gets: less where one takes
	// longer.
	Share int
	run   func(t *rapid.T, n Counts)
}

// Machines are all of them, in the order in which they are listed and run.
func Machines() []Machine {
	return []Machine{
		{"gate", "file", "The gate on the file store, whose unsynced bytes are lost, torn or kept at a kill; the model is a map from effects to what was said of them.", 30, gateOn(newFiles, nil)},
		{"gate", "sqlite", "The gate with decisions and grants in one SQLite database; the same model.", 2, gateOn(newDatabase, nil)},
		{"journal", "file", "The file store; the model is a slice of what it acknowledged.", 30, journalOn(newFiles)},
		{"journal", "sqlite", "The SQLite store, against the same model.", 2, journalOn(newDatabase)},
		{"oracle", "history", "The judge; the model is a column that does everything right, whose history may end with one wrong.", 36, judge},
	}
}

// Counts are how often something happened in the cases of a run. They are exact:
// the same cases give the same counts.
type Counts map[string]int

func (n Counts) add(of Counts) {
	for what, k := range of {
		n[what] += k
	}
}

// Failure is a case that contradicts its model, made as small as it gets.
type Failure struct {
	Case int
	Text string // what was drawn, and what was wrong
}

// Run runs the cases numbered from from on. It ends at the first that fails. Its
// error is ctx's, or says that a case could not be run at all.
func (m Machine) Run(ctx context.Context, seed uint64, from, cases int) (Counts, *Failure, error) {
	total := Counts{}
	for k := from; k < from+cases; k++ {
		if err := ctx.Err(); err != nil {
			return total, nil, context.Cause(ctx)
		}
		n, text := m.check(seed, k)
		if text != "" {
			return total, &Failure{k, text}, nil
		}
		total.add(n)
		total["cases"]++
	}
	return total, nil, nil
}

// caseSeed gives every case of every machine a seed of its own.
func (m Machine) caseSeed(seed uint64, k int) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s %d %d", m.Name, m.On, seed, k))
	return binary.BigEndian.Uint64(sum[:]) | 1 // rapid takes 0 for a seed of its own
}

// check runs one case. text is "" where the model held.
func (m Machine) check(seed uint64, k int) (n Counts, text string) {
	var log transcript
	log.check(m.caseSeed(seed, k), func(t *rapid.T) {
		n = Counts{} // a case that fails is run again and again, until it is small
		m.run(t, n)
	})
	return maps.Clone(n), log.text()
}

// Keep writes f's text into a file in dir, named after machine and case, and
// returns its path.
func (f Failure) Keep(dir string, m Machine, replay string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, fmt.Sprintf("%s-%s-%d.txt", m.Name, m.On, f.Case))
	text := "replay: " + replay + "\n\n" + strings.TrimRight(f.Text, "\n") + "\n"
	return path, os.WriteFile(path, []byte(text), 0o644)
}
