package git

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// The steps of a landing, in order.
const (
	PointMerged  trace.Point = "git/merged"  // tree and commit are written, nothing refers to them
	PointLanding trace.Point = "git/landing" // the last step before the ref is moved
	PointLanded  trace.Point = "git/landed"  // the ref stands at the commit
	PointAsked   trace.Point = "git/asked"   // the history was searched for an effect
)

// Points lists every point of this package in the order above.
func Points() []trace.Point {
	return []trace.Point{PointMerged, PointLanding, PointLanded, PointAsked}
}

// The trailers of a landed commit.
const (
	trailerEffect  = "Interlock-Effect"
	trailerDigest  = "Interlock-Digest"
	trailerRequest = "Interlock-Request"
	trailerAnchor  = "Interlock-Anchor"
)

// Landing is one attempt to land a change.
type Landing struct {
	Effect  string // id, in letters, digits, dot, hyphen and underscore; the key
	Request string // likewise; whose decision it is
	Anchor  string // hash that the journal wants kept; "" is none
	Token   [2]uint64
	Change  Change
	// Holds is asked about each commit that the change is about to be put on; its
	// error ends the landing as it is. nil holds.
	Holds func(ctx context.Context, commit string) error
	// Again lands a change that landed before once more, as a client without a key
	// does.
	Again bool
	Trace trace.Func
}

// Landed is what the branch holds of an effect.
type Landed struct {
	Commit   string `json:"commit"`
	Parent   string `json:"parent"`
	Tree     string `json:"tree"`
	Digest   string `json:"digest"` // of the change
	Repeated bool   `json:"-"`      // it was there before this attempt
}

// maxRaces is how often a landing begins anew because the branch moved under it.
const maxRaces = 64

// Land puts a change on its branch, unless the effect is there already. The
// search for it, Holds and the merge speak of the commit that the ref is then
// moved from, so together they are one atomic step.
//
// A nil error means that the branch holds the effect, synced: objects first, and
// then the ref. ErrInDoubt means that git was killed over the ref, and that Find
// tells. After any other error nothing landed by this attempt: ErrChange,
// ErrBranch, ErrConflict, ErrMoved, ErrOther, ErrFenced, those of Holds, and
// git's.
func (r *Repo) Land(ctx context.Context, l Landing) (Landed, error) {
	if why := l.unfit(); why != "" {
		return Landed{}, fmt.Errorf("%w: %s", ErrChange, why)
	}
	for range maxRaces {
		tip, err := r.Tip(ctx, l.Change.Branch)
		if err != nil {
			return Landed{}, err
		}
		if !l.Again {
			found, ok, err := r.findFrom(ctx, l.Change.Base, tip, l.Effect)
			if err != nil {
				return Landed{}, err
			}
			if ok && found.Digest != l.Change.Digest() {
				return found, fmt.Errorf("%w: %s", ErrOther, found.Commit)
			}
			if found.Repeated = true; ok {
				return found, nil
			}
		}
		if l.Holds != nil {
			if err := l.Holds(ctx, tip); err != nil {
				return Landed{}, err
			}
		}
		tree, err := r.Merged(ctx, l.Change, tip)
		if err != nil {
			return Landed{}, err
		}
		commit, err := r.commit(ctx, l.Change, tree, tip, l.trailers())
		if err != nil {
			return Landed{}, err
		}
		l.Trace.At(PointMerged, l.Effect)
		l.Trace.At(PointLanding, l.Effect)
		moved, err := r.swap(ctx, l, tip, commit)
		if err != nil {
			return Landed{}, err
		}
		if moved {
			l.Trace.At(PointLanded, l.Effect)
			return Landed{Commit: commit, Parent: tip, Tree: tree, Digest: l.Change.Digest()}, nil
		}
	}
	return Landed{}, fmt.Errorf("git: %s moved %d times while a change was to be put on it; try again", l.Change.Branch, maxRaces)
}

func (l Landing) unfit() string {
	for _, name := range []string{l.Effect, l.Request, cmp.Or(l.Anchor, "none")} {
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
			return fmt.Sprintf("%q can't stand in a trailer", name)
		}
	}
	return l.Change.unfit()
}

func (l Landing) trailers() []string {
	all := []string{trailerEffect + ": " + l.Effect, trailerDigest + ": " + l.Change.Digest(), trailerRequest + ": " + l.Request}
	if l.Anchor != "" {
		all = append(all, trailerAnchor+": "+l.Anchor)
	}
	return all
}

// swap moves the ref from old to commit; false is a branch that isn't at old any
// more. Whoever moves it holds a lock of the kernel's on a file beside the refs,
// and git holds it too while it runs: as long as a landing may still happen,
// whoever started it and is dead by now, the lock is not free.
func (r *Repo) swap(ctx context.Context, l Landing, old, commit string) (moved bool, err error) {
	lock, err := r.lock()
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if fence, err := r.fence(l.Effect); err != nil {
		return false, err
	} else if less(l.Token, fence) {
		return false, fmt.Errorf("%w: %s", ErrFenced, l.Effect)
	}
	if err := r.sweep(lock, l.Change.Branch); err != nil {
		return false, err
	}
	if err := note(lock, l.Change.Branch+" "+commit); err != nil {
		return false, err
	}
	move := r.command("update-ref", l.Change.Branch, commit, old)
	move.held = lock
	_, failed := move.run(ctx)
	if failed == nil {
		return true, note(lock, "")
	}
	tip, err := r.Tip(context.WithoutCancel(ctx), l.Change.Branch)
	switch {
	case err != nil || ctx.Err() != nil: // git was killed: what it left is swept by the next
		return false, errors.Join(ErrInDoubt, failed, err)
	case tip == commit:
		return true, note(lock, "")
	case tip != old:
		return false, note(lock, "")
	}
	return false, failed
}

