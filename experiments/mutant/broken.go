package mutant

// Broken are the mutants.
var Broken = []Mutant{
	{
		Name: "no-sync",
		Why:  "I1: what is not synced before the first byte leaves is not there after a crash",
		Patches: []Patch{{
			File: "protocol/journal/flush.go",
			Old:  "if err := l.cur.f.Sync(); err != nil {",
			New:  "if err := error(nil); err != nil {",
		}},
		Cells: []Cell{{Row: "crash_before_ack", Column: "gate@t3", Shows: "$40"}},
	},
	{
		Name: "no-premise-check",
		Why:  "I3: the facts that the decision rests on are read again",
		Patches: []Patch{{
			File: "protocol/guard.go",
			Old:  "	{\"S11\", ready | dispatch | last, stale},\n",
		}},
		Cells: []Cell{
			{Row: "stale_eligibility", Column: "gate@t1", Shows: "$20"},
			{Row: "refund_during_outage", Column: "gate@t1", Shows: "$40"},
			{Row: "refund_during_outage", Column: "gate@t2", Shows: "$40"},
		},
	},
	{
		Name: "no-lease-check",
		Why:  "I4: a revoked lease is dead",
		Patches: []Patch{{
			File: "protocol/guard.go",
			Old:  "	case g.dead():\n",
			New:  "	case false && g.dead():\n",
		}},
		Cells: []Cell{
			{Row: "lease_revoked", Column: "gate@t1", Shows: "$20"},
			{Row: "lease_revoked_during_outage", Column: "gate@t1", Shows: "$20"},
			{Row: "lease_revoked_during_outage", Column: "gate@t2", Shows: "$20"},
		},
	},
	{
		Name: "no-payload-check",
		Why:  "I5: the first recorded payload is the effect",
		Patches: []Patch{{
			File: "protocol/guard.go",
			Old:  "	{\"S2\", early | dispatch, conflicting},\n",
		}},
		Cells: []Cell{{Row: "conflicting_payload", Column: "gate@t1"}, {Row: "conflicting_payload", Column: "gate@t3"}},
	},
	{
		Name: "no-landing-bound",
		Why:  "I10: \"not found\" counts only once the request can't land any more",
		Patches: []Patch{{
			File: "protocol/recover.go",
			Old:  "asked >= d.quiet+w.can.LandingBound+w.can.LookupLag+g.ClockMargin",
			New:  "asked >= d.quiet+w.can.LookupLag",
		}},
		Tests: []Test{{Package: "./protocol", Name: "TestC02AnAnswerAskedForEarlierIsThrownAway"}},
	},
	{
		Name: "no-claim",
		Why:  "I2: one process at a time sends or recovers an effect",
		Patches: []Patch{{
			File: "protocol/journal/claim.go",
			Old:  "if since, ok := l.claims[effect]; ok {",
			New:  "if since, ok := l.claims[effect]; ok && l == nil {",
		}},
		Tests: []Test{{Package: "./protocol", Name: "TestB55AndB66AndB67ASlowLookupKeepsItsClaim"}},
	},
}
