// Package timeline draws the history of a trial: what happened, in which lane, in
// the order in which it happened. Time runs downwards and is the trial's own.
package timeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/story"
	"github.com/interlock-bench/interlock-bench/experiments/svg"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// lane is where a step is drawn.
type lane int

const (
	journal lane = iota
	worker
	wire
	service
	authority
	world
	lanes // how many there are
)

var laneNames = [lanes]string{"journal", "worker", "wire", "service", "authority", "world"}

// Measures, in the units of the drawing.
const (
	gutter  = 76.0  // left of the lanes: numbers and times
	wide    = 204.0 // a lane
	inset   = 14.0  // of a text in its lane
	leading = 15.0
	gap     = 9.0  // between steps of a lane
	rise    = 21.0 // from a step to the next, at least
	top     = 76.0
	margin  = 14.0
	bar     = 6.0 // a process's life
)

func left(l lane) float64 { return gutter + float64(l)*wide }

// life is the line along which a worker's life is drawn.
func life() float64 { return left(worker) + 4 }

// step is one line of the story, placed.
type step struct {
	story.Line
	event history.Event // its first
	lane  lane
	text  []string
	style svg.Style
	y     float64 // base line of the first line of text
}

// SVG draws k. Equal trials give equal bytes.
func SVG(k experiments.Kept) string {
	numbered := map[int]history.Event{}
	for _, e := range k.History {
		numbered[e.N] = e
	}
	var steps []step
	var waits []step        // where time passed: only At and y count
	var free [lanes]float64 // below what stands in each lane
	y, bottom, now := top+26-rise, top, time.Duration(0)
	for _, part := range story.Tell(k.History, story.Most) {
		for _, l := range part.Lines {
			s := step{Line: l, event: numbered[l.From]}
			s.lane, s.style = laneOf(s.event), styleOf(s.event)
			words := l.Words
			if s.event.Kind == history.Started {
				words = s.Who + " " + words
			}
			room := wide - 2*inset
			if s.style == svg.Strong {
				room *= 0.93 // bold is wider
			}
			s.text = svg.Wrap(words, room)
			if l.At > now {
				waits = append(waits, step{Line: story.Line{At: l.At - now}, y: bottom + 2})
				now = l.At
				y = bottom + 28 - rise
			}
			y = max(y+rise, free[s.lane])
			switch s.event.Kind {
			case history.Killed: // its line crosses all lanes
				y = max(y, bottom)
			case history.Requested, history.Asked, history.Answered: // and an arrow the wire
				y = max(y, free[wire]-gap+4)
			}
			s.y = y
			free[s.lane] = y + float64(len(s.text))*leading + gap
			bottom = max(bottom, free[s.lane])
			steps = append(steps, s)
		}
	}
	judged := story.Judged(k)
	var verdict []string
	width := gutter + float64(lanes)*wide + margin
	for _, sentence := range judged[1:] {
		verdict = append(verdict, svg.Wrap(sentence, width-2*margin)...)
	}
	height := bottom + 30 + float64(len(verdict)+1)*leading + margin

	d := svg.New(width, height, k.Trial.String(), strings.Join(judged, " "))
	drawLanes(d, k, bottom)
	drawLives(d, steps, bottom)
	for _, w := range waits {
		d.Dashed(margin, w.y, width-margin, w.y, svg.Quiet)
		d.Text(width/2, w.y+14, svg.Middle, svg.Quiet, "… "+story.Since(w.At)+" later")
	}
	for i, s := range steps {
		drawStep(d, steps, i, s, width)
	}
	y = bottom + 24
	d.Line(margin, bottom+4, width-margin, bottom+4, svg.Quiet)
	d.Text(margin, y, svg.Start, mark(k.Verdict.Class), judged[0])
	for i, line := range verdict {
		d.Text(margin, y+float64(i+1)*leading, svg.Start, svg.Ink, line)
	}
	return d.String()
}

// drawLanes draws what stands behind the steps.
func drawLanes(d *svg.Drawing, k experiments.Kept, bottom float64) {
	d.Text(margin, 24, svg.Start, svg.Strong, k.Trial.String())
	d.Text(margin, 42, svg.Start, svg.Quiet, "Time runs down and is virtual; numbers are those of the events. The process stands still while anything else happens at a step of its own.")
	for l := range lanes {
		if l%2 == 0 {
			d.Rect(left(l), top-18, wide, bottom-top+18, svg.Plane)
		}
		d.Text(left(l)+inset, top, svg.Start, svg.Strong, laneNames[l])
	}
	d.Text(gutter-8, top, svg.End, svg.Strong, "time")
}

