// Package svg writes drawings that stand alone: no script, no font and no file
// beside them. Text stays text, so that it can be selected and searched. Black
// on white, and light on dark where the reader prefers that.
package svg

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Style is how a shape or a text looks. The zero value is Ink.
type Style int

const (
	Ink    Style = iota // what is to be read
	Quiet               // what stands behind it
	Accent              // what moves: requests, money
	Bad                 // deaths, and what is violated
	Good                // what held
	Warn                // what a person must look at
	Strong              // Ink in bold
	Plane               // an area, no line
)

// styles are the names and colours of the styles: on white, and on dark.
var styles = []struct{ name, light, dark string }{
	Ink:    {"ink", "#1b1f24", "#e6edf3"},
	Quiet:  {"quiet", "#6e7781", "#8b949e"},
	Accent: {"accent", "#0550ae", "#79c0ff"},
	Bad:    {"bad", "#b3261e", "#ff7b72"},
	Good:   {"good", "#116329", "#56d364"},
	Warn:   {"warn", "#7d4e00", "#e3b341"},
	Strong: {"strong", "#1b1f24", "#e6edf3"},
	Plane:  {"plane", "#eef1f4", "#21262d"},
}

// FontSize is that of every text, in the units of a drawing.
const FontSize = 12

// Drawing is one drawing under way. Coordinates grow to the right and down. What
// is drawn later lies above.
type Drawing struct {
	width, height float64
	title, desc   string
	body          strings.Builder
}

// New begins a drawing. Readers that can't see it get title and desc.
func New(width, height float64, title, desc string) *Drawing {
	return &Drawing{width: width, height: height, title: title, desc: desc}
}

// Line draws a line.
func (d *Drawing) Line(x1, y1, x2, y2 float64, s Style) { d.line(x1, y1, x2, y2, s, "") }

// Dashed draws a dashed line.
func (d *Drawing) Dashed(x1, y1, x2, y2 float64, s Style) {
	d.line(x1, y1, x2, y2, s, ` stroke-dasharray="4 3"`)
}

func (d *Drawing) line(x1, y1, x2, y2 float64, s Style, more string) {
	fmt.Fprintf(&d.body, "<path class=\"%s-line\" d=\"M%s %sL%s %s\"%s/>\n", styles[s].name, n(x1), n(y1), n(x2), n(y2), more)
}

// Arrow draws a horizontal line with a head at x2.
func (d *Drawing) Arrow(x1, x2, y float64, s Style) {
	back := 6.0
	if x2 > x1 {
		back = -back
	}
	d.Line(x1, y, x2, y, s)
	fmt.Fprintf(&d.body, "<path class=\"%s\" d=\"M%s %sl%s -4v8z\"/>\n", styles[s].name, n(x2), n(y), n(back))
}

// Cross marks a point.
func (d *Drawing) Cross(x, y, size float64, s Style) {
	fmt.Fprintf(&d.body, "<path class=\"%s-line\" stroke-width=\"2.5\" d=\"M%s %sl%s %sm0 -%[5]sl-%[4]s %[5]s\"/>\n",
		styles[s].name, n(x-size/2), n(y-size/2), n(size), n(size))
}

// Dot marks a point, too.
func (d *Drawing) Dot(x, y, radius float64, s Style) {
	fmt.Fprintf(&d.body, "<circle class=%q cx=%q cy=%q r=%q/>\n", styles[s].name, n(x), n(y), n(radius))
}

// Rect fills a rectangle.
func (d *Drawing) Rect(x, y, width, height float64, s Style) {
	fmt.Fprintf(&d.body, "<rect class=%q x=%q y=%q width=%q height=%q/>\n", styles[s].name, n(x), n(y), n(width), n(height))
}

// Anchor says which end of a text its x is.
type Anchor int

const (
	Start Anchor = iota
	Middle
	End
)

// Text writes one line of text whose base line is at y. Any text is taken;
// characters that XML has no room for become spaces.
func (d *Drawing) Text(x, y float64, a Anchor, s Style, text string) {
	anchor := [...]string{"", ` text-anchor="middle"`, ` text-anchor="end"`}[a]
	fmt.Fprintf(&d.body, "<text class=%q x=%q y=%q%s>%s</text>\n", styles[s].name, n(x), n(y), anchor, escape(text))
}

// String is the drawing as a file of its own. Equal drawings are equal bytes.
func (d *Drawing) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %s %s\" width=%q height=%q role=\"img\" aria-labelledby=\"title desc\">\n",
		n(d.width), n(d.height), n(d.width), n(d.height))
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n<style>\n", escape(d.title), escape(d.desc))
	fmt.Fprintf(&b, "text{font:%dpx system-ui,'Segoe UI','DejaVu Sans',sans-serif;white-space:pre}\n.strong{font-weight:bold}\npath{stroke-width:1.2}\n", FontSize)
	paint := func(paper string, colour func(i int) string) {
		fmt.Fprintf(&b, ".paper{fill:%s}\n", paper)
		for i, s := range styles {
			fmt.Fprintf(&b, ".%s{fill:%s}.%[1]s-line{stroke:%[2]s;fill:none}\n", s.name, colour(i))
		}
	}
	paint("#ffffff", func(i int) string { return styles[i].light })
	b.WriteString("@media (prefers-color-scheme:dark){\n")
	paint("#0d1117", func(i int) string { return styles[i].dark })
	fmt.Fprintf(&b, "}\n</style>\n<rect class=\"paper\" width=%q height=%q/>\n%s</svg>\n", n(d.width), n(d.height), d.body.String())
	return b.String()
}

// Wrap breaks text at spaces into lines that fit into width; a word that doesn't
// is broken anywhere. Widths are those of a usual sans-serif font, taken rather
// too wide than too narrow.
func Wrap(text string, width float64) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case Width(line+" "+word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
		for Width(line) > width && utf8.RuneCountInString(line) > 1 {
			runes := []rune(line)
			fits := len(runes) - 1
			for fits > 1 && Width(string(runes[:fits])) > width {
				fits--
			}
			lines = append(lines, string(runes[:fits]))
			line = string(runes[fits:])
		}
	}
	return append(lines, line)
}

// Width is about how wide a text is.
func Width(text string) float64 {
	w := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune("iljtfrI.,:;'|!()[] /", r):
			w += 0.36
		case strings.ContainsRune("mwMW@%", r), r > 0x2e80:
			w += 0.98
		case 'A' <= r && r <= 'Z', r == '_', r == '#', r == '=', r == '+':
			w += 0.7
		default:
			w += 0.62
		}
	}
	return w * FontSize
}

// n prints a coordinate with no more digits than it needs.
func n(v float64) string {
	s := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

func escape(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError || r == 0x202e || r >= 0xfffe && r <= 0xffff {
			return ' '
		}
		return r
	}, entities.Replace(text))
}

var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")
