package sweep

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// transcript is the test that rapid thinks it runs in: it keeps what is written.
type transcript struct {
	lines  []string
	failed bool
}

// gaveUp ends a call of rapid the way testing ends a test, without its goroutine.
type gaveUp struct{}

// ready sets what rapid reads from flags, once: it is made for tests, and this
// may be none. One call checks one case, and fails into its transcript only.
var ready = sync.OnceFunc(func() {
	if flag.Lookup("test.v") == nil {
		testing.Init()
	}
	if !flag.Parsed() {
		flag.CommandLine.Parse(nil)
	}
	checks, steps := "1", "30"
	if testing.Short() { // then rapid takes a fifth of the one and half of the other
		checks, steps = "5", "60"
	}
	for name, value := range map[string]string{"rapid.checks": checks, "rapid.steps": steps, "rapid.nofailfile": "true", "rapid.shrinktime": "20s"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
})

// seeding guards rapid's seed, which is a flag: it is set, and read before the
// property is called for the first time.
var seeding sync.Mutex

// check runs property on what the seed draws, and where that fails, on ever less.
func (l *transcript) check(seed uint64, property func(*rapid.T)) {
	ready()
	defer func() {
		if v := recover(); v != nil && v != (gaveUp{}) {
			panic(v)
		}
	}()
	seeding.Lock()
	read := sync.OnceFunc(seeding.Unlock)
	defer read()
	if err := flag.Set("rapid.seed", strconv.FormatUint(seed, 10)); err != nil {
		panic(err)
	}
	rapid.Check(l, func(t *rapid.T) {
		read()
		property(t)
	})
}

// text is what was written; "" where nothing failed.
func (l *transcript) text() string {
	if !l.failed {
		return ""
	}
	return strings.Join(l.lines, "\n")
}

func (l *transcript) Helper()                      {}
func (l *transcript) Name() string                 { return "interlock-bench sweep" }
func (l *transcript) Log(args ...any)              { l.lines = append(l.lines, fmt.Sprint(args...)) }
func (l *transcript) Logf(f string, args ...any)   { l.lines = append(l.lines, fmt.Sprintf(f, args...)) }
func (l *transcript) Error(args ...any)            { l.Log(args...); l.Fail() }
func (l *transcript) Errorf(f string, args ...any) { l.Logf(f, args...); l.Fail() }
func (l *transcript) Fatal(args ...any)            { l.Error(args...); l.FailNow() }
func (l *transcript) Fatalf(f string, args ...any) { l.Errorf(f, args...); l.FailNow() }
func (l *transcript) Skip(args ...any)             { l.SkipNow() }
func (l *transcript) Skipf(f string, args ...any)  { l.SkipNow() }
func (l *transcript) SkipNow()                     { panic(gaveUp{}) }
func (l *transcript) Fail()                        { l.failed = true }
func (l *transcript) FailNow()                     { l.Fail(); panic(gaveUp{}) }
func (l *transcript) Failed() bool                 { return l.failed }
