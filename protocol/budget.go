package protocol

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Budget is a cap on what several effects take together, whatever requests,
// agents and leases they belong to (I9). A principal sets it; a Lease may require
// it, and a Proposal may name it.
//
// The amount of an effect is read from its payload, exactly. A payload without
// the field, or with anything but a number of 0 or more in it, takes nothing and
// is refused.
type Budget struct {
	Name      string   `json:"name"`
	Principal string   `json:"principal"`
	Holders   []string `json:"holders"` // agents that may draw on it
	Field     string   `json:"field"`   // of the payload, in whose unit Cap is: a top-level name, or names joined with dots
	Cap       string   `json:"cap"`     // decimal number, inclusive
	Period    Period   `json:"period,omitempty"`
}

// Period is how long a cap is for, by the calendar in UTC and the journal's time.
type Period string

const (
	Ever    Period = ""
	Hourly  Period = "hour"
	Daily   Period = "day"
	Weekly  Period = "week" // from Monday
	Monthly Period = "month"
)

// start is when the period that t lies in began; the zero time for Ever.
func (p Period) start(t time.Time) time.Time {
	t = t.UTC()
	year, month, day := t.Date()
	switch p {
	case Hourly:
		return t.Truncate(time.Hour)
	case Daily:
		return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	case Weekly:
		return time.Date(year, month, day-int(t.Weekday()+6)%7, 0, 0, 0, 0, time.UTC)
	case Monthly:
		return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Time{}
}

// Draw is what one effect takes of a budget, and what it was judged by.
type Draw struct {
	Budget  string      `json:"budget"`
	Granted journal.Seq `json:"granted"` // entry of the authority log that sets the budget
	Amount  string      `json:"amount"`
	Period  Period      `json:"period,omitempty"`
	From    time.Time   `json:"from,omitzero"` // beginning of the period it counts in
	Cap     string      `json:"cap,omitempty"`
	Others  string      `json:"others,omitempty"` // what other effects held of it in that period
}

// Holding is an effect that holds what another one needs.
type Holding struct {
	Request string     `json:"request"`
	Effect  journal.ID `json:"effect"`
	Symbol  string     `json:"symbol,omitempty"`
	Amount  string     `json:"amount,omitempty"` // of a budget
}

// unfit says what keeps b from being a budget; "" is nothing.
func (b Budget) unfit() string {
	for _, f := range []struct{ what, why string }{
		{"its name", unfitName(b.Name)}, {"its principal", unfitName(b.Principal)},
	} {
		if f.why != "" {
			return "can't be set: " + f.what + " " + f.why
		}
	}
	for _, holder := range b.Holders {
		if why := unfitName(holder); why != "" {
			return "can't be set: the name of a holder " + why
		}
	}
	most, ok := amount(b.Cap)
	switch {
	case len(b.Holders) == 0:
		return "names nobody who may draw on it"
	case slices.Contains(b.Holders, b.Principal):
		return "can't be set by one who draws on it"
	case b.Field == "":
		return "doesn't say which field of the payload the amount is in"
	case !ok || most.Sign() < 0:
		return fmt.Sprintf("has a cap of %q, which is no decimal number of 0 or more", b.Cap)
	case !slices.Contains([]Period{Ever, Hourly, Daily, Weekly, Monthly}, b.Period):
		return fmt.Sprintf("has the period %q, which is none of hour, day, week and month", b.Period)
	}
	return ""
}

// budgeted is a budget as one entry of the authority log sets it.
type budgeted struct {
	Budget
	seq    journal.Seq
	before *budgeted // what it changed
}

// admitBudget returns nil where b may be set now, else a *BudgetError. What is
// counted in one unit and period can't be counted in another from then on.
func (a *authority) admitBudget(b Budget) error {
	old := a.budgets[b.Name]
	switch {
	case old == nil:
	case old.Principal != b.Principal:
		return &BudgetError{b.Name, "was set by another principal"}
	case old.Field != b.Field || old.Period != b.Period:
		return &BudgetError{b.Name, "counts another field or period; only its cap and its holders can be changed, so set one of another name"}
	}
	return nil
}

// first is the entry that the budget began with.
func (b *budgeted) first() *budgeted {
	for b.before != nil {
		b = b.before
	}
	return b
}

// same reports whether b already is what o would set.
func (b *budgeted) same(o Budget) bool {
	return b.Principal == o.Principal && b.Field == o.Field && b.Period == o.Period &&
		b.Cap == o.Cap && slices.Equal(b.Holders, o.Holders)
}

// counting are the entries that a budget is judged by: the last that a later
// record proves durable, and every change after it, so that a change that takes
// away counts as soon as it can be read. None means that there is no such budget.
func (a *authority) counting(name string, proven journal.Seq) (list []*budgeted) {
	for b := a.budgets[name]; b != nil; b = b.before {
		list = append(list, b)
		if b.seq <= proven {
			return list
		}
	}
	return nil
}

// drawOn says what the proposal takes of a budget, or why it can take nothing.
func drawOn(p Proposal, counting []*budgeted) (d *Draw, take *big.Rat, why string) {
	if len(counting) == 0 {
		return nil, nil, "is not granted"
	}
	for _, b := range counting {
		if !slices.Contains(b.Holders, p.Agent) {
			return nil, nil, fmt.Sprintf("is not for %q", p.Agent)
		}
	}
	return drawOf(p, counting[len(counting)-1])
}

// drawOf reads the amount from the payload.
func drawOf(p Proposal, b *budgeted) (d *Draw, take *big.Rat, why string) {
	if p.keepsSecret(b.Field) {
		return nil, nil, fmt.Sprintf("reads the amount from %q, which the proposal keeps secret", b.Field)
	}
	value, ok := field(p.Effect.Payload, b.Field)
	if !ok {
		return nil, nil, fmt.Sprintf("reads the amount from %q, which the payload doesn't have", b.Field)
	}
	take, ok = amount(string(value))
	if !ok {
		return nil, nil, fmt.Sprintf("reads the amount from %q, which is no number in the payload", b.Field)
	}
	if take.Sign() < 0 {
		return nil, nil, fmt.Sprintf("reads the amount from %q, which is negative in the payload", b.Field)
	}
	text := decimalOf(take)
	if _, ok := amount(text); !ok {
		return nil, nil, fmt.Sprintf("reads the amount from %q, which has more than 40 digits before or behind the point", b.Field)
	}
	return &Draw{Budget: b.Name, Granted: b.seq, Amount: text, Period: b.Period}, take, ""
}

// decimalOf writes a number that was read as a decimal.
func decimalOf(r *big.Rat) string {
	digits, _ := r.FloatPrec()
	return r.FloatString(digits)
}

// overBudget stops what a budget has no room for beside the effects that hold it
// (I9). An effect doesn't stand in its own way. Where the same request goes out
// again it counts in the period that it counted in before; a new attempt behind
// an absence counts in the present one.
func overBudget(f *facts) *stop {
	f.draw = nil
	if f.budget == "" {
		return nil
	}
	refuse := func(why string, held []Holding) *stop {
		return &stop{
			status: Status{Final: Refused, Reason: OverBudget}, held: held,
			why: fmt.Sprintf("budget %q %s", f.budget, why),
		}
	}
	counting := f.authority.counting(f.budget, f.head.Proven)
	f.drawLost()
	d, take, why := drawOn(f.proposal, counting)
	if why != "" {
		return refuse(why, nil)
	}
	d.From = d.Period.start(later(f.now, f.state.logged))
	own := f.effect.drawn(d.Budget)
	if own != nil && f.mode == resend {
		d.From = own.from
	}
	held := f.state.budgets.held(d.Budget, d.From, own)
	for _, b := range counting {
		most, _ := amount(b.Cap)
		if new(big.Rat).Add(held, take).Cmp(most) > 0 {
			names, others := f.state.budgets.holders(d.Budget, d.From, f.id)
			return refuse(fmt.Sprintf("is %s%s and %s of it is held%s; %s more doesn't fit",
				b.Cap, b.Period.words(), decimalOf(held), byWhom(names, others), d.Amount), names)
		}
		d.Cap = b.Cap
	}
	d.Others = decimalOf(held)
	f.draw = d
	return nil
}

func (p Period) words() string {
	if p == Ever {
		return ""
	}
	return " a " + string(p)
}

// byWhom names holders in a sentence.
func byWhom(names []Holding, others int) (text string) {
	for i, h := range names {
		text += ", "
		if i == 0 {
			text = " by "
		}
		text += fmt.Sprintf("%s (%s)", h.Request, h.Amount)
	}
	if others > 0 {
		text += fmt.Sprintf(" and %d others", others)
	}
	return text
}

// maxNamed is how many holders a refusal names.
const maxNamed = 8

// budgets is what effects hold of the budgets, by name.
type budgets map[string]*spending

// spending is what the effects of one budget hold, by the beginning of the
// period. Of the past only what may still land is kept.
type spending struct {
	newest  time.Time
	periods map[time.Time]*tally
}

// tally is what is held in one period.
type tally struct {
	sum    big.Rat
	open   map[journal.ID]*drawn // may still land
	landed int
	latest []Holding // of those that landed, the last few
}

// drawn is what one unsettled effect holds.
type drawn struct {
	budget  string
	from    time.Time
	amount  *big.Rat
	seq     journal.Seq // of the effect's first entry
	holding Holding
}

// drawn is what e holds of a budget, nil where that is nothing.
func (e *effect) drawn(budget string) *drawn {
	if e == nil || e.draw == nil || e.draw.budget != budget {
		return nil
	}
	return e.draw
}

// held is what is held of a budget in a period, own left out.
func (s budgets) held(budget string, from time.Time, own *drawn) *big.Rat {
	sum := new(big.Rat)
	if of := s[budget]; of != nil && of.periods[from] != nil {
		sum.Set(&of.periods[from].sum)
	}
	if own != nil && own.from.Equal(from) {
		sum.Sub(sum, own.amount)
	}
	return sum
}

// holders names those that hold a budget in a period: first those that may still
// land, oldest first, then those that landed, latest first. others counts those
// that are not named.
func (s budgets) holders(budget string, from time.Time, but journal.ID) (names []Holding, others int) {
	of := s[budget]
	if of == nil || of.periods[from] == nil {
		return nil, 0
	}
	t := of.periods[from]
	var open []*drawn
	for id, d := range t.open {
		if id != but {
			open = append(open, d)
		}
	}
	slices.SortFunc(open, func(a, b *drawn) int { return int(a.seq) - int(b.seq) })
	for _, d := range open {
		names = append(names, d.holding)
	}
	for _, h := range slices.Backward(t.latest) {
		names = append(names, h)
	}
	others = len(open) + t.landed
	names = names[:min(len(names), maxNamed)]
	return names, others - len(names)
}

// take lets e hold what d says, in place of what it holds.
func (s budgets) take(e *effect, d *Draw, request string) error {
	take, ok := amount(d.Amount)
	if !ok || take.Sign() < 0 {
		return errors.New("the amount drawn is no number")
	}
	from := d.From.UTC()
	if own := e.drawn(d.Budget); own != nil && own.from.Equal(from) && own.amount.Cmp(take) == 0 {
		return nil
	}
	s.giveBack(e)
	of := s[d.Budget]
	if of == nil {
		of = &spending{newest: from, periods: map[time.Time]*tally{}}
		s[d.Budget] = of
	}
	t := of.periods[from]
	if t == nil {
		t = &tally{open: map[journal.ID]*drawn{}}
		of.periods[from] = t
	}
	t.sum.Add(&t.sum, take)
	e.draw = &drawn{d.Budget, from, take, e.seqs[0], Holding{Request: request, Effect: e.id, Amount: d.Amount}}
	t.open[e.id] = e.draw
	if of.newest.Before(from) {
		of.newest = from
		for past := range of.periods {
			of.forget(past)
		}
	}
	return nil
}

// forget drops a past period in which nothing may land any more.
func (of *spending) forget(from time.Time) {
	if t := of.periods[from]; from.Before(of.newest) && len(t.open) == 0 {
		delete(of.periods, from)
	}
}

// giveBack ends what e holds of a budget: nothing of it landed or may land.
func (s budgets) giveBack(e *effect) {
	if e.draw == nil {
		return
	}
	of := s[e.draw.budget]
	t := of.periods[e.draw.from]
	t.sum.Sub(&t.sum, e.draw.amount)
	delete(t.open, e.id)
	of.forget(e.draw.from)
	e.draw = nil
}

// spend makes what e holds of a budget final: it landed.
func (s budgets) spend(e *effect) {
	if e.draw == nil {
		return
	}
	of := s[e.draw.budget]
	t := of.periods[e.draw.from]
	delete(t.open, e.id)
	t.landed++
	if t.latest = append(t.latest, e.draw.holding); len(t.latest) > maxNamed {
		t.latest = slices.Delete(t.latest, 0, 1)
	}
	of.forget(e.draw.from)
	e.draw = nil
}

// undrawn is a suspect effect. What its lost attempt drew is not in the journal;
// its decision and its lease tell, when somebody next asks a budget for room. When
// the attempt was made is not known: it counts in the period that it was found
// lost in.
type undrawn struct {
	*effect
	decision Proposal
	found    time.Time
}

// draws forgets that e is undrawn: it drew by an entry, or it drew nothing.
func (s *state) draws(e *effect) {
	if len(s.undrawn) > 0 {
		s.undrawn = slices.DeleteFunc(s.undrawn, func(u undrawn) bool { return u.effect == e })
	}
}

// drawLost lets suspect effects hold what they may have drawn.
func (f *facts) drawLost() {
	for _, u := range f.state.undrawn {
		name := u.decision.Budget
		if g := f.authority.current(u.decision.Lease, f.head.Proven); g != nil {
			name = cmp.Or(name, g.Budget)
		}
		counting := f.authority.counting(name, f.head.Proven)
		if len(counting) == 0 {
			continue
		}
		d, _, why := drawOf(u.decision, counting[len(counting)-1])
		if why != "" {
			continue // it can't have been dispatched
		}
		d.From = d.Period.start(u.found)
		if f.state.budgets.take(u.effect, d, u.decision.Request) == nil && u.final == Committed {
			f.state.budgets.spend(u.effect)
		}
	}
	f.state.undrawn = nil
}
