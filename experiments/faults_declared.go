package experiments

import "strings"

// declaredFaults is what is prescribed for the gate beyond the reference table,
// for the check and the exit code only. A line with one cell is of every tier;
// in it "gate@" stands for the column; one with three is of t1, t2 and t3, and that of t2 is the conditional
// service's too unless a fourth says otherwise. Of the fenced service, the fifth,
// little but what holds at every tier is prescribed.
const declaredFaults = `
crash_before_propose           | COMMITTED $20 ok
crash_after_propose            | COMMITTED $20 ok
crash_after_propose_redecides  | REFUSED:conflicting_payload $20 ok
crash_on_the_wire              | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
crash_on_the_wire_unbounded    | COMMITTED_BY_RETRY $20 ok                 | AMBIGUOUS $20 look                        | AMBIGUOUS $20 look
crash_after_ack                | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
crash_after_commit             | DUPLICATE_IGNORED $20 ok
crash_in_recovery              | COMMITTED_BY_RETRY $20 ok                 | REAPPLIED_AFTER_QUERY $20 ok              | AMBIGUOUS $0 look
crash_loop                     | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look

concurrent_submit              | COMMITTED+IN_FLIGHT $20 ok
concurrent_submit_overtaken    | DUPLICATE_IGNORED+COMMITTED $20 ok
concurrent_submit_one_owner    | COMMITTED+LOCKED_OUT:gate@ $20 ok
ack_lost                       | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
connection_refused             | COMMITTED $20 ok
error_after_apply              | COMMITTED_ON_QUERY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
in_progress                    | COMMITTED_ON_QUERY $20 ok
late_landing                   | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
queue_kept                     | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
queue_lost                     | COMMITTED_BY_RETRY $20 ok                 | REAPPLIED_AFTER_QUERY $20 ok              | AMBIGUOUS $0 look
lookup_forgot                  | AMBIGUOUS $20 look
lookup_lags                    | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
lookup_fails                   | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
lookup_other_amount            | UNRESOLVED:mismatch $20 look              | UNRESOLVED:mismatch $20 look              | AMBIGUOUS $20 look

fresh_call_id                  | DUPLICATE_IGNORED $20 ok
same_value_other_bytes         | DUPLICATE_IGNORED $20 ok
wrong_first_proposal           | COMMITTED $20 ok

lease_expired                  | REFUSED:lease $0 ok
lease_out_of_scope             | REFUSED:lease $0 ok
injected_authority             | REFUSED:lease $0 ok
lease_revoked_after_landing    | COMMITTED_ON_QUERY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
lease_renewed                  | COMMITTED_BY_RETRY $20 ok                 | REAPPLIED_AFTER_QUERY $20 ok              | AMBIGUOUS $0 look
one_approval_two_effects       | REFUSED:lease $20 ok
one_approval_resent            | COMMITTED_BY_RETRY $20 ok                 | REAPPLIED_AFTER_QUERY $20 ok              | AMBIGUOUS $0 look

false_at_decision              | REFUSED:premise_false_at_decision $0 ok
unrelated_change_during_outage | COMMITTED_BY_RETRY $20 ok                 | REAPPLIED_AFTER_QUERY $20 ok              | AMBIGUOUS $0 look
unrelated_change_total_premise | REFUSED:stale_premise_at_recovery $0 look | REFUSED:stale_premise_at_recovery $0 look | AMBIGUOUS $0 look
changed_between_check_and_send | COMMITTED $20 ok                          | COMMITTED $20 ok                          | COMMITTED $20 ok   | REFUSED:stale_premise $0 ok
aba_premise                    | COMMITTED_BY_RETRY $20 ok                 | REAPPLIED_AFTER_QUERY $20 ok              | AMBIGUOUS $0 look
aba_premise_versioned          | REFUSED:stale_premise_at_recovery $0 ok   | REFUSED:stale_premise_at_recovery $0 ok   | AMBIGUOUS $0 look

clock_ahead                    | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
clock_behind                   | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
clock_ahead_at_expiry          | REFUSED:lease $0 look
clock_behind_at_expiry         | COMMITTED $20 BAD
clock_behind_within_margin     | REFUSED:lease $0 ok
sender_paused                  | COMMITTED+IN_FLIGHT $20 ok
sender_paused_one_owner        | COMMITTED+LOCKED_OUT:gate@ $20 ok
key_expired_no_lookup          | AMBIGUOUS $20 look

cap_race                       | COMMITTED+REFUSED:over_budget $20 ok
cap_race_overtaken             | REFUSED:over_budget+COMMITTED $20 ok
cap_held_while_ambiguous       | REFUSED:over_budget $20 ok                | REFUSED:over_budget $20 ok                | REFUSED:over_budget $20 look
cap_spent_outside              | COMMITTED $20 ok
cap_spent_outside_total_premise | REFUSED:stale_premise $0 ok

refund_fails_later             | DUPLICATE_IGNORED $20 ok
chargeback_later               | DUPLICATE_IGNORED $20 ok
report_repeated                | DUPLICATE_IGNORED $20 ok

torn_tail                      | COMMITTED_ON_QUERY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
bit_flip                       | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
disk_full                      | COMMITTED $20 ok
disk_full_outcome              | COMMITTED $20 ok
sync_error                     | COMMITTED_BY_RETRY $20 ok                 | REAPPLIED_AFTER_QUERY $20 ok              | AMBIGUOUS $0 look
sync_error_outcome             | DUPLICATE_IGNORED $20 ok                  | DUPLICATE_IGNORED $20 ok                  | AMBIGUOUS $20 look
restored_backup                | COMMITTED_ON_QUERY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look

wire_reset_before              | COMMITTED_BY_RETRY $20 ok                 | REAPPLIED_AFTER_QUERY $20 ok              | AMBIGUOUS $0 look
wire_reset_after               | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
wire_close_after               | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
wire_black_hole                | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
wire_lost_before               | COMMITTED_BY_RETRY $20 ok                 | REAPPLIED_AFTER_QUERY $20 ok              | AMBIGUOUS $0 look
wire_half_answer               | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
wire_bad_gateway               | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
wire_late                      | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
wire_doubled                   | COMMITTED $20 ok                          | COMMITTED $40 BAD                         | COMMITTED $40 BAD  | COMMITTED $40 BAD | COMMITTED $40 BAD
one_request_per_send           | COMMITTED_BY_RETRY $20 ok                 | REAPPLIED_AFTER_QUERY $20 ok              | AMBIGUOUS $0 look

never_arrived                  | COMMITTED_BY_RETRY $20 ok                 | REAPPLIED_AFTER_QUERY $20 ok              | AMBIGUOUS $0 look
landed_and_lost                | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
still_working                  | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
halfway                        | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
`

// faultsDeclared returns the prescribed cell with its mark, or "".
func faultsDeclared(_, row, column string) string {
	profile, isGate := strings.CutPrefix(column, "gate@")
	if !isGate {
		return ""
	}
	for line := range strings.Lines(strings.TrimSpace(declaredFaults)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[0] != row {
			continue
		}
		at := map[string]int{"t1": 1, "t2": 2, "t3": 3, "conditional": 4, "fenced": 5}[profile]
		switch {
		case len(cells) == 2:
			return strings.Replace(cells[1], ":gate@", ":"+column, 1)
		case at == 4 && len(cells) == 4:
			return cells[2]
		case 0 < at && at < len(cells):
			return cells[at]
		}
	}
	return ""
}
