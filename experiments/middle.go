package experiments

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/proxy"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// putMiddle puts a middle between the column and the service.
func (w *refundWorld) putMiddle() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.middle = proxy.New(w.stage.As("wire"), l,
		func() (net.Conn, error) { return net.Dial("unix", w.socket()) },
		func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Path == "/refunds" })
	w.network, w.address = "tcp", l.Addr().String()
	return nil
}

// behindMiddle is the stage for a service whose client may be the middle: that
// one lives on when the process that sent a late request is dead.
type behindMiddle struct {
	faults.Role
	world *refundWorld
}

func (b behindMiddle) Pass(p trace.Point, subject string) bool {
	alive := b.Role.Pass(p, subject)
	return alive || b.world.middle != nil && b.world.middle.Delivering()
}

// seenOnWire is what a trial with a middle shows besides: how often the column
// sent, how many requests were on the wire, and a digest of everything that the
// column did and saw up to its first word.
func (w *refundWorld) seenOnWire(h history.History) map[string]any {
	sends := 0
	digest := sha256.New()
	told := false
	for _, e := range h {
		if e.Kind == history.Passed && e.Point == sim.BeforeSend {
			sends++
		}
		if told || e.Who != "worker#1" {
			continue
		}
		told = e.Kind == history.Told
		e.N = 0 // what others did in between is not seen
		line, err := json.Marshal(e)
		if err != nil {
			panic(err) // it was decoded
		}
		digest.Write(append(line, '\n'))
	}
	return map[string]any{"sends": sends, "on_the_wire": w.middle.Count(), "seen": hex.EncodeToString(digest.Sum(nil)[:8])}
}
