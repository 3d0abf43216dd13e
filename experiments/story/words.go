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
	"github.com/interlock-bench/interlock-bench/targets/stripe/emulator"
)

// Detail is how much a story tells.
type Detail int

const (
	Main  Detail = iota // what decides the outcome
	Most                // and the steps towards it
	Every               // every event
)

// pointWords say what it means that a point was passed, and from which detail on
// it is told.
var pointWords = map[trace.Point]struct {
	words string
	from  Detail
}{
	"started": {"runs, and has opened nothing yet", Every},
	"decided": {"the agent has read the facts and decided", Most},
	"told":    {"the caller has its answer", Every},

	emulator.RequestRead: {"a whole request was read", Every},
	emulator.Accepted:    {"accepted: its endpoint runs, and its key is in use", Every},
	emulator.Applied:     {"the refund exists; no answer was written", Every},
	emulator.AnswerReady: {"the answer is ready; nothing of it was written", Every},

	sim.BeforeSend:    {"connected; the first byte leaves next", Most},
	sim.ReplyReceived: {"has read the whole answer", Most},
	sim.RequestRead:   {"a whole request was read", Every},
	sim.Accepted:      {"accepted: it will be applied, though its client may die", Every},
	sim.Applied:       {"the money has moved; no answer was written", Every},
	sim.AnswerReady:   {"the answer is ready; nothing of it was written", Every},

	journal.Locked:         {"has the journal to itself", Every},
	journal.Verified:       {"has read and verified the journal", Every},
	journal.SegmentStarted: {"begins a new segment of the journal", Every},
	journal.SuspectsMarked: {"SUSPECT written and synced: what a cut may hide is known", Most},
	journal.TailCut:        {"cuts a damaged tail off the journal", Most},
	journal.Written:        {"the record is written, and not synced yet", Every},
	journal.Synced:         {"the record is synced: it survives a crash", Most},

	protocol.PointOpened:         {"has read its journal and the authority log", Most},
	protocol.PointClaimed:        {"claims the effect: nobody else sends or recovers it", Every},
	protocol.PointProposed:       {"PROPOSED written and synced: the decision is recorded", Main},
	protocol.PointTakenOver:      {"TAKEN_OVER written and synced: the holder before is not known to be dead", Most},
	protocol.PointAuthorityRead:  {"the lease is live", Most},
	protocol.PointConnected:      {"connected; no byte was written", Most},
	protocol.PointPremisesRead:   {"has read every premise again, behind the connection", Most},
	protocol.PointLeaseShared:    {"a revocation waits for this dispatch from here on", Every},
	protocol.PointRechecked:      {"every guard holds inside the atomic step", Every},
	protocol.PointIntentDurable:  {"AUTHORIZED and DISPATCHED written and synced: only now may a byte leave", Main},
	protocol.PointLastChecked:    {"the last look before the first byte holds", Every},
	protocol.PointSent:           {"the send has returned; what came of it is in memory only", Most},
	protocol.PointLookedUp:       {"has asked the service what landed", Most},
	protocol.PointFenceDurable:   {"FENCED written and synced; the service knows nothing of it", Most},
	protocol.PointFenced:         {"the service acknowledges the fence", Main},
	protocol.PointOutcomeDurable: {"the outcome is written and synced", Main},
	protocol.PointEscalated:      {"ESCALATED written and synced: a person is asked", Main},
	protocol.PointDecided:        {"a person's decision is written and synced", Main},
	protocol.PointResolved:       {"a person's word is written and synced", Most},
	protocol.PointReleased:       {"gives the claim up", Every},
	protocol.PointWaited:         {"has waited until something may be settled", Most},

	protocol.PointGranted:     {"the grant is written and synced", Most},
	protocol.PointRevoked:     {"the revocation is written and synced", Most},
	protocol.PointRuled:       {"a group or a rule is written and synced", Most},
	protocol.PointSealed:      {"a later record proves the revocation", Every},
	protocol.PointDrained:     {"no dispatch that saw the lease alive is under way", Most},
	protocol.PointJournalRead: {"has read which effects are in doubt", Every},
}

