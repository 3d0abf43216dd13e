package protocol_test

import "testing"

func TestSmoke(t *testing.T) {
	r := newRig(t, tier1())
	r.want(r.submit(r.proposal("case-1", 20)), "COMMITTED", 1)
	r.want(r.submit(r.proposal("case-1", 20)), "DUPLICATE_IGNORED", 1)
	r.want(r.submit(r.proposal("case-1", 30)), "REFUSED:conflicting_payload", 1)
	t.Log(r.submit(r.proposal("case-1", 20)).Receipt)
	for _, tier := range []struct {
		name string
		want string
		n    int
	}{{"1", "COMMITTED_BY_RETRY", 1}, {"2", "REAPPLIED_AFTER_QUERY", 1}, {"3", "AMBIGUOUS", 0}} {
		caps := tier1()
		switch tier.name {
		case "2":
			caps = tier2()
		case "3":
			caps = tier3()
		}
		r := newRig(t, caps)
		r.dies("gate/intent-durable", func() { r.submit(r.proposal("case-1", 20)) })
		r.want(r.recover(true), tier.want, tier.n)
	}
}
