package table_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments/table"
)

func ExampleTable_Markdown() {
	fmt.Print(table.Table{
		Header: []string{"row", "gate@t2"},
		Rows:   [][]string{{"`happy_path`", "COMMITTED $20 ✅"}, {"`a|b`", "two\nlines"}, {"short"}},
	}.Markdown())
	// Output:
	// | row | gate@t2 |
	// |---|---|
	// | `happy_path` | COMMITTED $20 ✅ |
	// | `a\|b` | two<br>lines |
	// | short |  |
}

// reference has the names of the reference table and its longest cells.
func reference() table.Table {
	t := table.Table{Header: []string{"row", "naive", "idempotency-key@t1", "durable-replay@t1", "gate@t1", "gate@t2", "gate@t3"}}
	for _, row := range []string{"happy_path", "crash_before_send", "conflicting_payload", "refund_during_outage", "lease_revoked_during_outage"} {
		t.Rows = append(t.Rows, []string{row, "$40 BAD", "$40 BAD", "$40 BAD", "$20 look", "$20 look", "$20 look"})
	}
	return t
}

func TestSixColumnsFitATerminal(t *testing.T) {
	text := reference().Terminal(80)
	for i, line := range strings.Split(text, "\n") {
		if len(line) > 80 {
			t.Errorf("line %d has %d characters: %q", i+1, len(line), line)
		}
	}
	if n := strings.Count(text, "happy_path"); n != 1 {
		t.Errorf("the table is in %d parts:\n%s", n, text)
	}
}

func TestTerminalLosesNothing(t *testing.T) {
	for _, width := range []int{0, 1, 40, 80, 200} {
		text := reference().Terminal(width)
		if got, want := strings.Count(text, "$"), 30; got != want {
			t.Errorf("at width %d there are %d cells of %d:\n%s", width, got, want, text)
		}
		if width > 40 && strings.Contains(text, "…") {
			t.Errorf("at width %d something is cut:\n%s", width, text)
		}
	}
}

func TestWideBreaksNothing(t *testing.T) {
	text := reference().Terminal(0)
	for _, name := range []string{"idempotency-key@t1", "lease_revoked_during_outage", "$20 look"} {
		if !strings.Contains(text, name) {
			t.Errorf("%s is broken:\n%s", name, text)
		}
	}
}

func TestColumnsThatDontFitGoBelow(t *testing.T) {
	text := reference().Terminal(45)
	if n := strings.Count(text, "happy_path"); n != 3 {
		t.Errorf("the table is in %d parts, not 3:\n%s", n, text)
	}
}

func ExampleTable_Terminal() {
	t := reference()
	t.Rows = t.Rows[3:]
	fmt.Print(t.Terminal(80))
	// Output:
	// row             naive    idempotency  durable  gate      gate      gate
	//                          -key         -replay  @t1       @t2       @t3
	//                          @t1          @t1
	// refund_during_  $40 BAD  $40 BAD      $40 BAD  $20 look  $20 look  $20 look
	// outage
	// lease_revoked_  $40 BAD  $40 BAD      $40 BAD  $20 look  $20 look  $20 look
	// during_outage
}
