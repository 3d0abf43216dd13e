package protocol

import (
	"fmt"
	"slices"
	"strings"
)

// sentence is what a status means to whoever waits for the effect.
type sentence struct {
	happened func(Receipt) string
	retry    string // whether trying again may help
	decides  string // who decides what comes next; "" where nothing is left to decide
}

// sentences has a line for every reason, and for every state without one. They are
// made of journal entries alone and never of a value in the payload, so that they
// may be shown to a model, printed in a log or sent by mail.
var sentences = map[Status]sentence{
	{Final: Committed}:  {says("it was done"), "a retry does nothing more", ""},
	{Final: Ambiguous}:  {says("it was sent, and nobody can tell whether it landed"), "a retry sends nothing", "a person settles it after a look at the service"},
	{Final: InFlight}:   {says("it may be on its way"), "a retry later finds out what became of it, and sends nothing twice", "recovery decides"},
	{Final: NotYetSent}: {unsent, "a retry may help", "recovery sends it, if everything still holds then"},

	{Final: Unresolved}:                   {says("its recovery failed for now"), "a retry may help once what stood in the way is mended", "whoever runs the service looks at the error"},
	{Final: Unresolved, Reason: Mismatch}: {says("the service holds something else under its id"), "a retry sends nothing", "a person settles it"},

	{Final: Refused, Reason: ConflictingPayload}: {says("this request was decided with another payload, which stands"), "a retry doesn't help", "a person may accept the new payload as a correction, once the first is known not to have landed"},
	{Final: Refused, Reason: Closed}:             {closedAs, "a retry doesn't help", "only a new revision, accepted by a person, is ever sent"},
	{Final: Refused, Reason: TargetRejected}:     {says("the service said no, for good"), "a retry doesn't help", "a person may correct it"},
	{Final: Refused, Reason: DuplicateSymbol}:    {holders("another effect defines a symbol of it"), "a retry helps once that one is settled as not landed", "whoever decides on that one"},
	{Final: Refused, Reason: OverBudget}:         {holders("its budget has no room for it"), "a retry helps once the budget has room, or in the next period", "the principal who set the budget decides"},
	{Final: Refused, Reason: LeaseDead}:          {why("the authority"), "a retry helps only under authority that covers it", "the principal who grants it decides"},
	{Final: Refused, Reason: LeaseAtRecovery}:    {why("nothing landed before a crash, and the authority"), "a retry helps only under authority that covers it", "the principal who grants it decides"},
	{Final: Refused, Reason: FalseAtDecision}:    {moved("was false already when it was decided"), "a retry of the same decision doesn't help", "the agent decides anew, under new authority, or a person corrects it"},
	{Final: Refused, Reason: StalePremise}:       {moved("changed between the decision and the send"), "a retry helps only if it is again what it was", "a person may correct it on the facts of now"},
	{Final: Refused, Reason: StaleAtRecovery}:    {moved("changed during the outage, and nothing had landed"), "a retry helps only if it is again what it was", "a person may correct it on the facts of now"},
	{Final: Refused, Reason: ResolvedNotLanded}:  {says("a person found that it didn't land, and closed it"), "a retry doesn't help", "a person may accept a correction of it"},

	{Final: Refused, Reason: AwaitingDecision}:   {waits, "a retry asks nobody again", "that group decides"},
	{Final: Refused, Reason: RejectedByPerson}:   {rejectedBy, "a retry doesn't help", "a person of the same group may accept a correction"},
	{Final: Refused, Reason: Undecided}:          {says("a person had to decide, and nobody on the route did in time"), "a retry asks again", "the groups of the rule decide"},
	{Final: Refused, Reason: ApprovalAtRecovery}: {says("nothing landed before a crash, and the approval didn't count any more"), "a retry asks again", "the groups of the rule decide"},
}

func says(what string) func(Receipt) string { return func(Receipt) string { return what } }

// why is a refusal's own reason; those of leases name no value of a payload.
func why(subject string) func(Receipt) string {
	return func(r Receipt) string {
		if r.Why == "" {
			return subject + " doesn't cover it"
		}
		return subject + " didn't hold: " + r.Why
	}
}

// moved names the premises that aren't what they have to be.
func moved(how string) func(Receipt) string {
	return func(r Receipt) string {
		if len(r.Moved) == 0 {
			return "a fact that it rests on " + how
		}
		return strings.Join(r.Moved, " and ") + " " + how
	}
}

// holders names the requests that hold what this one needed.
func holders(what string) func(Receipt) string {
	return func(r Receipt) string {
		var names []string
		for _, h := range r.Held {
			if !slices.Contains(names, h.Request) {
				names = append(names, h.Request)
			}
		}
		if len(names) == 0 {
			return what
		}
		return what + " (held by " + strings.Join(names, ", ") + ")"
	}
}

func unsent(r Receipt) string {
	if n := len(r.Asked); n > 0 {
		if d := r.Asked[n-1].Decision; d != nil && d.Approve {
			return fmt.Sprintf("it was approved by %s at %s and nothing was sent so far", d.Person, d.At.Format("2006-01-02 15:04 MST"))
		}
	}
	return "it is recorded and nothing was sent"
}

func closedAs(r Receipt) string {
	if r.Corrected == nil {
		return "a person closed it"
	}
	return fmt.Sprintf("it is closed and was corrected as revision %d", r.Revision+1)
}

func waits(r Receipt) string {
	if len(r.Asked) == 0 {
		return "a person has to decide"
	}
	a := r.Asked[len(r.Asked)-1]
	s := fmt.Sprintf("group %q is asked by rule %q", a.Group, a.Rule)
	if len(a.Changed) > 0 {
		s += ", because " + strings.Join(a.Changed, " and ") + " changed"
	}
	if !a.Deadline.IsZero() {
		s += fmt.Sprintf(", until %s", a.Deadline.Format("2006-01-02 15:04 MST"))
	}
	return s
}

func rejectedBy(r Receipt) string {
	for i := range r.Asked {
		if d := r.Asked[len(r.Asked)-1-i].Decision; d != nil && !d.Approve {
			return fmt.Sprintf("it was rejected by %s at %s", d.Person, d.At.Format("2006-01-02 15:04 MST"))
		}
	}
	return "a person rejected it"
}

// Sentence says in one sentence where the effect stands: what happened, whether a
// retry may help, and who decides. It names premises, people and leases, and no
// value of the payload.
func (r Receipt) Sentence() string { return r.sentence(r.Status) }

// Sentence is the receipt's, for the status that this call was answered with.
func (r Result) Sentence() string { return r.Receipt.sentence(r.Status) }

func (r Receipt) sentence(s Status) string {
	if s.Final == Committed {
		if s.Way = Directly; r.Status.Final == Committed && r.Executed.Basis != "" {
			return "It was done (" + printable(r.Executed.Basis) + "); a retry does nothing more."
		}
	}
	if s != r.Status {
		r.Why, r.Moved, r.Held = "", nil, nil // those of another refusal
	}
	x, ok := sentences[s]
	if !ok {
		return string(s.Final) + "."
	}
	text := x.happened(r) + "; " + x.retry
	if x.decides != "" {
		text += "; " + x.decides
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