// lock takes the lock of everybody who moves refs through this package. It waits
// for whoever holds it, git that outlives its parent included.
func (r *Repo) lock() (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(r.dir, "interlock.lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("git: the lock %s: %w", f.Name(), err)
		}
		return f, nil
	}
}

// note says in the lock's file what is about to be done; "" is nothing.
func note(lock *os.File, what string) error {
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err := lock.WriteAt([]byte(what), 0)
	return err
}

// sweep takes away git's own lock files where a landing was killed between
// taking and releasing them, as the note says: nobody who held our lock is alive.
// A file that holds another commit than the noted one is somebody else's.
func (r *Repo) sweep(lock *os.File, branch string) error {
	said, err := io.ReadAll(io.NewSectionReader(lock, 0, 4096))
	if err != nil || len(said) == 0 {
		return err
	}
	ref, commit, _ := strings.Cut(string(said), " ")
	if ref != branch {
		return nil
	}
	for _, name := range []string{ref + ".lock", "HEAD.lock"} {
		stale := filepath.Join(r.dir, filepath.FromSlash(name))
		held, err := os.ReadFile(stale)
		if text := strings.TrimSpace(string(held)); err == nil && (text == "" || text == commit) {
			if err := os.Remove(stale); err != nil {
				return err
			}
		}
	}
	return nil
}

// Fence refuses, from the moment it returns nil, every landing of effect with a
// token less than this one, also one that is under way in another process of this
// host: then it is durable (I10).
func (r *Repo) Fence(effect string, token [2]uint64) error {
	lock, err := r.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	was, err := r.fence(effect)
	if err != nil || less(token, was) {
		return err
	}
	dir := filepath.Dir(r.fencePath(effect))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.Marshal(token)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), r.fencePath(effect))
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (r *Repo) fencePath(effect string) string {
	return filepath.Join(r.dir, "interlock-fences", effect)
}

// fence is the least token that may land; zero where none was set.
func (r *Repo) fence(effect string) (token [2]uint64, err error) {
	text, err := os.ReadFile(r.fencePath(effect))
	if errors.Is(err, os.ErrNotExist) {
		return token, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &token)
	}
	return token, err
}

func less(a, b [2]uint64) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }

// Find searches the branch for an effect of a change based on base. It waits for
// landings that are under way, so what it doesn't find has not landed so far.
func (r *Repo) Find(ctx context.Context, branch, base, effect string) (Landed, bool, error) {
	lock, err := r.lock()
	if err != nil {
		return Landed{}, false, err
	}
	defer lock.Close()
	tip, err := r.Tip(ctx, branch)
	if err != nil {
		return Landed{}, false, err
	}
	return r.findFrom(ctx, base, tip, effect)
}

// findFrom searches what tip has beyond base: an effect is landed after its base
// was there to be read. The trailer has to be the commit's own, at its end.
func (r *Repo) findFrom(ctx context.Context, base, tip, effect string) (Landed, bool, error) {
	args := []string{"rev-list", "--fixed-strings", "--grep=" + trailerEffect + ": " + effect, tip}
	if _, err := r.git(ctx, "cat-file", "-e", base+"^{commit}"); err == nil {
		args = append(args, "^"+base)
	}
	commits, err := r.git(ctx, args...)
	if err != nil {
		return Landed{}, false, err
	}
	for commit := range strings.FieldsSeq(commits) {
		text, err := r.git(ctx, "cat-file", "commit", commit)
		if err != nil {
			return Landed{}, false, err
		}
		if l, of := readCommit(commit, text); of == effect {
			return l, true, nil
		}
	}
	return Landed{}, false, nil
}

// readCommit takes a commit object apart; effect is "" where the target didn't
// land it.
func readCommit(id, text string) (l Landed, effect string) {
	head, message, _ := strings.Cut(text, "\n\n")
	l.Commit = id
	for line := range strings.Lines(head) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "tree":
			l.Tree = value
		case name == "parent" && l.Parent == "":
			l.Parent = value
		}
	}
	paragraphs := strings.Split(strings.TrimSpace(message), "\n\n")
	for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case trailerEffect:
			effect = value
		case trailerDigest:
			l.Digest = value
		}
	}
	return l, effect
}

// Count is how many commits of branch this package landed for a request.
func (r *Repo) Count(ctx context.Context, branch, request string) (n int, err error) {
	commits, err := r.git(ctx, "rev-list", "--fixed-strings", "--grep="+trailerRequest+": "+request, branch)
	return len(strings.Fields(commits)), err
}
