package protocol

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Group is a named set of people who decide. A principal records it, and records
// it again when somebody joins or leaves; whoever recorded it first owns the name.
type Group struct {
	Name      string   `json:"name"`
	Principal string   `json:"principal"`
	Members   []Member `json:"members"` // none: nobody can decide what is routed to it
}

// Member is one person.
type Member struct {
	Name string `json:"name"`
	// Key is what the person signs with. Without one, and where Config.People has
	// none either, a decision of theirs is attested only.
	Key ed25519.PublicKey `json:"key,omitempty"`
}

// Rule routes effects to people (I7). Rules are asked in the order in which they
// were first recorded; the first that matches counts.
type Rule struct {
	ID        string   `json:"id"`
	Principal string   `json:"principal"`
	Actions   []string `json:"actions"`
	// Within is what needs nobody: an effect is routed unless its payload is inside
	// every limit. What can't be compared is not inside.
	Within []Limit `json:"within,omitempty"`
	// Facts keep an effect from needing nobody as well: each names a premise and
	// the value it must have. A premise that is missing doesn't have it.
	Facts []Expected `json:"facts,omitempty"`
	// Changed routes an effect whose premise changed to the group, instead of
	// refusing it.
	Changed bool `json:"changed,omitempty"`
	// Route is who is asked, and who next when a deadline passes.
	Route []Step `json:"route"`
	// Left says what would still fit, for people to read; nil says nothing.
	Left *Left `json:"left,omitempty"`
	// Withdrawn ends the rule.
	Withdrawn bool `json:"withdrawn,omitempty"`
}

// Step is one group on a route.
type Step struct {
	Group  string        `json:"group"`
	Within time.Duration `json:"within,omitempty"` // from the escalation to its deadline; 0 sets none
}

// Expected is a fact that a rule looks at.
type Expected struct {
	Premise string          `json:"premise"`
	Whose   string          `json:"whose,omitempty"`
	Equals  json.RawMessage `json:"equals"`
}

// Left is a sum over facts: the field of the payload that it bounds may be Of,
// less what each of Less says.
type Left struct {
	Field string     `json:"field"`
	Of    Expected   `json:"of"`   // Equals is not used
	Less  []Expected `json:"less"` // Equals is not used
}

// versions are all that was recorded under one name, in order.
type versions[T any] struct {
	of   []T
	seqs []journal.Seq
}

// standing are the versions that count: the last one that a later record proves,
// and those after it. What only one of them allows is not allowed.
func (v *versions[T]) standing(proven journal.Seq) []T {
	if v == nil {
		return nil
	}
	for i := len(v.of) - 1; i >= 0; i-- {
		if v.seqs[i] <= proven {
			return v.of[i:]
		}
	}
	return v.of
}

// unproven reports whether the first version is one that damage may still take.
func (v *versions[T]) unproven(proven journal.Seq) bool { return v == nil || v.seqs[0] > proven }

func (v *versions[T]) last() T { return v.of[len(v.of)-1] }

// member finds a person in a group, as of the given head. Who joined counts once a
// later record proves it; who left doesn't count from the moment it can be read.
func (a *authority) member(group, person string, proven journal.Seq) (m Member, ok bool) {
	v := a.groups[group]
	if v.unproven(proven) {
		return m, false
	}
	for _, g := range v.standing(proven) {
		i := slices.IndexFunc(g.Members, func(m Member) bool { return m.Name == person })
		if i < 0 {
			return Member{}, false
		}
		m = g.Members[i]
	}
	return m, true
}

// anyMember finds a person in any group.
func (a *authority) anyMember(person string, proven journal.Seq) (m Member, ok bool) {
	for _, name := range a.groupNames {
		if m, ok = a.member(name, person, proven); ok {
			return m, true
		}
	}
	return m, false
}

// route is the rule that an effect on such facts needs a person by; nil where
// none does. changed says that one of its premises changed.
func (a *authority) route(p Proposal, read []Reading, changed bool, proven journal.Seq) *Rule {
	for _, id := range a.ruleIDs {
		all := a.rules[id].standing(proven)
		for i := range slices.Backward(all) {
			if r := &all[i]; r.routes(p, read, changed) {
				return r
			}
		}
	}
	return nil
}

