package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/table"
)

// measures are the figures with their medians and ratios, and what is wanted of
// some.
func (r *run) measures() []Measure {
	var all []Measure
	for _, id := range r.order {
		m := r.figures[id]
		m.Median = median(m.Runs)
		all = append(all, *m)
	}
	of := func(id string) float64 {
		if m := r.figures[id]; m != nil {
			return m.Median
		}
		return 0
	}
	for i := range all {
		m := &all[i]
		against := func(floor string, value float64) {
			m.Floor = floor
			if value > 0 {
				m.Ratio = m.Median / value
			}
		}
		var store, service string
		var n int
		parts := strings.Split(m.ID, "/")
		if parts[0] == "submit" && len(parts) == 4 {
			store, service = parts[1], parts[2]
			fmt.Sscan(parts[3], &n)
			per := of(m.ID + "/syncs")
			if n == 1 && per > 0 {
				against(fmt.Sprintf("%s / %.2f syncs", floorID(1), per), of(floorID(1))/per)
			} else {
				against(floorID(n)+" / 3", of(floorID(n))/3)
			}
			if store == "file" && service == "memory" {
				switch n {
				case 1:
					m.want("at least 0.70 of the floor", m.Ratio >= 0.7)
				case 64, 512:
					m.want("at least 0.50 of the floor", m.Ratio >= 0.5)
				}
			}
		}
		switch m.ID {
		case "unsynced/all-checks":
			m.want("at most 60 µs", m.Median <= 60)
		case "unsynced/all-checks/allocations":
			m.want("at most 250", m.Median <= 250)
		case "cost/file/1000000":
			against("cost/file/10", of("cost/file/10"))
			m.want("at most 1.25 of that at 10 entries", m.Ratio <= 1.25)
		case "open/file/1000000":
			m.want("under 2000 ms", m.Median < 2000)
		case "takeover/file/claimed", "takeover/sqlite/claimed":
			m.want("under 10 ms", m.Median < 10)
		}
	}
	return all
}

func (m *Measure) want(what string, met bool) { m.Wanted, m.Met = what, met }

// Encode writes the figures as JSON lines, behind one that says when and on what
// they were made.
func Encode(made string, all []Measure) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		V    int    `json:"v"`
		Made string `json:"made"`
	}{1, made})
	for _, m := range all {
		if err == nil {
			err = e.Encode(m)
		}
	}
	return b.Bytes(), err
}

// Decode reads what Encode wrote.
func Decode(lines []byte) (made string, all []Measure, err error) {
	var head struct {
		V    int    `json:"v"`
		Made string `json:"made"`
	}
	for line := range bytes.Lines(lines) {
		if head.V == 0 {
			if err := json.Unmarshal(line, &head); err != nil || head.V != 1 {
				return "", nil, fmt.Errorf("bench: the first line is no heading of version 1: %w", err)
			}
			continue
		}
		var m Measure
		if err := json.Unmarshal(line, &m); err != nil {
			return "", nil, fmt.Errorf("bench: %w", err)
		}
		all = append(all, m)
	}
	return head.Made, all, nil
}

// Brief is what the gate costs in a paragraph.
func Brief(made string, all []Measure) string {
	of := func(id string) Measure {
		i := slices.IndexFunc(all, func(m Measure) bool { return m.ID == id })
		if i < 0 {
			return Measure{}
		}
		return all[i]
	}
	alone, many, floor := of("submit/file/memory/1"), of("submit/file/memory/64"), of(floorID(1))
	met, missed := 0, []string{}
	for _, m := range all {
		switch {
		case m.Wanted == "":
		case m.Met:
			met++
		default:
			missed = append(missed, "`"+m.ID+"`")
		}
	}
	text := fmt.Sprintf("Measured once (%s): one submitter carries out %s effects a second on the file store where a bare append and sync does %s, and each effect is synced %s times; 64 submitters share syncs and carry out %s, and %s in SQLite. Without the syncs an effect takes %s µs and %s allocations. A dead sender's effect is another process's after %s ms (file) or %s ms (SQLite).",
		made, alone.number(), floor.number(), of("submit/file/memory/1/syncs").number(), many.number(), of("submit/sqlite/memory/64").number(),
		of("unsynced/all-checks").number(), of("unsynced/all-checks/allocations").number(), of("takeover/file/claimed").number(), of("takeover/sqlite/claimed").number())
	if len(missed) > 0 {
		text += fmt.Sprintf(" Of %d targets %d were missed: %s.", met+len(missed), len(missed), strings.Join(missed, ", "))
	}
	return text + " `results/bench.md` has all of it, and `interlock-bench bench` measures it on your machine."
}

