// Package bench measures what the gate costs: effects a second, syncs,
// allocations, memory, and how long it takes to open, to recover and to take over
// from a dead process. Every figure is taken several times, all figures in turn,
// and stands beside a floor that was measured in the same turns: on a machine
// that is shared, the ratio says more than the figure.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/interlock-bench/interlock-bench/baselines"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Options say how a run goes. The zero value measures.
type Options struct {
	Quick bool              // one turn, short, over small journals: to see that it runs
	Dir   string            // where journals are made and taken away again; "" is the system's place for temporary files
	Say   func(what string) // told of each step; nil is silent
}

// Measure is one figure.
type Measure struct {
	ID     string    `json:"id"`
	Unit   string    `json:"unit"`
	Runs   []float64 `json:"runs"`
	Median float64   `json:"median"`
	Floor  string    `json:"floor,omitempty"` // the measure that it is held against
	Ratio  float64   `json:"ratio,omitempty"` // to that one's median
	Wanted string    `json:"wanted,omitempty"`
	Met    bool      `json:"met,omitempty"` // Wanted is met
}

// length is how long one figure is taken.
func (o Options) length() time.Duration {
	if o.Quick {
		return 50 * time.Millisecond
	}
	return 400 * time.Millisecond
}

// effects are how many a cost is the mean of.
func (o Options) effects() int {
	if o.Quick {
		return 20
	}
	return 1000
}

func (o Options) turns() int {
	if o.Quick {
		return 1
	}
	return 5
}

// sizes of journals, in entries.
func (o Options) sizes() []int {
	if o.Quick {
		return []int{10, 1000}
	}
	return []int{10, 1000, 100_000, 1_000_000}
}

func (o Options) inFlight() int {
	if o.Quick {
		return 100
	}
	return 10_000
}

func (o Options) say(format string, args ...any) {
	if o.Say != nil {
		o.Say(fmt.Sprintf(format, args...))
	}
}

// run is one run under way.
type run struct {
	Options
	dir     string
	order   []string
	figures map[string]*Measure
	made    int // requests
	web     *web
}

// note adds a figure.
func (r *run) note(id, unit string, value float64) {
	m := r.figures[id]
	if m == nil {
		m = &Measure{ID: id, Unit: unit}
		r.figures[id] = m
		r.order = append(r.order, id)
	}
	m.Runs = append(m.Runs, value)
}

// request is a request id that nothing else has.
func (r *run) request() string {
	r.made++
	return fmt.Sprintf("bench-%08d", r.made)
}

// place is a new directory.
func (r *run) place() (string, error) { return os.MkdirTemp(r.dir, "gate-") }

