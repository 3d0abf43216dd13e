package mutant

import "strings"

// Explanation is why nothing can catch a machine mutant: what it changes is
// nothing that anybody could observe, or is held by another guard as well.
type Explanation struct {
	Of   string // FILE:FUNCTION:KIND, without the number
	Text string // what is changed, so that a moved number doesn't matter
	Why  string
}

// Explained finds the explanation of a mutant.
func Explained(s Spot) (Explanation, bool) {
	of := s.Name[:strings.LastIndex(s.Name, ":")]
	for _, x := range Explanations {
		if x.Of == of && x.Text == s.Text {
			return x, true
		}
	}
	return Explanation{}, false
}

// What several of them say.
const (
	unused    = "it only keeps in memory what nobody asks for any more"
	slower    = "the same is found out in a slower way"
	collected = "the file is closed when its handle is collected"
)

// Explanations are all there are. A mutant that survives without one fails the
// run.
var Explanations = []Explanation{
	{"protocol/attempt.go:Gate.judge:force-false", "in == ready", slower},
	{"protocol/attempt.go:Gate.dispatch:drop-call", "defer release()", "the bytes are let go right behind the append; this one is for an observer that panics in between, and a panic ends the process, which lets them go"},
	{"protocol/attempt.go:Gate.share:force-false", "n == 0", "byte 0 is of no entry, so nobody waits for whoever shares it"},
	{"protocol/attempt.go:Gate.held:force-false", "err != nil || len(e.keyed) == 0", "an effect that is sent anew has an attempt, whose key the target may know; and a log that can't be read there can't be written in the next step"},
	{"protocol/gate.go:Gate.release:drop-call", "delete(g.state.claimed, id)", unused},
	{"protocol/gate.go:Gate.release:drop-call", "e.shrink()", unused},
	{"protocol/gate.go:Gate.entries:force-false", "len(e.entries) == len(e.seqs)", slower},
	{"protocol/guard.go:unclaimed:drop-right", "(len(unsettled) == 0 || f.mode != first)", "a first send rests on no attempt, so the two sets are equal only where there is none"},
	{"protocol/guard.go:conflicting:drop-right", "e.digest == (journal.Hash{})", "an effect whose decision is lost is in doubt, and takes the next decision before it is compared with one"},
	{"protocol/guard.go:over:drop-right", "f.effect.final != Refused", "what is closed, or refused by the target, is refused and stays so"},
	{"protocol/guard.go:stale:force-false", "p.Holds == Equals", "S9 lets only a premise by whose seen value is the wanted one"},
	{"protocol/guard.go:stale:force-false", "i < 0", "a premise that could not be read has ended the attempt before"},
	{"protocol/guard.go:effect.keyEnds:force-false", "can.DedupWindow == 0 || len(e.keyed) == 0", "a window of nothing ends when it begins, and an effect in doubt has a key that the target may know"},
	{"protocol/guard.go:effect.keyEnds:drop-left", "can.DedupWindow == 0", "a window of nothing ends when it begins"},
	{"protocol/guard.go:effect.keyEnds:drop-right", "len(e.keyed) == 0", "an effect in doubt has a key that the target may know"},
	{"protocol/guard.go:unauthorized:force-false", "f.proposal.keepsSecret(limit.Field)", "what stands in a secret's place is no number, and equals no value that a principal names"},
	{"protocol/resolve.go:Gate.Resolve:drop-left", "ok", "nobody has no key, and so takes the place of none"},
	{"protocol/resolve.go:Gate.Resolve:force-false", "!known", "somebody unknown has no key, and nothing verifies with none"},
	{"protocol/state.go:state.apply:force-false", "e.entries != nil || len(e.seqs) == 1", slower},
	{"protocol/state.go:state.apply:force-false", "!s.claimed[e.id]", unused},
	{"protocol/state.go:state.apply:drop-call", "e.shrink()", unused},
	{"protocol/state.go:state.fold:force-false", "r.lease == b.Proposal.Lease", "an authority is noted once more, and its first note counts"},
	{"protocol/state.go:state.hold:force-false", "e.holds == line", "a use is given back and taken again"},
	{"protocol/state.go:state.release:force-false", `e.holds == ""`, "nobody counts the uses of a lease without a name"},
	{"protocol/state.go:state.release:force-false", "s.uses[e.holds] == 0", unused},
	{"protocol/state.go:state.release:drop-call", "delete(s.uses, e.holds)", unused},
	{"protocol/state.go:effect.shrink:force-false", "e.final == Committed", unused},
	{"protocol/submit.go:Gate.answer:force-false", "e == nil", slower},
	{"protocol/submit.go:Gate.propose:force-false", "e.decision != nil", slower},
	{"protocol/journal/drain.go:Drain.unshare:drop-call", "delete(d.shared, n)", unused},
	{"protocol/journal/flush.go:Log.awaitLocked:drop-call", "runtime.Gosched()", "fewer callers share a sync, and none is told before it"},
	{"protocol/journal/flush.go:Log.flushAlone:force-false", "l.err == nil", slower},
	{"protocol/journal/flush.go:Log.flushed:force-false", "cap(buf) <= 1<<20", slower},
	{"protocol/journal/lock.go:lockFile.changed:force-false", "string(info) == l.info", slower},
	{"protocol/journal/lock.go:lockFile.wait:drop-call", "t.Stop()", "the timer ends by itself within ten milliseconds"},
	{"protocol/journal/lock.go:lockFile.write:force-false", "err == nil && n < len(b)", "a line is written to a plain file whole or not at all, and only people read it"},
	{"protocol/journal/lock.go:openLockFile:drop-call", "l.close()", "a lock file that can't be asked about, or is another at the second look, keeps a descriptor without a lock"},
	{"protocol/journal/open.go:Log.tails:drop-call", "f.Close()", collected},
	{"protocol/journal/open.go:Log.startSegment:drop-call", "f.Close()", collected},
	{"protocol/journal/open.go:Log.startSegment:force-false", "s.prev == 0", "that the entry of a new directory is synced shows only where the power goes, and no seam lies there"},
	{"protocol/journal/open.go:Log.syncCuts:force-false", "!slices.Contains(l.marked, s.number)", slower},
	{"protocol/journal/open.go:Log.syncCuts:force-false", "l.chain[j].first < s.first", slower},
	{"protocol/journal/open.go:Log.markSuspects:force-false", "len(*entries) == 0", "nothing is appended, and a step is reported that had nothing to do"},
	{"protocol/wire/conn.go:Conn.do:drop-call", "defer stop()", "a deadline is set on a connection that has had its one request"},
	{"protocol/wire/conn.go:Conn.Close:drop-call", "c.Seal()", "what is closed refuses the look that comes before every write"},
}
