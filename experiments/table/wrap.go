package table

import (
	"strings"
	"unicode/utf8"
)

// narrowest is the least width that Wrap keeps to.
const narrowest = 40

// Wrap breaks one line at its spaces, or behind a comma, so that no line is
// longer than width, and begins the further ones with indent spaces. A word that
// is longer than a line is broken inside. A width below 40 counts as 40.
func Wrap(line string, indent, width int) string {
	width = max(width, narrowest)
	return wrap(line, min(indent, width/2), width)
}

func wrap(line string, indent, width int) string {
	var b strings.Builder
	for utf8.RuneCountInString(line) > width {
		cut := len(firstRunes(line, width))
		rest := cut
		space := strings.LastIndexByte(line[:cut+1], ' ')
		if comma := strings.LastIndexByte(line[:cut], ','); comma > indent+(width-indent)/2 && comma > space {
			cut, rest = comma+1, comma+1
		} else if space > indent && strings.TrimSpace(line[:space]) != "" {
			cut, rest = space, space+1
		}
		b.WriteString(strings.TrimRight(line[:cut], " ") + "\n")
		line = strings.Repeat(" ", indent) + strings.TrimLeft(line[rest:], " ")
	}
	b.WriteString(line)
	return b.String()
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
