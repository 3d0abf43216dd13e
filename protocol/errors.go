package protocol

import (
	"errors"
	"fmt"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Classes of failure; errors.Is finds them. A status is not an error: what was
// refused, or is not settled yet, is a Result.
var (
	ErrProposal     = errors.New("protocol: the proposal can't be judged")
	ErrJSON         = errors.New("protocol: not JSON that has one meaning")
	ErrMisfit       = errors.New("protocol: capabilities don't fit together")
	ErrUnregistered = errors.New("protocol: no target is registered for the action")
	ErrLease        = errors.New("protocol: the authority can't record this")
	ErrBudget       = errors.New("protocol: the authority can't record this budget")
	ErrSecret       = errors.New("protocol: the secrets of the effect are not at hand")
	ErrUndecided    = errors.New("protocol: recorded, but a dispatch is undecided")
	ErrResolution   = errors.New("protocol: the resolution doesn't count")
	ErrRule         = errors.New("protocol: the authority can't record this rule or group")
	ErrDecision     = errors.New("protocol: the decision doesn't count")
	ErrCorrection   = errors.New("protocol: the correction doesn't count")
	ErrReceipt      = errors.New("protocol: the entries don't make a receipt")
	ErrUnknown      = errors.New("protocol: the journal has no such effect")
)

// ProposalError says which part of a proposal is unfit. Nothing was recorded.
type ProposalError struct {
	Field string
	Why   string
	Err   error // cause, where there is one
}

func (e *ProposalError) Error() string {
	return fmt.Sprintf("protocol: %s %s; correct the proposal and submit it again", e.Field, e.Why)
}

func (e *ProposalError) Is(target error) bool { return target == ErrProposal }
func (e *ProposalError) Unwrap() error        { return e.Err }

// JSONError says why a JSON text was refused.
type JSONError struct {
	Why string
}

func (e *JSONError) Error() string        { return "protocol: JSON refused: " + e.Why }
func (e *JSONError) Is(target error) bool { return target == ErrJSON }

// MisfitError says which capabilities of a target contradict each other.
type MisfitError struct {
	Action string
	Why    string
}

func (e *MisfitError) Error() string {
	return fmt.Sprintf("protocol: the target for %q can't be registered: %s", e.Action, e.Why)
}

func (e *MisfitError) Is(target error) bool { return target == ErrMisfit }

// LeaseError says why a grant or a revocation was not recorded.
type LeaseError struct {
	Lease string
	Why   string
}

func (e *LeaseError) Error() string {
	return fmt.Sprintf("protocol: lease %q %s; nothing was recorded", e.Lease, e.Why)
}

func (e *LeaseError) Is(target error) bool { return target == ErrLease }

// BudgetError says why a budget was not recorded.
type BudgetError struct {
	Budget string
	Why    string
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("protocol: budget %q %s; nothing was recorded", e.Budget, e.Why)
}

func (e *BudgetError) Is(target error) bool { return target == ErrBudget }

// SecretError says what the gate lacks of an effect whose payload holds secrets: a
// key, so that nothing was recorded, or the payload itself, which only its caller
// has.
type SecretError struct {
	Effect journal.ID
	Why    string
}

func (e *SecretError) Error() string {
	return fmt.Sprintf("protocol: the secrets of effect %s %s", e.Effect, e.Why)
}

func (e *SecretError) Is(target error) bool { return target == ErrSecret }

// UndecidedError says that a revocation is recorded and counts, but that one
// dispatch may still be under way. Revoke again to wait for it.
type UndecidedError struct {
	Lease  string
	Holder string // the agent whose dispatch it is
	Err    error
}

func (e *UndecidedError) Error() string {
	return fmt.Sprintf("protocol: lease %q is revoked, but a dispatch of %s under it is undecided; revoke it again to wait for that", e.Lease, e.Holder)
}

func (e *UndecidedError) Is(target error) bool { return target == ErrUndecided }
func (e *UndecidedError) Unwrap() error        { return e.Err }

// ResolutionError says why a person's word was not taken.
type ResolutionError struct {
	Effect journal.ID
	Why    string
}

func (e *ResolutionError) Error() string {
	return fmt.Sprintf("protocol: the resolution of %s was not recorded: %s", e.Effect, e.Why)
}

func (e *ResolutionError) Is(target error) bool { return target == ErrResolution }

// RuleError says why a group or a rule was not recorded.
type RuleError struct {
	What string // "group" or "rule"
	Name string
	Why  string
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("protocol: %s %q %s; nothing was recorded", e.What, e.Name, e.Why)
}

func (e *RuleError) Is(target error) bool { return target == ErrRule }

// DecisionError says why a person's decision was not taken. Where another one was
// there before, By and At say whose and since when.
type DecisionError struct {
	Effect journal.ID
	Why    string
	By     string
	At     time.Time
}

func (e *DecisionError) Error() string {
	if e.By != "" {
		return fmt.Sprintf("protocol: nothing was recorded: %s %s this at %s; read it again", e.By, e.Why, e.At.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("protocol: the decision on %s was not recorded: %s", e.Effect, e.Why)
}

func (e *DecisionError) Is(target error) bool { return target == ErrDecision }

// CorrectionError says why a correction was not accepted.
type CorrectionError struct {
	Effect journal.ID
	Why    string
}

func (e *CorrectionError) Error() string {
	return fmt.Sprintf("protocol: the correction of %s was not accepted: %s", e.Effect, e.Why)
}

func (e *CorrectionError) Is(target error) bool { return target == ErrCorrection }

// ReceiptError says what is wrong with the entries of an effect.
type ReceiptError struct {
	Seq journal.Seq // 0 where no single entry is at fault
	Why string
}

func (e *ReceiptError) Error() string {
	if e.Seq == 0 {
		return "protocol: no receipt: " + e.Why
	}
	return fmt.Sprintf("protocol: no receipt: entry %d %s", e.Seq, e.Why)
}

func (e *ReceiptError) Is(target error) bool { return target == ErrReceipt }
