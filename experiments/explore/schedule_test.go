package explore

import "testing"

func TestScheduleParses(t *testing.T) {
	s := Schedule{
		{3, move{way: kill}}, {9, move{advance, 1, ackLost}}, {12, move{way: advance, how: submit}},
		{17, move{way: torn, arg: 2}}, {40, move{way: change}}, {41, move{way: change, arg: 1}},
	}
	back, err := ParseSchedule(s.String())
	if err != nil || back.String() != s.String() || len(back) != len(s) {
		t.Fatalf("%s reads as %s, %v", s, back, err)
	}
	for i := range s {
		if back[i] != s[i] {
			t.Errorf("%v reads as %v", s[i], back[i])
		}
	}
	for _, bad := range []string{"", "kill", "0.kill", "3.nothing", "3.kill:x", "3.kill:0:on:on"} {
		if _, err := ParseSchedule(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	if s, err := ParseSchedule("none"); err != nil || len(s) != 0 {
		t.Errorf("none reads as %v, %v", s, err)
	}
}