// drawLives draws the life of each process, from its start to its end.
func drawLives(d *svg.Drawing, steps []step, bottom float64) {
	from, who := 0.0, ""
	end := func(y float64) {
		if who != "" {
			d.Rect(life()-bar/2, from, bar, y-from, svg.Accent)
		}
		who = ""
	}
	for _, s := range steps {
		switch s.event.Kind {
		case history.Started:
			end(s.y - leading)
			from, who = s.y-10, s.Who
		case history.Killed, history.Exited, history.Hung:
			end(s.y - 4)
		}
	}
	end(bottom - gap)
}

// drawStep draws one step: its number, its words, and what it moves.
func drawStep(d *svg.Drawing, steps []step, i int, s step, width float64) {
	if i == 0 || steps[i-1].At != s.At {
		d.Text(margin, s.y, svg.Start, svg.Quiet, clock(s.At))
	}
	number := fmt.Sprint(s.From)
	if s.To > s.From {
		number = fmt.Sprintf("%d–%d", s.From, s.To)
	}
	d.Text(gutter-8, s.y, svg.End, svg.Quiet, number)

	y := s.y - 4
	at, arrow := left(s.lane)+5, true
	switch e := s.event; {
	case e.Kind == history.Killed:
		d.Dashed(gutter, y, life()-10, y, svg.Bad)
		d.Dashed(left(wire), y, width-margin, y, svg.Bad)
		d.Cross(life(), y, 12, svg.Bad)
	case e.Kind == history.Requested:
		d.Arrow(left(wire)+4, at+4, y, svg.Accent)
	case e.Kind == history.Asked:
		d.Arrow(left(wire)+4, at+4, y-3, svg.Quiet)
		d.Arrow(at+4, left(wire)+4, y+4, svg.Quiet)
	case e.Kind == history.Answered:
		d.Arrow(at+4, left(wire)+wide/2, y, svg.Accent)
	case s.lane == journal:
		d.Arrow(life()-bar/2, life()-22, y, svg.Ink)
		arrow = false
	default:
		arrow = false
	}
	if !arrow && s.lane != worker {
		d.Dot(at, y, 2, s.style)
	}
	for k, line := range s.text {
		d.Text(left(s.lane)+inset, s.y+float64(k)*leading, svg.Start, s.style, line)
	}
}

// styleOf says how the words of an event look.
func styleOf(e history.Event) svg.Style {
	switch e.Kind {
	case history.Killed, history.Exited, history.Hung, history.Unfired:
		return svg.Bad
	case history.Stopped:
		return svg.Warn
	case history.Started, history.Applied, history.Told:
		return svg.Strong
	case history.Requested:
		return svg.Accent
	case history.Revoked, history.Acted:
		return svg.Warn
	}
	return svg.Ink
}

// laneOf says in which lane an event belongs.
func laneOf(e history.Event) lane {
	switch e.Kind {
	case history.Granted, history.Revoking, history.Revoked:
		return authority
	case history.Declared, history.Modelled, history.Acted, history.Unfired:
		return world
	case history.Changed, history.Forgot, history.Requested, history.Discarded, history.Answered, history.Asked:
		return service
	case history.Applied:
		if l, err := history.Body[history.Landing](e); err == nil && l.Request == 0 {
			return world // a person's hand
		}
		return service
	case history.Passed:
		return laneOfPoint(e)
	}
	return worker
}

func laneOfPoint(e history.Event) lane {
	switch e.Point {
	case protocol.PointProposed, protocol.PointTakenOver, protocol.PointIntentDurable, protocol.PointFenceDurable, protocol.PointOutcomeDurable:
		return journal
	case protocol.PointConnected, sim.BeforeSend, sim.ReplyReceived:
		return wire
	}
	part, _, _ := strings.Cut(string(e.Point), "/")
	switch part {
	case "journal":
		return journal
	case "authority":
		return authority
	case "sim":
		return service
	}
	if e.Who == "service" {
		return service
	}
	return worker
}

// mark is the style of a verdict.
func mark(c oracle.Class) svg.Style {
	switch c.Word() {
	case "ok":
		return svg.Good
	case "BAD":
		return svg.Bad
	}
	return svg.Warn
}

// clock is a time of the trial.
func clock(at time.Duration) string {
	if at == 0 {
		return "0s"
	}
	return story.Since(at)
}
