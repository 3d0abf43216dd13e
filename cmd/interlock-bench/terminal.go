package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// plainWidth is how wide tables are where nobody says otherwise.
const plainWidth = 80

// widthOf is the width of the terminal that w is, or plainWidth.
func widthOf(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return plainWidth
}

// progress returns a function that keeps one line of a terminal up to date, and
// one that takes it away. Where w is no terminal, or a dumb one, update is nil
// and clear does nothing.
func progress(w io.Writer, name string) (update func(done, total int), clear func()) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil, func() {}
	}
	const erase = "\r\x1b[K"
	update = func(done, total int) { fmt.Fprintf(f, "%s%s: %d of %d trials", erase, name, done, total) }
	return update, func() { fmt.Fprint(f, erase) }
}
