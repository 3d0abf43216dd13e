package journal_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// TestC22 opens a backup: whatever had no outcome in it may have been sent since,
// and no token of the lost log comes back.
func TestC22RestoredBackup(t *testing.T) {
	backup, _, _ := killed(t, one(journal.Proposed, e3), one(journal.Committed, e3), one(journal.Proposed, e1), one(journal.Proposed, e2), one(journal.Refused, e2))

	lost := copyLog(t, backup) // goes on after the backup was taken, and is lost
	var last journal.Token
	for range 30 {
		l, _ := mustOpen(t, lost, fast(lost))
		last = add(t, l, journal.Entry{Kind: journal.Dispatched, Effect: e1})[0].Token()
		l.Close()
	}

	restore := func(at time.Time) (journal.Token, []journal.Entry) {
		path := copyLog(t, backup)
		o := fast(path)
		o.Restored = true
		o.Now = func() time.Time { return at }
		l, entries := mustOpen(t, path, o)
		token := add(t, l, journal.Entry{Kind: journal.Fenced, Effect: e1})[0].Token()
		l.Close()
		l, again := mustOpen(t, path, fast(path)) // not as restored: it isn't done twice
		if len(*again) != len(*entries) {
			t.Errorf("opened again it holds %v, want %v", kinds(*again), kinds(*entries))
		}
		l.Close()
		return token, *entries
	}
	at := time.Now()
	token, entries := restore(at)
	if !last.Less(token) {
		t.Errorf("the lost log had token %v, the restored one %v", last, token)
	}
	if got := suspects(entries); !slices.Equal(got, []journal.ID{e1}) {
		t.Errorf("suspect are %v, want the one without an outcome", got)
	}
	if got := string(entries[len(entries)-2].Body); got != `{"namespace":"test","format":1,"epoch":1}` {
		t.Errorf("behind the suspects is %s", got)
	}
	again, _ := restore(at.Add(time.Minute))
	if !token.Less(again) {
		t.Errorf("the same backup restored again has token %v after %v", again, token)
	}
}

// TestKilledRestore kills an opening as restored after every change, and opens
// without saying so again: the suspects are complete all the same.
func TestKilledRestore(t *testing.T) {
	backup, _, _ := killed(t, one(journal.Proposed, e1), one(journal.Proposed, e2))
	var left []string
	var hows []string
	path := copyLog(t, backup)
	d := &testDir{Dir: journal.RealDir(path), noSync: true}
	d.done = func(op, name string) {
		left = append(left, copyLog(t, path))
		hows = append(hows, fmt.Sprintf("killed after %s %s", op, name))
		if op == "write" {
			b := read(t, path, name)
			for size := 512; size < len(b); size += 512 {
				torn := copyLog(t, path)
				write(t, torn, name, b[:size])
				left = append(left, torn)
				hows = append(hows, fmt.Sprintf("%s torn at %d", name, size))
			}
		}
	}
	mustOpen(t, path, journal.Options{Dir: d, Restored: true})
	started := false
	for i, path := range left {
		l, entries := mustOpen(t, path, journal.Options{Dir: &testDir{Dir: journal.RealDir(path), noSync: true}})
		// Until the new segment has its header the log is what the backup was.
		started = started || len(suspects(*entries)) > 0
		if started && !sameIDs(suspects(*entries), []journal.ID{e1, e2}) {
			t.Errorf("%s: suspect are %v, want both", hows[i], suspects(*entries))
		}
		l.Close()
	}
	if !started || len(left) < 5 {
		t.Errorf("%d states, none of them restored", len(left))
	}
}

func TestRestoredNeedsALog(t *testing.T) {
	path := newPath(t)
	o := fast(path)
	o.Restored = true
	if _, err := journal.OpenFile(path, o, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing to restore: %v", err)
	}
	o.Mode = journal.Appender
	if _, err := journal.OpenFile(path, o, nil); !errors.Is(err, journal.ErrMode) {
		t.Errorf("as appender: %v", err)
	}
}

// TestSuspectsComeInTheOrderOfTheirDecisions restores a log with many.
func TestSuspectsComeInTheOrderOfTheirDecisions(t *testing.T) {
	var want []journal.ID
	path := newPath(t)
	l, _ := mustOpen(t, path, fast(path))
	for n := range 20 {
		id := journal.ID{byte(200 - n)}
		add(t, l, journal.Entry{Kind: journal.Proposed, Effect: id})
		want = append(want, id)
	}
	l.Close()
	o := fast(path)
	o.Restored = true
	l, entries := mustOpen(t, path, o)
	defer l.Close()
	if got := suspects(*entries); !slices.Equal(got, want) {
		t.Errorf("suspect are %v", got)
	}
}
