package story

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// pointWords say what it means that a point was passed. A detail is a step that
// a story leaves out unless it tells every one.
var pointWords = map[trace.Point]struct {
	words  string
	detail bool
}{
	"started": {"runs, and has opened nothing yet", true},
	"decided": {"the agent has read the facts and decided", false},
	"told":    {"the caller has its answer", true},

	sim.BeforeSend:    {"connected; the first byte leaves next", false},
	sim.ReplyReceived: {"has read the whole answer", false},
	sim.RequestRead:   {"a whole request was read", true},
	sim.Accepted:      {"accepted: it will be applied, though its client may die", true},
	sim.Applied:       {"the money has moved; no answer was written", true},
	sim.AnswerReady:   {"the answer is ready; nothing of it was written", true},

	journal.Locked:         {"has the journal to itself", true},
	journal.Verified:       {"has read and verified the journal", true},
	journal.SegmentStarted: {"begins a new segment of the journal", true},
	journal.SuspectsMarked: {"SUSPECT written and synced: what a cut may hide is known", false},
	journal.TailCut:        {"cuts a damaged tail off the journal", false},
	journal.Written:        {"the record is written, and not synced yet", true},
	journal.Synced:         {"the record is synced: it survives a crash", false},

	protocol.PointOpened:         {"has read its journal and the authority log", false},
	protocol.PointClaimed:        {"claims the effect: nobody else sends or recovers it", true},
	protocol.PointProposed:       {"PROPOSED written and synced: the decision is recorded", false},
	protocol.PointTakenOver:      {"TAKEN_OVER written and synced: the holder before is not known to be dead", false},
	protocol.PointAuthorityRead:  {"the lease is live", false},
	protocol.PointConnected:      {"connected; no byte was written", false},
	protocol.PointPremisesRead:   {"has read every premise again, behind the connection", false},
	protocol.PointLeaseShared:    {"a revocation waits for this dispatch from here on", true},
	protocol.PointRechecked:      {"every guard holds inside the atomic step", true},
	protocol.PointIntentDurable:  {"AUTHORIZED and DISPATCHED written and synced: only now may a byte leave", false},
	protocol.PointLastChecked:    {"the last look before the first byte holds", true},
	protocol.PointSent:           {"the send has returned; what came of it is in memory only", false},
	protocol.PointLookedUp:       {"has asked the service what landed", false},
	protocol.PointFenceDurable:   {"FENCED written and synced; the service knows nothing of it", false},
	protocol.PointFenced:         {"the service acknowledges the fence", false},
	protocol.PointOutcomeDurable: {"the outcome is written and synced", false},
	protocol.PointResolved:       {"a person's word is written and synced", false},
	protocol.PointReleased:       {"gives the claim up", true},
	protocol.PointWaited:         {"has waited until something may be settled", false},

	protocol.PointGranted:     {"the grant is written and synced", false},
	protocol.PointRevoked:     {"the revocation is written and synced", false},
	protocol.PointSealed:      {"a later record proves the revocation", true},
	protocol.PointDrained:     {"no dispatch that saw the lease alive is under way", false},
	protocol.PointJournalRead: {"has read which effects are in doubt", true},
}

// words says what an event is, and whether it is a detail. An event that can't
// be read, or of a kind that this package doesn't know, is said as it stands.
func words(e history.Event) (text string, detail bool) {
	switch e.Kind {
	case history.Declared:
		return with(e, declaration), false
	case history.Started:
		return "starts", false
	case history.Passed:
		known, ok := pointWords[e.Point]
		if !ok {
			return "passes " + string(e.Point), false
		}
		return known.words, known.detail
	case history.Modelled:
		return with(e, func(d history.Decision) string {
			return fmt.Sprintf("answers: refund %s for %s", experiments.Money(d.Amount), d.Request)
		}), false
	case history.Told:
		return with(e, answer), false
	case history.Finished:
		return "says that it is done", true
	case history.Killed:
		return "killed by SIGKILL", false
	case history.Exited:
		return with(e, func(x history.Exit) string {
			if x.Code == 0 {
				return "ended by itself"
			}
			return fmt.Sprintf("ended by itself with code %d: %s", x.Code, x.Text)
		}), false
	case history.Hung:
		return "did not come to an end, and was ended", false
	case history.Acted:
		return with(e, func(a history.Action) string { return "now: " + a.Action }), false
	case history.Granted:
		return with(e, grant), false
	case history.Revoking:
		return with(e, func(l history.Lease) string { return "begins to revoke lease " + l.Lease }), false
	case history.Revoked:
		return with(e, func(l history.Lease) string {
			return fmt.Sprintf("lease %s is revoked; told of %s in doubt under it", l.Lease, count(l.Doubt, "effect"))
		}), false
	case history.Changed:
		return with(e, order), false
	case history.Forgot:
		return "forgets its idempotency keys", false
	case history.Requested:
		return with(e, func(r history.Request) string {
			s := fmt.Sprintf("reads request %d: refund %s on order %s for %s", r.Number, experiments.Money(r.Amount), r.Order, r.Case)
			if r.Key != "" {
				s += ", key " + short(r.Key)
			}
			return s
		}), false
	case history.Applied:
		return with(e, func(l history.Landing) string {
			by := "a person's hand"
			if l.Request != 0 {
				by = fmt.Sprintf("request %d", l.Request)
			}
			return fmt.Sprintf("%s leaves for %s by %s: refund %s", experiments.Money(l.Amount), l.Case, by, l.ID)
		}), false
	case history.Discarded:
		return with(e, func(r history.Request) string {
			return fmt.Sprintf("discards request %d: it is too old to be applied", r.Number)
		}), false
	case history.Answered:
		return with(e, func(r history.Reply) string {
			s := fmt.Sprintf("answers request %d: %d %s", r.Request, r.Code, r.Word)
			if r.Withheld {
				s += ", which never leaves"
			}
			return s
		}), false
	case history.Asked:
		return with(e, func(q history.Question) string {
			return "asked for " + short(q.What) + ": " + cents.ReplaceAllStringFunc(q.Answer, dollars)
		}), false
	case history.Unfired:
		return "planned, and it never happened: " + strings.Trim(string(e.Body), `"`), false
	}
	return asItStands(e), false
}

