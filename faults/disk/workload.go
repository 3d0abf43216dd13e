package disk

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Workload is something that is done with a log. It does the same every time.
type Workload struct {
	Name     string
	What     string
	Mode     journal.Mode // how the log is opened after a crash
	Restored bool         // and as what
	Deep     bool         // the opening after a crash is itself crashed everywhere
	Rot      bool         // every bit of what it leaves is flipped, every byte cut off
	// Prepare leaves what the workload finds; nothing fails and crashes in it. nil
	// is an empty directory.
	Prepare func(s *Session) error
	Do      func(s *Session) error
}

// Workloads are all of them, in the order of the page.
var Workloads = []Workload{
	{
		Name: "appends",
		What: "an owner appends eight entries, each on its own, of one to seven sectors",
		Do: func(s *Session) error {
			l, err := s.Open(journal.Options{})
			if err != nil {
				return err
			}
			for i, size := range []int{0, 300, 337, 1200, 30, 3300, 600, 1} {
				if err := s.Add(l, sized(journal.Proposed, i, size)); err != nil {
					return err
				}
			}
			return nil
		},
	},
	{
		Name: "group",
		What: "eight callers share one write and one sync, sixteen sectors",
		Prepare: func(s *Session) error {
			_, err := s.Open(journal.Options{})
			return err
		},
		Do: func(s *Session) error {
			l := s.logs[0]
			entries := []journal.Entry{sized(journal.Proposed, 0, 100)}
			for i := range 8 {
				entries = append(entries, sized(journal.Dispatched, i, 500))
			}
			if err := s.Together(l, entries...); err != nil {
				return err
			}
			return s.Add(l, sized(journal.Committed, 1, 40))
		},
	},
	{
		Name: "ten",
		What: "the life of two effects in ten entries, nothing is behind the last",
		Rot:  true,
		Do: func(s *Session) error {
			l, err := s.Open(journal.Options{})
			if err != nil {
				return err
			}
			for _, step := range [][]journal.Entry{
				{sized(journal.Proposed, 1, 200)},
				{sized(journal.Authorized, 1, 20), sized(journal.Dispatched, 1, 150)},
				{sized(journal.Proposed, 2, 900)},
				{sized(journal.Committed, 1, 80)},
				{sized(journal.Authorized, 2, 20), sized(journal.Dispatched, 2, 150)},
				{sized(journal.NotSent, 2, 50)},
				{sized(journal.Dispatched, 2, 150)},
			} {
				if err := s.Add(l, step...); err != nil {
					return err
				}
			}
			return nil
		},
	},
	{
		Name: "segments",
		What: "an owner opens the log four times, twice without appending, so that an empty segment goes",
		Rot:  true,
		Do: func(s *Session) error {
			for round := range 4 {
				l, err := s.Open(journal.Options{})
				if err != nil {
					return err
				}
				if round == 0 || round == 3 {
					err = errors.Join(s.Add(l, sized(journal.Proposed, round, 250)), s.Add(l, sized(journal.Dispatched, round, 400)))
				}
				if err != nil {
					return err
				}
				s.Close()
			}
			return nil
		},
	},
	{
		Name: "authority",
		What: "two appenders grant and revoke in turn, and prove a revocation",
		Mode: journal.Appender,
		Rot:  true,
		Do: func(s *Session) error {
			o := journal.Options{Mode: journal.Appender}
			a, err := s.Open(o)
			if err != nil {
				return err
			}
			if err := s.Add(a, sized(journal.Granted, 0, 700)); err != nil {
				return err
			}
			b, err := s.Open(o)
			if err != nil {
				return err
			}
			// What befalls one of them is no reason for the other to stop.
			return errors.Join(
				s.Add(b, sized(journal.Revoked, 0, 90)),
				s.Prove(b),
				s.Add(a, sized(journal.Granted, 0, 320), sized(journal.Granted, 0, 340)),
				s.Add(b, sized(journal.Granted, 0, 30)),
				s.Add(a, sized(journal.Revoked, 0, 400)),
			)
		},
	},
	{
		Name:    "suspects",
		What:    "the frame of a sent request rots; its opening marks suspects, cuts, and is crashed, and so is the one after",
		Deep:    true,
		Prepare: func(s *Session) error { return rotten(s, bodyAt+3) },
		Do:      resume,
	},
	{
		Name:    "suspects-unread",
		What:    "the same, and its header doesn't read: every unsettled effect is suspect",
		Deep:    true,
		Prepare: func(s *Session) error { return rotten(s, 40) },
		Do:      resume,
	},
	{
		Name:     "restored",
		What:     "a backup of a log with two open effects is opened as restored, and again",
		Restored: true,
		Deep:     true,
		Prepare: func(s *Session) error {
			l, err := s.Open(journal.Options{})
			if err != nil {
				return err
			}
			if err := errors.Join(s.Add(l, sized(journal.Proposed, 1, 60)), s.Add(l, sized(journal.Proposed, 2, 60)), s.Add(l, sized(journal.Proposed, 3, 60)),
				s.Add(l, sized(journal.Refused, 3, 60))); err != nil {
				return err
			}
			s.Close()
			s.told.sent = append(s.told.sent, effect(1), effect(2))
			return nil
		},
		Do: func(s *Session) error {
			l, err := s.Open(journal.Options{Restored: true})
			if err != nil {
				return err
			}
			return s.Add(l, sized(journal.Fenced, 1, 20))
		},
	},
}

// rotten leaves a log whose last frame, that of a sent request, has a flipped bit.
func rotten(s *Session, bit int64) error {
	l, err := s.Open(journal.Options{})
	if err != nil {
		return err
	}
	if err := errors.Join(s.Add(l, sized(journal.Proposed, 1, 60)), s.Add(l, sized(journal.Proposed, 2, 60)), s.Add(l, sized(journal.Dispatched, 1, 120))); err != nil {
		return err
	}
	s.Close()
	s.Rot("0000000001.seg", 4*sector+bit, 4)
	return nil
}

// resume opens the log that is there, and settles its first effect.
func resume(s *Session) error {
	l, err := s.Open(journal.Options{})
	if err != nil {
		return err
	}
	return s.Add(l, sized(journal.Committed, 1, 20))
}

func effect(n int) journal.ID { return journal.ID{0xd1, byte(n)} }

// sized is an entry of the n-th effect, or of none for kinds that have none, whose
// body has the given size, or is left out for 0.
func sized(k journal.Kind, n, size int) journal.Entry {
	e := journal.Entry{Kind: k}
	switch k {
	case journal.Granted, journal.Revoked, journal.Seal:
	default:
		e.Effect = effect(n)
	}
	switch {
	case size == 1:
		e.Body = []byte("1")
	case size > 1:
		e.Body = fmt.Appendf(nil, `"%s"`, bytes.Repeat([]byte{byte('a' + n)}, size-2))
	}
	return e
}
