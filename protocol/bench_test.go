package protocol_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// BenchmarkSubmit submits new effects to a target in memory, on the file store.
func BenchmarkSubmit(b *testing.B) {
	for _, submitters := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprintf("submitters=%d", submitters), func(b *testing.B) {
			gate, syncs := benchGate(b)
			b.ResetTimer()
			began := syncs.Load()
			submitAll(b, gate, submitters)
			b.ReportMetric(float64(syncs.Load()-began)/float64(b.N), "syncs/op")
		})
	}
}

// BenchmarkSubmitUnsynced is what a submit costs beside its syncs, on the clock
// and on the processors: other processes make the first longer.
func BenchmarkSubmitUnsynced(b *testing.B) {
	gate, _ := benchGateOn(b, func(dir string) journal.Dir { return unsynced{journal.RealDir(dir)} })
	b.ReportAllocs()
	b.ResetTimer()
	began := processorTime()
	submitAll(b, gate, 1)
	b.ReportMetric(float64(processorTime()-began)/float64(b.N), "cpu-ns/op")
}

// processorTime is what this process has used of the processors.
func processorTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		panic(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// unsynced is a directory whose syncs do nothing.
type unsynced struct{ journal.Dir }

type unsyncedFile struct{ journal.File }

func (d unsynced) Sync() error { return nil }

func (d unsynced) Open(name string, create bool) (journal.File, error) {
	f, err := d.Dir.Open(name, create)
	return unsyncedFile{f}, err
}

func (f unsyncedFile) Sync() error { return nil }

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
	return benchGateOn(b, journal.RealDir)
}

// benchGateOn is benchGate with its journal's directory behind on.
func benchGateOn(b *testing.B, on func(string) journal.Dir) (*protocol.Gate, *atomic.Int64) {
	return benchGateIn(b, b.TempDir(), on)
}

func benchGateIn(b *testing.B, dir string, on func(string) journal.Dir) (*protocol.Gate, *atomic.Int64) {
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
		Journal: journal.FileOpener(dir+"/journal", journal.Options{Namespace: namespace, Dir: on(dir + "/journal"), Trace: func(p trace.Point, _ string) {
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
