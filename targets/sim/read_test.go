package sim

import (
	"encoding/json"
	"testing"
)

// What is read of a body is what writing it again gives.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"amount":2000,"case":"case-4471","currency":"usd","order":"881"}`), `{"eligible":true}`)
	f.Add([]byte(`{"amount":20.5,"order":"881"}`), "")
	f.Add([]byte(`{"order":"881"} trailing`), "null")
	f.Fuzz(func(t *testing.T, body []byte, premises string) {
		var r refund
		if err := r.read(body, premises); err != nil {
			return
		}
		again, err := json.Marshal(map[string]any{"order": r.Order, "case": r.Case, "amount": r.Amount})
		if err != nil {
			t.Fatal(err)
		}
		var s refund
		if err := s.read(again, ""); err != nil || s.Request != r.Request {
			t.Errorf("%s gave %+v, and that, written again, %+v, %v", body, r.Request, s.Request, err)
		}
	})
}
