package experiments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/table"
)

// Citation is what is needed to quote one cell.
type Citation struct {
	V       int    `json:"v"`
	ID      string `json:"id"`
	Value   string `json:"value"`   // status and money
	Verdict string `json:"verdict"` // its class
	Trials  int    `json:"trials"`
	Page    string `json:"page"`    // with the cell's anchor
	Records string `json:"records"` // the file that holds its record
	Command string `json:"command"` // that made it
	Replay  string `json:"replay"`  // runs its worst trial again
	Commit  string `json:"commit"`  // of the tree; "" where git can't say
	Date    string `json:"date"`    // of the commit, ISO 8601
	Caveat  string `json:"caveat"`  // why the commit may not hold this value; "" where it does
	BibTeX  string `json:"bibtex"`
}

// citationVersion is the "v" of a Citation.
const citationVersion = 1

// SourceURL is where the project's source is.
const SourceURL = "https://github.com/interlock-bench/interlock-bench"

// Cite finds the record of a cell in the results in dir, and asks git which
// commit holds them. The id is experiment[.table]/row/column. Errors are
// *NameError, ErrNoCell where the cell has no record there, and ErrRecord.
func Cite(ctx context.Context, all []*Experiment, dir, id string) (Citation, error) {
	parts := strings.Split(id, "/")
	if len(parts) != 3 {
		return Citation{}, fmt.Errorf("%w is called %q; an id is EXPERIMENT/ROW/COLUMN", ErrNoCell, id)
	}
	name, _, _ := strings.Cut(parts[0], ".")
	chosen, err := Find(all, []string{name})
	if err != nil {
		return Citation{}, err
	}
	e := chosen[0]
	if _, err := (Filter{Rows: parts[1:2], Columns: parts[2:]}).Cells(e); err != nil {
		return Citation{}, err
	}
	files := FilesOf(dir, e)
	encoded, err := readRegular(files.Records)
	if err != nil {
		return Citation{}, fmt.Errorf("%w: no results of %s are in %s (%w); make them by: interlock-bench %s", ErrNoCell, e.Name, dir, err, e.Name)
	}
	records, err := DecodeRecords(encoded)
	if err != nil {
		return Citation{}, fmt.Errorf("%s: %w", files.Records, err)
	}
	for _, r := range records {
		if r.ID == id {
			return cite(ctx, r, files), nil
		}
	}
	return Citation{}, fmt.Errorf("%w: %s has no record of %s", ErrNoCell, files.Records, id)
}

func cite(ctx context.Context, r Record, files Files) Citation {
	_, seed, _ := strings.Cut(r.Replay, "seed=")
	c := Citation{
		V: citationVersion, ID: r.ID, Value: r.Cell, Verdict: r.Verdict, Trials: r.Trials,
		Page: filepath.ToSlash(files.Page) + "#" + r.Anchor(), Records: filepath.ToSlash(files.Records),
		Command: fmt.Sprintf("interlock-bench %s --seed %s", r.Experiment, seed),
		Replay:  fmt.Sprintf("interlock-bench replay '%s'", r.Replay),
	}
	c.Commit, c.Date, c.Caveat = commitOf(ctx, files.Records)
	c.BibTeX = c.bibtex()
	return c
}

// commitOf asks git for the commit of the tree that holds path. caveat says what
// git can't vouch for.
func commitOf(ctx context.Context, path string) (commit, date, caveat string) {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", filepath.Dir(path)}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	head, err := git("log", "-1", "--format=%H %cs")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", "", "there is no git here to ask for the commit"
	case err != nil:
		return "", "", "the results are in no git repository, or in one without a commit"
	}
	commit, date, _ = strings.Cut(head, " ")
	base := filepath.Base(path)
	if _, err := git("ls-files", "--error-unmatch", "--", base); err != nil {
		return commit, date, "the results are not committed"
	}
	if changed, err := git("status", "--porcelain", "--", base); err != nil || changed != "" {
		return commit, date, "the results have changes that are not committed"
	}
	if changed, err := git("status", "--porcelain"); err != nil || changed != "" {
		return commit, date, "the tree has changes that are not committed; the results have none"
	}
	return commit, date, ""
}

// bibtex is the entry for a bibliography.
func (c Citation) bibtex() string {
	year, _, _ := strings.Cut(c.Date, "-")
	var b strings.Builder
	fmt.Fprintf(&b, "@misc{interlock-bench-%s,\n", anchor.Replace(c.ID))
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %s = {%s},\n", name, value)
		}
	}
	field("title", "interlock-bench: "+table.EscapeLaTeX(c.ID))
	field("author", "{The interlock-bench authors}")
	field("year", year)
	field("url", SourceURL)
	note := fmt.Sprintf("Cell %s, %s; %s; commit %s", c.Value, c.Verdict, c.Page, cmp.Or(c.Commit, "unknown"))
	if c.Caveat != "" {
		note += " (" + c.Caveat + ")"
	}
	field("note", table.EscapeLaTeX(note+"; "+c.Replay))
	return b.String() + "}\n"
}
