package oracle_test

import (
	"encoding/json"
	"testing"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// FuzzJudge holds the judge to its contract for whatever somebody calls a
// history: it answers, and what it can't judge is no pass.
func FuzzJudge(f *testing.F) {
	for _, h := range []history.History{
		begin(t1).pay(20_00).tell("COMMITTED", history.SaysDone).end(),
		begin(t3).look().kill().byHand(20_00).start().recovered("AMBIGUOUS", history.SaysUnknown).end(),
		begin(t1).eligible(false).revoke().pay(30_00).tell("APPLIED", history.SaysNot).end(),
		begin(t1).tell("COMMITTED", history.SaysDone).add("supervisor", history.Declared, history.Declaration{}).h,
	} {
		b, err := json.Marshal(h)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h history.History
		if json.Unmarshal(b, &h) != nil {
			return
		}
		v := oracle.Judge(h)
		if v.Class == oracle.Unknown && len(v.Why) == 0 {
			t.Error("unjudged, and nothing says why")
		}
		if v.Class == oracle.Correct && (len(v.Broke) > 0 || v.Unfired > 0) {
			t.Errorf("a pass with %v and %d unfired faults", v.Broke, v.Unfired)
		}
	})
}
