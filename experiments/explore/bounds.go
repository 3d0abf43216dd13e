package explore

// The two sets of bounds.
const (
	BoundsSmall = "small"
	BoundsFull  = "full"
)

// Space is one kind of bounds, made for each profile.
type Space struct {
	Name string
	What string
	of   func(profile string) Bound
	only []string // services that it is made for; nil is all
}

// Profiles are the services that the space is made for.
func (s Space) Profiles() []Profile {
	if s.only == nil {
		return Profiles()
	}
	var some []Profile
	for _, name := range s.only {
		some = append(some, profile(name))
	}
	return some
}

// Bound is the space's for a service.
func (s Space) Bound(profile string) Bound {
	b := s.of(profile)
	b.Name = s.Name + "/" + profile
	if b.Agents == 0 {
		b.Agents = 1
	}
	if b.Profiles == nil {
		b.Profiles = []string{profile}
	}
	return b
}

var facts = []string{"change", "hand", "day", "mind"}

// Small are the spaces that are explored by every check.
func Small() []Space {
	return []Space{
		{"crashes", "one effect, two nested crashes or power losses, one fault of the service; a restart begins with Recover or with the caller",
			func(string) Bound { return Bound{Budget: Budget{Crashes: 2, Faults: 1}, Restarts: true} }, nil},
		{"world", "one effect, one crash, one change (of the premise, by hand, of the caller's mind, a day); a restart begins with Recover or with the caller",
			func(string) Bound {
				return Bound{Budget: Budget{Crashes: 1, Changes: 1}, World: facts, Restarts: true}
			}, nil},
		{"revoke", "one effect, one crash, the lease revoked at any step",
			func(string) Bound {
				return Bound{Budget: Budget{Crashes: 1, Changes: 1}, World: []string{"revoke"}}
			}, nil},
		{"torn", "one effect, two crashes, each of which may leave a torn write",
			func(string) Bound { return Bound{Budget: Budget{Crashes: 2}, Torn: true} }, nil},
		{"disk", "one effect, one crash, one error of the journal's disk at any call",
			func(string) Bound { return Bound{Budget: Budget{Crashes: 1, IO: 1}} }, nil},
		{"stall", "one effect, two changes (the process stands still, the premise changes)",
			func(string) Bound {
				return Bound{Budget: Budget{Changes: 2}, World: []string{"stall", "change"}}
			}, nil},
		{"two-effects", "two effects, the second at t2, one crash, one fault",
			func(p string) Bound {
				return Bound{Profiles: []string{p, "t2"}, Budget: Budget{Crashes: 1, Faults: 1}}
			}, nil},
		{"three-effects", "three effects, the others at t2 and t3, one crash",
			func(p string) Bound {
				return Bound{Profiles: []string{p, "t2", "t3"}, Budget: Budget{Crashes: 1}}
			}, nil},
		{"two-agents", "two agents in one process, each with an effect of its own, the second at t3",
			func(p string) Bound { return Bound{Profiles: []string{p, "t3"}, Agents: 2} }, []string{"t1", "t2"}},
		{"one-for-two", "two agents in one process that ask for the same effect, one crash, one fault",
			func(string) Bound {
				return Bound{Agents: 2, Together: true, Budget: Budget{Crashes: 1, Faults: 1}}
			}, []string{"t1", "t2", "t3"}},
	}
}

// Full are those that are explored once, in minutes.
func Full() []Space {
	return []Space{
		{"nested-crashes", "one effect, three nested crashes or power losses, one fault of the service",
			func(string) Bound { return Bound{Budget: Budget{Crashes: 3, Faults: 1}} }, nil},
		{"faults", "one effect, two crashes, two faults of the service",
			func(string) Bound { return Bound{Budget: Budget{Crashes: 2, Faults: 2}} }, nil},
		{"world", "one effect, one crash, two changes (of the premise, by hand, of the caller's mind, a day), one fault",
			func(string) Bound {
				return Bound{Budget: Budget{Crashes: 1, Changes: 2, Faults: 1}, World: facts, Restarts: true}
			}, nil},
		{"revoke", "one effect, one crash, the lease revoked at any step, one fault",
			func(string) Bound {
				return Bound{Budget: Budget{Crashes: 1, Changes: 1, Faults: 1}, World: []string{"revoke"}}
			}, nil},
		{"torn", "one effect, two crashes, each of which may leave a torn write, one fault",
			func(string) Bound { return Bound{Budget: Budget{Crashes: 2, Faults: 1}, Torn: true} }, nil},
		{"disk", "one effect, one crash, one fault, one error of the journal's disk at any call",
			func(string) Bound { return Bound{Budget: Budget{Crashes: 1, Faults: 1, IO: 1}} }, nil},
		{"two-effects", "two effects, the second at t2, one crash, one change (of a premise, by hand), one fault",
			func(p string) Bound {
				return Bound{Profiles: []string{p, "t2"}, Budget: Budget{Crashes: 1, Changes: 1, Faults: 1}, World: []string{"change", "hand"}}
			}, nil},
		{"three-effects", "three effects, the others at t2 and t3, one crash, one fault",
			func(p string) Bound {
				return Bound{Profiles: []string{p, "t2", "t3"}, Budget: Budget{Crashes: 1, Faults: 1}}
			}, nil},
	}
}
