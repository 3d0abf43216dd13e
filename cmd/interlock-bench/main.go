// Interlock-bench measures what happens to an agent's effect when processes die,
// authority is revoked and facts change.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/interlock-bench/interlock-bench/experiments"
)

func main() {
	experiments.ServeChild()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitHeld        = 0   // everything is as declared
	exitBroken      = 1   // a promise is broken, or results drifted
	exitUnjudged    = 2   // a trial was not judged, or its fault did not happen
	exitUsage       = 64  // the command line says nothing that can be done
	exitFailed      = 70  // the harness failed
	exitInterrupted = 130 // ended by a signal
)

// exit is an error that knows its code.
type exit struct {
	code int
	why  string
}

func (e *exit) Error() string { return e.why }

// run runs one command line over all experiments and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runWith(ctx, experiments.All(), args, stdout, stderr)
}

func runWith(ctx context.Context, all []*experiments.Experiment, args []string, stdout, stderr io.Writer) int {
	b := &bench{all: all, stdout: stdout, stderr: stderr}
	root := b.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitHeld
	}
	code := b.code(ctx, err)
	why := strings.TrimPrefix(err.Error(), "experiments: ")
	if code == exitInterrupted {
		why = "interrupted; nothing of the unfinished run was written"
	}
	fmt.Fprintln(stderr, "interlock-bench:", why)
	return code
}

// code says how the process ends after err. What cobra refuses before a command
// begins is usage.
func (b *bench) code(ctx context.Context, err error) int {
	var known *exit
	var name *experiments.NameError
	switch {
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.As(err, &known):
		return known.code
	case !b.began, errors.As(err, &name), errors.Is(err, experiments.ErrNoCell):
		return exitUsage
	}
	return exitFailed
}
