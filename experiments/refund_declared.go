package experiments

import (
	"slices"
	"strings"
)

// What the specification prescribes for the reference table and for the table
// with unknown bounds. It is read by the check and by the exit code only: no
// page, record or terminal table is made from it.
const (
	declaredReference = `
row | naive | idempotency-key@t1 | durable-replay@t1 | gate@t1 | gate@t2 | gate@t3
happy_path                  | APPLIED $20 ok  | APPLIED:ok $20 ok                               | COMPLETED:ok $20 ok                     | COMMITTED $20 ok                          | COMMITTED $20 ok                          | COMMITTED $20 ok
crash_before_send           | RETRIED $20 ok  | RETRIED $20 ok                                  | RERUN:ok $20 ok                         | COMMITTED_BY_RETRY $20 ok                 | REAPPLIED_AFTER_QUERY $20 ok              | AMBIGUOUS $0 look
crash_before_ack            | RETRIED $40 BAD | RETRIED $20 ok                                  | RERUN:already_processed $20 ok          | COMMITTED_BY_RETRY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
duplicate_submit            | APPLIED $40 BAD | APPLIED:already_processed $20 ok                | REPLAYED:ok $20 ok                      | DUPLICATE_IGNORED $20 ok                  | DUPLICATE_IGNORED $20 ok                  | DUPLICATE_IGNORED $20 ok
model_redecides             | APPLIED $50 BAD | APPLIED:key_reused_with_different_params $20 ok | REPLAYED:RERUN:already_processed $20 ok | REFUSED:conflicting_payload $20 ok        | REFUSED:conflicting_payload $20 ok        | REFUSED:conflicting_payload $20 ok
conflicting_payload         | APPLIED $50 BAD | APPLIED:key_reused_with_different_params $20 ok | REPLAYED:ok $20 ok                      | REFUSED:conflicting_payload $20 ok        | REFUSED:conflicting_payload $20 ok        | REFUSED:conflicting_payload $20 ok
lease_revoked               | APPLIED $20 BAD | APPLIED:ok $20 BAD                              | COMPLETED:ok $20 BAD                    | REFUSED:lease $0 ok                       | REFUSED:lease $0 ok                       | REFUSED:lease $0 ok
stale_eligibility           | APPLIED $20 BAD | APPLIED:ok $20 BAD                              | COMPLETED:ok $20 BAD                    | REFUSED:stale_premise $0 ok               | REFUSED:stale_premise $0 ok               | REFUSED:stale_premise $0 ok
refund_during_outage        | RETRIED $40 BAD | RETRIED $40 BAD                                 | RERUN:ok $40 BAD                        | REFUSED:stale_premise_at_recovery $20 ok  | REFUSED:stale_premise_at_recovery $20 ok  | AMBIGUOUS $20 look
lease_revoked_during_outage | RETRIED $20 BAD | RETRIED $20 BAD                                 | RERUN:ok $20 BAD                        | REFUSED:lease_at_recovery $0 ok           | REFUSED:lease_at_recovery $0 ok           | AMBIGUOUS $0 look
key_expired                 | RETRIED $40 BAD | RETRIED $40 BAD                                 | RERUN:ok $40 BAD                        | COMMITTED_ON_QUERY $20 ok                 | COMMITTED_ON_QUERY $20 ok                 | AMBIGUOUS $20 look
`
	// Where the bound is unknown five cells of the gate differ.
	declaredUnbounded = `
row | gate@t1 | gate@t2 | gate@t3
crash_before_send           | COMMITTED_BY_RETRY $20 ok | AMBIGUOUS $0 look  | AMBIGUOUS $0 look
refund_during_outage        | AMBIGUOUS $20 look        | AMBIGUOUS $20 look | AMBIGUOUS $20 look
lease_revoked_during_outage | AMBIGUOUS $0 look         | AMBIGUOUS $0 look  | AMBIGUOUS $0 look
`
)

// declared returns the prescribed cell with its mark, or "".
func declared(table, row, column string) string {
	if table == tableUnbounded {
		if cell, ok := declaredCell(declaredUnbounded, row, column); ok {
			return cell
		}
		if !strings.HasPrefix(column, "gate@") {
			return ""
		}
	}
	cell, _ := declaredCell(declaredReference, row, column)
	return cell
}

// declaredCell finds a cell by the names in the text's first line and first
// column.
func declaredCell(text, row, column string) (string, bool) {
	at := -1
	for line := range strings.Lines(strings.TrimSpace(text)) {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if at < 0 {
			if at = slices.Index(cells, column); at < 0 {
				return "", false
			}
		}
		if cells[0] == row {
			return cells[at], true
		}
	}
	return "", false
}
