package experiments

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/experiments/table"
	"github.com/interlock-bench/interlock-bench/faults"
)

// incident is something that happened to people in public, as a case at the
// refund desk.
type incident struct {
	number int
	name   string   // of the row, behind its number
	links  []string // threads, "owner/name#number" or "owner/name!number" for a pull request
	dated  string
	what   string // the smallest case of it, in our words
	right  string // what should come of it
	as     string // the row of refund or faults that it is; "" is row, or none
	row    faults.Row
	like   string // a row whose cells row is to have, for the gate
	waits  string // where no row is: the part that it waits for
}

// address is where a thread lies, and what it is called.
func address(link string) (url, text string) {
	repo, number, isPull := strings.Cut(link, "!")
	kind := "pull"
	if !isPull {
		repo, number, _ = strings.Cut(link, "#")
		kind = "issues"
	}
	return "https://github.com/" + repo + "/" + kind + "/" + number, repo + " " + number
}

// rowName is the incident's row.
func (i incident) rowName() string { return fmt.Sprintf("case_%02d_%s", i.number, i.name) }

func killedTold(more ...faults.Fault) []faults.Fault {
	return append([]faults.Fault{{What: faults.Kill, At: pointTold, Passage: 1}}, more...)
}

// incidents are the cases, by number.
var incidents = []incident{
	{number: 1, name: "absent_then_landed", links: []string{"linuxfoundation/lfx-self-serve!1409"}, dated: "2026-08-12", as: "late_landing",
		what: "A create times out, the read behind it finds nothing, and the original lands after that.", right: "\"not there\" counts only when nothing can land any more; until then nothing is sent"},
	{number: 2, name: "other_words", links: []string{"crewAIInc/crewAI#5802"}, dated: "2026-08-29", as: "model_redecides",
		what: "A retry asks the model again; its arguments differ a little, and so does the key made of them.", right: "one approved request is one effect; other content is refused"},
	{number: 3, name: "crash_loop", links: []string{"kubernetes-sigs/cluster-api-provider-aws#5794", "aws-controllers-k8s/community#2062"}, dated: "2025-12-08, 2024-04-24", as: "crash_loop",
		what: "A worker dies each time between the create and the note of its id; each restart creates one more.", right: "any number of restarts makes one resource"},
	{number: 4, name: "revoked_in_the_run", links: []string{"margince/margince#2780", "jentic/jentic-one#1136"}, dated: "2026-08-26, 2026-08-25", as: "lease_revoked",
		what: "Authority is asked for when a run begins and revoked while it goes on.", right: "the next dispatch is refused"},
	{number: 5, name: "revoked_while_dead", dated: "no public thread was found; between cases 3 and 4", as: "lease_revoked_after_landing",
		what: "Killed between landing and note; while it is dead the approval is revoked.", right: "what landed is looked up and recorded, nothing is sent"},
	{number: 6, name: "head_moved", links: []string{"JSONbored/loopover!1227", "bazelbuild/continuous-integration!2653"}, dated: "2026-06-24, 2026-06-01", as: "stale_eligibility",
		what: "What was approved moves between decision and act, and the executor acts on what is there now. At the desk it is the order's eligibility that moves.", right: "what the decision rests on is asked again at the commit; refused where it changed"},
	{number: 7, name: "parameters_grew", links: []string{"stripe/stripe-java#389"}, dated: "2017-07-03",
		row:  faults.Row{Faults: []faults.Fault{{What: faults.Kill, At: "sim/applied", Passage: 1}}, Submits: faults.Amounts(2000, 2001)},
		like: "model_redecides",
		what: "The outcome is unknown; the retry carries other parameters, so that the key doesn't protect it.", right: "the bytes are fixed with the first intent"},
	{number: 8, name: "key_forgotten", links: []string{"square/connect-api-examples#135", "akash-network/console!3449"}, dated: "2019-03-29, 2026-07-17", as: "key_expired",
		what: "The key comes again when the provider, or the client, has forgotten it.", right: "behind its window a key protects nothing: look it up, or leave it to a person"},
	{number: 9, name: "approved_is_a_flag", links: []string{"pydantic/pydantic-ai#5536"}, dated: "2026-07-18",
		row:  faults.Row{With: []string{"lease-uses:1"}, Faults: []faults.Fault{{What: faults.Kill, At: "sim/applied", Passage: 1}}, Submits: faults.Amounts(2000)},
		like: "crash_before_ack",
		what: "An approval for one time is a flag; the step commits, dies, and runs again under the same flag.", right: "an approval is used by one effect, once"},
	{number: 10, name: "other_than_approved", links: []string{"extra-org/extra#139", "pydantic/pydantic-ai#6968", "openai/openai-agents-python!5066"}, dated: "2026-09-11, 2026-07-30, 2026-09-18", as: "lease_out_of_scope",
		what: "A person approves one amount and another is carried out.", right: "authority is over the content, not over the call's id"},
	{number: 11, name: "timeout_is_no_failure", links: []string{"aws-samples/sample-agentcore-cloudfront-x402-payments#40"}, dated: "2026-09-10", as: "ack_lost",
		what: "A timeout is noted as a failure, and the payer is asked again.", right: "a timeout says nothing; ask, or leave it open"},
	{number: 12, name: "torn_line", links: []string{"can1357/oh-my-pi#8596", "lidge-jun/opencodex!4687", "elizaOS/eliza#30878"}, dated: "2026-08-15, 2026-09-15, 2026-09-07", as: "torn_tail",
		what: "A kill or a full disk tears the log's last line, and a record goes with it.", right: "the tail is cut, said, and what may have been in it is in doubt"},
	{number: 13, name: "unreadable_is_absent", dated: "a documented choice of idemkit's specification, 2026-08-02",
		row:  faults.Row{Needs: "journal", Faults: []faults.Fault{{What: faults.Kill, At: "sim/applied", Passage: 1}}, Outage: []string{"flip-journal-for:12s"}, Submits: faults.Amounts(2000)},
		like: "crash_before_ack",
		what: "A record that can't be read counts as never written, and the effect is made again. Twelve seconds later it can be read again.", right: "what can't be read is not absent: nothing is done before it is mended"},
	{number: 14, name: "recovered_while_alive", links: []string{"dbos-inc/dbos-transact-java#491", "dbos-inc/dbos-transact-ts!1219", "CherryHQ/cherry-studio#16291"}, dated: "2026-09-11, 2026-03-25, 2026-06-22", as: "sender_paused",
		what: "Recovery begins while the original is alive.", right: "a living owner is not taken over"},
	{number: 15, name: "woken_twice", links: []string{"vercel/workflow#2780", "vercel/workflow#3553"}, dated: "2026-07-06, 2026-08-14", as: "concurrent_submit",
		what: "Something else wakes a step that still runs, and it runs beside itself.", right: "one dispatch at a time; the other is told who is at it"},
	{number: 16, name: "hold_timed_out", links: []string{"use-agent-os/agent-os!824"}, dated: "2026-09-01", as: "cap_held_while_ambiguous",
		what: "What a worker holds of a cap is given back while its own effect may have landed.", right: "what is in doubt keeps its hold"},
	{number: 17, name: "cap_race", links: []string{"garrytan/gbrain#4365", "use-agent-os/agent-os#823"}, dated: "2026-08-20, 2026-09-01", as: "cap_race",
		what: "Several workers read the same total, all find room, and together spend more than the cap.", right: "check and hold are one step"},
	{number: 18, name: "fresh_key", links: []string{"square/square-mcp-server#31", "x402-foundation/x402#3208"}, dated: "2026-09-04", as: "crash_before_ack",
		what: "The model supplies the key, one for each request, and a retry is a request.", right: "the key comes from the approved request"},
	{number: 19, name: "fresh_call_id", links: []string{"openai/openai-agents-python#4254", "agentrust-io/cmcp#571"}, dated: "2026-08-06, 2026-08-25", as: "fresh_call_id",
		what: "Each retry has a call id of its own, so that nobody can see that it is one.", right: "identity lies above the call"},
	{number: 20, name: "turn_replayed", links: []string{"microsoft/agent-framework#3938"}, dated: "2026-08-10", as: "crash_after_ack",
		what: "Several steps are one unit; it dies behind the charge, and all of it runs again.", right: "each effect has an outcome of its own that survives"},
	{number: 21, name: "approval_spent", links: []string{"microsoft/agent-framework#7458"}, dated: "2026",
		row:  faults.Row{With: []string{"lease-uses:1"}, Faults: killedTold(), Submits: faults.Amounts(2000, 2000)},
		like: "duplicate_submit",
		what: "The approval is used and the effect made; then the run dies, and the same is asked again.", right: "the recorded result is given"},
	{number: 22, name: "killed_thrice", links: []string{"recoupable/app#1918"}, dated: "2026-07-31",
		row: faults.Row{Faults: []faults.Fault{{What: faults.Kill, At: "settling", Passage: 1}, {What: faults.Kill, At: "settling", Passage: 2}, {What: faults.Kill, At: "settling", Passage: 3}},
			Submits: faults.Amounts(2000)},
		like: "crash_loop",
		what: "A step takes longer than its platform allows; it is killed and run again three times.", right: "one landing, or one attempt and a person"},
	{number: 23, name: "lock_timed_out", links: []string{"rafidahmed870/queue-jobs-worker#11", "brendanlong/lion-reader!917"}, dated: "2026-09-06, 2026-06-19", as: "sender_paused",
		what: "A job outlives its lock; a second worker begins, and the first goes on.", right: "a lock that ends by itself proves nothing; whoever lives is not taken over"},
	{number: 24, name: "mandate_twice", links: []string{"google-agentic-commerce/AP2#346"}, dated: "2026-09-02", as: "one_approval_two_effects",
		what: "One signed mandate is presented twice and good both times.", right: "accepting it uses it up"},
	{number: 25, name: "expired_on_the_way", links: []string{"Universal-Commerce-Protocol/ucp#512", "kovyrin/agent-secret#170"}, dated: "2026-06-15, 2026-05-03", as: "lease_expired",
		what: "Authority ends between check and delivery.", right: "it is asked for in the step that dispatches"},
	{number: 26, name: "run_retried", links: []string{"agno-agi/agno#10366"}, dated: "2026-09-20",
		row:  faults.Row{Faults: killedTold(), Submits: faults.Amounts(2000, 2000)},
		like: "duplicate_submit",
		what: "The tool succeeded and answered; what comes after it fails, and the run is tried again from the top.", right: "a recorded success is used"},
	{number: 27, name: "transport_dropped", links: []string{"tya5/reyn!2600", "mcheemaa/mistri!26"}, dated: "2026-07-05, 2026-07-09", as: "wire_close_after",
		what: "The transport drops when the server has done it; the client connects again and repeats the call.", right: "what was never sent may be tried again; what was sent is in doubt"},
	{number: 28, name: "was_it_dialled", links: []string{"CALLE-AI/awesome-phone-call-agents#229"}, dated: "2026-08-31", as: "wire_black_hole",
		what: "A call that can't be taken back times out.", right: "nobody knows: ask, or leave it to a person"},
	{number: 29, name: "declared_and_ignored", links: []string{"MervinPraison/PraisonAI#4256"}, dated: "2026-08-23", as: "error_after_apply",
		what: "A tool says that it isn't idempotent, and the loops around it retry all the same.", right: "what a target declares decides at the dispatch"},
	{number: 30, name: "retried_by_the_library", links: []string{"ComposioHQ/composio#3654"}, dated: "2026-07-16", as: "landed_and_lost",
		what: "A library repeats a call without a key when no answer comes.", right: "as case 27"},
	{number: 31, name: "signed_again", links: []string{"x402-rs/x402-rs#108"}, dated: "2026-08-28", as: "wire_reset_after",
		what: "A new payment is signed for each attempt; the retry pays again.", right: "one payload and one key for one effect"},
	{number: 32, name: "crash_in_recovery", links: []string{"Log2n-io/Typhon#715", "berkeleydb/libdb!108"}, dated: "2026-08-08, 2026-07-30", as: "crash_in_recovery",
		what: "It dies again in the recovery.", right: "any number of deaths ends in the same place"},
	{number: 33, name: "persistence_off", links: []string{"MoonshotAI/kimi-code#2902"}, dated: "2026-09-10",
		row:  faults.Row{Needs: "journal", With: []string{"disk"}, Before: []string{"fill-disk-for:12s"}, Faults: []faults.Fault{{What: faults.Kill, At: "sim/applied", Passage: 1}}, Submits: faults.Amounts(2000)},
		like: "crash_before_ack",
		what: "One write finds the disk full; from then on nothing is kept, and work goes on. The process is killed when the effect was made.", right: "behind a failed write nothing is dispatched"},
	{number: 34, name: "torn_by_a_full_disk", links: []string{"timeplus-io/proton!1229"}, dated: "2026-09-20", as: "torn_tail",
		what: "A full disk leaves half a record at the log's end, and every start fails on it.", right: "the opening cuts the tail and goes on"},
	{number: 35, name: "compensated_twice", links: []string{"langchain-ai/langgraph#9002"}, dated: "2026-09-19", as: "crash_after_ack",
		what: "A compensation runs again when its run is resumed; here the refund is the compensation.", right: "a compensation is an effect with an id of its own"},
	{number: 36, name: "batch_in_part", links: []string{"medusajs/medusa#15306"}, dated: "2026-05-06", waits: "a column that refunds in batches",
		what: "Of a batch of refunds one fails, and the step reports success.", right: "a receipt for each"},
	{number: 37, name: "delivered_twice_at_once", links: []string{"SandeepVashishtha/Eventra#19032", "woocommerce/woocommerce-gateway-stripe#3326"}, dated: "2026-08-15, 2024-07-31", as: "concurrent_submit",
		what: "One event is delivered to two workers at once; each looks, and then marks.", right: "looking and marking are one step that workers share"},
	{number: 38, name: "intent_not_kept", links: []string{"cloudbase/garm#76"}, dated: "2023-02-06",
		row:  faults.Row{Needs: "journal", With: []string{"disk"}, Faults: killedTold(faults.Fault{What: "fail-sync", At: "intent", Passage: 1}), Submits: faults.Amounts(2000, 2000)},
		like: "crash_before_send",
		what: "The note that something is about to be made fails, and it is made all the same; then it is killed, and asked again.", right: "no durable intent, no dispatch"},
	{number: 39, name: "appends_lost", links: []string{"fredcai6/constellation-skills#636"}, dated: "2026-08-18", waits: "a column whose registry two writers overwrite",
		what: "Two writers at once lose entries of a registry, and recovery takes finished work for never done.", right: "one writer at a time, and the target is asked"},
	{number: 40, name: "no_receipt_of_failure", links: []string{"agent-receipts/obsigna#853"}, dated: "2026-06-14", as: "ack_lost",
		what: "Attempts that fail leave no receipt; that there was a retry can only be guessed.", right: "every attempt has a record"},
}

