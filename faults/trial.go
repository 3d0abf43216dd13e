// Package faults breaks processes, files, clocks and connections on purpose. It
// knows neither the gate nor a target: it starts a program, follows it point by
// point, kills it where a trial says so and writes down what happened.
package faults

import "github.com/interlock-bench/interlock-bench/protocol/trace"

// Trial is one run of one cell. It prints as one line and parses back:
//
//	refund/crash_before_ack/gate@t2 file=lossy kill@sim/applied#1 seed=1
//
// With a table beside the main one the line begins refund.unbounded/….
type Trial struct {
	Experiment string
	Table      string // "" is the main table
	Row        string
	Column     string
	Axes       []Axis // in the order they print
	Faults     []Fault
	Seed       uint64
}

// Axis is one further dimension of a trial, "file=lossy".
type Axis struct{ Name, Value string }

// Fault is what happens when a point is passed for the n-th time: the process
// under test is killed, or a named act of the world is done while it stands
// still.
type Fault struct {
	What    string // "kill", or the name of an action
	At      trace.Point
	Passage int // from 1
}
