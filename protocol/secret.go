package protocol

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Bounds on secrets: how many fields of one proposal, bytes of a key, and from
// how many bytes on a secret is looked for within other texts. A shorter one is
// found only where it is a whole value.
const (
	maxSecrets = 64
	minKey     = 32
	minWithin  = 6
)

// secretKey is a key that secret fields are digested with. Its id is of the key
// and not the key: it is recorded, and tells one key from another.
type secretKey struct {
	id  string
	key []byte
}

func secretKeys(keys [][]byte) (list []secretKey, err error) {
	for i, key := range keys {
		if len(key) < minKey {
			return nil, fmt.Errorf("protocol: secret key %d has %d bytes; %d are needed, from a random source", i+1, len(key), minKey)
		}
		id := hmac.New(sha256.New, key)
		id.Write([]byte("interlock-bench secret key 1\n"))
		list = append(list, secretKey{hex.EncodeToString(id.Sum(nil)[:8]), bytes.Clone(key)})
	}
	return list, nil
}

// digest stands for the value of a field in everything that is kept. It is of this
// effect and field, so that equal secrets of two effects don't look equal.
func (k *secretKey) digest(effect journal.ID, field string, value json.RawMessage) string {
	h := hmac.New(sha256.New, k.key)
	b := prefixed(make([]byte, 0, 512), "interlock-bench secret 1")
	b = prefixed(b, string(effect[:]))
	b = prefixed(b, field)
	h.Write(prefixed(b, value))
	return "hmac-sha256:" + hex.EncodeToString(h.Sum(nil))
}

// sealed is how the journal keeps the secrets of an effect.
type sealed struct {
	key    string   // id
	fields []string // marked by a decision on it so far, in order
}

// unfitSecrets says what is wrong with the marks of a proposal, whose payload is
// canonical; "" is nothing.
func (p Proposal) unfitSecrets() string {
	if len(p.Secrets) > maxSecrets {
		return fmt.Sprintf("mark more than %d fields", maxSecrets)
	}
	for i, path := range p.Secrets {
		if why := unfitName(path); why != "" {
			return "mark a field whose name " + why
		}
		if slices.ContainsFunc(p.Secrets[:i], func(o string) bool { return overlap(path, o) }) {
			return fmt.Sprintf("mark %q twice", path)
		}
		value, ok := field(p.Effect.Payload, path)
		if !ok {
			return fmt.Sprintf("mark %q, which the payload doesn't have", path)
		}
		if c := value[0]; c != '"' && c != '-' && (c < '0' || c > '9') {
			return fmt.Sprintf("mark %q, which is no string and no number; mark the fields in it", path)
		}
	}
	return ""
}

