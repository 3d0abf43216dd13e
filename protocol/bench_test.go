package protocol_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// BenchmarkSubmit submits new effects to a target in memory, on the file store.
func BenchmarkSubmit(b *testing.B) {
	for _, submitters := range []int{1, 2, 8, 32} {
		b.Run(fmt.Sprintf("submitters=%d", submitters), func(b *testing.B) {
			gate, syncs := benchGate(b)
			b.ResetTimer()
			began := syncs.Load()
			submitAll(b, gate, submitters)
			b.ReportMetric(float64(syncs.Load()-began)/float64(b.N), "syncs/op")
		})
	}
}

// BenchmarkDuplicate submits one committed effect again, behind a log of its
// iterations.
func BenchmarkDuplicate(b *testing.B) {
	gate, _ := benchGate(b)
	for n := range 1000 {
		benchSubmit(b, gate, fmt.Sprintf("before-%d", n))
	}
	b.ResetTimer()
	for b.Loop() {
		benchSubmit(b, gate, "before-999")
	}
}

func submitAll(b *testing.B, gate *protocol.Gate, submitters int) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range submitters {
		all.Go(func() {
			for {
				n := next.Add(1)
				if n > int64(b.N) {
					return
				}
				benchSubmit(b, gate, fmt.Sprintf("case-%d", n))
			}
		})
	}
	all.Wait()
}

func benchSubmit(b *testing.B, gate *protocol.Gate, request string) {
	got, err := gate.Submit(context.Background(), protocol.Proposal{
		Request: request, Agent: "agent-7", Lease: "L-refund",
		Premises: []protocol.Premise{{Name: "eligible", Seen: json.RawMessage(`true`), At: time.Now(), Holds: protocol.Unchanged}},
		Effect:   protocol.Effect{Action: "refund", Payload: json.RawMessage(`{"order":"881","amount":20}`)},
	})
	if err != nil || got.Status.Final != protocol.Committed {
		b.Errorf("%s, %v", got.Status, err)
	}
}

// benchGate is a gate on the real file system and clock.
func benchGate(b *testing.B) (*protocol.Gate, *atomic.Int64) {
	dir := b.TempDir()
	for _, d := range []string{dir + "/authority", dir + "/journal"} {
		if err := os.Mkdir(d, 0o700); err != nil {
			b.Fatal(err)
		}
	}
	drain, err := journal.OpenDrain(dir + "/authority")
	if err != nil {
		b.Fatal(err)
	}
	authority, err := protocol.OpenAuthority(journal.FileOpener(dir+"/authority", journal.Options{Mode: journal.Appender, Namespace: namespace}), drain, protocol.AuthorityOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer authority.Close()
	l := lease("L-refund")
	l.Expires = time.Now().AddDate(1, 0, 0)
	if err := authority.Grant(context.Background(), l); err != nil {
		b.Fatal(err)
	}
	syncs := new(atomic.Int64)
	gate, err := protocol.Open(context.Background(), protocol.Config{
		Namespace: namespace, Drain: drain,
		Journal: journal.FileOpener(dir+"/journal", journal.Options{Namespace: namespace, Trace: func(p trace.Point, _ string) {
			if p == journal.Synced {
				syncs.Add(1)
			}
		}}),
		Authority: journal.FileOpener(dir+"/authority", journal.Options{Mode: journal.Reader, Namespace: namespace}),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { gate.Close(); drain.Close() })
	service := newSimulatedService()
	if err := gate.Register("refund", service); err != nil {
		b.Fatal(err)
	}
	return gate, syncs
}
