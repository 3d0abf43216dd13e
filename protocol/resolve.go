package protocol

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Resolution is a person's word on an effect that nobody else can settle. It is
// signed with a key that the agent's process doesn't have.
type Resolution struct {
	Namespace string       `json:"namespace"`
	Effect    journal.ID   `json:"effect"`
	Question  journal.Hash `json:"question"` // of the entry that left it open, as on the receipt
	Landed    bool         `json:"landed"`
	Person    string       `json:"person"`
	Evidence  string       `json:"evidence"` // where they looked and what they saw
	At        time.Time    `json:"at"`
	Signature []byte       `json:"signature,omitempty"`
}

// SignResolution returns r signed by the person's key.
func SignResolution(key ed25519.PrivateKey, r Resolution) (Resolution, error) {
	if len(key) != ed25519.PrivateKeySize {
		return r, &ResolutionError{r.Effect, "the key is no ed25519 private key"}
	}
	r.At = r.At.UTC().Round(0)
	text, err := r.signed()
	if err != nil {
		return r, &ResolutionError{r.Effect, "it " + err.Error()}
	}
	r.Signature = ed25519.Sign(key, text)
	return r, nil
}

// signed is what the signature is over.
func (r Resolution) signed() ([]byte, error) {
	r.Signature = nil
	return signable("interlock-bench resolution v1", r)
}

// Verify returns nil where key signed r.
func (r Resolution) Verify(key ed25519.PublicKey) error {
	text, err := r.signed()
	if err != nil {
		return &ResolutionError{r.Effect, "it " + err.Error()}
	}
	if len(r.Signature) == 0 {
		return &ResolutionError{r.Effect, fmt.Sprintf("it isn't signed; %s has a key", r.Person)}
	}
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, text, r.Signature) {
		return &ResolutionError{r.Effect, fmt.Sprintf("the signature isn't made with %s's key", r.Person)}
	}
	return nil
}

// Resolve settles an effect that is ambiguous, or whose target holds other
// content, by a person's word. Landed makes it COMMITTED. Not landed makes it
// REFUSED:resolved_not_landed and closes it: should the old attempt land after
// all, nothing was sent beside it (C14).
//
// Nil means recorded, durable and proved by a later record. A *ResolutionError
// means that the word doesn't count and nothing was recorded; journal.ErrHeld
// means that somebody is at the effect.
func (g *Gate) Resolve(ctx context.Context, r Resolution) (Result, error) {
	key, known := g.People[r.Person]
	err := g.authority.View(ctx, func(head journal.Head) {
		if m, ok := g.grants.anyMember(r.Person, head.Proven); ok && len(m.Key) > 0 {
			key, known = m.Key, true
		}
	})
	if err != nil {
		return Result{}, err
	}
	switch {
	case unfitPerson(r.Person) != "":
		return Result{}, &ResolutionError{r.Effect, fmt.Sprintf("the person's name, %q, %s", r.Person, unfitPerson(r.Person))}
	case !known:
		return Result{}, &ResolutionError{r.Effect, fmt.Sprintf("%q is nobody whose key this gate knows", r.Person)}
	case r.Namespace != g.Namespace:
		return Result{}, &ResolutionError{r.Effect, fmt.Sprintf("it is about namespace %q", r.Namespace)}
	case strings.TrimSpace(r.Evidence) == "":
		return Result{}, &ResolutionError{r.Effect, "it names no evidence"}
	}
	if err := r.Verify(key); err != nil {
		return Result{}, err
	}
	claim, _, err := g.claim(ctx, r.Effect)
	if err != nil {
		return Result{}, err
	}
	defer g.release(ctx, r.Effect, claim)
	entries, err := g.journal.Update(context.WithoutCancel(ctx), func(journal.Head) ([]journal.Entry, error) {
		e := g.state.effects[r.Effect]
		if e == nil || e.final != Ambiguous && !e.mismatch {
			return nil, &ResolutionError{r.Effect, "it doesn't wait for a person"}
		}
		if e.question != r.Question {
			return nil, &ResolutionError{r.Effect, "it answers another question than the one that is open; read the receipt again"}
		}
		return records(r.Effect, body{journal.Resolved, r})
	})
	if err != nil {
		return Result{}, err
	}
	g.Trace.At(PointResolved, r.Effect.String())
	if err := journal.Prove(context.WithoutCancel(ctx), g.journal, entries[0].Seq); err != nil {
		return Result{}, err
	}
	g.Trace.At(PointOutcomeDurable, r.Effect.String())
	e, err := g.find(ctx, r.Effect)
	if err != nil {
		return Result{}, err
	}
	return g.result(ctx, r.Effect, outcome{status: e.status()})
}
