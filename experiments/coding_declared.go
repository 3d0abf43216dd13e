package experiments

// What the specification prescribes: for the reference columns and rows the
// reference table's cells, for the others what the rows were made to show. It is
// read by the check and by the exit code only.
const declaredCode = `
row | naive | gate-file | gate-symbol | gate-body | gate-behaviour
rename_break          | APPLIED landed_BROKEN BAD | REFUSED:stale_premise not_landed ok   | REFUSED:stale_premise not_landed ok | REFUSED:stale_premise not_landed ok   | REFUSED:stale_premise not_landed ok
duplicate_work        | APPLIED 2_impl BAD        | REFUSED:duplicate_symbol 1_impl ok    | REFUSED:duplicate_symbol 1_impl ok  | REFUSED:duplicate_symbol 1_impl ok    | REFUSED:duplicate_symbol 1_impl ok
benign_reformat       | APPLIED landed_ok ok      | REFUSED:stale_premise not_landed look | COMMITTED landed_ok ok              | COMMITTED landed_ok ok                | COMMITTED landed_ok ok
crash_before_commit   | RETRIED landed_twice BAD  | COMMITTED_BY_RETRY landed_ok ok       | COMMITTED_BY_RETRY landed_ok ok     | COMMITTED_BY_RETRY landed_ok ok       | COMMITTED_BY_RETRY landed_ok ok
duplicate_submit      | APPLIED landed_twice BAD  | DUPLICATE_IGNORED landed_ok ok        | DUPLICATE_IGNORED landed_ok ok      | DUPLICATE_IGNORED landed_ok ok        | DUPLICATE_IGNORED landed_ok ok
lease_revoked         | APPLIED landed_ok BAD     | REFUSED:lease not_landed ok           | REFUSED:lease not_landed ok         | REFUSED:lease not_landed ok           | REFUSED:lease not_landed ok
semantic_only         | APPLIED landed_BROKEN BAD | REFUSED:stale_premise not_landed ok   | COMMITTED landed_BROKEN BAD         | REFUSED:stale_premise not_landed ok   | REFUSED:stale_premise not_landed ok
refactor_same_meaning | APPLIED landed_ok ok      | REFUSED:stale_premise not_landed look | COMMITTED landed_ok ok              | REFUSED:stale_premise not_landed look | COMMITTED landed_ok ok
unobserved_behaviour  | APPLIED landed_BROKEN BAD | REFUSED:stale_premise not_landed ok   | COMMITTED landed_BROKEN BAD         | REFUSED:stale_premise not_landed ok   | COMMITTED landed_BROKEN BAD
`

// declaredCoding is the prescribed cell with its mark, or "". With the message
// late, message-only is as naive is. In the rows about notices the gate lands the
// right thing whatever B hears.
func declaredCoding(row, column string) string {
	r, _ := codingRowNamed(row)
	c, _ := codingColumnNamed(column)
	switch {
	case r.Group == groupNotice && c.gate:
		return "COMMITTED landed_ok ok"
	case r.Group == groupNotice:
		return ""
	case column == "message-only":
		column = "naive"
	}
	cell, _ := declaredCell(declaredCode, row, column)
	return cell
}
