package experiments

// All are the experiments, in the order in which they are listed and run.
func All() []*Experiment {
	return []*Experiment{Refund(), Faults(), Stripe(), CrashPoints(), CrashPointsSlice(), DiskStates(), SweepSlice(), Scoreboard(), Coding(), CodingHistory()}
}
