package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
	"github.com/interlock-bench/interlock-bench/protocol/journal/sqlite"
)

func (b *bench) inbox() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "see what waits for a person, and decide it",
		Long: `Inbox lists the effects in a journal that wait for a person, and records what that
person says: approved, rejected, corrected to another payload, or settled because
somebody looked. It sends nothing: the agent's gate carries out what was approved
when it recovers, or when the request is submitted again.

A list is read while a gate runs. To decide, a journal of the file store has to be
free, because it has one owner; in a database of SQLite gate and inbox work side by
side.`,
		Example: "  interlock-bench inbox sample day\n" +
			"  interlock-bench inbox list --journal day\n" +
			"  interlock-bench inbox show --journal day case-2",
		GroupID: "journal",
		RunE:    needsCommand,
	}
	cmd.AddCommand(b.inboxList(), b.inboxShow(), b.inboxApprove(), b.inboxReject(), b.inboxCorrect(), b.inboxSettle(), b.inboxKey(), b.inboxSample())
	return cmd
}

// place is where an inbox is: a journal and the authority log that belongs to it.
type place struct {
	journal, authority string
	format             string
}

func (p *place) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.journal, "journal", "", "folder or database of the journal, or the folder that it is in")
	addFormat(cmd, &p.format, formatText, formatJSON)
	if err := cmd.MarkFlagRequired("journal"); err != nil {
		panic(err) // the flag isn't there
	}
}

// reader opens the journal to read.
func (p *place) reader() (journal.Opener, error) {
	log, err := experiments.FindLog(p.journal)
	if err != nil {
		return nil, err
	}
	if log.SQLite {
		return sqlite.Opener(log.Path, sqlite.Options{Reader: true}), nil
	}
	return journal.FileOpener(log.Path, journal.Options{Mode: journal.Reader}), nil
}

// authorityOf opens the authority log to read: the one that is named, else the
// folder or database called authority beside the journal, else the same database.
func (p *place) authorityOf(log experiments.Log) (journal.Opener, error) {
	beside := filepath.Dir(log.Path)
	places := []string{p.authority}
	if p.authority == "" {
		places = []string{filepath.Join(beside, "authority"), filepath.Join(beside, "authority.db")}
		if log.SQLite {
			places = append(places, log.Path)
		}
	}
	for _, at := range places {
		found, err := experiments.FindLog(at)
		switch {
		case err != nil:
		case found.SQLite:
			return sqlite.Opener(found.Path, sqlite.Options{Reader: true}), nil
		default:
			return journal.FileOpener(found.Path, journal.Options{Mode: journal.Reader}), nil
		}
	}
	return nil, fmt.Errorf("%w: no authority log at %s; name it with --authority", experiments.ErrNoLog, strings.Join(places, " or "))
}

// gate opens a gate to write decisions. It has no target, so it sends nothing.
func (p *place) gate(ctx context.Context, namespace string) (*protocol.Gate, error) {
	log, err := experiments.FindLog(p.journal)
	if err != nil {
		return nil, err
	}
	authority, err := p.authorityOf(log)
	if err != nil {
		return nil, err
	}
	open := journal.FileOpener(log.Path, journal.Options{Namespace: namespace, Identity: "interlock-bench inbox"})
	if log.SQLite {
		open = sqlite.Opener(log.Path, sqlite.Options{Namespace: namespace, Identity: "interlock-bench inbox"})
	}
	g, err := protocol.Open(ctx, protocol.Config{Namespace: namespace, Journal: open, Authority: authority})
	if errors.Is(err, journal.ErrHeld) && !log.SQLite {
		return nil, &exit{exitBroken, fmt.Sprintf("nothing was decided: %v; the file store has one owner, and a database of SQLite is open to both", err)}
	}
	return g, err
}

// item is one effect of an inbox with its receipt.
type item struct {
	V int `json:"v"`
	protocol.Waiting
	Says    string           `json:"says"`
	Receipt protocol.Receipt `json:"-"`
}

const itemVersion = 1

