package mutant

// Broken are the planted faults, each a way in which real systems got it wrong, laid
// over the source at build time. B.. and W.. are faults of the first implementation
// of the idea, C.. histories that broke earlier wordings of the contract, as tests
// are named after them; an incident was reported in public; a refuted design is one
// that an exhaustive search took apart.
var Broken = []Mutant{
	{
		Name:   "no-sync",
		Source: "incident garm#76",
		Why:    "I1: what is not synced before the first byte leaves is not there after a crash",
		Patches: []Patch{{
			File: "protocol/journal/flush.go",
			Old:  "if err := l.cur.f.Sync(); err != nil {",
			New:  "if err := error(nil); err != nil {",
		}},
		Cells: []Cell{{Row: "crash_before_ack", Column: "gate@t3", Shows: "$40"}},
	},
	{
		Name:   "no-premise-check",
		Source: "B01",
		Why:    "I3: the facts that the decision rests on are read again",
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
		Name:   "no-lease-check",
		Source: "incident margince#2780",
		Why:    "I4: a revoked lease is dead",
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
		Name:   "no-payload-check",
		Source: "incident crewAI#5802",
		Why:    "I5: the first recorded payload is the effect",
		Patches: []Patch{{
			File: "protocol/guard.go",
			Old:  "	{\"S2\", early | dispatch, conflicting},\n",
		}},
		Cells: []Cell{{Row: "conflicting_payload", Column: "gate@t1"}, {Row: "conflicting_payload", Column: "gate@t3"}},
	},
	{
		Name:   "no-cap",
		Source: "B96, incident agent-os#824, incident gbrain#4365",
		Why:    "I9: what effects in doubt hold of a budget counts as spent",
		Patches: []Patch{{
			File: "protocol/guard.go",
			Old:  "	{\"S12\", dispatch, overBudget},\n",
		}},
		Tests: []Test{{Package: "./protocol", Name: "TestABudgetIsHeldByWhatMayLand"}, {Package: "./protocol", Name: "TestConcurrentEffectsShareACap"}},
	},
	{
		Name:   "early-symbols",
		Source: "C12",
		Why:    "I6: of two effects that define one symbol the early check lets both pass (C12)",
		Patches: []Patch{{
			File: "protocol/guard.go",
			Old:  "	{\"S7\", decided | dispatch, defined},\n",
			New:  "	{\"S7\", decided, defined},\n",
		}},
		Tests: []Test{{Package: "./protocol", Name: "TestC12TheSymbolIsAskedAgainInTheAtomicStep"}},
	},
	{
		Name:   "no-decision-check",
		Source: "B16, B25",
		Why:    "I7: what a rule sends to a person is sent only under an approval that counts",
		Patches: []Patch{{
			File: "protocol/guard.go",
			Old:  "	{\"I7\", ready | dispatch | last, undecided},\n",
		}},
		Tests: []Test{{Package: "./protocol", Name: "TestAnEscalatedEffectIsSentUnderItsApproval"}},
	},
	{
		Name:   "no-facts-of-the-approval",
		Source: "B16, B35",
		Why:    "I7: the facts that the person saw are what must still be so",
		Patches: []Patch{{
			File: "protocol/guard.go",
			Old:  "		p = f.seen(p)\n",
		}},
		Tests: []Test{{Package: "./protocol", Name: "TestB16FactsThatThePersonDidntSeeAreAskedAgain"}},
	},
	{
		Name:   "no-closing",
		Source: "C13",
		Why:    "I8: what was corrected is closed",
		Patches: []Patch{{
			File: "protocol/state.go",
			Old:  "		e.closed, e.next = true, b.Effect\n",
			New:  "		e.next = b.Effect\n",
		}},
		Tests: []Test{{Package: "./protocol", Name: "TestACorrectionIsANewEffect"}},
	},
	{
		Name:   "no-landing-bound",
		Source: "C02, incident lfx-self-serve#1409",
		Why:    "I10: \"not found\" counts only once the request can't land any more",
		Patches: []Patch{{
			File: "protocol/recover.go",
			Old:  "asked >= d.quiet+w.can.LandingBound+w.can.LookupLag+g.ClockMargin",
			New:  "asked >= d.quiet+w.can.LookupLag",
		}},
		Tests: []Test{{Package: "./protocol", Name: "TestC02AnAnswerAskedForEarlierIsThrownAway"}},
	},
	{
		Name:   "no-claim",
		Source: "B65, incident dbos-java#491",
		Why:    "I2: one process at a time sends or recovers an effect",
		Patches: []Patch{{
			File: "protocol/journal/claim.go",
			Old:  "if since, ok := l.claims[effect]; ok {",
			New:  "if since, ok := l.claims[effect]; ok && l == nil {",
		}},
		Tests: []Test{{Package: "./protocol", Name: "TestB55AndB66AndB67ASlowLookupKeepsItsClaim"}},
	},
	{
		Name:   "no-directory-sync",
		Source: "C29",
		Why:    "the entry of a segment that its opener died with may be in the page cache only",
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
		Name:   "no-suspects",
		Source: "C27",
		Why:    "a cut may hide an attempt (C27)",
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
		Name:   "suspects-after-the-cut",
		Source: "C28",
		Why:    "suspects are durable before their evidence is cut (C28)",
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
		Name:   "trusted-cache",
		Source: "the page cache after a failed fsync",
		Why:    "after a failed sync the page cache shows what the disk doesn't hold",
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
		Name:   "unsynced-cut",
		Source: "C28",
		Why:    "a cut whose opening died is made durable before outcomes follow it",
		Patches: []Patch{{
			File: "protocol/journal/open.go",
			Old:  "	if err := l.syncCuts(); err != nil {",
			New:  "	if err := error(nil); err != nil {",
		}},
		Cells: []Cell{{Experiment: "disk-states", Row: "suspects", Column: "killed", Shows: "LOST"}},
	},
	{
		Name:   "recovery-asks-nothing",
		Source: "B01; refuted design: a resend is a first send",
		Why:    "recovery sends again without asking lease and premises again",
		Patches: []Patch{
			{
				File: "protocol/guard.go",
				Old: `		if g.in&in == 0 {
			continue
		}
		if s := g.stops(f); s != nil {`,
				New: `		if g.in&in == 0 || f.mode != first && (g.row == "S8" || g.row == "S11") {
			continue
		}
		if s := g.stops(f); s != nil {`,
			},
		},
		Cells: []Cell{
			{Row: "refund_during_outage", Column: "gate@t2", Shows: "$40"},
			{Row: "lease_revoked_during_outage", Column: "gate@t1", Shows: "$20"},
		},
	},
	{
		Name:   "duplicates-send",
		Source: "B02",
		Why:    "a second submit of what is in doubt doesn't look at what the first did",
		Patches: []Patch{
			{
				File: "protocol/submit.go",
				Old: `	if e.inDoubt() { // S1b
`,
				New: `	if false && e.inDoubt() { // S1b
`,
			},
			{
				File: "protocol/guard.go",
				Old: `	{"S1", dispatch, unclaimed},
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestB02ADuplicateDoesNotResendWhatIsUnresolved"}},
	},
	{
		Name:   "fresh-facts-on-a-retry",
		Source: "B04",
		Why:    "a retry is judged on the facts that the retry brings, which blesses the change",
		Patches: []Patch{
			{
				File: "protocol/submit.go",
				Old:  "		w.bindTo(e.decision.Proposal)\n",
			},
			{
				File: "protocol/submit.go",
				Old:  "		w.bindTo(b.Proposal)\n",
				New:  "		_ = b\n",
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestB04ARetryIsJudgedOnTheFactsFirstRecorded"}},
	},
	{
		Name:   "one-failure-stops-all",
		Source: "B11, B36",
		Why:    "the first effect that can't be recovered ends the recovery of the others",
		Patches: []Patch{
			{
				File: "protocol/recover.go",
				Old: `		o = unresolvedBy(err) // R8: what can't be recorded of this one doesn't stop the others
`,
				New: `		return err
`,
			},
			{
				File: "protocol/recover.go",
				Old:  "		return unresolvedBy(fmt.Errorf(\"%w: %q\", ErrUnregistered, p.Effect.Action)), nil\n",
				New:  "		return outcome{}, fmt.Errorf(\"%w: %q\", ErrUnregistered, p.Effect.Action)\n",
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestB11OneFailureDoesNotStopTheOthers"}},
	},
	{
		Name:   "a-timeout-is-a-failure",
		Source: "incident sample-agentcore-x402#40",
		Why:    "no answer is taken for a no",
		Patches: []Patch{
			{
				File: "protocol/attempt.go",
				Old: `	o := outcome{status: Status{Final: InFlight}, on: w.mode == resend}
	o.retry = max(g.backoff(w.id), g.quietIn(w.id, w.can))
	return o, nil
`,
				New: `	return g.unsent(ctx, w, a)
`,
			},
		},
		Cells: []Cell{
			{Experiment: "faults", Row: "ack_lost", Column: "gate@t2", Shows: "$40"},
		},
	},
	{
		Name:   "a-failed-lookup-is-an-absence",
		Source: "B73",
		Why:    "a lookup that failed says that nothing landed",
		Patches: []Patch{
			{
				File: "protocol/recover.go",
				Old: `		if err != nil { // R8
`,
				New: `		if false { // R8
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestB73AFailedReadIsNoAbsenceAndNoChange"}},
	},
	{
		Name:   "an-early-answer-counts",
		Source: "C02",
		Why:    "an answer asked for before the bound had passed is acted on after it",
		Patches: []Patch{
			{
				File: "protocol/recover.go",
				Old:  "d.claimed && asked >= d.quiet+",
				New:  "d.claimed && g.Clock.Mono() >= d.quiet+",
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC02ALookupThatOutlastsTheBoundDoesNotCount"}},
	},
	{
		Name:   "the-bound-counts-from-the-entry",
		Source: "C03",
		Why:    "the bound is counted from the attempt's entry, by the wall clock, and not from the takeover",
		Patches: []Patch{
			{
				File: "protocol/gate.go",
				Old: `				d.claimed, d.quiet, d.latest = true, g.Clock.Mono(), e.latest()
`,
				New: `				d.claimed, d.quiet, d.latest = true, g.Clock.Mono(), e.latest()
				if e.inDoubt() {
					d.quiet -= g.Clock.Now().Sub(e.attempts[len(e.attempts)-1].time)
				}
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC03TheBoundCountsFromTakeover"}},
	},
	{
		Name:   "one-not-sent-settles-all",
		Source: "C04",
		Why:    "a resend that was certainly not sent settles the attempts before it",
		Patches: []Patch{
			{
				File: "protocol/state.go",
				Old: `		e.attempts = slices.DeleteFunc(e.attempts, its)
`,
				New: `		e.attempts = nil
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC04NotSentSettlesItsOwnAttemptOnly"}},
	},
	{
		Name:   "a-rejected-resend-settles-all",
		Source: "C05, B59",
		Why:    "a no to the resend is taken for a no to the first send",
		Patches: []Patch{
			{
				File: "protocol/attempt.go",
				Old: `		if w.mode == resend {
			return g.unsent(ctx, w, a)
		}
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC05ARejectedResendSettlesItsOwnAttemptOnly"}},
	},
	{
		Name:   "stuck-for-ever",
		Source: "C06",
		Why:    "where the bound is unknown the effect stays open for ever",
		Patches: []Patch{
			{
				File: "protocol/recover.go",
				Old: `	o, err = g.giveUp(ctx, w, "the target doesn't find it, can't be fenced and doesn't say how late it may land")
	return o, false, err
`,
				New: `	return outcome{status: Status{Final: InFlight}}, false, nil
`,
			},
		},
		Cells: []Cell{
			{Experiment: "faults", Row: "crash_on_the_wire_unbounded", Column: "gate@t2"},
		},
	},
	{
		Name:   "the-claim-is-kept",
		Source: "C07",
		Why:    "the claim of an effect outlives the call that took it",
		Patches: []Patch{
			{
				File: "protocol/gate.go",
				Old: `	c.Release()
	g.at(PointReleased, id)
`,
				New: `	g.at(PointReleased, id)
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC07ASendThatTimedOutCanBeRecoveredByItsOwnProcess"}},
	},
	{
		Name:   "a-takeover-without-proof",
		Source: "C08",
		Why:    "a bound counts for an attempt whose sender is not known to be dead",
		Patches: []Patch{
			{
				File: "protocol/state.go",
				Old: `			e.attempts[i].unbound = true
`,
				New: `			e.attempts[i].unbound = false
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC08NoProofOfDeathLeavesTheBoundUnknown"}},
	},
	{
		Name:   "the-margin-is-forgotten",
		Source: "C09, B88",
		Why:    "the key is trusted to the last moment of its window",
		Patches: []Patch{
			{
				File: "protocol/guard.go",
				Old:  "e.keyed[0].time.Add(can.DedupWindow - can.DedupMargin)",
				New:  "e.keyed[0].time.Add(can.DedupWindow)",
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC09TheKeyWindowIsReadAgainAsTheLastStep"}},
	},
	{
		Name:   "a-key-for-ever",
		Source: "B15b, incident square connect-api-examples#135",
		Why:    "the key is trusted after the service forgot it",
		Patches: []Patch{
			{
				File: "protocol/guard.go",
				Old:  "e.keyed[0].time.Add(can.DedupWindow - can.DedupMargin)",
				New:  "e.keyed[0].time.Add(can.DedupWindow * 1000)",
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestB15bAKeyIsNotTrustedForEver"}},
	},
	{
		Name:   "the-window-counts-from-the-last",
		Source: "C30",
		Why:    "the window of a key is counted from its last attempt",
		Patches: []Patch{
			{
				File: "protocol/guard.go",
				Old:  "e.keyed[0].time.Add(",
				New:  "e.keyed[len(e.keyed)-1].time.Add(",
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC30TheWindowCountsFromTheFirstAttemptOfTheKey"}},
	},
	{
		Name:   "authority-before-the-intent",
		Source: "C10, incident margince#2780",
		Why:    "lease is checked when the decision comes and not in the step that dispatches",
		Patches: []Patch{
			{
				File: "protocol/guard.go",
				Old: `	{"S8", decided | dispatch | last, unauthorized},
`,
				New: `	{"S8", decided, unauthorized},
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC10EveryResendIsADispatchUnderTheAtomicChecks"}},
	},
	{
		Name:   "closed-is-forgotten",
		Source: "C14",
		Why:    "an effect that a person closed is sent again",
		Patches: []Patch{
			{
				File: "protocol/state.go",
				Old:  "			e.closed, e.question = true, n.Hash\n",
				New:  "			e.question = n.Hash\n",
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC14ResolvedNotLandedClosesTheEffect"}},
	},
	{
		Name:   "anybody-may-settle",
		Source: "B15a, B17",
		Why:    "a person's word counts whoever signed it",
		Patches: []Patch{
			{
				File: "protocol/resolve.go",
				Old:  `	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, text, r.Signature) {`,
				New:  `	if len(key) != ed25519.PublicKeySize || len(text) == 0 {`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestResolveTakesOnlyAPersonsSignedWord"}},
	},
	{
		Name:   "a-revocation-returns-early",
		Source: "C15",
		Why:    "a revocation returns before a later record proves it",
		Patches: []Patch{
			{
				File: "protocol/authority.go",
				Old: `	if err := a.prove(context.WithoutCancel(ctx), of.revoked); err != nil {
		return r, err
	}
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC15ARevocationReturnsOnlyWhenALaterRecordProvesIt"}},
	},
	{
		Name:   "an-unknown-bound-is-none",
		Source: "C16, C31, incident lfx-self-serve#1409",
		Why:    "a service that doesn't say how late a request may land is taken for one where none lands late",
		Patches: []Patch{
			{
				File: "protocol/recover.go",
				Old: `	if w.can.LandingBound <= 0 {
		return false
	}
`,
			},
			{
				File: "protocol/attempt.go",
				Old:  "	if can.LandingBound == 0 {\n		return 0\n	}\n",
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC06UnknownBoundEndsAmbiguous"}},
	},
	{
		Name:   "the-first-payload-for-ever",
		Source: "C18",
		Why:    "a proposal that was refused before any dispatch binds its request for ever",
		Patches: []Patch{
			{
				File: "protocol/guard.go",
				Old: `	if e.final == Refused && e.tries == 0 && f.newAuthority() {
		return nil
	}
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC18AWrongFirstProposalDoesNotHoldTheRequest"}},
	},
	{
		Name:   "proposals-are-left",
		Source: "C19",
		Why:    "recovery takes up what was sent, and not what was only decided",
		Patches: []Patch{
			{
				File: "protocol/recover.go",
				Old: `	if e.open() && len(e.attempts) == 0 {
		return g.attempt(ctx, w)
	}
`,
				New: `	if e.open() && len(e.attempts) == 0 {
		return outcome{status: Status{Final: NotYetSent}}, nil
	}
`,
			},
		},
		Cells: []Cell{
			{Experiment: "faults", Row: "crash_after_propose_redecides", Column: "gate@t1"},
		},
	},
	{
		Name:   "uses-count-attempts",
		Source: "C20, B69",
		Why:    "an effect's own first attempt uses up its approval",
		Patches: []Patch{
			{
				File: "protocol/guard.go",
				Old: `	if f.authority.line(f.effect.holds) == line.ID {
		used--
	}
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC20UsesCountEffectsNotAttempts"}},
	},
	{
		Name:   "uses-are-not-counted",
		Source: "incident AP2#346, incident pydantic-ai#5536",
		Why:    "one approval is accepted for any number of effects",
		Patches: []Patch{
			{
				File: "protocol/guard.go",
				Old:  `	if g.Uses > 0 && used >= g.Uses {`,
				New:  `	if g.Uses < 0 && used >= g.Uses {`,
			},
		},
		Cells: []Cell{
			{Experiment: "faults", Row: "one_approval_two_effects", Column: "gate@t1"},
		},
	},
	{
		Name:   "a-temporary-no-is-final",
		Source: "C21",
		Why:    "401 once, and refused for ever",
		Patches: []Patch{
			{
				File: "protocol/attempt.go",
				Old: `	case NotExecuted, NotSent:
		return g.unsent(ctx, w, a)
	}
`,
				New: `	case NotExecuted, NotSent:
		a.Outcome = Rejected
		return g.settle(ctx, w, a)
	}
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC21ATemporaryNoIsNotFinal"}},
	},
	{
		Name:   "restored-as-if-whole",
		Source: "C22",
		Why:    "a log from a backup is opened as if it had every entry",
		Patches: []Patch{
			{
				File: "protocol/journal/open.go",
				Old: `	if l.o.Restored {
		at := l.chain[len(l.chain)-1]`,
				New: `	if false {
		at := l.chain[len(l.chain)-1]`,
			},
		},
		Tests: []Test{{Package: "./protocol/journal", Name: "TestC22RestoredBackup"}},
	},
	{
		Name:   "any-namespace",
		Source: "C23",
		Why:    "a log of another namespace is opened as one's own",
		Patches: []Patch{
			{
				File: "protocol/journal/follow.go",
				Old:  `	if s.namespace != l.o.Namespace {`,
				New:  `	if false {`,
			},
		},
		Tests: []Test{{Package: "./protocol/journal", Name: "TestC23OneNamespaceOneJournal"}},
	},
	{
		Name:   "whatever-is-there-is-ours",
		Source: "C24",
		Why:    "a lookup that finds another amount under our id is taken for our effect",
		Patches: []Patch{
			{
				File: "protocol/recover.go",
				Old: `	if found.Same {
`,
				New: `	if found.Same || found.Landed {
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC24OtherContentUnderOurIdIsAMismatch"}},
	},
	{
		Name:   "a-lookup-never-forgets",
		Source: "C25",
		Why:    `"not found" counts after the lookup has forgotten`,
		Patches: []Patch{
			{
				File: "protocol/recover.go",
				Old:  `	return can.LookupWindow == 0 || now.Before(e.attempts[0].time.Add(can.LookupWindow-can.LookupLag-clocks))`,
				New:  `	return true`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC25ALookupThatForgotAnswersNothing"}},
	},
	{
		Name:   "the-lag-is-forgotten",
		Source: "C01",
		Why:    "a lookup that lags is believed right after the fence",
		Patches: []Patch{
			{
				File: "protocol/recover.go",
				Old:  "asked >= d.fencedAt+w.can.LookupLag {",
				New:  "asked >= d.fencedAt {",
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC01LagAfterTheFence"}},
	},
	{
		Name:   "a-fence-above-nothing",
		Source: "C32; refuted design: a token for each start",
		Why:    "a fence that is below the latest attempt is taken for one above it",
		Patches: []Patch{
			{
				File: "protocol/recover.go",
				Old:  `	if d.fence != (journal.Token{}) && e.latest().Less(d.fence) && asked`,
				New:  `	if d.fence != (journal.Token{}) && asked`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC32AFenceCoversOnlyOlderAttempts"}},
	},
	{
		Name:   "tokens-come-back",
		Source: "C29; refuted design: a token for each start",
		Why:    "attempts are ordered by their sequence alone, which comes back after a cut",
		Patches: []Patch{
			{
				File: "protocol/journal/entry.go",
				Old: `	return t.Segment < u.Segment || t.Segment == u.Segment && t.Seq < u.Seq
`,
				New: `	return t.Seq < u.Seq
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC29AFenceIsAboveEveryCutAttempt"}, {Package: "./protocol/journal", Name: "TestC29TokensOfACut"}},
	},
	{
		Name:   "every-claim-starts-the-bound",
		Source: "C33",
		Why:    "each claim starts the bound again, so that it never ends",
		Patches: []Patch{
			{
				File: "protocol/gate.go",
				Old:  `			if !d.claimed || d.latest.Less(e.latest()) {`,
				New:  `			if true {`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC33LaterClaimsDontRestartTheBound"}},
	},
	{
		Name:   "a-resend-has-no-bound-of-its-own",
		Source: "B89",
		Why:    "the bound is counted from the first attempt only",
		Patches: []Patch{
			{
				File: "protocol/attempt.go",
				Old: `		d.latest, d.quiet = w.token, g.Clock.Mono()
`,
				New: `		d.latest = w.token
`,
			},
			{
				File: "protocol/attempt.go",
				Old: `		d.quiet = g.Clock.Mono()
		d.replayed`,
				New: `		d.replayed`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestB89ANewAttemptHasABoundOfItsOwn"}},
	},
	{
		Name:   "the-claim-ends-early",
		Source: "C34",
		Why:    "the claim is given up before there is an outcome",
		Patches: []Patch{
			{
				File: "protocol/submit.go",
				Old:  "	defer g.release(ctx, w.id, claim)\n",
				New:  "	g.release(ctx, w.id, claim)\n",
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC34TheClaimEndsAfterTheOutcome"}},
	},
	{
		Name:   "a-mismatch-is-forgotten",
		Source: "C35",
		Why:    "after a restart nobody knows that the target holds other content",
		Patches: []Patch{
			{
				File: "protocol/state.go",
				Old: `		e.mismatch, e.question = true, n.Hash
`,
				New: `		e.question = n.Hash
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestC35AMismatchOutlivesARestart"}},
	},
	{
		Name:   "a-refusal-clears-the-doubt",
		Source: "B41, B18",
		Why:    "a proposal that was turned away settles the effect",
		Patches: []Patch{
			{
				File: "protocol/state.go",
				Old: `		e.said[b.saying()] = true
`,
				New: `		e.said[b.saying()] = true
		e.settle(Refused, "", b.Reason)
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestB41ARefusalAfterAmbiguousSettlesNothing"}},
	},
	{
		Name:   "a-final-no-is-forgotten",
		Source: "B42, B49",
		Why:    "what the target refused for good is sent again",
		Patches: []Patch{
			{
				File: "protocol/state.go",
				Old:  "		e.rejected, e.question = e.rejected || b.Rejected, n.Hash\n",
				New:  "		e.question = n.Hash\n",
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestB49AFinalNoIsNotAskedAgain"}},
	},
	{
		Name:   "a-loop-fills-the-log",
		Source: "W02",
		Why:    "each repetition of a refused proposal is recorded",
		Patches: []Patch{
			{
				File: "protocol/attempt.go",
				Old:  "		if s.once && e != nil && e.said[b.saying()] {\n",
				New:  "		if s.once && e == nil {\n",
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestW02AnAgentInALoopAddsNothing"}},
	},
	{
		Name:   "ends-a-moment-late",
		Source: "B58",
		Why:    "a lease still counts at the moment of its end",
		Patches: []Patch{
			{
				File: "protocol/lease.go",
				Old:  `	if now.Before(l.Expires) {`,
				New:  `	if !now.After(l.Expires) {`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestB58Boundaries"}},
	},
	{
		Name:   "no-last-look",
		Source: "W01, incident bazel continuous-integration#2653",
		Why:    "nothing is asked between the intent and the first byte, however long that takes",
		Patches: []Patch{
			{
				File: "protocol/attempt.go",
				Old: `	s, err := g.judge(ctx, last, w)
`,
				New: `	s, err := (*stop)(nil), error(nil)
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestW01TheLastStepReadsTheLeaseAndOldPremisesAgain"}},
	},
	{
		Name:   "premises-before-the-connection",
		Source: "W01",
		Why:    "premises are read before the connection stands, which may take long",
		Patches: []Patch{
			{
				File: "protocol/attempt.go",
				Old:  `		if p.Holds == ByTarget || p.BeforeConnect != before {`,
				New:  `		if p.Holds == ByTarget || !before {`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestAPremiseCanBeReadBeforeConnecting"}},
	},
	{
		Name:   "true-is-one",
		Source: "B61",
		Why:    "values are compared as the words that they are printed as",
		Patches: []Patch{
			{
				File: "protocol/canonical.go",
				Old:  "return len(a) > 0 && bytes.Equal(a, b) }",
				New:  "return len(a) > 0 && bytes.Equal(bytes.Trim(a, `\"`), bytes.Trim(b, `\"`)) }",
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestB61AQuotedNumberIsNoNumber"}},
	},
	{
		Name:   "a-limit-that-fails-open",
		Source: "B60, B70",
		Why:    "a limit that can't be compared with the payload lets it pass",
		Patches: []Patch{
			{
				File: "protocol/lease.go",
				Old: `		return fmt.Sprintf("limits %q, which is no number in the payload", l.Field)
`,
				New: `		return ""
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestLeaseLimitsFailClosed"}},
	},
	{
		Name:   "key-from-the-arguments",
		Source: "incident crewAI#5802, incident square-mcp-server#31",
		Why:    "the key is made of what the model wrote",
		Patches: []Patch{
			{
				File: "protocol/submit.go",
				Old:  `	w := &work{id: EffectID(g.Namespace, p.Request, 0),`,
				New:  `	w := &work{id: EffectID(g.Namespace, p.Request+string(p.Effect.Payload), 0),`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestW02AnAgentInALoopAddsNothing"}, {Package: "./protocol", Name: "TestB56ADifferingPayloadIsToldWhatRecoveryDid"}},
	},
	{
		Name:   "a-key-for-each-attempt",
		Source: "incident square-mcp-server#31, incident openai-agents#4254",
		Why:    "every attempt brings a key of its own",
		Patches: []Patch{
			{
				File: "protocol/attempt.go",
				Old:  `	r := Request{Effect: w.id,`,
				New:  `	r := Request{Effect: EffectID("", w.id.String(), uint64(len(w.rests))),`,
			},
		},
		Cells: []Cell{
			{Row: "crash_before_ack", Column: "gate@t1", Shows: "$40"},
		},
	},
	{
		Name:   "work-goes-on-without-a-log",
		Source: "incident kimi-code#2902, incident garm#76",
		Why:    "after a failed write the log is used as if nothing had happened",
		Patches: []Patch{
			{
				File: "protocol/journal/flush.go",
				Old: `	if l.err == nil {
		l.err = fmt.Errorf("%w: %w", ErrPoisoned, err)
	}
	return l.err
`,
				New: `	return fmt.Errorf("%w: %w", ErrPoisoned, err)
`,
			},
			{
				File: "protocol/journal/flush.go",
				Old: `	if err != nil {
		l.poison(err)
		return
	}
	l.durable`,
				New: `	l.durable`,
			},
		},
		Tests: []Test{{Package: "./protocol/journal", Name: "TestPoison"}, {Package: "./protocol", Name: "TestI11NothingIsSentAfterAFailedSync"}},
	},
	{
		Name:   "a-torn-tail-stays",
		Source: "B13, incident oh-my-pi#8596",
		Why:    "a torn end of the log stays, and stands before what is appended",
		Patches: []Patch{
			{
				File: "protocol/journal/open.go",
				Old: `	for _, t := range tails {
		if err := l.cut(t); err != nil {
			return err
		}
	}
`,
			},
		},
		Tests: []Test{{Package: "./protocol/journal", Name: "TestTornTail"}},
	},
	{
		Name:   "unreadable-is-absent",
		Source: "incident idemkit: corrupt-record-treated-as-absent",
		Why:    "damage before proven entries is cut as if it were a torn end",
		Patches: []Patch{
			{
				File: "protocol/journal/open.go",
				Old: `		if s.proves(l.seq + 1) {
			return nil, l.corrupt(l.cur.segment, d.off, d.why)
		}
		tails`,
				New: `		tails`,
			},
		},
		Tests: []Test{{Package: "./protocol/journal", Name: "TestFlippedBits"}},
	},
	{
		Name:   "two-owners",
		Source: "B68, incident queue-jobs-worker#11",
		Why:    "a second process opens the log while the first has it",
		Patches: []Patch{
			{
				File: "protocol/journal/open.go",
				Old:  "	if !ok {\n		return l.lock.held()\n	}\n",
				New:  "	if !ok && l.lock == nil {\n		return l.lock.held()\n	}\n",
			},
		},
		Tests: []Test{{Package: "./protocol/journal", Name: "TestOneOwner"}},
	},
	{
		Name:   "a-replaced-lock",
		Source: "B64",
		Why:    "nobody looks whether the lock file is still the one at its path",
		Patches: []Patch{
			{
				File: "protocol/journal/lock.go",
				Old:  `	if err != nil || l.is != (FileID{uint64(named.Dev), named.Ino}) {`,
				New:  `	if err != nil {`,
			},
		},
		Tests: []Test{{Package: "./protocol/journal", Name: "TestReplacedLock"}},
	},
	{
		Name:   "links-are-followed",
		Source: "B64",
		Why:    "a log file that is a link to another is opened",
		Patches: []Patch{
			{
				File: "protocol/journal/dir.go",
				Old:  `	case st.Nlink != 1:`,
				New:  `	case st.Nlink < 1:`,
			},
		},
		Tests: []Test{{Package: "./protocol/journal", Name: "TestUnsafe"}},
	},
	{
		Name:   "a-revocation-does-not-wait",
		Source: "B17, incident agent-secret#170",
		Why:    "a revocation returns while a dispatch that saw the lease alive is under way",
		Patches: []Patch{
			{
				File: "protocol/authority.go",
				Old: `	if a.drain != nil {
`,
				New: `	if false {
`,
			},
			{
				File: "protocol/authority.go",
				Old:  `		undecided = a.drain.Exclude`,
				New: `		var _ context.CancelFunc = cancel
		undecided = a.drain.Exclude`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestADrainThatPassesItsDeadlineSaysSo"}},
	},
	{
		Name:   "a-lone-commit-verifies",
		Source: "B15, incident obsigna#853",
		Why:    "a receipt says executed where nothing was dispatched",
		Patches: []Patch{
			{
				File: "protocol/receipt.go",
				Old:  `		if len(b.Attempts) == 0 || b.Status.Final == Committed {`,
				New:  `		if b.Status.Final == Committed {`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestB15ALoneCommitIsNoHistoryWhoeverFoundIt"}},
	},
	{
		Name:   "parks-everything",
		Source: "refuted design: never resend; C06",
		Why:    "recovery leaves everything in doubt to a person: safe, and of no use",
		Patches: []Patch{
			{
				File: "protocol/recover.go",
				Old: `	for _, a := range e.attempts {
		w.rests = append(w.rests, a.token)
	}
	return g.settleDoubt(ctx, w, e)
`,
				New: `	if e.open() {
		return g.giveUp(ctx, w, "an attempt is in doubt")
	}
	return g.settleDoubt(ctx, w, e)
`,
			},
		},
		Cells: []Cell{
			{Row: "crash_before_ack", Column: "gate@t1"},
			{Row: "crash_before_ack", Column: "gate@t2"},
		},
	},
	{
		Name:   "ambiguous-is-sent-again",
		Source: "incident recoupable#1918, incident CALLE-AI#229",
		Why:    "what nobody can tell is sent again when it is asked for again",
		Patches: []Patch{
			{
				File: "protocol/guard.go",
				Old: `	{"S3", early | dispatch, undecidable},
`,
			},
			{
				File: "protocol/recover.go",
				Old: `		if !e.open() {
			return outcome{status: Status{Final: Ambiguous}}, nil
		}
`,
			},
		},
		Tests: []Test{{Package: "./protocol", Name: "TestB41ARefusalAfterAmbiguousSettlesNothing"}},
	},
	{
		Name:   "a-commit-is-forgotten",
		Source: "incident agno#10366, incident MAF#7458",
		Why:    "a recorded success is not looked at when the request comes again",
		Patches: []Patch{
			{
				File: "protocol/state.go",
				Old: `		e.settle(Committed, b.Way, "")
`,
				New: `		e.attempts, e.way = nil, b.Way
`,
			},
		},
		Cells: []Cell{
			{Row: "duplicate_submit", Column: "gate@t3", Shows: "$40"},
		},
	},
	{
		Name:   "a-repeat-by-the-transport",
		Source: "C26, incident PraisonAI#4256, incident Composio#3654",
		Why:    "the connection takes a second request",
		Patches: []Patch{
			{
				File: "protocol/wire/conn.go",
				Old: `	first := !g.used
	g.used = true
	return first
`,
				New: `	g.used = true
	return true
`,
			},
		},
		Tests: []Test{{Package: "./protocol/wire", Name: "TestOneRequestPerConnection"}},
	},
	{
		Name:   "half-an-answer",
		Source: "incident mcp reconnects: reyn#2600",
		Why:    "an answer that doesn't say where it ends counts as whole",
		Patches: []Patch{
			{
				File: "protocol/wire/conn.go",
				Old: `	case resp.ContentLength < 0 && len(resp.TransferEncoding) == 0:
`,
				New: `	case resp.ContentLength < -1:
`,
			},
		},
		Tests: []Test{{Package: "./protocol/wire", Name: "TestAnswers"}},
	},
	{
		Name:   "not-sent-after-a-write",
		Source: "incident reyn#2600",
		Why:    "a connection that died after the request began is called not sent",
		Patches: []Patch{
			{
				File: "protocol/wire/conn.go",
				Old: `	g.wrote = true
`,
			},
		},
		Tests: []Test{{Package: "./protocol/wire", Name: "TestTimeoutIsUnknown"}},
	},
	{
		Name:   "failed-refunds-are-skipped",
		Source: "B91",
		Why:    "a lookup passes over refunds that failed later",
		Patches: []Patch{
			{
				File: "targets/stripe/target.go",
				Old: `	found, err := t.Client.Find(ctx, want.PaymentIntent, r.Effect.String())
	if err`,
				New: `	found, err := t.Client.Find(ctx, want.PaymentIntent, r.Effect.String())
	if len(found) > 0 && found[0].Status == "failed" {
		found = nil
	}
	if err`,
			},
		},
		Tests: []Test{{Package: "./targets/stripe", Name: "TestLookup"}},
	},
	{
		Name:   "live-keys",
		Source: "B86",
		Why:    "a key for real money is accepted",
		Patches: []Patch{
			{
				File: "targets/stripe/client.go",
				Old:  `	case strings.HasPrefix(o.Key, "sk_live_"), strings.HasPrefix(o.Key, "rk_live_"):`,
				New:  `	case strings.HasPrefix(o.Key, "sk_lives_"), strings.HasPrefix(o.Key, "rk_live_"):`,
			},
		},
		Tests: []Test{{Package: "./targets/stripe", Name: "TestOpen"}},
	},
}
