package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Recorder writes one history. It is safe for concurrent use: events get their
// numbers in the order in which Record is entered.
type Recorder struct {
	mono func() time.Duration

	mu     sync.Mutex
	events History
}

// NewRecorder starts an empty history whose events are stamped with mono, the
// virtual monotonic time since the trial began. mono must not call the recorder.
func NewRecorder(mono func() time.Duration) *Recorder { return &Recorder{mono: mono} }

// Record appends e with body as its body, fills in N and At, and returns N. A
// nil body is none. A body that is no JSON value is a fault of the program and
// panics.
func (r *Recorder) Record(e Event, body any) int {
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			panic(fmt.Errorf("history: body of %s: %w", e.Kind, err))
		}
		e.Body = text
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e.N, e.At = len(r.events)+1, r.mono()
	r.events = append(r.events, e)
	return e.N
}

// History is a copy of what has been recorded so far.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}