// items reads the inbox, what was refused included.
func (p *place) items(ctx context.Context) (list []item, err error) {
	open, err := p.reader()
	if err != nil {
		return nil, err
	}
	waiting, err := protocol.ReadInbox(ctx, open, time.Now(), true)
	if err != nil {
		return nil, err
	}
	receipts, _, err := receiptsIn(p.journal)
	if err != nil {
		return nil, err
	}
	for _, w := range waiting {
		i := slices.IndexFunc(receipts, func(r protocol.Receipt) bool { return r.Effect == w.Effect })
		if i >= 0 {
			list = append(list, item{itemVersion, w, receipts[i].Sentence(), receipts[i]})
		}
	}
	return list, nil
}

// find is the one item that a request or effect names. A request names its latest
// revision.
func (p *place) find(ctx context.Context, name string) (found item, err error) {
	list, err := p.items(ctx)
	if err != nil {
		return item{}, err
	}
	var names []string
	for _, it := range list {
		names = append(names, it.Request)
		if name == it.Request || len(name) >= 8 && strings.HasPrefix(it.Effect.String(), name) {
			if found.V == 0 || it.Revision > found.Revision {
				found = it
			}
		}
	}
	if found.V == 0 {
		if receipts, _, err := receiptsIn(p.journal); err == nil {
			for _, r := range slices.Backward(receipts) { // the latest revision first
				if r.Request == name {
					return item{}, &exit{exitBroken, fmt.Sprintf("nothing waits for a person about %s: %s", name, lower(r.Sentence()))}
				}
			}
		}
		if len(names) == 0 {
			return item{}, fmt.Errorf("%w: nothing in the journal waits for a person", errNoReceipt)
		}
		return item{}, experiments.CheckName("request or effect", name, names)
	}
	return found, nil
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func (b *bench) inboxList() *cobra.Command {
	var p place
	var refused bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list what waits for a person",
		Long: `List prints one line for each effect that waits for a person, oldest question
first: for a decision, or for settling where nobody can tell whether it landed.
It reads the journal and changes nothing.`,
		Example: "  interlock-bench inbox list --journal day\n  interlock-bench inbox list --journal day --format json",
		Args:    takes(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkFormat(p.format, formatText, formatJSON); err != nil {
				return err
			}
			list, err := p.items(cmd.Context())
			if err != nil {
				return err
			}
			t := table.Table{Header: []string{"request", "for", "who", "until", "why"}}
			for _, it := range list {
				if it.For == "correction" && !refused {
					continue
				}
				if p.format == formatJSON {
					if err := b.line(it); err != nil {
						return err
					}
					continue
				}
				who, until, why := "anybody with a key", "", it.Status.String()
				if it.For == "decision" {
					who, until, why = it.Group, "no deadline", it.Why
					if !it.Deadline.IsZero() {
						until = it.Deadline.UTC().Format("2006-01-02 15:04")
					}
					if it.Late {
						until += ", passed"
					}
				}
				t.Rows = append(t.Rows, []string{it.Request, it.For, who, until, visible(why)})
			}
			if p.format == formatJSON {
				return nil
			}
			if len(t.Rows) == 0 {
				fmt.Fprintln(b.stdout, "nothing waits for a person")
				return nil
			}
			b.print("table", widthOf(b.stdout), t)
			return nil
		},
	}
	cmd.Flags().BoolVar(&refused, "refused", false, "also what was refused and can be corrected")
	p.flags(cmd)
	return cmd
}

func (b *bench) inboxShow() *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use:   "show REQUEST|EFFECT",
		Short: "show one of them: the facts, what changed, what would still fit",
		Long: `Show prints what a person needs to decide: what is asked and why, the facts as the
gate read them for this question, which of them changed, the most that would still
fit where the rule says how to tell, and the commands that answer.`,
		Example: "  interlock-bench inbox show --journal day case-2",
		Args:    takes(1, 1, "one request or effect"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(p.format, formatText, formatJSON); err != nil {
				return err
			}
			it, err := p.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if p.format == formatJSON {
				return b.line(it)
			}
			width := widthOf(b.stdout)
			for _, line := range it.page(p.journal) {
				if !strings.HasPrefix(line, " ") { // what is to be copied stays whole
					line = table.Wrap(line, receiptIndent, width)
				}
				fmt.Fprintln(b.stdout, line)
			}
			return nil
		},
	}
	p.flags(cmd)
	return cmd
}

// seenDigits is how many digits of a question a person repeats.
const seenDigits = 8

func (it item) seen() string { return it.Answers.String()[:seenDigits] }

