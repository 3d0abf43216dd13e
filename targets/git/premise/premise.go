// Package premise reads what a change to Go code rests on, from a commit of a git
// repository, at one of four granularities:
//
//	file       the content of every file that the agent opened
//	symbol     name and signature of what the change references
//	body       the syntax trees of what the change references, and of what that
//	           uses inside the module, without comments and layout
//	behaviour  the results of calls that the agent observed, run again
//
// They are a dial. The finer the fact, the fewer changes of others it refuses, and
// each has a floor: what it can't see. A file sees everything and refuses for a
// comment. A signature doesn't see a meaning. A body sees every change of meaning
// that comes from within the module, and refuses a rewrite that means the same. A
// behaviour sees the inputs that were tried.
//
// Facts are captured by a Session, through which the agent reads; nothing is taken
// from what an agent says of itself. Symbols are those of go/types.
package premise

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Granularity is a setting of the dial.
type Granularity string

const (
	File      Granularity = "file"
	Symbol    Granularity = "symbol"
	Body      Granularity = "body"
	Behaviour Granularity = "behaviour"
)

// Granularities are all of them, the coarsest first.
var Granularities = []Granularity{File, Symbol, Body, Behaviour}

// Classes of failure; errors.Is finds them.
var (
	ErrBroken    = errors.New("premise: the module doesn't build")
	ErrModule    = errors.New("premise: not a Go module")
	ErrSymbol    = errors.New("premise: no such symbol")
	ErrCall      = errors.New("premise: the call can't be observed")
	ErrUnstable  = errors.New("premise: the call gives another result each time")
	ErrSandbox   = errors.New("premise: calls can't be confined here")
	ErrKind      = errors.New("premise: not a fact of this package")
	ErrToolchain = errors.New("premise: the go command doesn't work here")
)

// Fact is one thing that was so, and that can be asked for again. As JSON it is
// an object of one granularity, with what was asked and what was found; Is null
// says that it is gone:
//
//	{"symbol":"shop/money.Format","is":"func(int64) string"}
type Fact struct {
	Kind   Granularity
	Of     string   // path, symbol or call
	Tags   []string // build tags that it was read under
	Is     string
	Gone   bool
	Broken string // why the module doesn't build; nothing is known of the fact then
}

// fact is a Fact in JSON.
type fact struct {
	File   string   `json:"file,omitempty"`
	Symbol string   `json:"symbol,omitempty"`
	Body   string   `json:"body,omitempty"`
	Call   string   `json:"call,omitempty"`
	Tags   []string `json:"tags,omitempty"`
	Is     *string  `json:"is"`
	Broken string   `json:"broken,omitempty"`
}

// of is where a fact in JSON names what it is about.
func (f *fact) of(kind Granularity) *string {
	return map[Granularity]*string{File: &f.File, Symbol: &f.Symbol, Body: &f.Body, Behaviour: &f.Call}[kind]
}

// MarshalJSON writes the object that UnmarshalJSON reads. Equal facts are equal
// bytes.
func (f Fact) MarshalJSON() ([]byte, error) {
	j := fact{Tags: f.Tags, Broken: f.Broken}
	of := j.of(f.Kind)
	if of == nil || f.Of == "" {
		return nil, fmt.Errorf("%w: of kind %q about %q", ErrKind, f.Kind, f.Of)
	}
	*of = f.Of
	if !f.Gone {
		j.Is = &f.Is
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote. Other errors are ErrKind.
func (f *Fact) UnmarshalJSON(text []byte) error {
	var j fact
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("%w: %w", ErrKind, err)
	}
	*f = Fact{Tags: j.Tags, Broken: j.Broken, Gone: j.Is == nil}
	if j.Is != nil {
		f.Is = *j.Is
	}
	for _, kind := range Granularities {
		if of := *j.of(kind); of != "" {
			if f.Kind != "" {
				return fmt.Errorf("%w: it is about two things", ErrKind)
			}
			f.Kind, f.Of = kind, of
		}
	}
	if f.Kind == "" {
		return fmt.Errorf("%w: it is about nothing", ErrKind)
	}
	return nil
}

// Name is a short name for a fact, in printable ASCII and at most 128 characters:
// the name of its premise.
func (f Fact) Name() string {
	name := fmt.Sprintf("%s %s", f.Kind, f.Of)
	plain := []rune{}
	for _, r := range name {
		if r < ' ' || r > '~' {
			r = '?'
		}
		plain = append(plain, r)
	}
	if len(plain) > 128 || string(plain) != name {
		sum := digest(name)[:16]
		name = string(plain[:min(len(plain), 128-17)]) + " " + sum
	}
	return name
}
