package baselines

import "github.com/interlock-bench/interlock-bench/protocol/journal"

// Evidence is what a baseline's own log shows of a refund, read after the fact.
type Evidence struct {
	Who      bool // the agent
	What     bool // order and amount
	Checks   bool // which checks held, or which one stopped it
	Attempts bool // a line before each send, so that a killed attempt shows
}

// Shown reads a baseline's log. A log without a line shows nothing.
func Shown(open journal.Opener) (Evidence, error) {
	l := &log{last: map[string]map[journal.Kind]line{}}
	store, err := open(l.apply)
	if err != nil {
		return Evidence{}, err
	}
	defer store.Close()
	var shown Evidence
	for _, request := range l.order {
		for kind, at := range l.last[request] {
			shown.Who = shown.Who || at.Agent != ""
			shown.What = shown.What || at.Order != "" && at.Amount != 0
			shown.Checks = shown.Checks || at.Checked != "" || kind == journal.Refused
			shown.Attempts = shown.Attempts || kind == journal.Dispatched || kind == journal.Refused
		}
	}
	return shown, nil
}
