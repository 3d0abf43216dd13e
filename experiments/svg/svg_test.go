package svg_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments/svg"
)

// elements reads a drawing as XML and returns the names of its elements and its
// text.
func elements(t *testing.T, drawing string) (names []string, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(drawing))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return names, text
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, drawing)
		}
		switch token := token.(type) {
		case xml.StartElement:
			names = append(names, token.Name.Local)
		case xml.CharData:
			text += string(token)
		}
	}
}

// Whatever a text holds, it stays text.
func TestTextIsEscaped(t *testing.T) {
	for _, c := range []struct{ in, out, why string }{
		{"<script>alert(1)</script>", "<script>alert(1)</script>", "markup is words here"},
		{`a & b "c" 'd'`, `a & b "c" 'd'`, "so are entities and quotes"},
		{"a\x00b\x1bc\nd", "a b c d", "XML has no room for control characters"},
		{"a\u202eb", "a b", "nor do we for text that turns around"},
		{"bad \xff utf-8", "bad   utf-8", "or is none"},
	} {
		d := svg.New(10, 10, c.in, c.in)
		d.Text(1, 2, svg.Middle, svg.Ink, c.in)
		names, text := elements(t, d.String())
		if got := strings.Join(names, " "); got != "svg title desc style rect text" {
			t.Errorf("%q: elements %s: %s", c.in, got, c.why)
		}
		if n := strings.Count(text, c.out); n != 3 {
			t.Errorf("%q: is there %d times as %q, want title, description and text: %s", c.in, n, c.out, c.why)
		}
	}
}

func TestWrapKeepsEveryCharacter(t *testing.T) {
	for _, text := range []string{"", "one", "PROPOSED written and synced: the decision is recorded", strings.Repeat("W", 200), "a " + strings.Repeat("漢", 50) + " b"} {
		for _, width := range []float64{1, 40, 180} {
			lines := svg.Wrap(text, width)
			if got := strings.ReplaceAll(strings.Join(lines, ""), " ", ""); got != strings.ReplaceAll(text, " ", "") {
				t.Errorf("%q in %v became %q", text, width, lines)
			}
			for _, l := range lines {
				if svg.Width(l) > width && len([]rune(l)) > 1 {
					t.Errorf("%q in %v has the line %q, which is %v wide", text, width, l, svg.Width(l))
				}
			}
		}
	}
}

func ExampleDrawing() {
	d := svg.New(120, 40, "a kill", "one life that ends")
	d.Rect(10, 5, 6, 20, svg.Accent)
	d.Cross(13, 25, 10, svg.Bad)
	d.Text(24, 29, svg.Start, svg.Bad, "killed")
	file := d.String()
	fmt.Println(strings.Contains(file, "<script"), strings.Contains(file, ">killed</text>"))
	// Output: false true
}
