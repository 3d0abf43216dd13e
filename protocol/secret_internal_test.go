package protocol

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// FuzzReplace: the member that is replaced has the new value, every other keeps
// its own, and the object stays canonical.
func FuzzReplace(f *testing.F) {
	f.Add([]byte(`{"a":1,"to":{"iban":"DE02","x":[1,{"iban":2}]},"z":null}`), "to.iban")
	f.Add([]byte(`{"a\"b":"}","c":{"a":"{"}}`), "c.a")
	f.Add([]byte(`{"":{"":"x"}}`), ".")
	f.Fuzz(func(t *testing.T, in []byte, path string) {
		object, err := Canonical(in)
		if err != nil {
			return
		}
		old, ok := field(object, path)
		if !ok {
			return
		}
		before := string(object)
		value := json.RawMessage(`"hmac-sha256:00"`)
		got := replace(object, strings.Split(path, "."), value)
		if string(object) != before {
			t.Fatalf("%s was changed in place", before)
		}
		if again, err := Canonical(got); err != nil || string(again) != string(got) {
			t.Fatalf("%s is not canonical: %v", got, err)
		}
		if have, ok := field(got, path); !ok || string(have) != string(value) {
			t.Fatalf("%q is %s in %s", path, have, got)
		}
		if back := replace(got, strings.Split(path, "."), old); string(back) != before {
			t.Fatalf("%s with %q put back is %s", before, path, back)
		}
	})
}

// FuzzHush: whatever a target returns, no value of it is the secret afterwards,
// and what isn't JSON doesn't hold it.
func FuzzHush(f *testing.F) {
	f.Add([]byte(`{"to":"DE02 1203","memo":["to DE02 1203",{"DE02 1203":1}]}`), "DE02 1203")
	f.Add([]byte(`DE02 1203 <html>`), "DE02 1203")
	f.Add([]byte(`[123456789,"123456789"]`), "123456789")
	f.Fuzz(func(t *testing.T, in []byte, text string) {
		quoted, err := json.Marshal(text)
		if err != nil {
			return
		}
		value, err := canonicalValue(quoted)
		if err != nil || len(stringOf(value)) < minWithin || strings.Contains("hmac-sha256:", stringOf(value)) {
			return
		}
		k := &secretKey{key: make([]byte, minKey)}
		w := &work{key: k, id: journal.ID{1}}
		w.secrets = []secret{{"to", k.digest(w.id, "to", value), value}}
		digest := w.secrets[0].digest
		if strings.Contains(digest, stringOf(value)) {
			return
		}
		quiet := w.hushJSON(in)
		if strings.Contains(strings.ReplaceAll(string(quiet), digest, "\x00"), string(value[1:len(value)-1])) {
			t.Fatalf("%q is still in %q", text, quiet)
		}
		if json.Valid(in) && len(quiet) > 0 && !json.Valid(quiet) {
			t.Fatalf("%s became %s", in, quiet)
		}
	})
}
