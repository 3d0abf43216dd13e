package explore

import (
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
)

// Profile is a service as it is and as it declares itself. That the two agree is
// what the contract rests on; a Planted service breaks it.
type Profile struct {
	Name string
	What string
	Can  protocol.Capabilities
}

const (
	clientTimeout = 10 * time.Second
	landingBound  = 30 * time.Second
	lookupLag     = 5 * time.Second
	keyWindow     = 3 * time.Minute
	keyMargin     = 2 * time.Minute
	findWindow    = 12 * time.Hour
)

// Profiles are the services that effects land on, every tier of them.
func Profiles() []Profile {
	can := func(c protocol.Capabilities) protocol.Capabilities {
		c.ClientTimeout = clientTimeout
		return c
	}
	return []Profile{
		{"t1", "absorbs repeats of a key for three minutes, can be asked, says how late a request may land",
			can(protocol.Capabilities{DedupWindow: keyWindow, DedupMargin: keyMargin, Lookup: true, LandingBound: landingBound})},
		{"t1-unbound", "absorbs repeats and can be asked; a request may land at any time",
			can(protocol.Capabilities{DedupWindow: keyWindow, DedupMargin: keyMargin, Lookup: true})},
		{"t1-blind", "absorbs repeats; nobody can ask it, and a request may land at any time",
			can(protocol.Capabilities{DedupWindow: keyWindow, DedupMargin: keyMargin})},
		{"t2", "can be asked, says how late a request may land",
			can(protocol.Capabilities{Lookup: true, LandingBound: landingBound})},
		{"t2-lag", "the same, and its answers are up to five seconds old",
			can(protocol.Capabilities{Lookup: true, LookupLag: lookupLag, LandingBound: landingBound})},
		{"t2-window", "the same as t2, and it finds what landed for twelve hours",
			can(protocol.Capabilities{Lookup: true, LookupWindow: findWindow, LandingBound: landingBound})},
		{"t2-unbound", "can be asked; a request may land at any time",
			can(protocol.Capabilities{Lookup: true})},
		{"t2-fence", "can be asked with a lag, and refuses attempts older than a fence; a request may land at any time",
			can(protocol.Capabilities{Lookup: true, LookupLag: lookupLag, Fencing: true})},
		{"t2-if", "can be asked, is bounded, and checks the premise itself, with the effect",
			can(protocol.Capabilities{Lookup: true, LandingBound: landingBound, Conditional: true})},
		{"t3", "neither absorbs repeats nor can be asked",
			can(protocol.Capabilities{})},
	}
}

// profile is the one of that name.
func profile(name string) Profile {
	for _, p := range Profiles() {
		if p.Name == name {
			return p
		}
	}
	panic("explore: no profile is called " + name)
}
