package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

const (
	namespace = "bench"
	agent     = "agent-7"
	action    = "refund"
)

// stores are the two kinds of journal.
var stores = []string{"file", "sqlite"}

// setup says what a gate is opened on.
type setup struct {
	store     string // of stores
	unsynced  bool   // the journal's syncs do nothing; file only
	unlimited bool   // the lease has no limit on the payload
	undrained bool   // no lease byte is taken for a dispatch
	target    protocol.Target
}

// bed is a gate, and how often its journal was synced.
type bed struct {
	gate  *protocol.Gate
	drain *journal.Drain
	syncs atomic.Int64
	dir   string
}

// open opens a gate in dir, which it makes where it is missing.
func open(ctx context.Context, dir string, s setup) (*bed, error) {
	authority := filepath.Join(dir, "authority")
	if err := os.MkdirAll(authority, 0o700); err != nil {
		return nil, err
	}
	drain, err := journal.OpenDrain(authority)
	if err != nil {
		return nil, err
	}
	b := &bed{drain: drain, dir: dir}
	if err := grant(ctx, authority, drain, s.unlimited); err != nil {
		return nil, errors.Join(err, drain.Close())
	}
	used := drain
	if s.undrained {
		used = nil
	}
	b.gate, err = protocol.Open(ctx, protocol.Config{
		Namespace: namespace, Drain: used, Journal: b.journal(s),
		Authority: journal.FileOpener(authority, journal.Options{Mode: journal.Reader, Namespace: namespace}),
	})
	if err != nil {
		return nil, errors.Join(err, drain.Close())
	}
	if s.target == nil {
		s.target = memory{}
	}
	return b, b.gate.Register(action, s.target)
}

// journal opens the store.
func (b *bed) journal(s setup) journal.Opener {
	if s.store == "sqlite" {
		return sqlite.Opener(filepath.Join(b.dir, "journal.db"), sqlite.Options{Namespace: namespace, Trace: b.count(sqlite.Committed)})
	}
	path := filepath.Join(b.dir, "journal")
	o := journal.Options{Namespace: namespace, Trace: b.count(journal.Synced)}
	if s.unsynced {
		o.Dir = unsynced{journal.RealDir(path)}
	}
	return journal.FileOpener(path, o)
}

func (b *bed) count(of trace.Point) trace.Func {
	return func(p trace.Point, _ string) {
		if p == of {
			b.syncs.Add(1)
		}
	}
}

func (b *bed) close() error { return errors.Join(b.gate.Close(), b.drain.Close()) }

// grant gives the agent its lease, where it has none.
func grant(ctx context.Context, dir string, drain *journal.Drain, unlimited bool) error {
	a, err := protocol.OpenAuthority(journal.FileOpener(dir, journal.Options{Mode: journal.Appender, Namespace: namespace}), drain, protocol.AuthorityOptions{})
	if err != nil {
		return err
	}
	defer a.Close()
	l := protocol.Lease{
		ID: "L-bench", Principal: "support-lead", Holder: agent, Actions: []string{action}, Expires: time.Now().AddDate(1, 0, 0),
		Limits: []protocol.Limit{{Field: "amount", Max: "2000"}},
	}
	if unlimited {
		l.Limits = nil
	}
	err = a.Grant(ctx, l)
	if errors.Is(err, protocol.ErrLease) {
		return nil // it has it
	}
	return err
}

// proposal is one refund.
func proposal(request string, premises bool) protocol.Proposal {
	p := protocol.Proposal{
		Request: request, Agent: agent, Lease: "L-bench",
		Effect: protocol.Effect{Action: action, Payload: json.RawMessage(payload)},
	}
	if premises {
		p.Premises = []protocol.Premise{{Name: "eligible", Seen: json.RawMessage(`true`), At: time.Now(), Holds: protocol.Unchanged}}
	}
	return p
}

const payload = `{"amount":2000,"case":"case-4471","currency":"usd","order":"881"}`

// reordered is the same payload in an order that isn't the canonical form's.
const reordered = `{"order":"881","case":"case-4471","amount":2000,"currency":"usd"}`

// submit carries out one refund.
func (b *bed) submit(ctx context.Context, request string, premises bool) error {
	r, err := b.gate.Submit(ctx, proposal(request, premises))
	if err == nil && r.Status.Final != protocol.Committed {
		err = fmt.Errorf("bench: %s ended as %s: %v", request, r.Status, r.Err)
	}
	return err
}

// unsynced is a directory whose syncs do nothing.
type unsynced struct{ journal.Dir }

type unsyncedFile struct{ journal.File }

func (unsynced) Sync() error { return nil }

func (d unsynced) Open(name string, create bool) (journal.File, error) {
	f, err := d.Dir.Open(name, create)
	return unsyncedFile{f}, err
}

func (unsyncedFile) Sync() error { return nil }