// page is an item for people.
func (it item) page(dir string) (lines []string) {
	line := func(name, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%-12s %s", name, fmt.Sprintf(format, args...)))
	}
	line("request", "%q, revision %d", it.Request, it.Revision)
	line("what", "%q %s", it.Action, visible(string(it.Payload)))
	line("who", "agent %q under lease %q", it.Agent, it.Lease)
	line("now", "%s", visible(it.Says))
	if it.Escalation != nil {
		if it.For == "decision" {
			line("why", "%s", visible(it.Why))
		}
		for _, r := range it.Read {
			whose := ""
			if r.Whose != "" {
				whose = " of " + r.Whose
			}
			line("fact", "%q%s: %s, read at %s", r.Name, whose, visible(string(r.Value)), r.At.UTC().Format(time.RFC3339))
		}
		for _, c := range it.Changed {
			line("changed", "%s, since it was decided or asked about last", visible(c))
		}
		if it.Left != "" {
			line("would fit", "%s up to %s", it.In, it.Left)
		}
		if it.For == "decision" && it.Step+1 < len(it.Route) {
			line("next", "group %q, if %q lets the deadline pass", it.Route[it.Step+1].Group, it.Group)
		}
	}
	answer := func(verb, rest string) {
		lines = append(lines, fmt.Sprintf("  interlock-bench inbox %s --journal %s --seen %s \\\n    --as NAME --key FILE %s%s", verb, dir, it.seen(), rest, it.Request))
	}
	lines = append(lines, "", "To answer:")
	switch it.For {
	case "decision":
		answer("approve", "")
		answer("reject", "")
		answer("correct", it.set())
	case "settling":
		answer("settle", "--landed --evidence TEXT ")
		answer("settle", "--not-landed --evidence TEXT ")
	default:
		answer("correct", it.set())
	}
	return lines
}

// set suggests a field to correct.
func (it item) set() string {
	switch {
	case it.Escalation == nil || it.Left == "":
	case len(it.Changed) > 0:
		return fmt.Sprintf("--set %s=%s ", it.In, it.Left)
	default:
		return fmt.Sprintf("--set %s=VALUE ", it.In)
	}
	return "--set FIELD=VALUE "
}

// answer is what the flags of an answer say.
type answer struct {
	place
	seen, as, key, note string
	over                bool
}

func (a *answer) flags(cmd *cobra.Command) {
	a.place.flags(cmd)
	cmd.Flags().StringVar(&a.authority, "authority", "", "folder or database of the authority log, where it isn't beside the journal")
	cmd.Flags().StringVar(&a.seen, "seen", "", "the question that is answered: its first digits, as show prints them")
	cmd.Flags().StringVar(&a.as, "as", "", "who answers")
	cmd.Flags().StringVar(&a.key, "key", "", "file with that person's key, as inbox key makes it; without one the answer is attested only")
	for _, name := range []string{"seen", "as"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag isn't there
		}
	}
}

// fits refuses a payload that takes more than would still fit, as show says it,
// unless --over is given.
func (a *answer) fits(it item, payload json.RawMessage) error {
	if a.over || it.Escalation == nil || it.Left == "" {
		return nil
	}
	value := payload
	for name := range strings.SplitSeq(it.In, ".") {
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) != nil {
			return nil // the gate says what is wrong with it
		}
		value = members[name]
	}
	takes, ok := new(big.Rat).SetString(string(value))
	room, has := new(big.Rat).SetString(it.Left)
	if !ok || !has || takes.Cmp(room) <= 0 {
		return nil
	}
	return &exit{exitBroken, fmt.Sprintf("nothing was decided: the facts that were read leave room for %s %s, and this takes %s; give --over to take it all the same", it.In, it.Left, value)}
}

// overFlag is for answers that let an effect be sent.
func (a *answer) overFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.over, "over", false, "also where it takes more than would still fit")
}

// begin finds what is answered, and the person's key, and opens the gate.
func (a *answer) begin(ctx context.Context, name string) (it item, key ed25519.PrivateKey, g *protocol.Gate, err error) {
	if err := checkFormat(a.format, formatText, formatJSON); err != nil {
		return it, nil, nil, err
	}
	if it, err = a.find(ctx, name); err != nil {
		return it, nil, nil, err
	}
	if len(a.seen) < seenDigits || !strings.HasPrefix(it.Answers.String(), strings.ToLower(a.seen)) {
		return it, nil, nil, &exit{exitBroken, fmt.Sprintf("nothing was decided: --seen %s isn't the question that is open about %s; show it again", a.seen, it.Request)}
	}
	if a.key != "" {
		if key, err = readKey(a.key); err != nil {
			return it, nil, nil, err
		}
	}
	g, err = a.gate(ctx, it.Receipt.Namespace)
	return it, key, g, err
}

