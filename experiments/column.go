package experiments

import (
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/baselines"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// column is one column of the refund desk's tables: what it is and how a process opens
// it.
type column struct {
	Column
	gate      bool // follows the authority log
	journaled bool // writes a journal: runs on both kinds of file
	steps     steps
	open      func(opening) (baselines.Column, error)
	evidence  func(evidenceOf) string // what its own artefacts show after the trial
}

// The columns in the order of the pages: first those of the reference table, then
// the gate at services that can do more, then what a careful engineer writes.
var (
	referenceColumns = []column{
		{Column: Column{Name: "naive", What: "runs the step, and after a restart runs it again under a fresh id"},
			steps: forgets, open: baseline(baselines.NewNaive), evidence: noEvidence},
		{Column: Column{Name: "idempotency-key@t1", What: "sends a stable idempotency key and remembers nothing"},
			steps: forgets, open: baseline(baselines.NewIdempotencyKey), evidence: noEvidence},
		{Column: Column{Name: "durable-replay@t1", What: "durable execution: a recorded step replays its result, a step that died runs again under the same key"},
			journaled: true, steps: replays, open: baseline(baselines.NewDurableReplay), evidence: logEvidence},
		gateAt("t1"),
		gateAt("t2"),
		gateAt("t3"),
	}
	furtherGates = []column{
		gateAt("conditional"),
		gateAt("fenced"),
	}
	handChecks = []column{
		handCheckAt("t1"),
		handCheckAt("t2"),
		handCheckAt("t3"),
		{Column: Column{Name: "hand-check-unmarked@t3", What: "the hand check without its marker: it sends although its log holds a send without a result"},
			journaled: true, steps: checks, open: baseline(baselines.NewHandCheckUnmarked), evidence: logEvidence},
		handCheckLockedAt("t1"),
		handCheckLockedAt("t2"),
		handCheckLockedAt("t3"),
	}
	faultsColumns = slices.Concat(referenceColumns, furtherGates, handChecks)

	sharedGate = column{
		Column: Column{Name: "gate-shared@t2", What: "the gate with its journal in a SQLite database, which several processes have open, at a service of profile t2", Holds: true},
		gate:   true, steps: gates, open: openShared, evidence: sharedEvidence,
	}

	// deskColumns are all that run at the refund desk.
	deskColumns = slices.Concat(faultsColumns, []column{sharedGate}, practices)

	// practices are what incidents show that people do besides.
	practices = []column{
		{Column: Column{Name: "args-hash-key@t1", What: "sends a hash of the call's arguments as idempotency key"},
			steps: forgets, open: baseline(baselines.NewArgsHashKey), evidence: noEvidence},
		{Column: Column{Name: "ttl-lock@t2", What: "the hand check inside a lock that ends by itself after 20 s"},
			journaled: true, steps: checks, open: baseline(baselines.NewTTLLock), evidence: logEvidence},
		{Column: Column{Name: "best-effort-log@t3", What: "the hand check whose log must never stop it: unreadable is not there, unwritable is left out"},
			journaled: true, steps: checks, open: baseline(baselines.NewBestEffortLog), evidence: logEvidence},
	}
)

func gateAt(profile string) column {
	return column{
		Column: Column{Name: "gate@" + profile, What: "the gate, at a service of profile " + profile, Holds: true},
		gate:   true, journaled: true, steps: gates, open: openGate, evidence: gateEvidence,
	}
}

func handCheckAt(profile string) column {
	return column{
		Column:    Column{Name: "hand-check@" + profile, What: "the careful hand-written check, at a service of profile " + profile},
		journaled: true, steps: checks, open: baseline(baselines.NewHandCheck), evidence: logEvidence,
	}
}

func handCheckLockedAt(profile string) column {
	return column{
		Column:    Column{Name: "hand-check-locked@" + profile, What: "the same inside a file lock, at a service of profile " + profile},
		journaled: true, steps: checks, open: baseline(baselines.NewHandCheckLocked), evidence: logEvidence,
	}
}

func baseline(open func(baselines.Env) (baselines.Column, error)) func(opening) (baselines.Column, error) {
	return func(o opening) (baselines.Column, error) { return open(o.Env) }
}

func findColumn(columns []column, name string) (column, bool) {
	for _, c := range columns {
		if c.Name == name {
			return c, true
		}
	}
	return column{}, false
}

// evidenceOf is where a column's artefacts lie after a trial.
type evidenceOf struct {
	state string
	store string // the gate's
	now   func() time.Time
}

// The grades of a record: do the column's own artefacts show who acted, what was
// done, which checks held, and every attempt, the killed one included?
const (
	recordFull    = "full"
	recordPartial = "partial"
	recordNone    = "none"
)

func noEvidence(evidenceOf) string { return recordNone }

// logEvidence grades a baseline's log.
func logEvidence(at evidenceOf) string {
	shown, err := baselines.Shown(func(apply func(journal.Entry) error) (journal.Store, error) {
		return journal.OpenFile(journalDir(at.state), journal.Options{Mode: journal.Reader, Namespace: namespace, Now: at.now}, apply)
	})
	switch {
	case err != nil || shown == baselines.Evidence{}:
		return recordNone
	case shown.Who && shown.What && shown.Checks && shown.Attempts:
		return recordFull
	}
	return recordPartial
}

// gateEvidence grades the gate's receipts.
func gateEvidence(at evidenceOf) string {
	store, err := gateJournal(at.state, at.store, journal.Options{
		Mode: journal.Reader, Namespace: namespace, Now: at.now,
	})(func(journal.Entry) error { return nil })
	if err != nil {
		return recordNone
	}
	defer store.Close()
	entries, err := protocol.EntriesOf(store, protocol.EffectID(namespace, caseID, 0))
	if err != nil {
		return recordNone
	}
	return receiptGrade(entries)
}

// sharedEvidence grades the receipts of a gate whose journal is a database.
func sharedEvidence(at evidenceOf) string {
	at.store = storeSQLite
	return gateEvidence(at)
}

func receiptGrade(entries []journal.Entry) string {
	if len(entries) == 0 {
		return recordNone
	}
	receipt, err := protocol.ReceiptFromEntries(entries)
	if err != nil {
		return recordNone
	}
	who := receipt.Agent != "" && receipt.Lease != ""
	what := len(receipt.Payload) > 0
	checks := receipt.Authorized.Basis != ""
	for _, a := range receipt.Attempts {
		checks = checks && len(a.Read) > 0
	}
	if !who || !what || !checks {
		return recordPartial
	}
	return recordFull
}
