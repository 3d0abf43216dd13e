// Package trace lets a caller watch the gate pass its steps.
//
// It is an observer like net/http/httptrace: production code passes nil and
// pays one nil check per step.
package trace

// Point names a step that has just been passed, in past tense and with the
// part that passed it in front: "gate/intent-durable". A package that passes
// points declares them as constants beside the code and lists them, in the
// order they are passed, in a function Points.
type Point string

// Func observes steps. It is called synchronously on the goroutine that passed
// the step, possibly by several goroutines at once, and the caller goes on when
// it returns. The nil Func observes nothing.
//
// subject is the effect id in hex, or "" where a step belongs to no effect.
type Func func(p Point, subject string)

// At reports that p was passed.
func (f Func) At(p Point, subject string) {
	if f != nil {
		f(p, subject)
	}
}
