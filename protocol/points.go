package protocol

import "github.com/interlock-bench/interlock-bench/protocol/trace"

// The steps of a gate, in the order of one effect's life. Rechecked is passed
// with the journal's append lock held.
const (
	PointOpened         trace.Point = "gate/opened"          // the journal and the authority were read
	PointClaimed        trace.Point = "gate/claimed"         // the effect is this caller's to send or recover
	PointProposed       trace.Point = "gate/proposed"        // the decision is durable (S6)
	PointTakenOver      trace.Point = "gate/taken-over"      // a takeover without proof of death is durable
	PointAuthorityRead  trace.Point = "gate/authority-read"  // the lease was alive; nothing is connected (S8)
	PointConnected      trace.Point = "gate/connected"       // the connection stands, no byte was written (S10)
	PointPremisesRead   trace.Point = "gate/premises-read"   // every premise was read (I3)
	PointLeaseShared    trace.Point = "gate/lease-shared"    // a revocation waits for this dispatch from here on (I4)
	PointRechecked      trace.Point = "gate/rechecked"       // every guard held inside the atomic step (S13)
	PointIntentDurable  trace.Point = "gate/intent-durable"  // DISPATCHED is durable (I1)
	PointLastChecked    trace.Point = "gate/last-checked"    // the last read before the first byte held (S14)
	PointSent           trace.Point = "gate/sent"            // the send call returned; its answer is in memory
	PointLookedUp       trace.Point = "gate/looked-up"       // the target was asked and answered (R3)
	PointFenceDurable   trace.Point = "gate/fence-durable"   // FENCED is durable, the target knows nothing of it
	PointFenced         trace.Point = "gate/fenced"          // the target acknowledged the fence (I10)
	PointOutcomeDurable trace.Point = "gate/outcome-durable" // what became of the effect or of this attempt is durable
	PointEscalated      trace.Point = "gate/escalated"       // it waits for a person, durably
	PointDecided        trace.Point = "gate/decided"         // a person's decision or correction is durable, no later record proves it yet
	PointResolved       trace.Point = "gate/resolved"        // a person's word is durable, no later record proves it yet
	PointReleased       trace.Point = "gate/released"        // the claim was given up
	PointWaited         trace.Point = "gate/waited"          // Recover waited for the earliest bound, lag or retry
)

// The steps of a principal.
const (
	PointGranted     trace.Point = "authority/granted"      // the grant is durable, nothing proves it yet
	PointRevoked     trace.Point = "authority/revoked"      // the revocation is durable and can be read
	PointRuled       trace.Point = "authority/ruled"        // a group or a rule is durable and can be read
	PointSealed      trace.Point = "authority/sealed"       // a later record proves the one before it
	PointDrained     trace.Point = "authority/drained"      // no dispatch that saw the lease alive is under way
	PointJournalRead trace.Point = "authority/journal-read" // effects in doubt under the lease are known
)

// Points lists every point of this package in the order above.
func Points() []trace.Point {
	return []trace.Point{
		PointOpened, PointClaimed, PointProposed, PointTakenOver, PointAuthorityRead, PointConnected,
		PointPremisesRead, PointLeaseShared, PointRechecked, PointIntentDurable, PointLastChecked, PointSent,
		PointLookedUp, PointFenceDurable, PointFenced, PointOutcomeDurable, PointEscalated, PointDecided, PointResolved, PointReleased, PointWaited,
		PointGranted, PointRevoked, PointRuled, PointSealed, PointDrained, PointJournalRead,
	}
}
