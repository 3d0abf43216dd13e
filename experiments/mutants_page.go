package experiments

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/mutant"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// mutantsExtra is the extra of a record.
type mutantsExtra struct {
	Caught []mutant.Catch `json:"caught"` // of a planted fault
	Missed []string       `json:"missed"`
	Tried  []triedMutant  `json:"tried"` // machine mutants
	Made   string         `json:"made"`
}

func mutantsExtraOf(r Record) (x mutantsExtra) {
	text, err := json.Marshal(r.Extra)
	if err == nil {
		err = json.Unmarshal(text, &x)
	}
	if err != nil {
		return mutantsExtra{} // a record of something else shows nothing
	}
	return x
}

// mutantsPage renders the records of a run.
func mutantsPage(name string, once bool, records []Record) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	planted, machine, made := 0, 0, ""
	var tried []triedMutant
	byPackage := map[string][]triedMutant{}
	for _, r := range records {
		x := mutantsExtraOf(r)
		made = orElse(made, x.Made)
		if r.Column == mutantsPlanted {
			planted++
			continue
		}
		machine += len(x.Tried)
		tried = append(tried, x.Tried...)
		byPackage[r.Row] = x.Tried
	}
	switch {
	case !once:
		p("# Mutants: the part that every check runs again")
		p("Made by `interlock-bench %s --seed %s`, which picks %d planted faults and %d machine mutants of each package. The whole runs are `interlock-bench mutants` and `interlock-bench planted`.", name, indexRecords(records).seed(), slicePlantedFaults, sliceOfPackage)
	case machine > 0:
		p("# %d mutants of the gate, and who noticed", machine)
	default:
		p("# %d faults planted in the gate, and who noticed", planted)
	}
	if once {
		p("Made by `interlock-bench %s --seed %s`: %s. It is not repeated by a check; `results/mutants_slice.md` is a part of it that is.", name, indexRecords(records).seed(), orElse(made, "nobody noted when"))
	}
	p("A mutant is the source with one guard gone. A table that is green shows something only if it turns red when the guard behind it goes.")
	if machine > 0 {
		machineMutants(&b, name, records, byPackage, tried)
	}
	if planted > 0 {
		plantedFaults(&b, records)
	}
	if planted > 0 && once {
		p("## The judge's rules")
		p("Which planted faults break a rule in a run of real processes. A history that only this rule finds is planted for each rule in `TestEveryRuleIsNeeded`; without the rule it would pass.")
		b.WriteString(mutantsByRule(records).Markdown() + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// machineMutants renders what was made by machine.
func machineMutants(b *strings.Builder, name string, records []Record, byPackage map[string][]triedMutant, tried []triedMutant) {
	p := func(format string, args ...any) { fmt.Fprintf(b, format+"\n\n", args...) }
	var explained, survived []triedMutant
	for _, m := range tried {
		switch _, ok := mutant.Explained(m.spot()); {
		case m.By == "" && ok:
			explained = append(explained, m)
		case m.By == "":
			survived = append(survived, m)
		}
	}
	p("## Made by machine")
	p("Of %d mutants %d were caught, %d are explained and %d are neither.", len(tried), len(tried)-len(explained)-len(survived), len(explained), len(survived))
	p("In the files where it is decided whether something is sent, what counts as an outcome, who may be at it and what is durable: a condition is asked and is false whatever it is, or a call is not made; in the files of guards alone, one side of && or || has no say. Left alone are conditions that only ask whether there is an error, words for people, reports to an observer, the release of a context and locks. All are built into one program, which a variable makes one of them; each is tried by the tests of its package, and then by what costs more, until something fails. First come the tests of the package as it is, and nothing may fail.")
	b.WriteString(mutantsByCatcher(records, byPackage).Markdown() + "\n")
	p("A mutant that hangs is caught when the test's time is up, and is counted in the last column too. Every mutant and its catcher is in `results/%s.jsonl`.", strings.ReplaceAll(name, "-", "_"))
	b.WriteString(mutantsByFile(tried).Markdown() + "\n")
	if len(survived) > 0 {
		p("### Caught by nobody, and not explained")
		for _, m := range survived {
			fmt.Fprintf(b, "- `%s`: `%s`\n", m.Name, m.Text)
		}
		b.WriteString("\n")
	}
	if len(explained) > 0 {
		p("### Caught by nobody, and why")
		t := table.Table{Header: []string{"mutant", "what is taken away", "why nothing can notice"}}
		for _, m := range explained {
			x, _ := mutant.Explained(m.spot())
			t.Rows = append(t.Rows, []string{"`" + m.Name + "`", "`" + m.Text + "`", x.Why})
		}
		b.WriteString(t.Markdown() + "\n")
	}
}

// plantedFaults renders what was planted by design.
func plantedFaults(b *strings.Builder, records []Record) {
	p := func(format string, args ...any) { fmt.Fprintf(b, format+"\n\n", args...) }
	p("## Planted by design")
	p("Each is a way in which real systems got it wrong. B and W are faults of the first implementation of the idea, C histories that broke earlier wordings of the contract; an incident was reported in public; a refuted design fell to an exhaustive search. All that is named here must turn red, and did unless a line says otherwise.")
	t := table.Table{Header: []string{"fault", "what goes wrong", "who got it wrong", "caught by"}}
	for _, r := range records {
		if r.Column != mutantsPlanted {
			continue
		}
		i := slices.IndexFunc(mutant.Broken, func(m mutant.Mutant) bool { return m.Name == r.Row })
		if i < 0 {
			continue
		}
		x := mutantsExtraOf(r)
		var by []string
		for _, c := range x.Caught {
			by = append(by, c.String())
		}
		for _, missed := range x.Missed {
			by = append(by, "NOT "+missed)
		}
		t.Rows = append(t.Rows, []string{"`" + r.Row + "`", mutant.Broken[i].Why, mutant.Broken[i].Source, strings.Join(by, "; ")})
	}
	b.WriteString(t.Markdown() + "\n")
}

// spot is the mutant as far as a record knows it.
func (m triedMutant) spot() mutant.Spot {
	file, _, _ := strings.Cut(m.Name, ":")
	return mutant.Spot{Name: m.Name, File: file, Text: m.Text, Function: m.Source}
}

// mutantsByCatcher counts by package and rung, in the order of the ladders.
func mutantsByCatcher(records []Record, byPackage map[string][]triedMutant) table.Table {
	t := table.Table{Header: []string{"package", "mutants"}}
	var rungs []string
	for _, pkg := range mutant.Guarded {
		for _, rung := range mutant.Ladder(pkg) {
			if !slices.Contains(rungs, rung) {
				rungs = append(rungs, rung)
			}
		}
	}
	t.Header = append(append(t.Header, rungs...), "nobody", "hung")
	for _, pkg := range mutant.Guarded {
		of := byPackage[packageRow(pkg)]
		line := []string{"`" + pkg + "`", fmt.Sprint(len(of))}
		count := map[string]int{}
		for _, m := range of {
			count[m.By]++
			if m.How == "hangs" {
				count["hung"]++
			}
		}
		for _, rung := range rungs {
			line = append(line, fmt.Sprint(count[rung]))
		}
		t.Rows = append(t.Rows, append(line, fmt.Sprint(count[""]), fmt.Sprint(count["hung"])))
	}
	return t
}

// mutantsByFile counts by file and kind.
func mutantsByFile(tried []triedMutant) table.Table {
	t := table.Table{Header: []string{"file"}}
	for _, k := range mutant.Kinds {
		t.Header = append(t.Header, string(k))
	}
	var files []string
	count := map[string]int{}
	for _, m := range tried {
		parts := strings.Split(m.Name, ":")
		if !slices.Contains(files, parts[0]) {
			files = append(files, parts[0])
		}
		count[parts[0]+":"+parts[2]]++
	}
	for _, f := range files {
		line := []string{"`" + f + "`"}
		for _, k := range mutant.Kinds {
			line = append(line, fmt.Sprint(count[f+":"+string(k)]))
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// mutantsByRule lists by rule of the judge the planted faults that broke it.
func mutantsByRule(records []Record) table.Table {
	t := table.Table{Header: []string{"rule", "finds", "planted faults that broke it", "alone"}}
	for _, rule := range oracle.Rules {
		var broke, alone []string
		for _, r := range records {
			among, only := false, false
			for _, c := range mutantsExtraOf(r).Caught {
				has := slices.Contains(c.Rules, rule.Name)
				among, only = among || has, only || has && len(c.Rules) == 1
			}
			if among {
				broke = append(broke, "`"+r.Row+"`")
			}
			if only {
				alone = append(alone, "`"+r.Row+"`")
			}
		}
		t.Rows = append(t.Rows, []string{"`" + rule.Name + "`", rule.Class.String(), strings.Join(broke, ", "), strings.Join(alone, ", ")})
	}
	return t
}