// incidentColumns are what the cases run against: plain practice, careful
// practice, and the gate.
var incidentColumns = slices.Concat(referenceColumns[:3], practices, handChecks[:4], referenceColumns[3:])

var incidentsDesk = desk{name: "incidents", rows: incidentRows(), columns: incidentColumns, declared: incidentDeclared}

// incidentRows are the rows of the cases that have one.
func incidentRows() (rows []faults.Row) {
	for _, i := range incidents {
		row, ok := i.baseRow()
		if !ok {
			continue
		}
		row.Name, row.Group, row.What = i.rowName(), "incidents", i.what
		rows = append(rows, row)
	}
	return rows
}

// baseRow is the row that a case is.
func (i incident) baseRow() (faults.Row, bool) {
	if i.waits != "" {
		return faults.Row{}, false
	}
	if i.as == "" {
		return i.row, true
	}
	all := slices.Concat(faults.Reference, faults.Further)
	at := slices.IndexFunc(all, func(r faults.Row) bool { return r.Name == i.as })
	if at < 0 {
		return faults.Row{}, false
	}
	return all[at], true
}

// incidentDeclared is what is prescribed for the row that a case is, or is like.
func incidentDeclared(table, row, column string) string {
	for _, i := range incidents {
		if i.rowName() != row || !strings.HasPrefix(column, "gate@") {
			continue
		}
		as := orElse(i.as, i.like)
		return orElse(faultsDeclared(table, as, column), declared(table, as, column))
	}
	return ""
}

