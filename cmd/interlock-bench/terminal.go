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

// progress returns a function that keeps one line of a terminal up to date and
// takes it away at the end. It is nil where w is no terminal, or a dumb one.
func progress(w io.Writer, name string) func(done, total int) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	const clear = "\r\x1b[K"
	return func(done, total int) {
		if done == total {
			fmt.Fprint(f, clear)
			return
		}
		fmt.Fprintf(f, "%s%s: %d of %d trials", clear, name, done, total)
	}
}