// cents are the amounts in a service's answer.
var cents = regexp.MustCompile(`\b(paid|refunded|others|landed \S+) [0-9]{1,15}\b`)

func dollars(s string) string {
	i := strings.LastIndexByte(s, ' ') + 1
	n, err := strconv.ParseInt(s[i:], 10, 64)
	if err != nil {
		return s
	}
	return s[:i] + experiments.Money(n)
}

// with says an event by its body.
func with[T any](e history.Event, say func(T) string) string {
	body, err := history.Body[T](e)
	if err != nil {
		return asItStands(e)
	}
	return say(body)
}

func asItStands(e history.Event) string {
	return strings.TrimSpace(strings.Join([]string{string(e.Kind), short(e.Subject), string(e.Body)}, " "))
}

func declaration(d history.Declaration) string {
	var approved []string
	for _, a := range d.Approved {
		approved = append(approved, fmt.Sprintf("one refund of %s on order %s for %s, by %s under lease %s",
			experiments.Money(a.Amount), a.Order, a.Case, a.Agent, a.Lease))
	}
	return "approved: " + strings.Join(approved, "; ") + ". " + service(d.Service)
}

func service(s history.Service) string {
	var can []string
	if s.DedupWindow > 0 {
		can = append(can, "absorbs a repeated key for "+since(s.DedupWindow))
	}
	if s.Lookup {
		can = append(can, "can be asked what landed")
	} else {
		can = append(can, "can't be asked what landed")
	}
	if s.LandingBound > 0 {
		can = append(can, "applies a request within "+since(s.LandingBound)+" or never")
	} else {
		can = append(can, "doesn't say how late a request may land")
	}
	if s.Conditional {
		can = append(can, "checks premises itself")
	}
	if s.Fencing {
		can = append(can, "can fence")
	}
	return "The service " + strings.Join(can, ", ")
}

func grant(l history.Lease) string {
	s := "grants lease " + l.Lease
	if l.Holder != "" {
		s += " to " + l.Holder
	}
	if l.Max > 0 {
		s += ", at most " + experiments.Money(l.Max)
	}
	if l.Case != "" {
		s += " for " + l.Case
	}
	if l.Expires > 0 {
		s += ", for " + since(l.Expires)
	}
	if l.Replaces != "" {
		s += ", in place of " + l.Replaces
	}
	return s
}

func order(o history.Order) string {
	eligible := "eligible"
	if !o.Eligible {
		eligible = "not eligible"
	}
	return fmt.Sprintf("order %s is %s, %s paid, %s refunded", o.Order, eligible, experiments.Money(o.Paid), experiments.Money(o.Refunded))
}

func answer(a history.Answer) string {
	claim := map[history.Says]string{
		history.SaysDone:    "it happened",
		history.SaysNot:     "it did not happen",
		history.SaysUnknown: "nobody can tell",
		history.SaysPending: "not settled yet",
	}[a.Says]
	return fmt.Sprintf("tells its caller, in %s: %s of %s (%s)", a.During, a.Status, experiments.Money(a.Amount), claim)
}

// short cuts an effect id, which nobody reads to its end.
func short(s string) string {
	const shown = 12
	if len(s) < 64 {
		return s
	}
	return s[:shown] + "…"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// since prints a duration without the zeros behind it, in days where there are
// several and nothing else.
func since(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day && d%day == 0 {
		return fmt.Sprintf("%d days", d/day)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