// Run measures and returns the figures in the order of the page. Its error means
// that something could not be measured.
func Run(ctx context.Context, o Options) ([]Measure, error) {
	dir, err := os.MkdirTemp(o.Dir, "interlock-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &run{Options: o, dir: dir, figures: map[string]*Measure{}}
	if r.web, err = newWeb(); err != nil {
		return nil, err
	}
	defer r.web.close()
	for _, size := range o.sizes() {
		if size <= small {
			continue
		}
		for _, store := range r.storesOf(size) {
			o.say("making a journal of %d entries, %s", size, store)
			if err := grow(ctx, r.grown(store, size), store, size, 0); err != nil {
				return nil, err
			}
		}
	}
	for turn := range o.turns() {
		for _, step := range []struct {
			what string
			do   func(context.Context) error
		}{
			{"floors", r.floors}, {"submits", r.submits}, {"hand checks", r.handChecks}, {"without syncs", r.parts},
			{"by size", r.bySize}, {"in flight", r.recovery}, {"takeovers", r.takeovers},
		} {
			o.say("turn %d of %d: %s", turn+1, o.turns(), step.what)
			if err := step.do(ctx); err != nil {
				return nil, fmt.Errorf("bench: %s: %w", step.what, err)
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
	}
	return r.measures(), nil
}

// submitters are how many callers submit at once.
var submitters = []int{1, 8, 64, 512}

func floorID(writers int) string { return fmt.Sprintf("floor/%d", writers) }

func (r *run) floors(context.Context) error {
	for _, n := range submitters {
		got, err := floor(r.dir, n, r.length())
		if err != nil {
			return err
		}
		r.note(floorID(n), "appends/s", got)
	}
	return nil
}

// services are what effects land on.
var services = []string{"memory", "http"}

func (r *run) service(name string) protocol.Target {
	if name == "http" {
		return r.web
	}
	return memory{}
}

// submits is effects a second.
func (r *run) submits(ctx context.Context) error {
	for _, store := range stores {
		for _, service := range services {
			for _, n := range submitters {
				dir, err := r.place()
				if err != nil {
					return err
				}
				b, err := open(ctx, dir, setup{store: store, target: r.service(service)})
				if err != nil {
					return err
				}
				before := b.syncs.Load()
				base := r.made
				got, times, err := rate(n, r.length(), func(k int) error {
					return b.submit(ctx, fmt.Sprintf("bench-%08d", base+k), true)
				})
				r.made += 1 << 20
				syncs := float64(b.syncs.Load() - before)
				if err := errors.Join(err, b.close(), os.RemoveAll(dir)); err != nil {
					return err
				}
				id := fmt.Sprintf("submit/%s/%s/%d", store, service, n)
				r.note(id, "effects/s", got)
				r.note(id+"/syncs", "syncs/effect", syncs/float64(max(times, 1)))
			}
		}
	}
	return nil
}

// handChecks is the hand check doing the same work, one call after another.
func (r *run) handChecks(ctx context.Context) error {
	for _, service := range services {
		dir, err := r.place()
		if err != nil {
			return err
		}
		s := handService{}
		if service == "http" {
			s.web = r.web
		}
		column, err := baselines.NewHandCheck(baselines.Env{
			Service: s, Lookup: true, Key: true,
			Journal: func(mode journal.Mode, apply func(journal.Entry) error) (journal.Store, error) {
				return journal.OpenFile(filepath.Join(dir, "journal"), journal.Options{Mode: mode, Namespace: namespace}, apply)
			},
		})
		if err != nil {
			return err
		}
		got, _, err := rate(1, r.length(), func(int) error {
			told, err := column.Submit(ctx, baselines.Decision{Request: r.request(), Order: "881", Case: "case", Amount: 20_00, Agent: agent, Lease: "L-bench"})
			if err == nil && told.Says != baselines.Done {
				err = fmt.Errorf("bench: the hand check ended as %s", told.Status)
			}
			return err
		})
		if err := errors.Join(err, column.Close(), os.RemoveAll(dir)); err != nil {
			return err
		}
		r.note("hand-check/"+service+"/1", "effects/s", got)
	}
	return nil
}

// variant is a gate with one of its checks left out by how it is used.
type variant struct {
	name     string
	setup    setup
	premises bool
}

var variants = []variant{
	{"all checks", setup{}, true},
	{"no premise", setup{}, false},
	{"no limit on the payload", setup{unlimited: true}, true},
	{"no lease byte", setup{undrained: true}, true},
	{"none of the three", setup{unlimited: true, undrained: true}, false},
}

// parts is what is left without the syncs.
func (r *run) parts(ctx context.Context) error {
	for _, v := range variants {
		dir, err := r.place()
		if err != nil {
			return err
		}
		v.setup.store, v.setup.unsynced = "file", true
		b, err := open(ctx, dir, v.setup)
		if err != nil {
			return err
		}
		c, err := r.cost(ctx, b, v.premises)
		if err := errors.Join(err, b.close(), os.RemoveAll(dir)); err != nil {
			return err
		}
		id := "unsynced/" + strings.ReplaceAll(v.name, " ", "-")
		r.note(id, "µs/effect", c.wall)
		r.note(id+"/processor", "µs/effect", c.processor)
		r.note(id+"/allocations", "allocations/effect", c.allocations)
	}
	for _, of := range []struct{ id, text string }{{"canonical", payload}, {"canonical/other-order", reordered}} {
		const times = 2000
		began := time.Now()
		for range times {
			if _, err := protocol.Canonical([]byte(of.text)); err != nil {
				return err
			}
		}
		r.note(of.id, "µs/payload", micros(time.Since(began))/times)
	}
	return nil
}

// cost is what one effect takes.
type cost struct{ wall, processor, allocations float64 }

func (r *run) cost(ctx context.Context, b *bed, premises bool) (cost, error) {
	var before, after runtime.MemStats
	if err := b.submit(ctx, r.request(), premises); err != nil { // what is made once
		return cost{}, err
	}
	runtime.ReadMemStats(&before)
	began, used := time.Now(), processorTime()
	n := float64(r.effects())
	for range r.effects() {
		if err := b.submit(ctx, r.request(), premises); err != nil {
			return cost{}, err
		}
	}
	wall, processor := time.Since(began), processorTime()-used
	runtime.ReadMemStats(&after)
	return cost{micros(wall) / n, micros(processor) / n, float64(after.Mallocs-before.Mallocs) / n}, nil
}

// small is up to what size a journal is made anew for each turn: what is measured
// in it would make it another one.
const small = 1000

// storesOf are the stores that a journal of so many entries is made in.
func (r *run) storesOf(size int) []string {
	if size > 100_000 {
		return stores[:1]
	}
	return stores
}

func (r *run) grown(store string, size int) string {
	return filepath.Join(r.dir, fmt.Sprintf("%s-%d", store, size))
}

// bySize is what opening takes, how much memory an open gate holds, and what an
// effect costs, with so many entries in the journal.
func (r *run) bySize(ctx context.Context) error {
	for _, size := range r.sizes() {
		for _, store := range r.storesOf(size) {
			id := fmt.Sprintf("%s/%d", store, size)
			dir := r.grown(store, size)
			if size <= small {
				if err := errors.Join(os.RemoveAll(dir), grow(ctx, dir, store, size, 0)); err != nil {
					return err
				}
			}
			empty := heap()
			began, used := time.Now(), processorTime()
			b, err := open(ctx, dir, setup{store: store, unsynced: true})
			if err != nil {
				return err
			}
			r.note("open/"+id, "ms", micros(time.Since(began))/1000)
			r.note("open/"+id+"/processor", "ms", micros(processorTime()-used)/1000)
			r.note("memory/"+id, "MiB", (heap()-empty)/(1<<20))
			c, err := r.cost(ctx, b, true)
			if err := errors.Join(err, b.close()); err != nil {
				return err
			}
			r.note("cost/"+id, "µs/effect", c.wall)
			r.note("cost/"+id+"/processor", "µs/effect", c.processor)
			if store != "file" {
				continue
			}
			began = time.Now()
			if _, err := replayed(dir, store); err != nil {
				return err
			}
			r.note("replay/"+id, "ms", micros(time.Since(began))/1000)
		}
	}
	return nil
}

// recovery settles effects that are in doubt, one after another, by asking.
func (r *run) recovery(ctx context.Context) error {
	for _, store := range stores {
		dir, err := r.place()
		if err != nil {
			return err
		}
		if err := grow(ctx, dir, store, 10, r.inFlight()); err != nil {
			return err
		}
		began := time.Now()
		b, err := open(ctx, dir, setup{store: store})
		if err != nil {
			return err
		}
		opened := time.Since(began)
		results, err := b.gate.Recover(ctx, protocol.RecoverOptions{})
		took := time.Since(began)
		for _, got := range results {
			if err == nil && got.Status.Final != protocol.Committed {
				err = fmt.Errorf("bench: %s ended as %s: %v", got.Effect, got.Status, got.Err)
			}
		}
		if err == nil && len(results) < r.inFlight() {
			err = fmt.Errorf("bench: %d effects of %d were recovered", len(results), r.inFlight())
		}
		if err := errors.Join(err, b.close(), os.RemoveAll(dir)); err != nil {
			return err
		}
		r.note(fmt.Sprintf("recover/%s/%d/open", store, r.inFlight()), "ms", micros(opened)/1000)
		r.note(fmt.Sprintf("recover/%s/%d", store, r.inFlight()), "effects/s", float64(len(results))/(took-opened).Seconds())
	}
	return nil
}

// kills is how many senders are killed in one turn.
const kills = 10

func (r *run) takeovers(ctx context.Context) error {
	for _, store := range stores {
		dir, err := r.place()
		if err != nil {
			return err
		}
		for range kills {
			t, err := takeover(ctx, dir, store, r.request())
			if err != nil {
				return err
			}
			r.note("takeover/"+store+"/claimed", "ms", micros(t.claimed)/1000)
			r.note("takeover/"+store+"/settled", "ms", micros(t.settled)/1000)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// heap is what is in use once everything else is collected.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// processorTime is what this process has used of the processors.
func processorTime() time.Duration {
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
