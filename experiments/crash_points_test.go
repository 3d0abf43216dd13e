package experiments

import (
	"os"
	"slices"
	"testing"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// TestPointsDeclaredAndPassed compares, both ways, the points that packages
// declare with those that the committed sweep passed: each is passed by some
// trial, or is one of those of which the page says why none can.
func TestPointsDeclaredAndPassed(t *testing.T) {
	declared := slices.Concat(sharedPoints(), ownPoints())
	for i, p := range declared {
		if slices.Contains(declared[:i], p) {
			t.Errorf("%s is declared twice", p)
		}
	}
	for _, e := range []*Experiment{CrashPoints(), CrashPointsSlice()} {
		file := FilesOf("../results", e).Records
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // check says so
		}
		records, err := DecodeRecords(text)
		if err != nil {
			t.Fatal(err)
		}
		passed := passedBy(records)
		for p := range passed {
			if !slices.Contains(declared, p) {
				t.Errorf("%s: %s was passed, and no package declares it", file, p)
			}
		}
		for _, p := range declared {
			excused := slices.ContainsFunc(unpassed, func(u struct {
				point trace.Point
				why   string
			}) bool {
				return u.point == p
			})
			switch {
			case passed[p] && excused:
				t.Errorf("%s: %s is passed, and the page says why it isn't", file, p)
			case !passed[p] && !excused:
				t.Errorf("%s: no trial passes %s, and nobody says why", file, p)
			}
		}
	}
}

// swings is a history that passes points with the given kills between them:
// "kill" is a death and a restart.
func swings(points ...trace.Point) (h history.History) {
	add := func(kind history.Kind, p trace.Point) {
		h = append(h, history.Event{N: len(h) + 1, Who: "worker#1", Kind: kind, Point: p})
	}
	add(history.Started, "")
	for _, p := range points {
		switch p {
		case "kill":
			add(history.Killed, "")
		case "start":
			add(history.Started, "")
		default:
			add(history.Passed, p)
		}
	}
	add(history.Finished, "")
	add(history.Passed, "sim/applied") // late: nobody lives
	return h
}

func TestFollow(t *testing.T) {
	line := func(s string) faults.Trial {
		trial, err := faults.ParseTrial(s)
		if err != nil {
			t.Fatal(err)
		}
		return trial
	}
	for _, c := range []struct {
		why, trial string
		h          history.History
		want       []string
	}{
		{"a kill and three changes at each passage, in the table of its kind", "crash-points/happy_path/gate@t1 file=plain seed=3",
			swings("started", "gate/opened"), []string{
				"crash-points/happy_path/gate@t1 file=plain kill@started#1 seed=3",
				"crash-points.changes/happy_path/gate@t1 file=plain revoke@started#1 seed=3",
				"crash-points.changes/happy_path/gate@t1 file=plain make-ineligible@started#1 seed=3",
				"crash-points.changes/happy_path/gate@t1 file=plain refund-by-hand@started#1 seed=3",
				"crash-points.own/happy_path/gate@t1 file=plain kill@gate/opened#1 seed=3",
				"crash-points.changes/happy_path/gate@t1 file=plain revoke@gate/opened#1 seed=3",
				"crash-points.changes/happy_path/gate@t1 file=plain make-ineligible@gate/opened#1 seed=3",
				"crash-points.changes/happy_path/gate@t1 file=plain refund-by-hand@gate/opened#1 seed=3",
			}},
		{"a baseline is swept at shared points only, and not changed twice", "crash-points/lease_revoked/durable-replay@t1 file=plain revoke@decided#1 seed=1",
			swings("journal/written", "decided"), []string{
				"crash-points/lease_revoked/durable-replay@t1 file=plain revoke@decided#1 kill@decided#1 seed=1",
				"crash-points.changes/lease_revoked/durable-replay@t1 file=plain revoke@decided#1 make-ineligible@decided#1 seed=1",
				"crash-points.changes/lease_revoked/durable-replay@t1 file=plain revoke@decided#1 refund-by-hand@decided#1 seed=1",
			}},
		{"behind one kill: each change, and a second kill while a process lives, counted over the whole trial",
			"crash-points.own-unbounded/happy_path/gate@t2 file=lossy kill@gate/opened#1 seed=1",
			swings("started", "gate/opened", "kill", "sim/accepted", "start", "started", "gate/opened"), []string{
				"crash-points.outage-unbounded/happy_path/gate@t2 file=lossy kill@gate/opened#1 revoke@started#2 seed=1",
				"crash-points.outage-unbounded/happy_path/gate@t2 file=lossy kill@gate/opened#1 make-ineligible@started#2 seed=1",
				"crash-points.outage-unbounded/happy_path/gate@t2 file=lossy kill@gate/opened#1 refund-by-hand@started#2 seed=1",
				"crash-points.outage-unbounded/happy_path/gate@t2 file=lossy kill@gate/opened#1 forget-keys@started#2 wait:25h@started#2 seed=1",
				"crash-points.pairs-unbounded/happy_path/gate@t2 file=lossy kill@gate/opened#1 kill@started#2 seed=1",
				"crash-points.pairs-unbounded/happy_path/gate@t2 file=lossy kill@gate/opened#1 kill@gate/opened#2 seed=1",
			}},
		{"nothing follows from two kills", "crash-points.pairs/happy_path/gate@t1 file=plain kill@started#1 kill@started#2 seed=1", swings("started"), nil},
	} {
		var got []string
		for _, next := range follow(Outcome{Trial: line(c.trial), History: c.h}) {
			got = append(got, next.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: from %s follow\n%q, want\n%q", c.why, c.trial, got, c.want)
		}
	}
}

// TestSliceIsOfTheSeed takes one trial of each table, the same each time, and
// others under another seed.
func TestSliceIsOfTheSeed(t *testing.T) {
	take := func(seed uint64) (lines []string) {
		trial := faults.Trial{Experiment: "crash-points-slice", Row: "happy_path", Column: "gate@t1", Seed: seed}
		for _, next := range slice(perTable, follow(Outcome{Trial: trial, History: swings("started", "decided", "before-send", "told", "gate/opened")})) {
			next.Seed = 0
			lines = append(lines, next.String())
		}
		return lines
	}
	first := take(1)
	if len(first) != 3*perTable || !slices.Equal(first, take(1)) {
		t.Errorf("took %q, want %d of each of three tables, the same every time", first, perTable)
	}
	differs := false
	for seed := range uint64(10) {
		differs = differs || !slices.Equal(first, take(seed+2))
	}
	if !differs {
		t.Error("ten other seeds take the same")
	}
}
