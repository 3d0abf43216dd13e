package explore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/interlock-bench/interlock-bench/faults/disk"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Bound is a space that is explored whole.
type Bound struct {
	Name     string
	Profiles []string // the service of each effect
	Agents   int      // callers in one process
	Together bool     // all of them ask for all effects; else each for its own
	Budget   Budget
	Torn     bool // a power loss may also leave some of what was not synced
	Restarts bool // a process may start with its callers, too, not only with Recover
	World    []string
	Planted  Planted
}

// setup is a bound made ready.
type setup struct {
	Bound
	profiles []Profile
	ids      []journal.ID
	hex      []string
	world    map[string]bool
}

func (b Bound) setup() *setup {
	s := &setup{Bound: b, world: map[string]bool{}}
	for e, name := range b.Profiles {
		id := protocol.EffectID(namespace, request(e), 0)
		s.profiles = append(s.profiles, profile(name))
		s.ids = append(s.ids, id)
		s.hex = append(s.hex, id.String())
	}
	for _, w := range b.World {
		s.world[w] = true
	}
	return s
}

func request(e int) string { return fmt.Sprintf("r%d", e) }

// requests are the effects that an agent's caller asks for.
func (s *setup) requests(agent int) (all []int) {
	for e := range s.profiles {
		if s.Together || e%s.Agents == agent {
			all = append(all, e)
		}
	}
	return all
}

// effect is the number of an effect; -1 for none.
func (s *setup) effect(id journal.ID) int {
	for e, known := range s.ids {
		if known == id {
			return e
		}
	}
	return -1
}

// named is effect for an id in hex.
func (s *setup) named(hex string) int {
	for e, known := range s.hex {
		if known == hex {
			return e
		}
	}
	return -1
}

// proposal is what a caller asks for.
func (s *setup) proposal(e, asked int) protocol.Proposal {
	holds := protocol.Unchanged
	if s.profiles[e].Can.Conditional {
		holds = protocol.ByTarget
	}
	return protocol.Proposal{
		Request: request(e), Agent: holder, Lease: leaseID,
		Premises: []protocol.Premise{{Name: "state", Seen: []byte(openSeen), At: epoch, Holds: holds}},
		Effect:   protocol.Effect{Action: action(e), Payload: payload(asked)},
	}
}

// begin is the world before anything happened: one lease is granted, and the
// journal was opened before.
func (s *setup) begin(dir string) (*world, error) {
	n := len(s.profiles)
	w := &world{
		bound: s, journal: &disk.Disk{}, authority: &disk.Disk{}, service: newService(n), left: s.Budget,
		standing: make([]standing, n), fixed: make([]int, n), asked: make([]int, n),
	}
	for _, name := range []string{"journal", "authority"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	var actions []string
	for e := range s.profiles {
		actions = append(actions, action(e))
	}
	clock := simulatedClock{x: &execution{w: w}}
	a, err := protocol.OpenAuthority(openAuthority(filepath.Join(dir, "authority"), w.authority, clock), nil, protocol.AuthorityOptions{Clock: clock})
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if err := a.Grant(background, protocol.Lease{
		ID: leaseID, Principal: "principal", Holder: holder, Actions: actions,
		Limits: []protocol.Limit{{Field: "amount", Max: "100"}}, Expires: epoch.AddDate(1, 0, 0),
	}); err != nil {
		return nil, err
	}
	l, err := journal.OpenFile(filepath.Join(dir, "journal"), journal.Options{Namespace: namespace, Now: clock.Now, Dir: w.journal}, nil)
	if err != nil {
		return nil, err
	}
	if err := l.Close(); err != nil {
		return nil, err
	}
	return w, nil
}

// What says the bound in words.
func (b Bound) What() string {
	return fmt.Sprintf("%d agents, %d effects (%s), %d crashes, %d changes, %d faults, %d disk errors",
		b.Agents, len(b.Profiles), strings.Join(b.Profiles, "+"), b.Budget.Crashes, b.Budget.Changes, b.Budget.Faults, b.Budget.IO)
}
