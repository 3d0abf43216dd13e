package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Bounds of what Decode reads.
const (
	MaxLine   = 1 << 20 // bytes in one event
	MaxEvents = 1 << 20 // events in one history
)

// Classes of failure; errors.Is finds them in what this package returns.
var (
	ErrMalformed = errors.New("history: not a history")
	ErrBody      = errors.New("history: body is not what the kind says")
)

// Encode writes h as JSON lines, one event each. Equal histories give equal
// bytes. A nil error says that w took all of them; ErrMalformed, that an event
// is longer than Decode would read.
func Encode(w io.Writer, h History) error {
	out := bufio.NewWriter(w)
	for _, e := range h {
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("history: event %d: %w", e.N, err)
		}
		if len(line) >= MaxLine {
			return fmt.Errorf("%w: event %d has %d bytes", ErrMalformed, e.N, len(line))
		}
		out.Write(line) // the error stays with out
		out.WriteByte('\n')
	}
	return out.Flush()
}

// Decode reads what Encode wrote. Anything else is ErrMalformed and names the
// line: events are numbered from 1 without gaps, time never runs back, and no
// field is unknown. It reads no more than MaxEvents lines of MaxLine bytes.
func Decode(r io.Reader) (History, error) {
	var h History
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxLine)
	for lines.Scan() {
		bad := func(why string) error {
			return fmt.Errorf("%w: line %d %s", ErrMalformed, len(h)+1, why)
		}
		if len(h) == MaxEvents {
			return nil, bad("is one too many")
		}
		var e Event
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil {
			return nil, bad("is no event: " + err.Error())
		}
		switch {
		case d.InputOffset() != int64(len(lines.Bytes())):
			return nil, bad("goes on behind its event")
		case e.N != len(h)+1:
			return nil, bad(fmt.Sprintf("has number %d", e.N))
		case e.Kind == "" || e.Who == "":
			return nil, bad("says not who did what")
		case e.At < 0 || len(h) > 0 && e.At < h[len(h)-1].At:
			return nil, bad("goes back in time")
		}
		h = append(h, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: line %d: %w", ErrMalformed, len(h)+1, err)
	}
	return h, nil
}

// Body is e's body as a T, the type that e's kind names. Another shape, a field
// that T doesn't have, and no body at all are ErrBody.
func Body[T any](e Event) (T, error) {
	var body T
	d := json.NewDecoder(bytes.NewReader(e.Body))
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil {
		return body, fmt.Errorf("%w: event %d, %s as %T: %w", ErrBody, e.N, e.Kind, body, err)
	}
	return body, nil
}
