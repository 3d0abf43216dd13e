package faults

// Row is one thing that can go wrong, as data. Points and actions are names that
// the experiment's parts give a meaning to; only "kill" and "wait DURATION" mean
// something here.
type Row struct {
	Name   string
	Group  string
	What   string // what happens, in one sentence
	Faults []Fault
	Outage []string // acts of the world between the first death and the restart
	// Submits are the amounts, in cents, that the model answers, one for each
	// submit in order. One that has to be repeated has the amount it had.
	Submits []int64
}

// Reference are the rows of the reference table.
var Reference = []Row{
	{Name: "happy_path", Group: "reference", What: "Nothing goes wrong.", Submits: []int64{2000}},
	{Name: "crash_before_send", Group: "reference", What: "The process is killed after it made its record and before the first byte leaves.", Faults: []Fault{{Kill, "before-send", 1}}, Submits: []int64{2000}},
	{Name: "crash_before_ack", Group: "reference", What: "The service applies the refund; the process is killed before it hears of it.", Faults: []Fault{{Kill, "sim/applied", 1}}, Submits: []int64{2000}},
	{Name: "duplicate_submit", Group: "reference", What: "The same approved request arrives twice.", Submits: []int64{2000, 2000}},
	{Name: "model_redecides", Group: "reference", What: "Killed after the refund was applied; the model, run again, says $30.", Faults: []Fault{{Kill, "sim/applied", 1}}, Submits: []int64{2000, 3000}},
	{Name: "conflicting_payload", Group: "reference", What: "$20 is done; then $30 arrives for the same case.", Submits: []int64{2000, 3000}},
	{Name: "lease_revoked", Group: "reference", What: "The lease is revoked between the decision and the send.", Faults: []Fault{{"revoke", "decided", 1}}, Submits: []int64{2000}},
	{Name: "stale_eligibility", Group: "reference", What: "The order stops being eligible between the decision and the send.", Faults: []Fault{{"make-ineligible", "decided", 1}}, Submits: []int64{2000}},
	{Name: "refund_during_outage", Group: "reference", What: "Killed before the send; a person refunds $20 by hand; restarted.", Faults: []Fault{{Kill, "before-send", 1}}, Outage: []string{"refund-by-hand"}, Submits: []int64{2000}},
	{Name: "lease_revoked_during_outage", Group: "reference", What: "Killed before the send; the lease is revoked; restarted.", Faults: []Fault{{Kill, "before-send", 1}}, Outage: []string{"revoke"}, Submits: []int64{2000}},
	{Name: "key_expired", Group: "reference", What: "Killed after the refund was applied; the service forgets its keys; restarted 25 hours later.", Faults: []Fault{{Kill, "sim/applied", 1}}, Outage: []string{"forget-keys", "wait 25h"}, Submits: []int64{2000}},
}