// words says what an event is, and from which detail on it is told. An event that
// can't be read, or of a kind that this package doesn't know, is said as it
// stands.
func words(e history.Event) (text string, from Detail) {
	switch e.Kind {
	case history.Declared:
		return with(e, declaration), Most
	case history.Started:
		return "starts", Main
	case history.Passed:
		known, ok := pointWords[e.Point]
		if !ok {
			return "passes " + string(e.Point), Most
		}
		return known.words, known.from
	case history.Modelled:
		return with(e, func(d history.Decision) string {
			return fmt.Sprintf("answers: refund %s for %s", experiments.Money(d.Amount), d.Request)
		}), Main
	case history.Told:
		return with(e, answer), Main
	case history.Finished:
		return "says that it is done", Every
	case history.Killed:
		return "killed by SIGKILL", Main
	case history.Stopped:
		return "stopped by SIGSTOP; another process has the stage", Main
	case history.Continued:
		return "goes on, by SIGCONT", Main
	case history.Exited:
		return with(e, func(x history.Exit) string {
			if x.Code == 0 {
				return "ended by itself"
			}
			return fmt.Sprintf("ended by itself with code %d: %s", x.Code, x.Text)
		}), Main
	case history.Hung:
		return "did not come to an end, and was ended", Main
	case history.Acted:
		return with(e, func(a history.Action) string { return "now: " + a.Action }), Main
	case history.Granted:
		return with(e, grant), Most
	case history.Revoking:
		return with(e, func(l history.Lease) string { return "begins to revoke lease " + l.Lease }), Main
	case history.Revoked:
		return with(e, func(l history.Lease) string {
			return fmt.Sprintf("lease %s is revoked; told of %s in doubt under it", l.Lease, count(l.Doubt, "effect"))
		}), Main
	case history.Changed:
		return with(e, order), Most
	case history.Forgot:
		return "forgets its idempotency keys", Main
	case history.Requested:
		return with(e, func(r history.Request) string {
			s := fmt.Sprintf("reads request %d: refund %s on order %s for %s", r.Number, experiments.Money(r.Amount), r.Order, r.Case)
			if r.Key != "" {
				s += ", key " + short(r.Key)
			}
			return s
		}), Main
	case history.Applied:
		return with(e, func(l history.Landing) string {
			by := "a person's hand"
			if l.Request != 0 {
				by = fmt.Sprintf("request %d", l.Request)
			}
			return fmt.Sprintf("%s leaves for %s by %s: refund %s", experiments.Money(l.Amount), l.Case, by, l.ID)
		}), Main
	case history.Discarded:
		return with(e, func(r history.Request) string {
			return fmt.Sprintf("discards request %d: it is too old to be applied", r.Number)
		}), Main
	case history.Answered:
		return with(e, func(r history.Reply) string {
			s := fmt.Sprintf("answers request %d: %d %s", r.Request, r.Code, r.Word)
			if r.Withheld {
				s += ", which never leaves"
			}
			return s
		}), Main
	case history.Asked:
		from := Most
		if isLookup(e) {
			from = Main
		}
		return with(e, func(q history.Question) string {
			return "asked for " + short(q.What) + ": " + cents.ReplaceAllStringFunc(q.Answer, dollars)
		}), from
	case history.Unfired:
		return "planned, and it never happened: " + strings.Trim(string(e.Body), `"`), Main
	}
	return asItStands(e), Main
}

// isLookup says whether e asks what landed, not for facts.
func isLookup(e history.Event) bool {
	q, err := history.Body[history.Question](e)
	return err == nil && strings.HasPrefix(q.What, "refunds of")
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
		can = append(can, "absorbs a repeated key for "+Since(s.DedupWindow))
	}
	if s.Lookup {
		can = append(can, "can be asked what landed")
	} else {
		can = append(can, "can't be asked what landed")
	}
	if s.LandingBound > 0 {
		can = append(can, "applies a request within "+Since(s.LandingBound)+" or never")
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
		s += ", for " + Since(l.Expires)
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

// Since prints a duration without the zeros behind it, in days where there are
// several and nothing else.
func Since(d time.Duration) string {
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
