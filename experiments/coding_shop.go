package experiments

import (
	"strings"

	"github.com/interlock-bench/interlock-bench/targets/git"
)

// shop is the repository that the agents change: a small module whose program
// prints what is registered. Agent A's changes are to it, and so is agent B's.
var shop = map[string]string{
	"go.mod": "module shop\n\ngo 1.21\n",
	"main.go": `package main

import (
	"fmt"

	"shop/report"
)

func main() {
	for _, line := range report.Lines() {
		fmt.Println(line)
	}
}
`,
	"money/money.go": shopMoney,
	"report/report.go": `// Package report prints what was registered, in order.
package report

type report struct {
	name string
	text func() string
}

var reports []report

// Register adds a report.
func Register(name string, text func() string) {
	reports = append(reports, report{name, text})
}

// Lines are all reports, one a line.
func Lines() (lines []string) {
	for _, r := range reports {
		lines = append(lines, r.name+": "+r.text())
	}
	return lines
}
`,
	"report/reports.go": `package report

import (
	"strconv"

	"shop/money"
)

func init() {
	Register("net cents", func() string { return strconv.FormatInt(money.Net(12000), 10) })
}
`,
	"report/summary.go": shopSummary,
}

const shopMoney = `// Package money is about amounts of money.
package money

import "strconv"

// Format writes cents as dollars.
func Format(cents int64) string {
	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return sign + "$" + strconv.FormatInt(cents/100, 10) + "." + pad(cents%100)
}

// pad writes two digits.
func pad(n int64) string {
	if n < 10 {
		return "0" + strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt(n, 10)
}

// Net is an amount without its tax.
func Net(gross int64) int64 { return gross * 100 / 120 }
`

const shopSummary = `package report

import "shop/money"

func init() {
	Register("turnover", func() string { return money.Format(990000) })
}
`

// What agent B is to do, and what its program then has to print, once.
const (
	invoiceName = "invoice"
	invoiceLine = "invoice: due $1250.50, refund -$5.00"
)

// script is what the scripted agent B does for a task: which files it reads,
// which calls it tries, and what it writes. uses is the name under which it finds
// the function that it needs.
type script struct {
	Open  []string
	Try   []string
	Edits []git.Edit
}

// invoice appends a report that formats two amounts, of which B tried one.
func invoice(uses string) script {
	return script{
		Open: []string{"report/reports.go", "report/report.go", "money/money.go"},
		Try:  []string{"shop/money." + uses + "(125050)"},
		Edits: []git.Edit{{Path: "report/reports.go", Op: git.Append, Text: `
func init() {
	Register("invoice", func() string {
		return "due " + money.` + uses + `(125050) + ", refund " + money.` + uses + `(-500)
	})
}
`}},
	}
}

// currency is the same with a function of B's own.
func currency() script {
	s := invoice("FormatCurrency")
	s.Try = []string{"shop/money.Format(125050)"}
	s.Edits = append(s.Edits, git.Edit{Path: "money/format_currency.go", Op: git.Write, Text: `package money

// FormatCurrency writes cents as dollars.
func FormatCurrency(cents int64) string { return Format(cents) }
`})
	return s
}

// duplicated is the function that both agents write in one of the rows.
const duplicated = "FormatCurrency"

// The changes of agent A, each a whole file anew.
var (
	renames = []git.Edit{
		{Path: "money/money.go", Op: git.Write, Text: edited(shopMoney, "// Format writes", "// Render writes", "func Format(", "func Render(")},
		{Path: "report/summary.go", Op: git.Write, Text: edited(shopSummary, "money.Format(", "money.Render(")},
	}
	duplicates = []git.Edit{{Path: "money/currency.go", Op: git.Write, Text: `package money

// FormatCurrency writes cents with the currency's name.
func FormatCurrency(cents int64) string { return Format(cents) + " USD" }
`}}
	reformats = []git.Edit{{Path: "money/money.go", Op: git.Write, Text: edited(shopMoney,
		"// Format writes cents as dollars.", "// Format writes an amount in cents as dollars,\n// with two digits behind the point.",
		`	return sign + "$" + strconv.FormatInt(cents/100, 10) + "." + pad(cents%100)`,
		"\treturn (sign + \"$\" +\n\t\tstrconv.FormatInt(cents/100, 10) +\n\t\t\".\" + pad(cents%100))",
		"return gross * 100 / 120 }", "return gross * 100 / 120 }\n\n// Tax is the tax in an amount.\nfunc Tax(gross int64) int64 { return gross - Net(gross) }")}}
	inverts = []git.Edit{{Path: "money/money.go", Op: git.Write, Text: edited(shopMoney,
		`	if cents < 0 {
		sign, cents = "-", -cents
	}`, `	if cents > 0 { // what is due is owed
		sign = "-"
	} else {
		cents = -cents
	}`)}}
	refactors = []git.Edit{{Path: "money/money.go", Op: git.Write, Text: edited(shopMoney,
		`	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return sign + "$" + strconv.FormatInt(cents/100, 10) + "." + pad(cents%100)`,
		`	if cents < 0 {
		return "-" + Format(-cents)
	}
	return "$" + strconv.FormatInt(cents/100, 10) + "." + pad(cents%100)`)}}
	brackets = []git.Edit{{Path: "money/money.go", Op: git.Write, Text: edited(shopMoney,
		`	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return sign + `, `	if cents < 0 {
		return "(" + Format(-cents) + ")"
	}
	return `)}}
)

// edited is text with each old part replaced by the new one behind it.
func edited(text string, oldNew ...string) string {
	return strings.NewReplacer(oldNew...).Replace(text)
}
