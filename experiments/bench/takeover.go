package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// SenderVariable names the environment variable that tells a process of this
// program that it is a sender to be killed; its value is a Sender in JSON.
const SenderVariable = "INTERLOCK_BENCH_SENDER"

// Sender is what a sender is given: the folder of its gate, the store, "file" or
// "sqlite", and the request that it stops in.
type Sender struct{ Dir, Store, Request string }

// ServeSender is the sender's whole life where this process was started as one,
// and does not return then: it gets as far as its send, says so and waits for its
// death.
func ServeSender() {
	given, ok := os.LookupEnv(SenderVariable)
	if !ok {
		return
	}
	if err := send(given); err != nil {
		fmt.Fprintln(os.Stderr, "interlock-bench:", err)
	}
	os.Exit(70)
}

func send(given string) error {
	var s Sender
	if err := json.Unmarshal([]byte(given), &s); err != nil {
		return err
	}
	sending := memory{send: func() {
		fmt.Println("sending")
		for { // until killed: the supervisor keeps the other end of standard input
			if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
				os.Exit(70)
			}
		}
	}}
	b, err := open(context.Background(), s.Dir, setup{store: s.Store, target: sending})
	if err != nil {
		return err
	}
	return b.submit(context.Background(), s.Request, true)
}

// taken is how long it took from the SIGKILL of a sender in the middle of its
// send until another process had its effect, and until that had settled it.
type taken struct{ claimed, settled time.Duration }

// takeover kills a sender and takes over. On the file store the other process
// opens the journal; in a database it has it open already.
func takeover(ctx context.Context, dir, store, request string) (taken, error) {
	self, err := os.Executable()
	if err != nil {
		return taken{}, err
	}
	given, err := json.Marshal(Sender{dir, store, request})
	if err != nil {
		return taken{}, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), SenderVariable+"="+string(given))
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return taken{}, err
	}
	defer in.Close()
	said := bufio.NewScanner(out)
	if !said.Scan() || said.Text() != "sending" {
		return taken{}, fmt.Errorf("bench: the sender didn't get to its send: %w", errors.Join(said.Err(), cmd.Wait()))
	}
	var b *bed
	var claims journal.Store // that another process has open already
	if store == "sqlite" {
		if b, err = open(ctx, dir, setup{store: store}); err != nil {
			return taken{}, err
		}
		claims, err = b.journal(setup{store: store})(func(journal.Entry) error { return nil })
		if err != nil {
			return taken{}, err
		}
		defer claims.Close()
	}
	effect := protocol.EffectID(namespace, request, 0)
	began := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		return taken{}, err
	}
	var t taken
	for held := (*journal.HeldError)(nil); t.claimed == 0; {
		var c *journal.Claim
		if store == "file" {
			b, err = open(ctx, dir, setup{store: store})
		} else {
			c, err = claims.Claim(ctx, effect)
		}
		if err == nil {
			t.claimed = time.Since(began)
			c.Release()
		} else if !errors.As(err, &held) || time.Since(began) > time.Minute {
			return t, errors.Join(err, cmd.Wait())
		}
	}
	for t.settled == 0 {
		results, err := b.gate.Recover(ctx, protocol.RecoverOptions{})
		if err != nil {
			return t, err
		}
		for _, r := range results {
			if r.Effect == effect && r.Status.Final == protocol.Committed {
				t.settled = time.Since(began)
			}
		}
		if time.Since(began) > time.Minute {
			return t, fmt.Errorf("bench: %s was not settled", request)
		}
	}
	cmd.Wait() // it was killed
	return t, b.close()
}
