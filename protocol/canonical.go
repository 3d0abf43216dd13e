package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// Bounds on a payload or a premise's value: bytes, and levels of nesting.
const (
	maxJSON  = 1 << 20
	maxDepth = 1000
)

// Canonical returns the canonical form (RFC 8785) of one JSON object. Equal
// values have equal forms: key order, white space and the spelling of a number
// (20, 20.0, 2e1, and 0 for -0) don't count (I5).
//
// What two readers could take for different things is refused as a *JSONError:
// duplicate keys, keys of one object that differ only in case, numbers that a
// double can't hold exactly or that lie beyond 2^53, bad UTF-8, lone surrogates,
// trailing text, anything but an object, more than a mebibyte, more than a
// thousand levels of nesting.
func Canonical(object []byte) ([]byte, error) {
	form, err := canonicalValue(object)
	if err == nil && form[0] != '{' {
		return nil, &JSONError{"an object is needed at the top"}
	}
	return form, err
}

// canonicalValue is Canonical for any JSON value.
func canonicalValue(data []byte) ([]byte, error) {
	if len(data) > maxJSON {
		return nil, &JSONError{fmt.Sprintf("%d bytes are more than %d", len(data), maxJSON)}
	}
	if !utf8.Valid(data) {
		return nil, &JSONError{"it is not UTF-8"}
	}
	if depth(data) > maxDepth {
		return nil, &JSONError{fmt.Sprintf("it is nested more than %d levels deep", maxDepth)}
	}
	form, err := jcs.Transform(data)
	if err != nil {
		return nil, &JSONError{err.Error()}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := unambiguous(d); err != nil {
		return nil, err
	}
	return form, nil
}

// depth is how deep the brackets of a text are nested, those within its strings
// left out.
func depth(data []byte) (deepest int) {
	open, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			open++
			deepest = max(deepest, open)
		case c == '}' || c == ']':
			open--
		}
	}
	return deepest
}

// unambiguous refuses what the canonical form would merge without a word.
func unambiguous(d *json.Decoder) error {
	type level struct {
		object bool
		key    bool // the next string is a key
		seen   map[string]string
	}
	var stack []level
	for {
		t, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return &JSONError{err.Error()}
		}
		top := len(stack) - 1
		if top >= 0 && stack[top].object && stack[top].key {
			if key, ok := t.(string); ok {
				folded := foldCase(key)
				if twin, dup := stack[top].seen[folded]; dup {
					return &JSONError{fmt.Sprintf("keys %q and %q differ only in case", twin, key)}
				}
				stack[top].seen[folded], stack[top].key = key, false
				continue
			}
		}
		switch t := t.(type) {
		case json.Delim:
			switch t {
			case '{':
				stack = append(stack, level{object: true, key: true, seen: map[string]string{}})
				continue
			case '[':
				stack = append(stack, level{})
				continue
			}
			stack = stack[:top]
		case json.Number:
			if err := exact(t.String()); err != nil {
				return err
			}
		}
		if top = len(stack) - 1; top >= 0 {
			stack[top].key = stack[top].object
		}
	}
}

// foldCase maps strings that strings.EqualFold calls equal to one string.
func foldCase(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}

// exact refuses a number that becomes another one in a double.
func exact(literal string) error {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return &JSONError{"number " + literal + " is out of range"}
	}
	if math.Abs(f) > 1<<53 {
		return &JSONError{"number " + literal + " lies beyond 2^53; write it as a string"}
	}
	if decimal(literal) != decimal(strconv.FormatFloat(f, 'e', -1, 64)) {
		return &JSONError{"number " + literal + " can't be kept exactly; write it as a string"}
	}
	return nil
}

// decimal brings a JSON number into one spelling per value: sign, digits without
// zeros at either end, exponent.
func decimal(literal string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(literal), "e")
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	if exponent == "" {
		exponent = "0"
	}
	power, err := strconv.Atoi(exponent)
	if err != nil {
		return literal // an exponent that no double reaches
	}
	short := strings.TrimRight(digits, "0")
	power += len(digits) - len(short) - len(fraction)
	sign := ""
	if negative {
		sign = "-"
	}
	return fmt.Sprintf("%s%se%d", sign, short, power)
}

// sameJSON reports whether two canonical values are one. Nothing is the same as
// an absent value, not even another absent value.
func sameJSON(a, b json.RawMessage) bool { return len(a) > 0 && bytes.Equal(a, b) }

// encode writes a journal body as JSON with the bytes of raw values as they are.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
