package faults_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// TestOther: a process is stopped where the trial says, another one has the stage
// until it ends, and the first goes on from where it stood.
func TestOther(t *testing.T) {
	h := run(t, plan(t, "steps", "other@one#1"))
	want := []string{
		"worker#1 started", "worker#1 one", "worker#1 stopped",
		"worker#2 started", "worker#2 one", "worker#2 two", "worker#2 said", "worker#2 finished",
		"worker#1 continued", "worker#1 two", "worker#1 said", "worker#1 finished",
	}
	if diff := cmp.Diff(want, steps(h)); diff != "" {
		t.Error(diff)
	}
}

// TestOtherIsNotStartedTwice: one process is stopped at a time, and a fault that
// asks for more has not happened.
func TestOtherIsNotStartedTwice(t *testing.T) {
	h := run(t, plan(t, "steps", "other@one#1", "other@two#1"))
	if n := count(h, history.Stopped); n != 1 {
		t.Errorf("%d were stopped", n)
	}
	if n := count(h, history.Unfired); n != 1 {
		t.Errorf("%d faults did not happen", n)
	}
}

// TestOtherKilled: a kill takes the process that has the stage.
func TestOtherKilled(t *testing.T) {
	h := run(t, plan(t, "steps", "other@one#1", "kill@two#1"))
	want := []string{
		"worker#1 started", "worker#1 one", "worker#1 stopped",
		"worker#2 started", "worker#2 one", "worker#2 two", "worker#2 killed",
		"worker#1 continued", "worker#1 two", "worker#1 said", "worker#1 finished",
	}
	if diff := cmp.Diff(want, steps(h)); diff != "" {
		t.Error(diff)
	}
}

// TestOtherTimersWait: a timer of a stopped process that comes due meanwhile fires
// when that process next waits, not before.
func TestOtherTimersWait(t *testing.T) {
	h := run(t, plan(t, "stands", "other@one#1", "wait:2m@one#2"))
	var texts []string
	for _, e := range h {
		if e.Kind == said {
			n, err := history.Body[note](e)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, fmt.Sprint(e.Who, " ", n.Text, " ", n.Mono))
		}
	}
	want := []string{"worker#2 true 2m0s", "worker#1 false 2m0s"}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
}

// TestOtherEndsWithTheTrial: a trial that is given up leaves no stopped process.
func TestOtherEndsWithTheTrial(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := planFor(t, "steps", func(w *world) {
		w.acts["give-up"] = func(func(...trace.Point)) error { cancel(); return nil }
	}, "other@one#1", "give-up@one#2")
	if _, err := faults.Run(ctx, p); !errors.Is(err, context.Canceled) {
		t.Errorf("the trial ended with %v", err)
	}
}

// steps are what processes did, in order.
func steps(h history.History) (list []string) {
	for _, e := range h {
		switch {
		case !strings.HasPrefix(e.Who, "worker#"):
		case e.Kind == history.Passed:
			list = append(list, e.Who+" "+string(e.Point))
		default:
			list = append(list, e.Who+" "+string(e.Kind))
		}
	}
	return list
}

func count(h history.History, kind history.Kind) (n int) {
	for _, e := range h {
		if e.Kind == kind {
			n++
		}
	}
	return n
}