// end shows where the effect stands after an answer, or why it wasn't taken.
func (b *bench) end(a answer, g *protocol.Gate, r protocol.Result, err error) error {
	err = errors.Join(err, g.Close())
	for _, of := range []error{protocol.ErrDecision, protocol.ErrCorrection, protocol.ErrResolution, journal.ErrHeld} {
		if errors.Is(err, of) {
			return &exit{exitBroken, strings.TrimPrefix(err.Error(), "protocol: ")}
		}
	}
	if err != nil {
		return err
	}
	if a.format == formatJSON {
		return b.showReceipts([]protocol.Receipt{r.Receipt}, formatJSON)
	}
	if len(r.Receipt.Secrets) == 0 {
		defer fmt.Fprintln(b.stdout, table.Wrap("payload: "+visible(string(r.Receipt.Payload)), 9, widthOf(b.stdout)))
	}
	fmt.Fprintln(b.stdout, table.Wrap(fmt.Sprintf("recorded: %s, revision %d. %s", r.Receipt.Request, r.Receipt.Revision, visible(r.Receipt.Sentence())), 0, widthOf(b.stdout)))
	return nil
}

func (b *bench) inboxApprove() *cobra.Command {
	var a answer
	var limits []string
	var expires time.Duration
	var attempts int
	cmd := &cobra.Command{
		Use:   "approve REQUEST|EFFECT",
		Short: "approve one, on the facts that show printed",
		Long: `Approve records that a person approves the effect on the facts of the question that
--seen names. The agent's gate sends it when it recovers, if all of it still holds
then: facts that changed are asked about again.`,
		Example: "  interlock-bench inbox approve --journal day --seen 1c0ffee5 --as ana \\\n    --key day/ana.key case-2",
		Args:    takes(1, 1, "one request or effect"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return b.decide(cmd.Context(), a, args[0], func(it item, d *protocol.Decision) (err error) {
				if err := a.fits(it, it.Payload); err != nil {
					return err
				}
				d.Approve, d.Attempts = true, attempts
				if expires != 0 {
					d.Expires = d.At.Add(expires)
				}
				d.Limits, err = limitsOf(limits)
				return err
			})
		},
	}
	a.flags(cmd)
	a.overFlag(cmd)
	cmd.Flags().StringArrayVar(&limits, "max", nil, "FIELD=AMOUNT: the payload's field is at most that, or the approval doesn't cover it")
	cmd.Flags().DurationVar(&expires, "for", 0, "how long the approval holds, as 2h; without it until the facts change")
	cmd.Flags().IntVar(&attempts, "attempts", 0, "sends that it is good for; 0 sets no limit")
	cmd.Flags().StringVar(&a.note, "note", "", "what to remember of it")
	return cmd
}

func limitsOf(flags []string) (limits []protocol.Limit, err error) {
	for _, f := range flags {
		field, most, ok := strings.Cut(f, "=")
		if !ok || field == "" || most == "" {
			return nil, &exit{exitUsage, fmt.Sprintf("--max takes FIELD=AMOUNT, not %q", f)}
		}
		limits = append(limits, protocol.Limit{Field: field, Max: most})
	}
	return limits, nil
}

func (b *bench) inboxReject() *cobra.Command {
	var a answer
	cmd := &cobra.Command{
		Use:   "reject REQUEST|EFFECT",
		Short: "reject one: it is never sent",
		Long: `Reject records that a person says no. The effect ends as REFUSED:rejected, whatever
the agent submits again for the request; a person of the group may still accept a
correction of it.`,
		Example: "  interlock-bench inbox reject --journal day --seen 1c0ffee5 --as ana \\\n    --key day/ana.key case-4",
		Args:    takes(1, 1, "one request or effect"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return b.decide(cmd.Context(), a, args[0], func(item, *protocol.Decision) error { return nil })
		},
	}
	a.flags(cmd)
	cmd.Flags().StringVar(&a.note, "note", "", "what to remember of it")
	return cmd
}

