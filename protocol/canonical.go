package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	switch string(data) {
	case "true", "false", "null":
		return bytes.Clone(data), nil
	}
	if len(data) > maxJSON {
		return nil, &JSONError{fmt.Sprintf("%d bytes are more than %d", len(data), maxJSON)}
	}
	if !utf8.Valid(data) {
		return nil, &JSONError{"it is not UTF-8"}
	}
	if depth(data) > maxDepth {
		return nil, &JSONError{fmt.Sprintf("it is nested more than %d levels deep", maxDepth)}
	}
	if !json.Valid(data) {
		return nil, &JSONError{"it is not one JSON value"}
	}
	form := bytes.Clone(data)
	if !plain(data) {
		var err error
		if form, err = jcs.Transform(data); err != nil {
			return nil, &JSONError{err.Error()}
		}
	}
	if err := unambiguous(data); err != nil {
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

// unambiguous refuses what the canonical form would merge without a word. The
// text is one JSON value.
func unambiguous(data []byte) error {
	type level struct {
		object bool
		key    bool // the next string is a key
		seen   map[string]string
	}
	stack := make([]level, 1, 8) // the value itself stands in none
	for i := 0; i < len(data); i++ {
		top := &stack[len(stack)-1]
		switch c := data[i]; c {
		case '{':
			stack = append(stack, level{object: true, key: true})
		case '[':
			stack = append(stack, level{})
		case '}', ']':
			stack = stack[:len(stack)-1]
		case ',':
			top.key = top.object
		case '"':
			end := endOfString(data, i)
			if top.key {
				key := stringOf(data[i:end])
				folded := foldCase(key)
				if twin, dup := top.seen[folded]; dup {
					return &JSONError{fmt.Sprintf("keys %q and %q differ only in case", twin, key)}
				}
				if top.seen == nil {
					top.seen = map[string]string{}
				}
				top.seen[folded], top.key = key, false
			}
			i = end - 1
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			end := i + 1
			for end < len(data) && strings.IndexByte("+-.0123456789Ee", data[end]) >= 0 {
				end++
			}
			if err := exact(string(data[i:end])); err != nil {
				return err
			}
			i = end - 1
		}
	}
	return nil
}

// plain reports whether a JSON value is its own canonical form, and plainly so:
// no space between tokens, printable ASCII without escapes, whole numbers of at
// most fifteen digits, keys in order. Most payloads that a program writes are.
func plain(data []byte) bool {
	type level struct {
		object, key bool
		last        []byte // key
	}
	stack := make([]level, 1, 8)
	for i := 0; i < len(data); i++ {
		top := &stack[len(stack)-1]
		switch c := data[i]; c {
		case '{':
			stack = append(stack, level{object: true, key: true})
		case '[':
			stack = append(stack, level{})
		case '}', ']':
			stack = stack[:len(stack)-1]
		case ',':
			top.key = top.object
		case '"':
			begin := i + 1
			for i = begin; data[i] != '"'; i++ {
				if data[i] < ' ' || data[i] > '~' || data[i] == '\\' {
					return false
				}
			}
			if key := data[begin:i]; top.key {
				if top.last != nil && bytes.Compare(top.last, key) >= 0 {
					return false
				}
				top.last, top.key = data[begin:i:i], false
			}
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			begin := i
			for i+1 < len(data) && '0' <= data[i+1] && data[i+1] <= '9' {
				i++
			}
			if i-begin >= 15 || string(data[begin:i+1]) == "-0" {
				return false
			}
		case ' ', '\t', '\n', '\r', '.', 'E', '+':
			return false
		case 'e':
			if i > 0 && '0' <= data[i-1] && data[i-1] <= '9' {
				return false
			}
		}
	}
	return true
}

// endOfString is the offset behind the string that begins at i.
func endOfString(data []byte, i int) int {
	for i++; data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// stringOf is the string that a valid literal spells.
func stringOf(literal []byte) string {
	if bytes.IndexByte(literal, '\\') < 0 {
		return string(literal[1 : len(literal)-1])
	}
	var s string
	json.Unmarshal(literal, &s) // it is valid
	return s
}

// member finds a member of a canonical object by its name. A value of another
// kind has none.
func member(object json.RawMessage, name string) (json.RawMessage, bool) {
	if len(object) == 0 || object[0] != '{' {
		return nil, false
	}
	for i := 1; object[i] == '"'; i++ {
		colon := endOfString(object, i)
		end := endOfValue(object, colon+1)
		if stringOf(object[i:colon]) == name {
			return object[colon+1 : end], true
		}
		i = end
		if object[i] == '}' {
			break
		}
	}
	return nil, false
}

// endOfValue is the offset behind the value of a member that begins at i.
func endOfValue(object []byte, i int) int {
	for open := 0; ; i++ {
		switch object[i] {
		case '"':
			i = endOfString(object, i) - 1
		case '{', '[':
			open++
		case '}', ']':
			if open == 0 {
				return i
			}
			open--
		case ',':
			if open == 0 {
				return i
			}
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
	if len(literal) <= 15 && !strings.ContainsAny(literal, ".eE") {
		return nil // an integer below 10^15
	}
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
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.Reset()
	if err := e.json.Encode(v); err != nil {
		return nil, err
	}
	return bytes.Clone(bytes.TrimRight(e.Bytes(), "\n")), nil
}

// errText is returned for what would be read back as something else.
var errText = errors.New("holds text that isn't UTF-8; spell it anew")

// signable is the text of v that a signature is over, behind a heading. A note
// that isn't UTF-8 has none: it would be read back as another one, and its
// signature would never hold again.
func signable[T any](heading string, v T) ([]byte, error) {
	text, err := encode(v)
	if err != nil {
		return nil, err
	}
	var back T
	if err := json.Unmarshal(text, &back); err != nil {
		return nil, err
	}
	again, err := encode(back)
	if err == nil && !bytes.Equal(text, again) {
		err = errText
	}
	return slices.Concat([]byte(heading+"\n"), text), err
}

// encoder is one that is used again.
type encoder struct {
	bytes.Buffer
	json *json.Encoder
}

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.json = json.NewEncoder(&e.Buffer)
	e.json.SetEscapeHTML(false)
	return e
}}