// Page is the figures for people.
func Page(made string, all []Measure) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	of := func(id string) Measure {
		i := slices.IndexFunc(all, func(m Measure) bool { return m.ID == id })
		if i < 0 {
			return Measure{ID: id}
		}
		return all[i]
	}
	has := func(id string) bool { return len(of(id).Runs) > 0 }
	p("# What the gate costs")
	p("Made once by `interlock-bench bench`: %s. Nothing here is compared with a new run.", made)
	p("Each figure is the median of its runs, and all figures were taken in turn. The machine is shared, and a ratio to the floor of the same turns says more than a figure. `bench.jsonl` has every run.")

	p("## What was wanted")
	wanted := table.Table{Header: []string{"figure", "measured", "of its floor", "wanted", ""}}
	for _, m := range all {
		if m.Wanted != "" {
			met := "missed"
			if m.Met {
				met = "met"
			}
			wanted.Rows = append(wanted.Rows, []string{"`" + m.ID + "`", m.value(), m.ratio(), m.Wanted, met})
		}
	}
	b.WriteString(wanted.Markdown() + "\n")

	p("## Effects a second")
	p("The floor is a loop that appends %d bytes and syncs them, alone or sharing a sync; an effect is three such appends. In memory the target does nothing; behind HTTP the same, one connection for a premise and one for the effect. The hand check does the same work in its own way: a look at its log, a lookup, lease and order, two synced lines.", frame)
	rates := table.Table{Header: []string{"submitters", "floor, appends/s"}}
	for _, store := range stores {
		for _, service := range services {
			rates.Header = append(rates.Header, store+", "+service)
		}
	}
	rates.Header = append(rates.Header, "syncs/effect, file", "hand check, memory", "hand check, http")
	for _, n := range submitters {
		line := []string{fmt.Sprint(n), of(floorID(n)).number()}
		for _, store := range stores {
			for _, service := range services {
				m := of(fmt.Sprintf("submit/%s/%s/%d", store, service, n))
				line = append(line, m.number()+" ("+m.ratio()+")")
			}
		}
		line = append(line, of(fmt.Sprintf("submit/file/memory/%d/syncs", n)).number())
		for _, service := range services {
			cell := "not measured"
			if id := fmt.Sprintf("hand-check/%s/%d", service, n); has(id) {
				cell = of(id).number()
			}
			line = append(line, cell)
		}
		rates.Rows = append(rates.Rows, line)
	}
	b.WriteString(rates.Markdown() + "\n")
	p("In brackets: of the floor divided by the syncs of an effect, with one submitter; of the shared floor divided by three, with more.")

	p("## Without the sync")
	p("The file store on a directory whose syncs do nothing, one submitter, target in memory. Checks are left out by how the gate is used: a proposal without premises, a lease without a limit on the payload, no drain file beside the authority. The processor's time is this process's alone; on a shared machine it is less than the clock's.")
	parts := table.Table{Header: []string{"gate", "µs/effect", "processor, µs/effect", "allocations/effect"}}
	for _, v := range variants {
		id := "unsynced/" + strings.ReplaceAll(v.name, " ", "-")
		parts.Rows = append(parts.Rows, []string{v.name, of(id).number(), of(id + "/processor").number(), of(id + "/allocations").number()})
	}
	b.WriteString(parts.Markdown() + "\n")
	p("The canonical form of the payload alone, %d bytes: %s µs where it comes in that form, %s µs where it doesn't.", len(payload), of("canonical").number(), of("canonical/other-order").number())

	p("## By the size of the journal")
	p("A gate carried out one refund, and its entries were written again under other request ids. Opening a file journal reads it from the disk: what the page cache holds isn't trusted. Replay is the log alone, read and verified, without a gate. Cost is an effect without syncs on the file store, and with them in SQLite. Memory is what an open gate holds.")
	sized := table.Table{Header: []string{"entries", "store", "open, ms", "processor, ms", "replay, ms", "memory, MiB", "cost, µs/effect", "processor, µs/effect"}}
	for _, m := range all {
		if rest, ok := strings.CutPrefix(m.ID, "open/"); ok && strings.Count(rest, "/") == 1 {
			store, size, _ := strings.Cut(rest, "/")
			replay := "not measured"
			if has("replay/" + rest) {
				replay = of("replay/" + rest).number()
			}
			sized.Rows = append(sized.Rows, []string{size, store, m.number(), of(m.ID + "/processor").number(), replay,
				of("memory/" + rest).number(), of("cost/" + rest).number(), of("cost/" + rest + "/processor").number()})
		}
	}
	b.WriteString(sized.Markdown() + "\n")

	p("## Recovery and takeover")
	p("Recovery: so many effects in doubt, each settled by asking the target, one after another, each outcome synced. Takeover: a sender in a process of its own is killed by SIGKILL in the middle of its send; claimed is when another process has the effect, which on the file store means that it has opened the whole journal; settled is when the target has answered the same request under the same key, and that is durable.")
	last := table.Table{Header: []string{"what", "median", "worst", "runs"}}
	for _, m := range all {
		if strings.HasPrefix(m.ID, "recover/") || strings.HasPrefix(m.ID, "takeover/") {
			worst := slices.Max(m.Runs)
			if m.Unit == "effects/s" {
				worst = slices.Min(m.Runs)
			}
			last.Rows = append(last.Rows, []string{"`" + m.ID + "`", m.value(), figure(worst) + " " + m.Unit, fmt.Sprint(len(m.Runs))})
		}
	}
	b.WriteString(last.Markdown() + "\n")
	return strings.TrimSuffix(b.String(), "\n")
}

func (m Measure) value() string { return m.number() + " " + m.Unit }

func (m Measure) number() string { return figure(m.Median) }

func (m Measure) ratio() string {
	if m.Floor == "" {
		return ""
	}
	return fmt.Sprintf("%.2f", m.Ratio)
}

// figure is a number with three digits that say something.
func figure(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
