package table_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/interlock-bench/interlock-bench/experiments/table"
)

func ExampleWrap() {
	fmt.Println(table.Wrap("executed     yes      the target's answer to attempt 00000001.000000000004", 13, 40))
	// Output:
	// executed     yes      the target's
	//              answer to attempt
	//              00000001.000000000004
}

func TestWrapLosesNothing(t *testing.T) {
	for _, line := range []string{"", "short", strings.Repeat("word ", 50), strings.Repeat("x", 300), "        deep " + strings.Repeat("ünïcode ", 30)} {
		for _, width := range []int{0, 40, 60, 80} {
			got := table.Wrap(line, 8, width)
			for part := range strings.Lines(got) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(part, "\n")); n > max(width, 40) {
					t.Errorf("%d characters at width %d: %q", n, width, part)
				}
			}
			if squeeze(got) != squeeze(line) {
				t.Errorf("at width %d %q became %q", width, line, got)
			}
		}
	}
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

func TestProseKeepsToItsWidth(t *testing.T) {
	list := table.Table{Header: []string{"experiment", "column", "what"}, Prose: true, Rows: [][]string{
		{"refund", "hand-check-unmarked@t3", strings.Repeat("the hand check without its marker ", 4)}, {"refund", "naive", "short"},
	}}
	for _, width := range []int{40, 60, 80, 120} {
		text := list.Terminal(width)
		for line := range strings.Lines(text) {
			if n := len(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d characters at width %d: %q", n, width, line)
			}
		}
		if strings.Count(text, "marker") != 4 {
			t.Errorf("at width %d something is lost:\n%s", width, text)
		}
	}
}
