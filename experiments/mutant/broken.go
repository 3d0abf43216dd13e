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
		Name: "no-cap",
		Why:  "I9: what effects in doubt hold of a budget counts as spent",
		Patches: []Patch{{
			File: "protocol/guard.go",
			Old:  "	{\"S12\", dispatch, overBudget},\n",
		}},
		Tests: []Test{{Package: "./protocol", Name: "TestABudgetIsHeldByWhatMayLand"}, {Package: "./protocol", Name: "TestConcurrentEffectsShareACap"}},
	},
	{
		Name: "early-symbols",
		Why:  "I6: of two effects that define one symbol the early check lets both pass (C12)",
		Patches: []Patch{{
			File: "protocol/guard.go",
			Old:  "	{\"S7\", decided | dispatch, defined},\n",
			New:  "	{\"S7\", decided, defined},\n",
		}},
		Tests: []Test{{Package: "./protocol", Name: "TestC12TheSymbolIsAskedAgainInTheAtomicStep"}},
	},
	{
		Name: "no-decision-check",
		Why:  "I7: what a rule sends to a person is sent only under an approval that counts",
		Patches: []Patch{{
			File: "protocol/guard.go",
			Old:  "	{\"I7\", ready | dispatch | last, undecided},\n",
		}},
		Tests: []Test{{Package: "./protocol", Name: "TestAnEscalatedEffectIsSentUnderItsApproval"}},
	},
	{
		Name: "no-facts-of-the-approval",
		Why:  "I7: the facts that the person saw are what must still be so",
		Patches: []Patch{{
			File: "protocol/guard.go",
			Old:  "		p = f.seen(p)\n",
		}},
		Tests: []Test{{Package: "./protocol", Name: "TestB16FactsThatThePersonDidntSeeAreAskedAgain"}},
	},
	{
		Name: "no-closing",
		Why:  "I8: what was corrected is closed",
		Patches: []Patch{{
			File: "protocol/state.go",
			Old:  "		e.closed, e.next = true, b.Effect\n",
			New:  "		e.next = b.Effect\n",
		}},
		Tests: []Test{{Package: "./protocol", Name: "TestACorrectionIsANewEffect"}},
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
	{
		Name: "no-directory-sync",
		Why:  "the entry of a segment that its opener died with may be in the page cache only",
		Patches: []Patch{{
			File: "protocol/journal/open.go",
			Old: `	defer l.lock.release(appendByte)
	if err := l.dir.Sync(); err != nil {`,
			New: `	defer l.lock.release(appendByte)
	if err := error(nil); err != nil {`,
		}},
		Cells: []Cell{{Experiment: "disk-states", Row: "authority", Column: "killed", Shows: "LOST"}},
	},
	{
		Name: "no-suspects",
		Why:  "a cut may hide an attempt (C27)",
		Patches: []Patch{{
			File: "protocol/journal/open.go",
			Old:  "	if len(*entries) == 0 {\n",
			New:  "	if len(*entries) == 0 || !l.o.Restored {\n",
		}},
		Cells: []Cell{
			{Experiment: "disk-states", Row: "suspects", Column: "sectors", Shows: "LOST"},
			{Experiment: "disk-states", Row: "suspects-unread", Column: "killed", Shows: "LOST"},
			{Experiment: "disk-states", Row: "ten", Column: "flips", Shows: "LOST"},
		},
	},
	{
		Name: "suspects-after-the-cut",
		Why:  "suspects are durable before their evidence is cut (C28)",
		Patches: []Patch{
			{
				File: "protocol/journal/open.go",
				Old:  "	if err := l.markSuspects(tails); err != nil {\n		return err\n	}\n	for _, t := range tails {",
				New:  "	for _, t := range tails {",
			},
			{
				File: "protocol/journal/open.go",
				Old:  "	if n := len(l.chain); n > 1 {\n		if err := l.giveUp(",
				New:  "	if err := l.markSuspects(tails); err != nil {\n		return err\n	}\n	if n := len(l.chain); n > 1 {\n		if err := l.giveUp(",
			},
		},
		Cells: []Cell{{Experiment: "disk-states", Row: "suspects", Column: "killed", Shows: "LOST"}},
	},
	{
		Name: "trusted-cache",
		Why:  "after a failed sync the page cache shows what the disk doesn't hold",
		Patches: []Patch{{
			File: "protocol/journal/follow.go",
			Old:  "err = errors.Join(f.Sync(), dropCache(f), f.Close())",
			New:  "err = errors.Join(f.Sync(), f.Close())",
		}},
		Cells: []Cell{
			{Experiment: "disk-states", Row: "ten", Column: "faults", Shows: "LOST"},
			{Experiment: "disk-states", Row: "authority", Column: "faults", Shows: "LOST"},
		},
	},
	{
		Name: "unsynced-cut",
		Why:  "a cut whose opening died is made durable before outcomes follow it",
		Patches: []Patch{{
			File: "protocol/journal/open.go",
			Old:  "	if err := l.syncCuts(); err != nil {",
			New:  "	if err := error(nil); err != nil {",
		}},
		Cells: []Cell{{Experiment: "disk-states", Row: "suspects", Column: "killed", Shows: "LOST"}},
	},
}
