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
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/interlock-bench/interlock-bench/experiments"
	measure "github.com/interlock-bench/interlock-bench/experiments/bench"
	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

func main() {
	experiments.ServeChild()
	measure.ServeSender()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitHeld        = 0
	exitBroken      = 1
	exitUnjudged    = 2
	exitUsage       = 64
	exitFailed      = 70
	exitInterrupted = 130
)

// exitCodes says what each means, for help and pages.
var exitCodes = []struct {
	code int
	what string
}{
	{exitHeld, "everything is as declared, a declared AMBIGUOUS included"},
	{exitBroken, "a promise is broken, results drifted, a stored history is judged otherwise, or a person's answer is not taken"},
	{exitUnjudged, "a trial was not judged, its fault did not happen, or a file or journal can't be read"},
	{exitUsage, "the command line asks for nothing that can be done"},
	{exitFailed, "the harness failed, which says nothing of what is measured"},
	{exitInterrupted, "ended by a signal; what was not finished has written no results, and what --keep stored stays"},
}

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
	out := &output{Writer: stdout}
	b := &bench{all: all, stdout: out, stderr: stderr}
	root := b.root()
	root.PersistentPreRunE = refuseEmpty
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if out.err != nil && (err == nil || errors.Is(err, out.err)) {
		err = &exit{exitFailed, fmt.Sprintf("standard output can't be written, so what it should say is lost: %v", out.err)}
	}
	if err == nil {
		return exitHeld
	}
	code := b.code(ctx, err)
	why := err.Error()
	for _, part := range []string{"experiments: ", "faults: "} {
		why = strings.TrimPrefix(why, part)
	}
	if code == exitInterrupted {
		why = "interrupted; what was not finished has written no results, and what --keep stored stays"
	}
	fmt.Fprintln(stderr, "interlock-bench:", why)
	return code
}

// refuseEmpty refuses a flag that is given without a value: it would count as not
// given.
func refuseEmpty(cmd *cobra.Command, _ []string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if v := f.Value.String(); v == "" || v == "[]" && f.Value.Type() == "stringSlice" {
			err = fmt.Errorf("--%s is given and empty; give it a value, or leave it out", f.Name)
		}
	})
	return err
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
	case !b.began, errors.As(err, &name), slices.ContainsFunc(asked, func(of error) bool { return errors.Is(err, of) }):
		return exitUsage
	case slices.ContainsFunc(unread, func(of error) bool { return errors.Is(err, of) }):
		return exitUnjudged
	}
	return exitFailed
}

// asked are the errors of what was asked for, not of doing it.
var asked = []error{experiments.ErrNoCell, experiments.ErrNothingKept, experiments.ErrNoFolder, faults.ErrTrial, experiments.ErrNoLog, errNoReceipt}

// unread are the errors of a file that is there and can't be judged by.
var unread = []error{journal.ErrCorrupt, journal.ErrFormat, journal.ErrUnsafe, protocol.ErrReceipt, experiments.ErrRecord, experiments.ErrKept}