// routes reports whether the rule sends the effect to a person.
func (r *Rule) routes(p Proposal, read []Reading, changed bool) bool {
	if r.Withdrawn || !slices.Contains(r.Actions, p.Effect.Action) {
		return false
	}
	if changed && r.Changed || len(r.Within) == 0 && len(r.Facts) == 0 {
		return true
	}
	for _, limit := range r.Within {
		if limit.exceeded(p.Effect.Payload) != "" {
			return true
		}
	}
	for _, f := range r.Facts {
		value, ok := f.value(p, read)
		if want, err := canonicalValue(f.Equals); err != nil || !ok || !sameJSON(value, want) {
			return true
		}
	}
	return false
}

// value is what a fact is: as read, or as the agent saw it where nothing is read.
func (x Expected) value(p Proposal, read []Reading) (json.RawMessage, bool) {
	for _, r := range read {
		if r.Name == x.Premise && r.Whose == x.Whose {
			return r.Value, true
		}
	}
	for _, m := range p.Premises {
		if m.Name == x.Premise && m.Whose == x.Whose && m.Holds != ByTarget {
			return m.Seen, len(read) == 0
		}
	}
	return nil, false
}

// most is the greatest amount that would still fit, as a decimal; "" where the
// facts don't say.
func (l *Left) most(p Proposal, read []Reading) string {
	sum := new(big.Rat)
	for i, x := range append([]Expected{l.Of}, l.Less...) {
		value, ok := x.value(p, read)
		n, number := amount(string(value))
		if !ok || !number {
			return ""
		}
		if i > 0 {
			n.Neg(n)
		}
		sum.Add(sum, n)
	}
	if sum.Sign() < 0 {
		sum.SetInt64(0)
	}
	return decimalOf(sum)
}

// nobody is the name that a decision made by a program goes by elsewhere. No
// person has it.
const nobody = "policy"

// unfitPerson says what keeps a name from being a person's; "" is nothing.
func unfitPerson(name string) string {
	if strings.EqualFold(strings.TrimSpace(name), nobody) {
		return "is nobody's name; a person decides"
	}
	return unfitName(name)
}

// unfit says what keeps g from being recorded; "" is nothing.
func (g Group) unfit() string {
	if why := unfitName(g.Name); why != "" {
		return "has a name that " + why
	}
	if why := unfitName(g.Principal); why != "" {
		return "has a principal whose name " + why
	}
	for i, m := range g.Members {
		switch {
		case unfitPerson(m.Name) != "":
			return fmt.Sprintf("has a member whose name, %q, %s", m.Name, unfitPerson(m.Name))
		case slices.ContainsFunc(g.Members[:i], func(o Member) bool { return o.Name == m.Name }):
			return fmt.Sprintf("has %q twice", m.Name)
		case len(m.Key) != 0 && len(m.Key) != ed25519.PublicKeySize:
			return fmt.Sprintf("has a key of %q that is no ed25519 public key", m.Name)
		}
	}
	return ""
}

// unfit says what keeps r from being recorded; "" is nothing.
func (r Rule) unfit() string {
	for _, f := range []struct{ what, why string }{{"an id", unfitName(r.ID)}, {"a principal whose name", unfitName(r.Principal)}} {
		if f.why != "" {
			return "has " + f.what + " that " + f.why
		}
	}
	switch {
	case len(r.Actions) == 0 || slices.Contains(r.Actions, ""):
		return "names no action"
	case len(r.Route) == 0:
		return "routes to no group"
	}
	for _, s := range r.Route {
		if why := unfitName(s.Group); why != "" {
			return "routes to a group whose name " + why
		}
		if s.Within < 0 {
			return fmt.Sprintf("gives group %q a negative time", s.Group)
		}
	}
	for _, l := range r.Within {
		if err := l.valid(); err != nil {
			return fmt.Sprintf("has a limit on %q that can't be kept: %v", l.Field, err)
		}
	}
	for _, f := range r.Facts {
		if _, err := canonicalValue(f.Equals); err != nil || f.Premise == "" {
			return fmt.Sprintf("looks at premise %q, whose value can't be compared", f.Premise)
		}
	}
	if r.Left != nil && (r.Left.Field == "" || r.Left.Of.Premise == "") {
		return "says what is left of no fact, or in no field"
	}
	return ""
}

