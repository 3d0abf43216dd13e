package protocol

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on the symbols of one proposal: how many, and bytes of each.
const (
	maxSymbols = 1024
	maxSymbol  = 512
)

// unfitSymbols says what is wrong with the symbols of a proposal; "" is nothing.
func unfitSymbols(symbols []string) string {
	if len(symbols) > maxSymbols {
		return fmt.Sprintf("are more than %d", maxSymbols)
	}
	for i, s := range symbols {
		switch {
		case s == "":
			return "hold an empty one"
		case len(s) > maxSymbol:
			return fmt.Sprintf("hold one of more than %d bytes", maxSymbol)
		case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }):
			return "hold one that can't be printed"
		case slices.Contains(symbols[:i], s):
			return fmt.Sprintf("hold %q twice", s)
		}
	}
	return ""
}

// symbols says which effects hold a symbol: those that were dispatched, unless
// nothing of them landed or may land (I6). More than one does only where a
// damaged journal lost who was first.
type symbols map[string][]Holding

// defined stops what defines a symbol that another effect holds.
func defined(f *facts) *stop {
	for _, s := range f.proposal.Symbols {
		for _, h := range f.state.symbols[s] {
			if h.Effect != f.id {
				return &stop{
					status: Status{Final: Refused, Reason: DuplicateSymbol}, held: []Holding{h},
					why: fmt.Sprintf("symbol %q is defined by %s, effect %s", s, h.Request, h.Effect),
				}
			}
		}
	}
	return nil
}

// take lets e hold what its decision defines.
func (s symbols) take(e *effect) {
	if e.decision == nil || slices.Equal(e.symbols, e.decision.Proposal.Symbols) {
		return
	}
	s.giveBack(e)
	e.symbols = e.decision.Proposal.Symbols
	for _, name := range e.symbols {
		s[name] = append(s[name], Holding{Request: e.decision.Proposal.Request, Effect: e.id, Symbol: name})
	}
}

// giveBack ends what e holds.
func (s symbols) giveBack(e *effect) {
	for _, name := range e.symbols {
		s[name] = slices.DeleteFunc(s[name], func(h Holding) bool { return h.Effect == e.id })
		if len(s[name]) == 0 {
			delete(s, name)
		}
	}
	e.symbols = nil
}
