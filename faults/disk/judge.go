package disk

import (
	"errors"
	"fmt"

	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// Violation is a state on which the log did wrong.
type Violation struct {
	State string // how it came about
	Why   string
}

func (v *Violation) Error() string { return "disk: " + v.State + ": " + v.Why }

// verify opens the log on d as after a crash, goes on with it, cuts the power and
// opens it again, and says what was wrong; nil where nothing was.
//
//   - A state that a crash may leave is no reason to refuse.
//   - What was said to be durable is there, in its place and by its hash.
//   - There is nothing that was not given to the log, but for its own OPENED and
//     SUSPECT.
//   - What the log feeds its reader is what the independent one reads.
//   - Every effect whose request may be on the wire is in doubt or has an outcome,
//     and so has every one that what is cut may hide.
//   - No segment number that had an entry comes back for an owner (C29).
//   - What is appended now is durable, and the next opening gives the same.
//
// An opening goes by the bytes it finds: the second one is made once for states
// that leave the same.
func (w Workload) verify(dir string, d *Disk, t told, reopened seen) error {
	predicted := Read(d.Cached())
	first, next, err := w.open(dir, d, journal.Options{Restored: w.Restored})
	if err != nil {
		return fmt.Errorf("it can't be opened: %w", err)
	}
	if err := w.holds(d, first.entries, t); err != nil {
		return err
	}
	in := inDoubt(first.entries)
	for effect := range predicted.Suspects {
		if !in[effect].InDoubt {
			return fmt.Errorf("effect %x is not suspect, and what was cut may hide its attempt", effect[:2])
		}
	}
	if w.Mode == journal.Owner {
		for _, e := range t.given {
			if next.Segment <= e.Segment {
				return fmt.Errorf("segment %d is used again, entry %d was given to %d", next.Segment, e.Seq, e.Segment)
			}
		}
	}

	image := d.Synced()
	if !reopened.addImage(image, first.probe.Hash) {
		return nil
	}
	after := Of(image)
	second, _, err := w.open(dir, after, journal.Options{})
	if err != nil {
		return fmt.Errorf("it can't be opened again: %w", err)
	}
	want := append(first.entries, first.probe)
	if len(second.entries) != len(want) {
		return fmt.Errorf("the next opening gives %d entries, this one gave %d and appended one", len(second.entries), len(first.entries))
	}
	for i, e := range second.entries {
		if e.Hash != want[i].Hash {
			return fmt.Errorf("the next opening gives another entry %d", e.Seq)
		}
	}
	return nil
}

// opening is what one opening gave, and an entry that was appended after it.
type opening struct {
	entries []journal.Entry
	probe   journal.Entry
}

// open opens the log, appends an entry and closes it. It returns where the log
// stood before that entry.
func (w Workload) open(dir string, d *Disk, o journal.Options) (opening, journal.Head, error) {
	var got opening
	s := newSession(dir, d)
	s.watch = false
	o.Mode = w.Mode
	l, err := s.Open(o)
	if err != nil {
		return got, journal.Head{}, err
	}
	defer s.Close()
	got.entries = s.told.given[:len(s.told.given):len(s.told.given)]
	var at journal.Head
	if err := errors.Join(l.View(ctx, func(h journal.Head) { at = h }), s.Add(l, sized(journal.Granted, 0, 20))); err != nil {
		return got, at, err
	}
	got.probe = s.told.acked[0]
	return got, at, nil
}

// holds compares what an opening fed with what was told and with the independent
// reader.
func (w Workload) holds(d *Disk, fed []journal.Entry, t told) error {
	r := Read(d.Synced())
	if r.Refused != "" || r.Cut {
		return fmt.Errorf("what it left on the disk doesn't read: %s %s", r.File, r.Refused)
	}
	if n := len(r.Frames); n != len(fed)+1 {
		return fmt.Errorf("it fed %d entries and appended one, and %d are on the disk", len(fed), n)
	}
	for i, e := range fed {
		f := r.Frames[i]
		if f.Hash != e.Hash || f.Seq != uint64(e.Seq) || f.Segment != e.Segment || f.Kind != uint16(e.Kind) || f.Effect != e.Effect || string(f.Body) != string(e.Body) {
			return fmt.Errorf("entry %d as it was fed is not on the disk", e.Seq)
		}
	}
	for _, e := range t.acked {
		if int(e.Seq) > len(fed) || fed[e.Seq-1].Hash != e.Hash {
			return fmt.Errorf("entry %d, a %v, was said to be durable and is gone", e.Seq, e.Kind)
		}
	}
	given := map[journal.Hash]bool{}
	for _, e := range t.given {
		given[e.Hash] = true
	}
	for _, e := range fed {
		if !given[e.Hash] && e.Kind != journal.Suspect && e.Kind != journal.Opened {
			return fmt.Errorf("entry %d, a %v, was never given to the log", e.Seq, e.Kind)
		}
	}
	now := inDoubt(fed)
	sent := inDoubt(t.acked)
	for _, id := range t.sent {
		sent[id] = Effect{InDoubt: true}
	}
	for id, e := range sent {
		if e.InDoubt && !now[id].InDoubt && !now[id].Closed {
			return fmt.Errorf("effect %x may have been sent, and nothing says so any more", id[:2])
		}
	}
	return nil
}

func inDoubt(entries []journal.Entry) map[[32]byte]Effect {
	frames := make([]Frame, len(entries))
	for i, e := range entries {
		frames[i] = Frame{Kind: uint16(e.Kind), Effect: e.Effect}
	}
	return Effects(frames)
}

// rotted opens a log of which something rotted or was cut off, and says what was
// wrong with that; nil where nothing was. It reports what became of it: refused,
// cut, or opened as if nothing had been.
func (w Workload) rotted(dir string, image Image, t told, flipped bool, reopened seen) (string, error) {
	r := Read(image)
	d := Of(image)
	if r.Refused != "" {
		_, _, err := w.open(dir, d, journal.Options{})
		var c *journal.CorruptError
		switch {
		case !errors.As(err, &c):
			return "", fmt.Errorf("it was not refused (%v), and %s is damaged at %d: %s", err, r.File, r.Byte, r.Refused)
		case c.Offset != r.Byte:
			return "", fmt.Errorf("%v, but the damage is in %s at %d", err, r.File, r.Byte)
		}
		for name, b := range d.Cached() {
			if string(image[name]) != string(b) {
				return "", fmt.Errorf("the refusal changed %s", name)
			}
		}
		return "refused", nil
	}
	if !flipped {
		t.acked, t.sent = nil, nil // a log that ends early is a shorter log: nobody can tell
	} else {
		t = t.lose(journal.Seq(len(r.Frames)) + 1)
	}
	if err := w.verify(dir, d, t, reopened); err != nil {
		return "", err
	}
	if r.Cut {
		return "cut", nil
	}
	return "opened", nil
}

// options are those of an opening after a crash.
func (w Workload) options() journal.Options {
	return journal.Options{Mode: w.Mode, Restored: w.Restored}
}
