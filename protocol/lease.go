package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// authority is what the entries of an authority log amount to.
type authority struct {
	grants     map[string]*grant
	budgets    map[string]*budgeted // as set last
	groups     map[string]*versions[Group]
	rules      map[string]*versions[Rule]
	groupNames []string // in the order first recorded
	ruleIDs    []string
	logged     time.Time // latest time of an entry
}

// grant is one granted lease. Leases that replace one another form a line, which
// is one authority: its uses are counted together, and the last replacement
// speaks for all of it.
type grant struct {
	Lease
	seq      journal.Seq
	revoked  journal.Seq // 0: not
	replaced *grant      // the lease this one renews
	renewal  *grant      // the lease that renews this one
}

func newAuthority() *authority {
	return &authority{
		grants: map[string]*grant{}, budgets: map[string]*budgeted{},
		groups: map[string]*versions[Group]{}, rules: map[string]*versions[Rule]{},
	}
}

// apply folds one entry. A grant that may not be recorded counts for nothing.
func (a *authority) apply(n journal.Entry) error {
	a.logged = later(a.logged, n.Time)
	if !n.Kind.Known() {
		return unknownKind(n)
	}
	switch n.Kind {
	case journal.Granted:
		b, err := bodyOf[grantedBody](n)
		if err != nil {
			return err
		}
		if a.admit(b.Lease) != nil {
			return nil
		}
		g := &grant{Lease: b.Lease, seq: n.Seq, replaced: a.grants[b.Lease.Replaces]}
		a.grants[g.ID] = g
		if g.replaced != nil {
			g.replaced.renewal = g
		}
	case journal.Revoked:
		b, err := bodyOf[revokedBody](n)
		if err != nil {
			return err
		}
		if g := a.grants[b.Lease]; g != nil && g.revoked == 0 {
			g.revoked = n.Seq
		}
	case journal.Budgeted:
		b, err := bodyOf[budgetedBody](n)
		if err != nil {
			return err
		}
		if a.admitBudget(b.Budget) == nil {
			a.budgets[b.Budget.Name] = &budgeted{b.Budget, n.Seq, a.budgets[b.Budget.Name]}
		}
	}
	return a.people(n)
}

// admit returns nil where l may be granted now, else a *LeaseError.
func (a *authority) admit(l Lease) error {
	if a.grants[l.ID] != nil {
		return &LeaseError{l.ID, "was granted before"}
	}
	if l.Replaces == "" {
		return nil
	}
	old := a.grants[l.Replaces]
	switch {
	case old == nil:
		return &LeaseError{l.ID, fmt.Sprintf("replaces %q, which was never granted", l.Replaces)}
	case old.dead():
		return &LeaseError{l.ID, fmt.Sprintf("replaces %q, which is revoked", l.Replaces)}
	case old.renewal != nil:
		return &LeaseError{l.ID, fmt.Sprintf("replaces %q, which %q replaced already", l.Replaces, old.renewal.ID)}
	case old.Principal != l.Principal || old.Holder != l.Holder:
		return &LeaseError{l.ID, fmt.Sprintf("replaces %q of another principal or holder", l.Replaces)}
	}
	if why := l.widerThan(old.Lease); why != "" {
		return &LeaseError{l.ID, fmt.Sprintf("is wider than %q, which it replaces: %s", l.Replaces, why)}
	}
	return nil
}

// dead reports whether g or a lease before it in its line is revoked.
func (g *grant) dead() bool {
	for ; g != nil; g = g.replaced {
		if g.revoked != 0 {
			return true
		}
	}
	return false
}

// first is the lease that g's line began with.
func (g *grant) first() *grant {
	for g.replaced != nil {
		g = g.replaced
	}
	return g
}

// current is the lease that speaks for id: its last replacement that counts. A
// grant counts once a later record proves it durable. Nil is no such lease.
func (a *authority) current(id string, proven journal.Seq) *grant {
	g := a.grants[id]
	if g == nil || g.seq > proven {
		return nil
	}
	for g.renewal != nil && g.renewal.seq <= proven {
		g = g.renewal
	}
	return g
}

// line names the authority that a lease belongs to.
func (a *authority) line(id string) string {
	if g := a.grants[id]; g != nil {
		return g.first().ID
	}
	return id
}

// expired says that l is over at now; "" is that it isn't. Where clocks may differ,
// now is the latest that it may be.
func (l Lease) expired(now time.Time) string {
	if now.Before(l.Expires) {
		return ""
	}
	return "is over, or may be by another clock: it ends at " + l.Expires.UTC().Format(time.RFC3339)
}

// covers says why l, while it lasts, doesn't let agent do x; "" is nothing.
func (l Lease) covers(agent string, x Effect) string {
	switch {
	case l.Holder != agent:
		return fmt.Sprintf("is held by %q, not by %q", l.Holder, agent)
	case !slices.Contains(l.Actions, x.Action):
		return fmt.Sprintf("doesn't cover the action %q", x.Action)
	}
	for _, limit := range l.Limits {
		if why := limit.exceeded(x.Payload); why != "" {
			return why
		}
	}
	return ""
}

