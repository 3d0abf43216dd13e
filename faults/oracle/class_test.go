package oracle_test

import (
	"errors"
	"testing"

	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

func TestClassesReadBack(t *testing.T) {
	for c := oracle.Unknown; c <= oracle.Duplicate; c++ {
		if got, err := oracle.ParseClass(c.String()); got != c || err != nil {
			t.Errorf("%v reads back as %v, %v", c, got, err)
		}
	}
	for _, bad := range []string{"", "correct", "Class(9)", oracle.Class(9).String(), oracle.Class(-1).String()} {
		if _, err := oracle.ParseClass(bad); !errors.Is(err, oracle.ErrClass) {
			t.Errorf("%q is read without ErrClass", bad)
		}
	}
}

func TestMarks(t *testing.T) {
	for _, c := range []struct {
		class oracle.Class
		mark  string
		word  string
	}{
		{oracle.Unknown, "—", "none"},
		{oracle.Correct, "✅", "ok"},
		{oracle.Ambiguous, "⚠️", "look"},
		{oracle.FalseRefusal, "⚠️", "look"},
		{oracle.Stuck, "❌", "BAD"},
		{oracle.Stale, "❌", "BAD"},
		{oracle.Unauthorized, "❌", "BAD"},
		{oracle.Lost, "❌", "BAD"},
		{oracle.Duplicate, "❌", "BAD"},
	} {
		if c.class.Mark() != c.mark || c.class.Word() != c.word {
			t.Errorf("%v is shown as %s and %s", c.class, c.class.Mark(), c.class.Word())
		}
	}
}

func TestWorst(t *testing.T) {
	for _, c := range []struct {
		of   []oracle.Class
		want oracle.Class
		why  string
	}{
		{nil, oracle.Unknown, "of none nothing is known"},
		{[]oracle.Class{oracle.Correct, oracle.Ambiguous, oracle.Correct}, oracle.Ambiguous, "the greatest"},
		{[]oracle.Class{oracle.Duplicate, oracle.Unknown}, oracle.Unknown, "an unjudged trial leaves the cell unjudged"},
	} {
		if got := oracle.Worst(c.of...); got != c.want {
			t.Errorf("worst of %v is %v, not %v: %s", c.of, got, c.want, c.why)
		}
	}
}
