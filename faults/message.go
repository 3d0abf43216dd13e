package faults

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// The control channel is a unix socket that a child finds by this name in its
// environment. Messages are JSON lines. A child uses one connection for each
// call that blocks: it writes a question and reads its reply. Two calls are
// longer than that:
//
//	wait    is replied to when the time has come, or when a cancel follows on
//	        the same connection, whichever is first; once, in any case.
//	arm     is replied to at once. From then to the disarm, which is replied to,
//	        the supervisor may say that the timer fired, and the child answers
//	        with fired when everything that hung on it is undone.
const controlVariable = "INTERLOCK_CONTROL"

// maxMessage bounds one message, in bytes.
const maxMessage = 1 << 20

type op string

const (
	opHello  op = "hello"
	opAt     op = "at"
	opTell   op = "tell"
	opAsk    op = "ask"
	opTime   op = "time"
	opWait   op = "wait"
	opCancel op = "cancel"
	opArm    op = "arm"
	opFired  op = "fired"
	opDisarm op = "disarm"
	opFlow   op = "flow"
)

// question is what a child says.
type question struct {
	Op      op              `json:"op"`
	Point   trace.Point     `json:"point,omitempty"`
	Kind    history.Kind    `json:"kind,omitempty"`
	Subject string          `json:"subject,omitempty"` // ask: what
	Body    json.RawMessage `json:"body,omitempty"`
	For     time.Duration   `json:"for,omitempty"` // wait, arm
	N       int             `json:"n,omitempty"`   // flow: by how many more; fired: waits that ended with the timer
}

// reply is what the supervisor says.
type reply struct {
	Start int             `json:"start,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"` // hello: the task; ask: the answer
	Error string          `json:"error,omitempty"`
	Now   time.Time       `json:"now,omitzero"`
	Mono  time.Duration   `json:"mono,omitempty"`
	Fired bool            `json:"fired,omitempty"` // no reply: the timer of this connection fired
}

// link is one connection, of either side.
type link struct {
	conn net.Conn
	in   *bufio.Reader
	mu   sync.Mutex // one write at a time
}

func newLink(c net.Conn) *link { return &link{conn: c, in: bufio.NewReaderSize(c, 512)} }

func (l *link) write(message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.conn.Write(append(line, '\n'))
	return err
}

var errMessage = errors.New("faults: a message on the control channel is too long")

func (l *link) read(into any) error {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxMessage:
			return errMessage
		case err == nil:
			return json.Unmarshal(line, into)
		case err != bufio.ErrBufferFull:
			return err
		}
	}
}
