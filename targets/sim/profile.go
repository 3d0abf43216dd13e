package sim

import (
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
)

// Profile is what a service can do. The zero value can do nothing but refund.
type Profile struct {
	Name string

	DedupWindow time.Duration // repeats of a key are absorbed this long after it was taken; 0: keys are ignored
	DedupMargin time.Duration // declared: what a client takes off the window
	// KeyOnAcceptance takes the key when a request is accepted, and answers 409
	// in_progress to repeats until it is applied. Otherwise the key is taken with
	// the landing.
	KeyOnAcceptance bool
	KeepErrors      bool // a final no is stored under the key too, and replayed

	Lookup       bool          // can be asked for the refunds of an effect
	LookupLag    time.Duration // how long a landing stays invisible to lookups
	LookupWindow time.Duration // how long it can be found; 0: for ever

	LandingBound time.Duration // an accepted request older than this is discarded; 0: never
	BoundUnknown bool          // the bound is real, but not declared
	LandingDelay time.Duration // from acceptance to applying

	Conditional bool // evaluates premises atomically with applying
	Fencing     bool // refuses lesser tokens of an effect atomically with applying
}

// Capabilities are what a service declares of itself.
type Capabilities struct {
	DedupWindow, DedupMargin time.Duration // 0: doesn't dedupe
	Lookup                   bool
	LookupLag, LookupWindow  time.Duration // window 0: for ever
	LandingBound             time.Duration // 0: unknown
	Conditional, Fencing     bool
}

// Profiles are the named profiles. Conditional and fenced are t2 with that
// further capability; an unbounded variant behaves like its original and doesn't
// declare its landing bound.
func Profiles() []Profile {
	t1 := Profile{Name: "t1", DedupWindow: 24 * time.Hour, DedupMargin: 2 * time.Hour, Lookup: true, LandingBound: 30 * time.Second}
	t2 := Profile{Name: "t2", Lookup: true, LandingBound: 30 * time.Second}
	t3 := Profile{Name: "t3", LandingBound: 30 * time.Second, BoundUnknown: true}
	conditional, fenced := t2, t2
	conditional.Name, conditional.Conditional = "conditional", true
	fenced.Name, fenced.Fencing = "fenced", true
	return []Profile{t1, t2, t3, conditional, fenced, t1.Unbounded(), t2.Unbounded(), t3.Unbounded()}
}

// ProfileNamed finds a profile by its name.
func ProfileNamed(name string) (Profile, bool) {
	all := Profiles()
	i := slices.IndexFunc(all, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return all[i], true
}

// Unbounded is p with its landing bound kept to itself.
func (p Profile) Unbounded() Profile {
	p.Name += "-unbounded"
	p.BoundUnknown = true
	return p
}

// Declared is what a client is told.
func (p Profile) Declared() Capabilities {
	c := Capabilities{
		DedupWindow: p.DedupWindow, DedupMargin: p.DedupMargin,
		Lookup: p.Lookup, LookupLag: p.LookupLag, LookupWindow: p.LookupWindow,
		LandingBound: p.LandingBound, Conditional: p.Conditional, Fencing: p.Fencing,
	}
	if p.BoundUnknown {
		c.LandingBound = 0
	}
	return c
}

// Service is what is declared, as the judge reads it.
func (p Profile) Service() history.Service {
	c := p.Declared()
	return history.Service{
		DedupWindow: c.DedupWindow, Lookup: c.Lookup, LookupWindow: c.LookupWindow,
		LandingBound: c.LandingBound, Conditional: c.Conditional, Fencing: c.Fencing,
	}
}

// refers says whether the service keeps the client's references of an effect.
func (p Profile) refers() bool { return p.Lookup || p.DedupWindow > 0 }