func (b *bench) decide(ctx context.Context, a answer, name string, say func(item, *protocol.Decision) error) error {
	d := protocol.Decision{Person: a.as, Note: a.note, At: time.Now()}
	it, key, g, err := a.begin(ctx, name)
	if err != nil {
		return err
	}
	if err := say(it, &d); err != nil {
		return errors.Join(err, g.Close())
	}
	d.Namespace, d.Effect, d.Escalation = it.Receipt.Namespace, it.Effect, it.Answers
	if key != nil {
		if d, err = protocol.SignDecision(key, d); err != nil {
			return b.end(a, g, protocol.Result{}, err)
		}
	}
	r, err := g.Decide(ctx, d)
	return b.end(a, g, r, err)
}

func (b *bench) inboxCorrect() *cobra.Command {
	var a answer
	var set []string
	var payload, lease string
	cmd := &cobra.Command{
		Use:   "correct REQUEST|EFFECT",
		Short: "accept another payload, as a new revision of the request",
		Long: `Correct closes an effect that is known not to have landed and puts the next revision
of its request in its place, with the payload changed. The new one rests on the facts
that were read last. Where it needs a decision and the person is in the group that it
goes to, accepting it is the approval.`,
		Example: "  interlock-bench inbox correct --journal day --seen 1c0ffee5 --as bob \\\n    --key day/bob.key --set amount=80 case-3",
		Args:    takes(1, 1, "one request or effect"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (payload == "") == (len(set) == 0) {
				return &exit{exitUsage, "a correction takes either --set FIELD=VALUE or --payload JSON"}
			}
			it, key, g, err := a.begin(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			c := protocol.Correction{
				Namespace: it.Receipt.Namespace, Effect: it.Effect, Answers: it.Answers, Lease: lease,
				Person: a.as, Note: a.note, At: time.Now(), Payload: json.RawMessage(payload),
			}
			if payload == "" {
				if c.Payload, err = withFields(it.Payload, set); err != nil {
					return errors.Join(err, g.Close())
				}
			}
			if err := a.fits(it, c.Payload); err != nil {
				return errors.Join(err, g.Close())
			}
			if key != nil {
				if c, err = protocol.SignCorrection(key, c); err != nil {
					return b.end(a, g, protocol.Result{}, err)
				}
			}
			r, err := g.Correct(cmd.Context(), c)
			return b.end(a, g, r, err)
		},
	}
	a.flags(cmd)
	a.overFlag(cmd)
	cmd.Flags().StringArrayVar(&set, "set", nil, "FIELD=VALUE: the value, as JSON, of one field of the payload")
	cmd.Flags().StringVar(&payload, "payload", "", "the whole payload, as JSON")
	cmd.Flags().StringVar(&lease, "lease", "", "lease that the revision is to run under; without it the original's")
	cmd.Flags().StringVar(&a.note, "note", "", "what to remember of it")
	return cmd
}

// withFields is a payload with some of its fields changed. A field that it doesn't
// have is refused: it would be a slip of the keyboard.
func withFields(payload json.RawMessage, set []string) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil {
		return nil, fmt.Errorf("%w: the journaled payload is no object: %w", journal.ErrCorrupt, err)
	}
	for _, s := range set {
		name, value, _ := strings.Cut(s, "=")
		if _, ok := fields[name]; !ok {
			var names []string
			for n := range fields {
				names = append(names, n)
			}
			slices.Sort(names)
			return nil, experiments.CheckName("field of the payload", name, names)
		}
		if !json.Valid([]byte(value)) {
			return nil, &exit{exitUsage, fmt.Sprintf("--set %s: the value is no JSON; a text stands in quotes, as %s='\"text\"'", s, name)}
		}
		fields[name] = json.RawMessage(value)
	}
	return json.Marshal(fields)
}

