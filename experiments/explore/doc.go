// Package explore visits every state that the shipped gate can get into within
// small bounds.
//
// The gate, its file store, the authority and its drain are those that programs
// link. They run as coroutines in this process over a disk, services and a clock
// in memory, and stop at every step that the gate or its journal passes, at every
// call that changes the journal's disk, at every call of a service and when they
// wait. At each stop a scheduler chooses what happens next: who moves, what becomes
// of a request, whether the process is killed or the power goes, whether the
// lease is revoked, a fact changes, a request arrives that was on its way, or the
// disk fails. Explore takes every choice, one after the other, and judges every
// state it gets to.
//
// Two states are one where everything is the same that outlives a process, and
// every coroutine has observed the same since its process began.
package explore