// exceeded says how the payload breaks the limit; "" is not at all. Whatever
// can't be compared breaks it. No value of the payload is in what it says.
func (l Limit) exceeded(payload json.RawMessage) string {
	value, ok := field(payload, l.Field)
	if !ok {
		return fmt.Sprintf("limits %q, which the payload doesn't have", l.Field)
	}
	if len(l.Equals) > 0 {
		want, err := canonicalValue(l.Equals)
		if err != nil || !sameJSON(value, want) {
			return fmt.Sprintf("covers %s %s and no other", l.Field, l.Equals)
		}
	}
	if l.Max == "" {
		if len(l.Equals) == 0 {
			return fmt.Sprintf("limits %q to nothing in particular", l.Field)
		}
		return ""
	}
	if have, err := strconv.ParseInt(string(value), 10, 64); err == nil && have >= 0 {
		if most, err := strconv.ParseInt(l.Max, 10, 64); err == nil && have <= most {
			return "" // whole numbers, as most amounts are
		}
	}
	most, ok := amount(l.Max)
	if !ok {
		return fmt.Sprintf("limits %q to %q, which is no number", l.Field, l.Max)
	}
	have, ok := amount(string(value))
	if !ok {
		return fmt.Sprintf("limits %q, which is no number in the payload", l.Field)
	}
	if have.Sign() < 0 {
		return fmt.Sprintf("covers %s from 0 up to %s, and the payload's is less", l.Field, l.Max)
	}
	if have.Cmp(most) > 0 {
		return fmt.Sprintf("covers %s up to %s, and the payload's is more", l.Field, l.Max)
	}
	return ""
}

// field finds a member of a canonical object by names joined with dots, in
// canonical form.
func field(object json.RawMessage, path string) (json.RawMessage, bool) {
	value, ok := object, true
	for name := range strings.SplitSeq(path, ".") {
		if value, ok = member(value, name); !ok {
			return nil, false
		}
	}
	return value, true
}

var number = regexp.MustCompile(`^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?$`)

// amount reads a decimal number exactly; NaN, infinities, quoted numbers and
// booleans are none.
func amount(s string) (*big.Rat, bool) {
	if !number.MatchString(s) {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// unfit says what keeps l from being a lease; "" is nothing.
func (l Lease) unfit() string {
	for _, f := range []struct{ what, why string }{
		{"its id", unfitName(l.ID)}, {"its principal", unfitName(l.Principal)}, {"its holder", unfitName(l.Holder)},
	} {
		if f.why != "" {
			return "can't be granted: " + f.what + " " + f.why
		}
	}
	switch {
	case l.Principal == l.Holder:
		return "can't be granted by its own holder"
	case len(l.Actions) == 0 || slices.Contains(l.Actions, ""):
		return "names no action"
	case l.Expires.IsZero():
		return "has no end"
	case unfitTime(l.Expires) != "":
		return "ends at a time that " + unfitTime(l.Expires)
	case l.Uses < 0:
		return "has a negative number of uses"
	case l.Budget != "" && unfitName(l.Budget) != "":
		return "requires a budget whose name " + unfitName(l.Budget)
	case l.Corrections < 0:
		return "has a negative number of corrections"
	}
	for _, limit := range l.Limits {
		if err := limit.valid(); err != nil {
			return fmt.Sprintf("has a limit on %q that can't be kept: %v", limit.Field, err)
		}
	}
	return ""
}

func (l Limit) valid() error {
	if l.Field == "" {
		return errors.New("no field is named")
	}
	if l.Max == "" && len(l.Equals) == 0 {
		return errors.New("neither max nor equals is given")
	}
	if _, ok := amount(l.Max); l.Max != "" && !ok {
		return fmt.Errorf("%q is no decimal number", l.Max)
	}
	if len(l.Equals) > 0 {
		_, err := canonicalValue(l.Equals)
		return err
	}
	return nil
}

// widerThan says in what l allows more than old; "" is nothing. A later end is
// what a renewal is for.
func (l Lease) widerThan(old Lease) string {
	for _, action := range l.Actions {
		if !slices.Contains(old.Actions, action) {
			return fmt.Sprintf("action %q", action)
		}
	}
	if old.Uses > 0 && (l.Uses == 0 || l.Uses > old.Uses) {
		return "number of uses"
	}
	if l.Corrections > old.Corrections {
		return "number of corrections"
	}
	if old.Budget != "" && l.Budget != old.Budget {
		return fmt.Sprintf("budget %q", old.Budget)
	}
	for _, was := range old.Limits {
		if !slices.ContainsFunc(l.Limits, was.kept) {
			return fmt.Sprintf("limit on %q", was.Field)
		}
	}
	return ""
}

// kept reports whether everything that l forbids is forbidden by is.
func (l Limit) kept(is Limit) bool {
	if l.Field != is.Field {
		return false
	}
	if len(l.Equals) > 0 {
		a, errA := canonicalValue(l.Equals)
		b, errB := canonicalValue(is.Equals)
		if errA != nil || errB != nil || !sameJSON(a, b) {
			return false
		}
	}
	if l.Max == "" {
		return true
	}
	was, ok := amount(l.Max)
	now, set := amount(is.Max)
	return ok && set && now.Cmp(was) <= 0
}
