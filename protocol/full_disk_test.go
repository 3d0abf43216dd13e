package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// TestFullDisk fills a real file system under the journal, so that another write
// of an effect's life is the first to find no room, one after the other: nothing
// is sent without its record, and what became of everything sent is written.
func TestFullDisk(t *testing.T) {
	first := map[string]int{} // the write that found no room
	for spare := range 16 {
		r := newRig(t, tier2())
		mount := t.TempDir()
		if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=2m"); err != nil {
			t.Skipf("needs to mount a file system: %v", err)
		}
		t.Cleanup(func() { syscall.Unmount(mount, syscall.MNT_DETACH) })
		dir := filepath.Join(mount, "journal")
		gate, err := protocol.Open(t.Context(), protocol.Config{
			Namespace: namespace, Clock: r.clock, Drain: r.openDrain(),
			Journal:   journal.FileOpener(dir, journal.Options{Namespace: namespace, Now: r.clock.Now}),
			Authority: journal.FileOpener(r.path("authority"), journal.Options{Mode: journal.Reader, Namespace: namespace, Now: r.clock.Now}),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { gate.Close() })
		if err := gate.Register("refund", r.service); err != nil {
			t.Fatal(err)
		}
		filler, err := os.Create(filepath.Join(mount, "filler"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { filler.Close() })
		size := int64(0)
		for ; err == nil; size += 4096 {
			_, err = filler.WriteAt(make([]byte, 4096), size)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		if err := filler.Truncate(size - 4096*int64(1+spare)); err != nil {
			t.Fatal(err)
		}

		err = nil
		n := 0
		for ; err == nil && n < 5000; n++ {
			p := r.proposal(fmt.Sprintf("case-%d", n), 20)
			if spare%2 == 1 { // another length of every frame
				p.Effect.Payload = fmt.Appendf(nil, `{"order":"881","amount":20,"note":"%0*d"}`, 300, 0)
			}
			_, err = gate.Submit(context.Background(), p)
		}
		if !errors.Is(err, journal.ErrFull) || errors.Is(err, journal.ErrPoisoned) {
			t.Fatalf("after %d effects: %v, want ErrFull and a journal that lives", n, err)
		}
		gate.Close()

		kinds := map[journal.ID][]journal.Kind{}
		if _, err := journal.Inspect(dir, func(e journal.Entry) error {
			kinds[e.Effect] = append(kinds[e.Effect], e.Kind)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, sent := range r.service.sent {
			if got := kinds[sent.Effect]; !slices.Contains(got, journal.Dispatched) || !slices.Contains(got, journal.Committed) {
				t.Errorf("%v was sent, and its entries are %v", sent.Effect, got)
			}
		}
		last := kinds[id(fmt.Sprintf("case-%d", n-1))]
		switch {
		case len(last) == 0:
			first["PROPOSED"]++
		case !slices.Contains(last, journal.Dispatched):
			first["DISPATCHED"]++
		default:
			first["later"]++
		}
		if len(r.service.sent) != n-1 || r.service.landings(id(fmt.Sprintf("case-%d", n-1))) != 0 {
			t.Errorf("%d requests were sent for %d effects, the last of which was refused room", len(r.service.sent), n)
		}
	}
	if first["PROPOSED"] == 0 || first["DISPATCHED"] == 0 || first["later"] > 0 {
		t.Errorf("the writes that found no room were %v; want decisions and dispatches, and nothing later", first)
	}
	t.Logf("the first write without room: %v", first)
}
