// Package oracle judges a trial from its history, and from nothing else.
package oracle

import (
	"errors"
	"fmt"
)

// Class is the judgement of a trial. From Correct on, the greater is the worse.
// The zero value is Unknown, which is never a pass.
type Class int

const (
	Unknown      Class = iota // could not be judged
	Correct                   // exactly what was approved, or rightly nothing
	Ambiguous                 // nobody can tell, and the service leaves no other answer
	FalseRefusal              // refused although everything held
	Stuck                     // never came to an end, or gave up where the service could have answered
	Stale                     // sent when the order was no longer eligible
	Unauthorized              // sent without live authority for it
	Lost                      // claimed done, or dropped, and not done
	Duplicate                 // more than was approved
)

// classes are the names in the order of the constants.
var classes = []string{
	"UNKNOWN", "CORRECT", "AMBIGUOUS", "FALSE_REFUSAL", "STUCK", "STALE", "UNAUTHORIZED", "LOST", "DUPLICATE",
}

// ErrClass is returned for a word that names no class.
var ErrClass = errors.New("oracle: not a verdict")

// String is the class as it stands in records, "FALSE_REFUSAL".
func (c Class) String() string {
	if c < 0 || int(c) >= len(classes) {
		return fmt.Sprintf("Class(%d)", int(c))
	}
	return classes[c]
}

// ParseClass is the inverse of String. Its error is ErrClass.
func ParseClass(s string) (Class, error) {
	for i, name := range classes {
		if name == s {
			return Class(i), nil
		}
	}
	return Unknown, fmt.Errorf("%w: %q; verdicts are %v", ErrClass, s, classes)
}

// Worst is the judgement of several trials together: one that could not be
// judged leaves all of them unjudged, otherwise the greatest. Of none it is
// Unknown.
func Worst(of ...Class) Class {
	worst := Unknown
	for _, c := range of {
		if c == Unknown {
			return Unknown
		}
		worst = max(worst, c)
	}
	return worst
}

// Mark is the class on a page: ✅ held, ⚠️ held and somebody must look, ❌
// violated, — not judged.
func (c Class) Mark() string {
	switch {
	case c <= Unknown:
		return "—"
	case c == Correct:
		return "✅"
	case c <= FalseRefusal:
		return "⚠️"
	}
	return "❌"
}

// Word is the mark in ASCII, for a terminal: ok, look, BAD, none.
func (c Class) Word() string {
	switch {
	case c <= Unknown:
		return "none"
	case c == Correct:
		return "ok"
	case c <= FalseRefusal:
		return "look"
	}
	return "BAD"
}
