package experiments

// What is right in each row: for the three reference rows the reference table's
// cells, for the others what follows for the gate from the page of Stripe's
// documentation that the row names. It is read by the check and by the exit code
// only.
const declaredStripe = `
row | naive | idempotency-key | hand-check | gate
crash_before_ack         | RETRIED $40 BAD | RETRIED $20 ok                   | | COMMITTED_BY_RETRY $20 ok
duplicate_submit         | APPLIED $40 BAD | APPLIED:already_processed $20 ok | | DUPLICATE_IGNORED $20 ok
refund_during_outage     | RETRIED $40 BAD | RETRIED $40 BAD                  | | REFUSED:stale_premise_at_recovery $20 ok
key_expired              | | | | COMMITTED_ON_QUERY $20 ok
refund_fails_later       | | | | COMMITTED $20 ok
chargeback_during_outage | | | | REFUSED:stale_premise_at_recovery $0 ok
chargeback_after_commit  | | | | COMMITTED $20 ok
in_progress              | | | | COMMITTED_ON_QUERY $20 ok
parameters_drifted       | | | | COMMITTED_BY_RETRY $20 ok
stored_500               | | | | COMMITTED_ON_QUERY $20 ok
partial_refunds          | | | | COMMITTED_BY_RETRY $100 ok
two_cases                | | | | COMMITTED_BY_RETRY $40 ok
`

func declaredStripeCell(row, column string) string {
	cell, _ := declaredCell(declaredStripe, row, column)
	return cell
}