// SetGroup records who belongs to a group from now on. When it returns nil the
// record is durable and proved by a later one, and no effect is dispatched any
// more on the approval of somebody who isn't in it. A *RuleError means that
// nothing was recorded; ErrUndecided that it was, and that one dispatch may still be
// under way.
func (a *Authority) SetGroup(ctx context.Context, g Group) error {
	why := g.unfit()
	return a.say(ctx, "group", g.Name, why, body{journal.Grouped, groupedBody{g}}, func() string {
		if v := a.state.groups[g.Name]; v != nil && v.of[0].Principal != g.Principal {
			return fmt.Sprintf("belongs to %q", v.of[0].Principal)
		}
		return ""
	})
}

// SetRule records a rule, or the rule's next version under its id. Returns are
// those of SetGroup: once it returned, no effect that the rule routes is
// dispatched without a person's approval.
func (a *Authority) SetRule(ctx context.Context, r Rule) error {
	return a.say(ctx, "rule", r.ID, r.unfit(), body{journal.Ruled, ruledBody{r}}, func() string {
		if v := a.state.rules[r.ID]; v != nil && v.of[0].Principal != r.Principal {
			return fmt.Sprintf("belongs to %q", v.of[0].Principal)
		}
		return ""
	})
}

// say records what a principal says about people, and waits for the dispatches
// that may not have seen it.
func (a *Authority) say(ctx context.Context, what, name, unfit string, b body, owned func() string) error {
	if unfit != "" {
		return &RuleError{what, name, unfit}
	}
	entries, err := records(journal.ID{}, b)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var under []*grant
	entries, err = a.store.Update(context.WithoutCancel(ctx), func(journal.Head) ([]journal.Entry, error) {
		if why := owned(); why != "" {
			return nil, &RuleError{what, name, why}
		}
		for _, g := range a.state.grants {
			if g.replaced == nil && !g.dead() {
				under = append(under, g)
			}
		}
		return entries, nil
	})
	if err != nil {
		return err
	}
	a.trace.At(PointRuled, "")
	if err := a.prove(context.WithoutCancel(ctx), entries[0].Seq); err != nil {
		return err
	}
	if a.drain == nil {
		return nil
	}
	slices.SortFunc(under, func(a, b *grant) int { return int(a.seq) - int(b.seq) })
	for _, g := range under {
		if err := a.drain.Exclude(ctx, g.seq); err != nil {
			return fmt.Errorf("%w: %s %q is recorded and counts; record it again to wait for the dispatch of %s under lease %q: %w", ErrUndecided, what, name, g.Holder, g.ID, err)
		}
	}
	a.trace.At(PointDrained, "")
	return nil
}

// people folds what principals say about groups and rules. What may not be recorded
// counts for nothing.
func (a *authority) people(n journal.Entry) error {
	switch n.Kind {
	case journal.Grouped:
		b, err := bodyOf[groupedBody](n)
		if err != nil {
			return err
		}
		if v := a.groups[b.Group.Name]; b.Group.unfit() == "" && (v == nil || v.of[0].Principal == b.Group.Principal) {
			keep(&a.groupNames, a.groups, b.Group.Name, b.Group, n.Seq)
		}
	case journal.Ruled:
		b, err := bodyOf[ruledBody](n)
		if err != nil {
			return err
		}
		if v := a.rules[b.Rule.ID]; b.Rule.unfit() == "" && (v == nil || v.of[0].Principal == b.Rule.Principal) {
			keep(&a.ruleIDs, a.rules, b.Rule.ID, b.Rule, n.Seq)
		}
	}
	return nil
}

func keep[T any](order *[]string, all map[string]*versions[T], name string, v T, seq journal.Seq) {
	if all[name] == nil {
		all[name] = &versions[T]{}
		*order = append(*order, name)
	}
	all[name].of = append(all[name].of, v)
	all[name].seqs = append(all[name].seqs, seq)
}
