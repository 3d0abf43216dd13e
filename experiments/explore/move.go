package explore

import (
	"fmt"
	"strconv"
	"strings"
)

// way is how something goes on.
type way byte

const (
	on     way = iota // without a fault
	submit            // a process starts with its callers, not with Recover

	// A request to do something.
	ackLost  // it lands, the answer is lost
	lost     // it never arrives
	late     // it is on its way when the client gives up
	rejected // a no for good
	busy     // not executed for now
	unsent   // no byte left
	stored   // it fails, and its key replays the failure

	// Other calls to the service.
	failed // an error, nothing done
	stale  // an answer as old as may be

	// The journal's disk.
	eio     // EIO, nothing done
	eioHalf // half of it is written
	eioLies // the cache shows what the disk doesn't hold

	// Deaths.
	kill
	power // what is not synced is lost
	torn  // some of it
	exits // it ends by itself, after an error

	// The world.
	advance // an agent moves
	revoke  // a principal begins to revoke, or moves
	change  // a fact is no longer what it was
	hand    // a person does what the effect would
	mind    // the callers ask for another amount
	day     // a day passes while no process lives
	stall   // the process stands still for two seconds
	arrive  // a request that was on its way arrives
)

var wayNames = []string{
	"on", "submit", "ack-lost", "lost", "late", "rejected", "busy", "unsent", "stored", "failed", "stale",
	"eio", "eio-half", "eio-lies", "kill", "power", "torn", "exits", "agent", "revoke", "change", "hand", "mind", "day", "stall", "arrive",
}

func (w way) String() string { return wayNames[w] }

// move is one choice of the scheduler.
type move struct {
	way way
	arg byte // which agent, effect, flight or torn state
	how way  // advance: how the agent goes on
}

// String is the move's word, "kill", "change:1", "agent:0:ack-lost".
func (m move) String() string {
	s := m.way.String()
	if m.way == advance || m.arg > 0 {
		s += ":" + strconv.Itoa(int(m.arg))
	}
	if m.how != on {
		s += ":" + m.how.String()
	}
	return s
}

// dies reports whether the process dies in m.
func (m move) dies() bool { return m.way == kill || m.way == power || m.way == torn }

// Schedule is what a scheduler chose where it didn't take the first move there
// was.
type Schedule []Choice

// Choice is the n-th decision of an execution, counted from 1.
type Choice struct {
	At   int
	Move move
}

// String is N.MOVE joined with commas, "17.kill,30.agent:0:lost"; "none" for the
// execution without a choice.
func (s Schedule) String() string {
	if len(s) == 0 {
		return "none"
	}
	var parts []string
	for _, c := range s {
		parts = append(parts, fmt.Sprintf("%d.%s", c.At, c.Move))
	}
	return strings.Join(parts, ",")
}

// ParseSchedule reads what String prints.
func ParseSchedule(text string) (Schedule, error) {
	var s Schedule
	if text == "none" {
		return s, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		number, word, ok := strings.Cut(part, ".")
		n, err := strconv.Atoi(number)
		m, known := parseMove(word)
		if !ok || err != nil || n < 1 || !known {
			return nil, fmt.Errorf("explore: expected a choice as NUMBER.MOVE, like 17.kill, found %q", part)
		}
		s = append(s, Choice{n, m})
	}
	return s, nil
}

func parseMove(word string) (m move, ok bool) {
	parts := strings.Split(word, ":")
	if m.way, ok = wayOf(parts[0]); !ok {
		return m, false
	}
	parts = parts[1:]
	if len(parts) > 0 {
		if n, err := strconv.ParseUint(parts[0], 10, 8); err == nil {
			m.arg, parts = byte(n), parts[1:]
		}
	}
	if len(parts) > 0 {
		if m.how, ok = wayOf(parts[0]); !ok {
			return m, false
		}
		parts = parts[1:]
	}
	return m, len(parts) == 0
}

func wayOf(word string) (way, bool) {
	for i, name := range wayNames {
		if name == word {
			return way(i), true
		}
	}
	return 0, false
}
