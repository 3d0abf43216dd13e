package explore

import (
	"github.com/interlock-bench/interlock-bench/faults/disk"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Plant is a fault that is put in on purpose: a service, a disk, a clock or a
// client that isn't what the gate is told it is. The explorer has to see it.
type Plant struct {
	Name  Planted
	What  string
	Rules []string // one of them is broken
	Bound Bound
}

// Planted names a planted fault; "" is none.
type Planted string

const (
	syncForgotten    Planted = "sync-forgotten"
	namesForgotten   Planted = "names-forgotten"
	halfWritten      Planted = "half-written"
	keyForgotten     Planted = "key-forgotten"
	lookupLies       Planted = "lookup-lies"
	lagUnderstated   Planted = "lag-understated"
	boundUnderstated Planted = "bound-understated"
	fenceIgnored     Planted = "fence-ignored"
	conditionIgnored Planted = "condition-ignored"
	premiseCached    Planted = "premise-cached"
	doneUnasked      Planted = "done-unasked"
	noLies           Planted = "no-lies"
	unsentLies       Planted = "unsent-lies"
	sentTwice        Planted = "sent-twice"
	clockRaces       Planted = "clock-races"
	drainSkipped     Planted = "drain-skipped"
)

// Plants are all of them, each with bounds in which it is found.
func Plants() []Plant {
	bound := func(p Planted, profile string, b Budget, world ...string) Bound {
		return Bound{Name: "planted/" + string(p), Profiles: []string{profile}, Agents: 1, Budget: b, World: world, Planted: p}
	}
	plants := []Plant{
		{syncForgotten, "the journal's disk says yes to a sync and does nothing", []string{"intent-first"}, bound(syncForgotten, "t1", Budget{})},
		{namesForgotten, "the sync of the directory does nothing", []string{"intent-first"}, bound(namesForgotten, "t1", Budget{})},
		{halfWritten, "a write reports more than it wrote", []string{"intent-first"}, bound(halfWritten, "t3", Budget{})},
		{keyForgotten, "the service forgets a key at once", []string{"more-landings", "may-still-land"}, bound(keyForgotten, "t1", Budget{Faults: 1})},
		{lookupLies, "a lookup finds nothing, whatever landed", []string{"more-landings"}, bound(lookupLies, "t2", Budget{Faults: 1})},
		{lagUnderstated, "answers of a lookup are ten times as old as declared", []string{"more-landings"}, bound(lagUnderstated, "t2-lag", Budget{Faults: 1})},
		{boundUnderstated, "a request lands ten times as late as declared", []string{"may-still-land", "refused-landed"}, bound(boundUnderstated, "t2", Budget{Faults: 1})},
		{fenceIgnored, "the service acknowledges a fence and goes on to apply older attempts", []string{"may-still-land"}, bound(fenceIgnored, "t2-fence", Budget{Faults: 1})},
		{conditionIgnored, "the service doesn't check the premise that it says it checks", []string{"not-eligible"}, bound(conditionIgnored, "t2-if", Budget{Changes: 1}, "change")},
		{premiseCached, "reading a premise gives what it was in the beginning", []string{"not-eligible"}, bound(premiseCached, "t2", Budget{Changes: 1}, "change")},
		{doneUnasked, "the service says done and does nothing", []string{"claimed-done"}, bound(doneUnasked, "t3", Budget{})},
		{noLies, "the service says a final no and does it", []string{"refused-landed"}, bound(noLies, "t3", Budget{Faults: 1})},
		{unsentLies, "the client says that no byte left, and the request arrives", []string{"untruthful"}, bound(unsentLies, "t2", Budget{Faults: 1})},
		{sentTwice, "the transport repeats a request", []string{"more-landings"}, bound(sentTwice, "t2", Budget{})},
		{clockRaces, "the monotonic clock runs a hundred times too fast", []string{"may-still-land"}, bound(clockRaces, "t2", Budget{Faults: 1})},
		{drainSkipped, "a dispatch doesn't take its lease's byte", []string{"lease-not-live"}, bound(drainSkipped, "t1", Budget{Changes: 1}, "revoke")},
	}
	return plants
}

// has reports whether a fault is planted.
func (w *world) has(p Planted) bool { return w.bound.Planted == p }

// store is the journal's directory, with the planted fault of a disk in it.
func (s *setup) store(d *disk.Disk) journal.Dir {
	switch s.Planted {
	case syncForgotten, namesForgotten, halfWritten:
		return badDir{d, s.Planted}
	}
	return d
}

// badDir is a directory with a planted fault.
type badDir struct {
	*disk.Disk
	fault Planted
}

func (d badDir) Open(name string, create bool) (journal.File, error) {
	f, err := d.Disk.Open(name, create)
	return badFile{f, d.fault}, err
}

func (d badDir) Sync() error {
	if d.fault == namesForgotten {
		return nil
	}
	return d.Disk.Sync()
}

type badFile struct {
	journal.File
	fault Planted
}

func (f badFile) Sync() error {
	if f.fault == syncForgotten {
		return nil
	}
	return f.File.Sync()
}

func (f badFile) WriteAt(p []byte, off int64) (int, error) {
	if f.fault != halfWritten || len(p) < 1024 {
		return f.File.WriteAt(p, off)
	}
	_, err := f.File.WriteAt(p[:len(p)/2], off)
	return len(p), err
}