// Incidents is what happened to people in public, case by case.
func Incidents() *Experiment {
	return &Experiment{
		Name:  "incidents",
		Short: "what happened to people in public, as cases at the refund desk",
		Long: `Each row is the smallest case of something that people reported in public, in our
words, with where it can be read. It runs at the refund desk whatever it was about
there. A case counts where some practice goes wrong in it.

ok: it held. BAD: it was violated. look: it held, and a person must look.`,
		Example: "  interlock-bench incidents\n  interlock-bench incidents --row case_02_other_words --words",
		Rows:    incidentsDesk.rowInfo(),
		Columns: incidentsDesk.columnInfo(),
		Cells:   incidentsDesk.cells("", incidentsDesk.columns),
		Run:     incidentsDesk.run,
		More:    incidentsDesk.more,
		Child:   work,
		Page:    incidentsPage,
	}
}

// incidentsPage renders results/incidents.md.
func incidentsPage(records []Record) string {
	d, r := incidentsDesk, indexRecords(records)
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	red := map[string][]string{}
	for _, record := range records {
		if record.Class().Mark() == "❌" && !strings.HasPrefix(record.Column, "gate@") {
			red[record.Row] = append(red[record.Row], record.Column)
		}
	}
	p("# %d public incidents, as cases at the refund desk", len(incidents))
	p("Made by `interlock-bench incidents --seed %s`. %d of the %d cases count: in each some practice goes wrong. Rows, columns and marks are read as in `refund.md`. What is told of an incident is the smallest case of it, in our words; the threads have the rest, and were linked as of November 2026. Every case runs at the refund desk, whatever it was about: an order stands for what was to be created, charged or merged.", r.seed(), len(red), len(incidents))
	p("✅ held · ❌ violated · ⚠️ held, and a person must look · — not judged, or the fault did not fire · n/a the row means nothing for this column")
	for _, part := range []struct {
		name    string
		columns []column
	}{
		{"Practices", slices.Concat(referenceColumns[:3], practices)},
		{"Careful by hand, and the gate", slices.Concat(handChecks[:4], referenceColumns[3:])},
	} {
		p("## %s", part.name)
		b.WriteString(d.table(r, "", d.rows, part.columns).Markdown() + "\n")
	}
	p("## Cases")
	t := table.Table{Header: []string{"case", "read at", "what happens", "what should come of it", "the row it is", "wrong in"}}
	for _, i := range incidents {
		if i.waits != "" {
			continue
		}
		as := "its own"
		if i.as != "" {
			as = "`" + i.as + "`"
		}
		t.Rows = append(t.Rows, []string{"`" + i.rowName() + "`", i.source(), i.what, i.right, as, orNone(list(red[i.rowName()]))})
	}
	b.WriteString(t.Markdown() + "\n")
	p("`interlock-bench incidents --row CASE` runs one case; the last column of the table below has the line for each of its cells.")
	p("## Not yet")
	for _, i := range incidents {
		switch {
		case i.waits != "":
			fmt.Fprintf(&b, "- case %d (%s): %s It waits for %s.\n", i.number, i.source(), i.what, i.waits)
		case len(red[i.rowName()]) == 0:
			fmt.Fprintf(&b, "- `%s` doesn't count: no practice here goes wrong in it.\n", i.rowName())
		}
	}
	b.WriteString("\n")
	p("## Notes")
	p("- Cases 5 and 13 have no thread: the one is the empty cell between two others, the other a choice that a specification documents.")
	p("- Case 10 is about authority over content by a lease; decisions by people are bound to content as well (see `docs/contract.md`, I7), and have no row at the desk yet.")
	p("- Case 40 is about records: the column `record` of `results/scoreboard.md` counts what each column's own artefacts show of the attempt that failed.")
	return strings.TrimSuffix(b.String(), "\n")
}

// source is where an incident can be read, and when it was.
func (i incident) source() string {
	var links []string
	for _, l := range i.links {
		url, text := address(l)
		links = append(links, "["+text+"]("+url+")")
	}
	return strings.Join(append(links, i.dated), ", ")
}