// overlap reports whether one field is the other, or within it.
func overlap(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

// keepsSecret reports whether a field of the payload can't be judged by.
func (p Proposal) keepsSecret(field string) bool {
	return slices.ContainsFunc(p.Secrets, func(s string) bool { return overlap(s, field) })
}

// seal puts digests in the place of the secrets of w's proposal, those included
// that were marked before, and keeps the payload for sending it.
func (g *Gate) seal(w *work, e *effect) error {
	var before *sealed
	if e != nil {
		before = e.sealed
	}
	if len(w.given.Secrets) == 0 && before == nil {
		return nil
	}
	w.proposal = w.given
	p := &w.proposal
	p.Secrets = slices.Clone(p.Secrets)
	id := ""
	if before != nil {
		id = before.key
		for _, path := range before.fields {
			if _, ok := field(p.Effect.Payload, path); ok && !slices.Contains(p.Secrets, path) {
				p.Secrets = append(p.Secrets, path)
			}
		}
	}
	slices.Sort(p.Secrets)
	if w.key = g.secretKey(id); w.key == nil {
		return &SecretError{w.id, needsKey(id)}
	}
	w.clear, w.secrets = p.Effect.Payload, nil
	for _, path := range p.Secrets {
		value, ok := field(w.clear, path)
		if !ok {
			continue
		}
		digest := w.key.digest(w.id, path, value)
		w.secrets = append(w.secrets, secret{path, digest, value})
		quoted, _ := json.Marshal(digest)
		p.Effect.Payload = replace(p.Effect.Payload, strings.Split(path, "."), quoted)
	}
	w.digest = p.digest()
	kept, err := encode(p)
	if err != nil {
		return err
	}
	for _, s := range w.secrets {
		if slices.ContainsFunc(s.words(), func(word string) bool { return strings.Contains(string(kept), word) }) || s.repeated(p) {
			return &ProposalError{Field: "the proposal", Why: fmt.Sprintf("repeats the secret of %q in another place", s.field)}
		}
	}
	return nil
}

// secretKey finds a key by its id; "" is the key for new effects. Nil is none.
func (g *Gate) secretKey(id string) *secretKey {
	for i := range g.keys {
		if k := &g.keys[i]; id == "" || k.id == id {
			return k
		}
	}
	return nil
}

func needsKey(id string) string {
	if id == "" {
		return "can't be digested: the gate has no secret key; give it one in its Config"
	}
	return fmt.Sprintf("were digested with key %s, which this gate doesn't have; give it that key in its Config", id)
}

// reopen is seal for recovery: nothing but the digests is at hand, unless the
// caller brought the payload.
func (g *Gate) reopen(w *work, e *effect, clear json.RawMessage) error {
	if len(w.proposal.Secrets) == 0 {
		return nil
	}
	if w.key = g.secretKey(e.sealed.key); w.key == nil {
		return &SecretError{w.id, needsKey(e.sealed.key)}
	}
	w.clear = clear
	for _, path := range w.proposal.Secrets {
		digest, _ := field(w.proposal.Effect.Payload, path)
		value, _ := field(clear, path)
		w.secrets = append(w.secrets, secret{path, stringOf(digest), value})
	}
	return nil
}

// replace puts a value in the place of a member of a canonical object.
func replace(object json.RawMessage, path []string, value json.RawMessage) json.RawMessage {
	old, ok := member(object, path[0])
	if !ok {
		return object
	}
	if len(path) > 1 {
		value = replace(old, path[1:], value)
	}
	at := cap(object) - cap(old) // where old, a part of object, begins
	return slices.Concat(object[:at], value, object[at+len(old):])
}

// secret is one marked field.
type secret struct {
	field  string
	digest string
	value  json.RawMessage // nil where nobody brought it
}

// words are the spellings of the secret that are looked for within a text.
func (s secret) words() []string {
	if len(s.value) == 0 {
		return nil
	}
	quoted := string(s.value)
	plain := quoted
	if s.value[0] == '"' {
		quoted = string(s.value[1 : len(s.value)-1])
		plain = stringOf(s.value)
	}
	if len(plain) < minWithin {
		return nil
	}
	if plain == quoted {
		return []string{plain}
	}
	return []string{quoted, plain}
}

// repeated reports whether another value of the payload, or one that a premise
// is about, is the secret.
func (s secret) repeated(p *Proposal) bool {
	values := []json.RawMessage{p.Effect.Payload}
	for _, m := range p.Premises {
		values = append(values, m.Seen, m.Want)
	}
	return slices.ContainsFunc(values, s.in)
}

// in reports whether the secret is the canonical value, or one within it.
func (s secret) in(value json.RawMessage) bool {
	var members map[string]json.RawMessage
	var elements []json.RawMessage
	switch {
	case len(value) == 0:
		return false
	case json.Unmarshal(value, &members) == nil:
		for _, v := range members {
			if s.in(v) {
				return true
			}
		}
		return false
	case json.Unmarshal(value, &elements) == nil:
		return slices.ContainsFunc(elements, s.in)
	}
	return len(s.value) > 0 && plainOf(value) == plainOf(s.value)
}

// plainOf is a string without its quotes, or a number as it is spelled.
func plainOf(value json.RawMessage) string {
	if value[0] == '"' {
		return stringOf(value)
	}
	return string(value)
}

// withheld reports whether the request can't be sent: the payload was not
// brought, and the journal doesn't have it.
func (w *work) withheld() bool { return len(w.secrets) > 0 && w.clear == nil }

// hush takes secrets out of somebody else's words. A short secret, or one that is
// not at hand, isn't found.
func (w *work) hush(text string) string {
	for _, s := range w.secrets {
		for _, word := range s.words() {
			text = strings.ReplaceAll(text, word, s.digest)
		}
	}
	return text
}

// hushed is err without secrets. One that holds some is only its text then.
func (w *work) hushed(err error) error {
	if err == nil || len(w.secrets) == 0 {
		return err
	}
	if text := w.hush(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// hushJSON takes secrets out of what a target returned: each value that is one,
// whether it is at hand or not, and each text that holds one.
func (w *work) hushJSON(raw json.RawMessage) json.RawMessage {
	if len(w.secrets) == 0 || len(raw) == 0 {
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil || d.More() {
		return json.RawMessage(w.hush(string(raw)))
	}
	value, found := w.hushValue(value)
	if !found {
		return raw
	}
	quiet, err := encode(value)
	if err != nil {
		return nil
	}
	return quiet
}

func (w *work) hushValue(value any) (quiet any, found bool) {
	switch v := value.(type) {
	case string, json.Number:
		return w.hushLeaf(v)
	case []any:
		for i := range v {
			one, hit := w.hushValue(v[i])
			v[i], found = one, found || hit
		}
	case map[string]any:
		for key, inner := range v {
			one, hit := w.hushValue(inner)
			name := w.hush(key)
			if hit || name != key {
				delete(v, key)
				v[name], found = one, true
			}
		}
	}
	return value, found
}

func (w *work) hushLeaf(leaf any) (quiet any, found bool) {
	raw, err := json.Marshal(leaf)
	if err != nil {
		return leaf, false
	}
	if form, err := canonicalValue(raw); err == nil {
		for _, s := range w.secrets {
			if w.key.digest(w.id, s.field, form) == s.digest {
				return s.digest, true
			}
		}
	}
	text := fmt.Sprint(leaf)
	if hushed := w.hush(text); hushed != text {
		return hushed, true
	}
	return leaf, false
}

// seal notes how a decision keeps its secrets. A later decision adds to what is
// marked and takes nothing away.
func (e *effect) seal(b proposedBody) {
	if len(b.Proposal.Secrets) == 0 {
		return
	}
	s := &sealed{key: b.SecretKey, fields: slices.Clone(b.Proposal.Secrets)}
	if e.sealed != nil {
		s.fields = append(s.fields, e.sealed.fields...)
		slices.Sort(s.fields)
		s.fields = slices.Compact(s.fields)
	}
	e.sealed = s
}