func (b *bench) inboxSettle() *cobra.Command {
	var a answer
	var landed, not bool
	var evidence string
	cmd := &cobra.Command{
		Use:   "settle REQUEST|EFFECT",
		Short: "say whether an ambiguous one landed",
		Long: `Settle records a person's word on an effect that nobody else can settle: that it
landed, which makes it COMMITTED, or that it didn't, which closes it for good, so
that nothing is sent beside it should it land after all. The word is signed, and
names where the person looked.`,
		Example: "  interlock-bench inbox settle --journal day --seen 1c0ffee5 --as cy \\\n    --key day/cy.key --landed --evidence 'dashboard, order 885' case-5",
		Args:    takes(1, 1, "one request or effect"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if landed == not {
				return &exit{exitUsage, "say either --landed or --not-landed"}
			}
			it, key, g, err := a.begin(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			word := protocol.Resolution{
				Namespace: it.Receipt.Namespace, Effect: it.Effect, Question: it.Answers, Landed: landed,
				Person: a.as, Evidence: evidence, At: time.Now(),
			}
			if key != nil {
				if word, err = protocol.SignResolution(key, word); err != nil {
					return b.end(a, g, protocol.Result{}, err)
				}
			}
			r, err := g.Resolve(cmd.Context(), word)
			return b.end(a, g, r, err)
		},
	}
	a.flags(cmd)
	cmd.Flags().Lookup("key").Usage = "file with that person's key; the word is signed with it"
	cmd.Flags().BoolVar(&landed, "landed", false, "it landed")
	cmd.Flags().BoolVar(&not, "not-landed", false, "it didn't")
	cmd.Flags().StringVar(&evidence, "evidence", "", "where you looked and what you saw")
	if err := cmd.MarkFlagRequired("evidence"); err != nil {
		panic(err) // the flag isn't there
	}
	return cmd
}

func (b *bench) inboxKey() *cobra.Command {
	return &cobra.Command{
		Use:   "key FILE",
		Short: "make a key to sign answers with",
		Long: `Key makes an ed25519 key, writes it to FILE, which must not exist, for its owner's
eyes only, and prints the public half: a principal records that with the person's
name in a group. Keep FILE where the agent's process can't read it.`,
		Example: "  interlock-bench inbox key ana.key",
		Args:    takes(1, 1, "the file to write"),
		RunE: func(_ *cobra.Command, args []string) error {
			public, private, err := ed25519.GenerateKey(rand.Reader)
			if err != nil {
				return err
			}
			f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, fs.ErrExist) {
				return &exit{exitUsage, fmt.Sprintf("%s is there already; a key is not overwritten", args[0])}
			}
			if err != nil {
				return &exit{exitUsage, fmt.Sprintf("%s can't be written: %v", args[0], err)}
			}
			_, err = f.WriteString(hex.EncodeToString(private.Seed()) + "\n")
			if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
				return err
			}
			fmt.Fprintln(b.stdout, hex.EncodeToString(public))
			return nil
		},
	}
}

func readKey(path string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &exit{exitUsage, fmt.Sprintf("the key can't be read: %v", err)}
	}
	seed, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, &exit{exitUsage, fmt.Sprintf("%s holds no key; inbox key makes one", path)}
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// stores are those that a sample is made in.
var stores = []string{"file", "sqlite"}

func (b *bench) inboxSample() *cobra.Command {
	store := stores[0]
	cmd := &cobra.Command{
		Use:   "sample DIR",
		Short: "make a simulated day's journal to try the inbox on",
		Long: `Sample makes a folder with a journal in which three refunds wait for a decision and
one for somebody to look whether it landed, the authority log beside it, and the
keys of ana and bob, who are leads, and of cy, a manager. The service is simulated
and the keys are anybody's: it is for trying.`,
		Example: "  interlock-bench inbox sample day\n  interlock-bench inbox sample shared --store sqlite",
		Args:    takes(1, 1, "the folder to make"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := experiments.CheckName("store", store, stores); err != nil {
				return err
			}
			if _, err := os.Lstat(args[0]); err == nil {
				return &exit{exitUsage, fmt.Sprintf("%s is there already; name a folder that isn't", args[0])}
			}
			if err := experiments.Sample(args[0], store); err != nil {
				return err
			}
			fmt.Fprintln(b.stdout, table.Wrap(fmt.Sprintf("made %s; what waits in it: interlock-bench inbox list --journal %s", args[0], args[0]), 0, widthOf(b.stdout)))
			return nil
		},
	}
	cmd.Flags().StringVar(&store, "store", store, "store of the journal: "+strings.Join(stores, ", "))
	complete(cmd, "store", func() []string { return stores })
	return cmd
}
