package experiments_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
)

func ExampleView() {
	e := tiny(except("crash_before_ack/naive", duplicate))
	records, err := experiments.Run(context.Background(), e, experiments.Filter{}, experiments.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(experiments.View(e, records, 80, false))
	// Output:
	// row               naive    gate
	//                            @t1
	// happy_path        $20 ok   $20 ok
	// crash_before_ack  $40 BAD  $20 ok
}

func TestViewWithWords(t *testing.T) {
	e := tiny(except("crash_before_ack/naive", duplicate))
	want := `row               naive             gate@t1
happy_path        COMMITTED $20 ok  COMMITTED $20 ok
crash_before_ack  RETRIED $40 BAD   COMMITTED $20 ok
`
	if got := experiments.View(e, run(t, e), 0, true); got != want {
		t.Errorf("got\n%s", got)
	}
}
