package journaltest

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

var (
	long = flag.Bool("long", false, "run the suite of a store at length: a million entries, a thousand rounds")
	seed = flag.Uint64("seed", 1, "seed of what is left to chance, as a failed test printed it")
)

// Suite runs a store in one process and across processes. The test binary is its
// own other process, so a package that runs a Suite has
//
//	func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
//
// A place is whatever names a log to every process: a path, a URL.
type Suite struct {
	Place func(t testing.TB) string         // a new one, where no log is
	Open  func(place string) journal.Opener // opens it to append, and makes the log where none is
	// Shared says that several processes have a log open at the same time. Else
	// one has it, and the suite hands it on.
	Shared bool
	// Small is a place with room for a few megabytes; nil tries no full disk.
	Small func(t testing.TB) string
	// ReadOnly lets nothing be written at a place that nobody has open, until the
	// function that it returns is called; nil tries none.
	ReadOnly func(t testing.TB, place string) (writable func())
	// Served is a place on a file system of a network or of a process, for stores
	// that keep a log on one; nil tries none.
	Served func(t testing.TB) string
}

// Main runs the tests, or what a test wants another process to do.
func (s Suite) Main(m *testing.M) int {
	if do := os.Getenv(childVariable); do != "" {
		return s.child(do)
	}
	return m.Run()
}

// Run runs the whole suite.
func (s Suite) Run(t *testing.T) {
	Store(t, func(t *testing.T) journal.Opener { return s.Open(s.Place(t)) })
	for _, c := range []struct {
		name string
		why  string
		run  func(Suite, *testing.T)
	}{
		{"durability", "what Update returned survives SIGKILL, in order and without gaps, again and again", Suite.durability},
		{"held", "a claim keeps other processes out while its process lives, and is free when that is dead", Suite.held},
		{"hung", "a stopped process keeps what it has, and is named; killed, it has nothing", Suite.hung},
		{"locked", "beside a process that stands still in its update nothing is appended, and looks go on", Suite.locked},
		{"order", "processes that append at once make one order, in which each sees all before it", Suite.order},
		{"guards", "what one process decided, every other process's decision has seen", Suite.guards},
		{"revocation", "once a revocation has returned, no dispatch follows it", Suite.revocation},
		{"middle", "a process killed while it opens or decides leaves the log as it was", Suite.middle},
		{"rounds", "two processes, one of them killed: nothing is lost, nothing done twice", Suite.rounds},
		{"large", "entries of every size up to the greatest come back byte for byte", Suite.large},
		{"many", "twenty thousand entries, at length a million, come back in order", Suite.many},
		{"full", "a full disk refuses new effects before anything is appended, and takes outcomes", Suite.full},
		{"read-only", "what can't be written can't be opened to append, and comes to no harm", Suite.readOnly},
		{"served", "a file system where locks and syncs can't be relied on is refused", Suite.served},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Log(c.why)
			c.run(s, t)
		})
	}
}

// chance is a generator whose seed is printed.
func chance(t *testing.T) *rand.Rand {
	t.Logf("run it again with -seed %d", *seed)
	return rand.New(rand.NewPCG(*seed, 0))
}
