package stripe_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76/webhook"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/clock"
	"github.com/interlock-bench/interlock-bench/targets/stripe"
	"github.com/interlock-bench/interlock-bench/targets/stripe/emulator"
)

// at is a clock that stands.
type at struct {
	clock.Clock
	now time.Time
}

func (a at) Now() time.Time { return a.now }

// Webhooks in any order and twice lead to the same settlement as none: they say
// when to read, and a read decides. So no late, early, repeated or misplaced one
// overwrites another (B22, B24, B31), and what is read is the refund of this
// payment and no other (B27, B45).
func TestSettlement(t *testing.T) {
	const seed = 4471
	for _, tc := range []struct {
		why  string
		do   func(*emulator.Server)
		want string
	}{
		{"it arrived", func(*emulator.Server) {}, "20.00 arrived"},
		{"it failed at once", func(e *emulator.Server) { e.Next(emulator.Declined, 1) }, "0.00 arrived, 20.00 back in the balance"},
		{"it was charged back after the commit", nil, "20.00 arrived, 100.00 charged back"},
	} {
		e := emulate(t, emulator.Options{})
		_, client := serve(t, e, time.Minute)
		target := stripe.Target{Client: client}
		if tc.do != nil {
			tc.do(e)
		}
		if got := send(t, target, request("case-1")); got.Outcome != protocol.Done {
			t.Fatalf("%s: %+v", tc.why, got)
		}
		if tc.do == nil {
			e.Chargeback(intent)
		}
		pulled, err := target.Settle(t.Context(), request("case-1"))
		if err != nil || pulled.Money() != tc.want {
			t.Errorf("%s: pulled %s, %v, want %s", tc.why, pulled.Money(), err, tc.want)
		}
		hooks := stripe.Webhooks{Secret: "whsec_emulated"}
		twice := append(e.Deliveries(), e.Deliveries()...)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(twice), func(i, j int) { twice[i], twice[j] = twice[j], twice[i] })
		fresh := 0
		for _, d := range twice {
			n, err := hooks.Accept(d.Payload, d.Header)
			if err != nil {
				t.Fatalf("%s: %s (seed %d): %v", tc.why, d.Type, seed, err)
			}
			if !n.Again {
				fresh++
			}
			if n.PaymentIntent != intent {
				t.Errorf("%s: %s tells of %q", tc.why, n.Type, n.PaymentIntent)
			}
			told, err := client.Settle(t.Context(), n.PaymentIntent, request("case-1").Effect.String())
			if err != nil || told.Money() != tc.want {
				t.Errorf("%s: after %s: %s, %v", tc.why, n.Type, told.Money(), err)
			}
		}
		if fresh != len(twice)/2 {
			t.Errorf("%s: %d of %d notices were new", tc.why, fresh, len(twice))
		}
	}
}

// Only what the endpoint's secret signed lately is a notice, and a stamp from the
// future is none.
func TestWebhooks(t *testing.T) {
	e := emulate(t, emulator.Options{Secret: "whsec_ours"})
	d := e.Deliveries()[0]
	now := time.Now()
	signed := func(payload string, stamp time.Time, secret string) string {
		return webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: []byte(payload), Secret: secret, Timestamp: stamp}).Header
	}
	body := string(d.Payload)
	old := signed(body, now.Add(-time.Hour), "whsec_ours")
	for _, tc := range []struct {
		why, payload, header string
		ok                   bool
	}{
		{"as delivered", body, d.Header, true},
		{"beside another secret's, while that is rolled", body, d.Header + ",v1=" + strings.Repeat("0", 64), true},
		{"of another secret", body, signed(body, now, "whsec_theirs"), false},
		{"another body", strings.Replace(body, "10000", "99999", 1), d.Header, false},
		{"an hour old", body, old, false},
		{"an hour ahead", body, signed(body, now.Add(time.Hour), "whsec_ours"), false},
		{"old, with a fresh stamp in front", body, fmt.Sprintf("t=%d,%s", now.Unix(), old), false},
		{"no signature", body, "", false},
		{"a live event", strings.Replace(body, `"livemode":false,"pending`, `"livemode":true,"pending`, 1), "", false},
		{"another API version", strings.Replace(body, emulator.Version, "2020-03-02", 1), "", false},
		{"no event", `{"api_version":"2023-10-16"}`, "", false},
	} {
		header := tc.header
		if header == "" && tc.why != "no signature" {
			header = signed(tc.payload, now, "whsec_ours")
		}
		hooks := stripe.Webhooks{Secret: "whsec_ours", Clock: at{clock.System, now}}
		_, err := hooks.Accept([]byte(tc.payload), header)
		if tc.ok != (err == nil) || err != nil && !errors.Is(err, stripe.ErrWebhook) {
			t.Errorf("%s: %v", tc.why, err)
		}
	}
}

// FuzzWebhook gives the endpoint what no secret of ours signed.
func FuzzWebhook(f *testing.F) {
	f.Add([]byte(`{"api_version":"2023-10-16"}`), "t=1,v1=00")
	f.Add([]byte(`{`), "t=,v1=,=")
	f.Fuzz(func(t *testing.T, payload []byte, header string) {
		hooks := stripe.Webhooks{Secret: "whsec_nobody_knows"}
		if n, err := hooks.Accept(payload, header); err == nil {
			t.Errorf("taken: %+v", n)
		}
	})
}

// A refund at Stripe is a target like any other.
func ExampleTarget() {
	client, err := stripe.Open(stripe.Options{Key: "sk_test_yours"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var target protocol.Target = stripe.Target{Client: client, Bound: 30 * time.Minute, Assumed: "the payments team"}
	c := target.Capabilities()
	fmt.Println("tier", c.Tier(), "bound", c.LandingBound, "assumed by", c.BoundAssumed)
	_, err = stripe.Open(stripe.Options{Key: "sk_live_yours"})
	fmt.Println(errors.Is(err, stripe.ErrLiveKey))
	_, err = target.Lookup(context.Background(), protocol.Request{})
	fmt.Println(err != nil)
	// Output:
	// tier 1 bound 30m0s assumed by the payments team
	// true
	// true
}
