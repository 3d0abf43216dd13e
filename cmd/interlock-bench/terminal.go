package main

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// plainWidth is how wide tables are where nobody says otherwise.
const plainWidth = 80

// widthOf is how wide text on w may be.
func widthOf(w io.Writer) int {
	if width, ok := sizeOf(w); ok {
		return width
	}
	return plainWidth
}

// sizeOf is the width of the terminal that w is, or what COLUMNS says, and
// whether anybody says anything.
func sizeOf(w io.Writer) (width int, ok bool) {
	if f, ok := fileOf(w); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width, true
		}
	}
	width, err := strconv.Atoi(os.Getenv("COLUMNS"))
	return max(width, 0), err == nil && width > 0
}

// progress returns a function that keeps one line of a terminal up to date, and
// one that takes it away. Where w is no terminal, or a dumb one, update is nil
// and clear does nothing.
func progress(w io.Writer, name string) (update func(done, total int), clear func()) {
	f, ok := fileOf(w)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil, func() {}
	}
	const erase = "\r\x1b[K"
	update = func(done, total int) { fmt.Fprintf(f, "%s%s: %d of %d trials", erase, name, done, total) }
	return update, func() { fmt.Fprint(f, erase) }
}
