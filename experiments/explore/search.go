package explore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/interlock-bench/interlock-bench/faults/history"
)

// Result is what an exploration came to. All of it is the same each time.
type Result struct {
	States     int // distinct ones
	Executions int // ways through, each from a start of a process or a crash on
	Steps      int
	Ends       int // of them came to an end: not into a state that was known
	Violations map[string]int
	First      *Violation // by the shortest schedule where Shortest was asked for
}

// Options say how a bound is explored. The zero value does it as fast as it goes.
type Options struct {
	// Forget keeps no set of visited states: every way through is gone to its end.
	Forget bool
	// Shortest goes by the number of choices, and ends with the first violation:
	// none has fewer choices.
	Shortest bool
	// Wide goes by the number of choices, to the end.
	Wide bool
	// States takes the keys of all visited states.
	States map[[16]byte]bool
	// Most ends an exploration that has visited so many states; 0 sets no limit.
	Most int
}

// branch is a way that is still to be gone: from a world in which nobody lives,
// along known moves.
type branch struct {
	world   *world
	tape    []move
	chosen  *chosen // how world and tape came about
	decided int     // decisions before world
	// key is of the state that it leads to, where that can be told without going
	// there; the zero key is not known.
	key [16]byte
}

// chosen is a Schedule from its end.
type chosen struct {
	Choice
	before *chosen
}

func (c *chosen) schedule() Schedule {
	if c == nil {
		return nil
	}
	return append(c.before.schedule(), c.Choice)
}

// Explore visits every state of b. dir is an empty directory for lock files that
// nothing else uses meanwhile. The end of ctx is its error.
//
// It goes depth first and repeats the moves since the last crash to get to a
// branch: a coroutine can't be copied. Of the branches of one way the earliest is
// gone first. It visits what the later ones lead to, and where their states can
// be told beforehand they are never gone.
func Explore(ctx context.Context, b Bound, dir string, o Options) (Result, error) {
	first, err := b.setup().begin(dir)
	if err != nil {
		return Result{}, err
	}
	r := Result{Violations: map[string]int{}}
	seen := o.States
	if seen == nil {
		seen = map[[16]byte]bool{}
	}
	frontier := []branch{{world: first}}
	principal := &principal{dir, map[step]revocation{}}
	var found []branch
	for len(frontier) > 0 {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		var next branch
		if o.Shortest || o.Wide {
			next, frontier = frontier[0], frontier[1:]
		} else {
			next, frontier = frontier[len(frontier)-1], frontier[:len(frontier)-1]
		}
		if !o.Forget && seen[next.key] {
			continue
		}
		x := resume(next.world.clone(), principal)
		r.Executions++
		found = found[:0]
		ended := false
		for i := 0; x.broke == nil; i++ {
			moves := x.moves()
			if len(moves) == 0 {
				ended = true
				break
			}
			if i < len(next.tape) {
				x.do(next.tape[i])
				continue
			}
			k := x.key()
			if seen[k] && !o.Forget {
				break
			}
			seen[k] = true
			if x.probe(); x.broke != nil {
				break
			}
			for _, m := range moves[1:] {
				if n, ok := next.with(x, m, i); ok && (o.Forget || !seen[n.key]) {
					found = append(found, n)
				}
			}
			x.do(moves[0])
			next.tape = append(next.tape[:i:i], moves[0])
		}
		r.Steps += x.steps
		if ended {
			r.Ends++
		}
		if x.broke != nil {
			r.Violations[x.broke.Rule]++
			if r.First == nil {
				x.broke.Schedule = next.chosen.schedule()
				r.First = x.broke
			}
		}
		x.close()
		if o.Shortest && r.First != nil || o.Most > 0 && len(seen) >= o.Most {
			break
		}
		if !o.Shortest {
			slices.Reverse(found)
		}
		frontier = append(frontier, found...)
	}
	r.States = len(seen)
	return r, nil
}

// with is the branch that takes m as decision i of this one; false where that
// can't be made.
func (f branch) with(x *execution, m move, i int) (branch, bool) {
	n := branch{world: f.world, decided: f.decided, chosen: &chosen{Choice: Choice{f.decided + i + 1, m}, before: f.chosen}}
	if m.dies() {
		n.world, n.decided = x.w.crash(m), f.decided+i+1
		n.key = resume(n.world, x.principal).key()
		return n, true
	}
	n.key = x.foresee(m)
	n.tape = append(f.tape[:i:i], m)
	return n, true
}

// foresee is the key of the state that m leads to, where m resumes no coroutine.
func (x *execution) foresee(m move) [16]byte {
	if m.way == advance {
		return [16]byte{}
	}
	y := *x
	y.tell = nil
	y.w = x.w.clone()
	y.act(m)
	if y.broke != nil {
		return [16]byte{}
	}
	return y.key()
}

// Told is one execution, told.
type Told struct {
	History history.History
	Broke   *Violation // nil for none
}

// Replay runs one schedule of a bound, to its end or to what it breaks. It returns
// an error for a schedule that the bound doesn't have.
func Replay(b Bound, dir string, s Schedule) (Told, error) {
	s = slices.Clone(s)
	slices.SortFunc(s, func(a, b Choice) int { return cmp.Compare(a.At, b.At) })
	var wrong error
	told, err := walk(b, dir, false, func(n int, moves []move) move {
		if len(s) == 0 || s[0].At != n {
			return moves[0]
		}
		m := s[0].Move
		s = s[1:]
		if !slices.Contains(moves, m) {
			if wrong == nil {
				wrong = fmt.Errorf("explore: decision %d offers no %s; there are %v", n, m, moves)
			}
			return moves[0]
		}
		return m
	})
	if err == nil && wrong == nil && len(s) > 0 {
		wrong = fmt.Errorf("explore: the execution ended before decision %d", s[0].At)
	}
	return told, cmp.Or(err, wrong)
}

// walk goes one way through b from its beginning, to its end or to the first rule
// that is broken; past goes on behind that. n counts decisions from 1.
func walk(b Bound, dir string, past bool, choose func(n int, moves []move) move) (Told, error) {
	first, err := b.setup().begin(dir)
	if err != nil {
		return Told{}, err
	}
	x := resume(first, &principal{dir, map[step]revocation{}})
	x.listen()
	var chosen Schedule
	for n := 1; past || x.broke == nil; n++ {
		moves := x.moves()
		if len(moves) == 0 {
			break
		}
		if x.probe(); x.broke != nil && !past {
			break
		}
		m := choose(n, moves)
		if m != moves[0] {
			chosen = append(chosen, Choice{n, m})
		}
		x.do(m)
	}
	x.tell.ends()
	x.close()
	if x.broke != nil {
		x.broke.Schedule = chosen
	}
	return Told{x.tell.record.History(), x.broke}, nil
}
