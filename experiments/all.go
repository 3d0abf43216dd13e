package experiments

// All are the experiments, in the order in which they are listed and run. One that
// is over the records of the others comes last.
func All() []*Experiment {
	return []*Experiment{
		Refund(),
		Faults(),
		Incidents(),
		Stripe(),
		CrashPoints(),
		CrashPointsSlice(),
		CrashPointsProfiles(),
		DiskStates(),
		Sweep(0),
		SweepSlice(),
		Coding(),
		CodingHistory(),
		Approvals(),
		Repair(),
		Takeover(),
		Cap(),
		Explore(),
		Mutants(),
		PlantedFaults(),
		MutantsSlice(),
		Scoreboard(),
	}
}
