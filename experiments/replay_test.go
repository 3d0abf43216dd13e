package experiments_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
)

// replayed is how many lines an ordinary test replays of each experiment.
const replayed = 12

// TestReplayLinesReproduceTheirCells runs the lines that the committed records
// print and compares what comes out with the cell: a sample by seed, or with
// INTERLOCK_REPLAY=all every one. INTERLOCK_REPLAY=NUMBER is another seed.
func TestReplayLinesReproduceTheirCells(t *testing.T) {
	all := experiments.All()
	which := os.Getenv("INTERLOCK_REPLAY")
	for _, e := range all {
		if e.Begin != nil {
			continue // each line would build anew what a run builds once
		}
		if e.Once && e.Child == nil {
			continue // one line is the whole run, and fetches what it needs
		}
		encoded, err := os.ReadFile(experiments.FilesOf("../results", e).Records)
		if errors.Is(err, fs.ErrNotExist) {
			continue // check says so
		}
		if err != nil {
			t.Fatal(err)
		}
		records := must(experiments.DecodeRecords(encoded))
		seed, err := strconv.ParseUint(which, 10, 64)
		if err != nil {
			seed = 1
		}
		if which != "all" {
			rand.New(rand.NewPCG(seed, 0)).Shuffle(len(records), func(i, k int) { records[i], records[k] = records[k], records[i] })
			records = records[:min(len(records), replayed)]
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			for _, r := range records {
				k, err := experiments.Replay(t.Context(), all, r.Replay, "")
				if err != nil {
					t.Errorf("seed %d: replay '%s': %v", seed, r.Replay, err)
					continue
				}
				v := k.Verdict
				if got := k.Status + " " + k.Shows(); got != r.Cell || v.Class != r.Class() ||
					v.Attempts != r.Attempts || v.Requests != r.Requests || v.ModelCalls != r.ModelCalls {
					t.Errorf("seed %d: replay '%s' gives %s, %s, %d attempts, %d requests, %d model calls; its record has %s, %s, %d, %d, %d",
						seed, r.Replay, got, v.Class, v.Attempts, v.Requests, v.ModelCalls, r.Cell, r.Verdict, r.Attempts, r.Requests, r.ModelCalls)
				}
			}
		})
	}
}
