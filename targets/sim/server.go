// Package sim is a simulated payment service and a plain client for it.
//
// Server is a refund service as awkward as real ones: keys that expire, lookups
// that lag, requests that land late, answers that never come. What it can do is
// a Profile, where it lives is a Host, and everything that happens in it is
// recorded there before its client goes on. Client is what a careful programmer
// writes for such a service.
package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/protocol/trace"
)

// Headers of a request for money. The body says what; they say which.
const (
	HeaderKey      = "Idempotency-Key"
	HeaderEffect   = "Effect-Reference"
	HeaderAnchor   = "Anchor"
	HeaderToken    = "Fencing-Token"
	HeaderPremises = "Premises" // JSON object of names and values
	HeaderReplayed = "Idempotent-Replayed"
)

// maxBody bounds what the service reads of one request.
const maxBody = 64 << 10

// Server is one simulated service. It is an http.Handler; Start, Down and Up
// give it a listener of its own. Everything it holds survives Down. Methods may
// be called by several goroutines.
//
//	POST /refunds                       a request for money
//	GET  /refunds?effect=E              the refunds of an effect, where the profile has lookup
//	GET  /orders/{order}?case=C&effect=E  facts, the effect's own refunds left out of "others"
//	GET  /leases/{lease}                the lease desk
//	POST /fences                        {"effect","token"}, where the profile has fencing
type Server struct {
	host    Host
	profile Profile
	mux     *http.ServeMux

	mu     sync.Mutex
	orders map[string]*Order
	leases map[string]Lease
	keys   map[string]*key
	fences map[string]string // the greatest token of an effect
	ledger []Entry
	access []Access

	returned    map[string]bool  // refunds that a bank returned
	chargedBack map[string]int64 // cents, by order

	queue  []*refund // accepted, neither applied nor discarded, in order
	number int       // of requests for money
	faults map[Fault]int
	delay  time.Duration

	life   int // raised by every Down; a handler of an earlier life answers nothing
	down   bool
	addr   net.Addr
	serve  *http.Server
	served chan struct{}
	holds  map[*hold]bool
}

// New is a service without orders, not listening.
func New(h Host, p Profile) *Server {
	s := &Server{
		host: h, profile: p, mux: http.NewServeMux(),
		orders: map[string]*Order{}, leases: map[string]Lease{}, keys: map[string]*key{},
		fences: map[string]string{}, returned: map[string]bool{}, chargedBack: map[string]int64{}, faults: map[Fault]int{}, holds: map[*hold]bool{},
	}
	s.mux.HandleFunc("POST /refunds", s.handleRefund)
	s.mux.HandleFunc("GET /refunds", s.handleLookup)
	s.mux.HandleFunc("GET /orders/{order}", s.handleOrder)
	s.mux.HandleFunc("GET /leases/{lease}", s.handleLease)
	s.mux.HandleFunc("POST /fences", s.handleFence)
	return s
}

// Profile is what the service can do.
func (s *Server) Profile() Profile { return s.profile }

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Start serves on l, which the server closes. Nil means that it is listening.
func (s *Server) Start(l net.Listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serve != nil {
		return fmt.Errorf("%w: the service listens on %s already", ErrWorld, s.addr)
	}
	s.addr, s.down = l.Addr(), false
	s.serve, s.served = &http.Server{Handler: s}, make(chan struct{})
	go func(h *http.Server, served chan struct{}) {
		defer close(served)
		h.Serve(l)
	}(s.serve, s.served)
	return nil
}

// Queue says what becomes of accepted requests when the service dies.
type Queue bool

const (
	LoseQueue Queue = false
	KeepQueue Queue = true
)

// Down is the death of the service: the listener and every connection are
// closed, nothing is applied. What was accepted and not applied is lost, or
// waits for Up.
func (s *Server) Down(q Queue) error {
	s.mu.Lock()
	if s.serve == nil {
		s.mu.Unlock()
		return fmt.Errorf("%w: the service is not listening", ErrWorld)
	}
	serve, served := s.serve, s.served
	s.serve, s.down, s.life = nil, true, s.life+1
	for _, r := range s.queue {
		if r.stop != nil {
			r.stop()
			r.stop = nil
		}
		if q == LoseQueue {
			if k := s.keys[r.Key]; k != nil && k.request == r.Number {
				delete(s.keys, r.Key)
			}
		}
	}
	if q == LoseQueue {
		s.queue = nil
	}
	waiting := make([]*hold, 0, len(s.holds))
	for h := range s.holds {
		waiting = append(waiting, h)
	}
	s.mu.Unlock()

	for _, h := range waiting {
		h.end()
	}
	err := serve.Close()
	<-served
	return err
}

// Up lets the service listen again where it did, and gives the requests it kept
// their time; those that became due while it was down land at the clock's next
// move, in the order of their acceptance.
func (s *Server) Up() error {
	s.mu.Lock()
	addr := s.addr
	s.mu.Unlock()
	if addr == nil {
		return fmt.Errorf("%w: the service never listened", ErrWorld)
	}
	l, err := net.Listen(addr.Network(), addr.String())
	if err != nil {
		return err
	}
	if err := s.Start(l); err != nil {
		return errors.Join(err, l.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.queue {
		s.arm(r)
	}
	return nil
}

// Close is Down for good; closing a service that is down does nothing more.
func (s *Server) Close() error {
	s.mu.Lock()
	listening := s.serve != nil
	s.mu.Unlock()
	if !listening {
		return nil
	}
	return s.Down(LoseQueue)
}

// arm schedules the landing of a queued request. The lock is held.
func (s *Server) arm(r *refund) {
	if r.stop != nil {
		r.stop()
	}
	r.stop = s.host.After(max(0, r.due-s.host.Mono()), fmt.Sprintf("landing of request %06d", r.Number), func() { s.land(r) })
}

// handleRefund reads, accepts, applies and answers. A client that dies before
// its request is accepted takes it along; later its death changes nothing of
// what happens to it.
//
// Events are recorded before Pass, before the answer is written, or by a timer
// of the host's, and never after the client can go on: their order doesn't
// depend on luck.
func (s *Server) handleRefund(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler) // half a request is none
	}
	r := &refund{Request: history.Request{
		Effect: req.Header.Get(HeaderEffect), Key: req.Header.Get(HeaderKey),
		Token: req.Header.Get(HeaderToken), Anchor: req.Header.Get(HeaderAnchor),
	}}
	r.bad = r.read(body, req.Header.Get(HeaderPremises)) != nil

	s.mu.Lock()
	s.number++
	r.Number, r.life = s.number, s.life
	s.visit(req, r.Number)
	s.host.Record(history.Requested, r.subject(), r.Request)
	s.mu.Unlock()
	if !s.pass(RequestRead, r) {
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	var a *answer
	forgotten := r.life != s.life || s.meets(LoseRequest)
	if !forgotten {
		a = s.admit(r)
	}
	s.mu.Unlock()
	switch {
	case forgotten:
	case a != nil:
		s.settle(r, a)
	default:
		s.accept(r)
	}
	s.await(req.Context(), r)

	s.mu.Lock()
	a, lost := r.answer, r.withheld || r.life != s.life
	s.mu.Unlock()
	if a == nil || lost {
		panic(http.ErrAbortHandler)
	}
	write(w, a)
}

// read takes the refund out of a body. After an error there is nothing in it.
func (r *refund) read(body []byte, premises string) error {
	var want struct {
		Order    string `json:"order"`
		Case     string `json:"case"`
		Amount   int64  `json:"amount"`
		Currency string `json:"currency"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&want); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("sim: more than one document")
	}
	r.Order, r.Case, r.Amount = want.Order, want.Case, want.Amount
	if premises == "" {
		return nil
	}
	return json.Unmarshal([]byte(premises), &r.premises)
}

// accept lets a request that stands in the queue land. The timer is armed before
// the point is passed: where the client dies at it, or the service, the request
// lands when the clock moves next, or when Up says.
func (s *Server) accept(r *refund) {
	s.mu.Lock()
	late := s.postpone(r)
	s.arm(r)
	s.mu.Unlock()
	alive := s.pass(Accepted, r)

	s.mu.Lock()
	if r.life != s.life {
		s.mu.Unlock()
		return
	}
	if !late && s.postpone(r) {
		s.arm(r)
	}
	now := alive && r.due == r.accepted
	if now {
		r.stop()
	}
	s.mu.Unlock()
	if now {
		s.land(r)
	}
}

// postpone gives r the delay that is planned for the next request, if one is.
// The lock is held.
func (s *Server) postpone(r *refund) bool {
	if !s.meets(delayed) {
		return false
	}
	r.due = r.accepted + s.delay
	return true
}

// land applies a request that is still in the queue and settles its answer. A
// timer that was too late to be stopped lands nothing.
func (s *Server) land(r *refund) {
	s.mu.Lock()
	i := slices.Index(s.queue, r)
	if i < 0 || s.down || s.host.Mono() < r.due {
		s.mu.Unlock()
		return
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	a, landed := s.apply(r)
	s.mu.Unlock()
	if landed {
		s.pass(Applied, r)
	}
	if a != nil {
		s.settle(r, a)
	}
}

// pass passes a point and notices whether r's client is dead.
func (s *Server) pass(p trace.Point, r *refund) (alive bool) {
	alive = s.host.Pass(p, r.subject())
	s.mu.Lock()
	defer s.mu.Unlock()
	r.gone = r.gone || !alive
	return !r.gone
}

// settle records the answer and wakes the handler. To a dead client, or from a
// service that died since, there is none, and no point is passed.
func (s *Server) settle(r *refund, a *answer) {
	s.mu.Lock()
	silent := r.gone || r.life != s.life
	s.mu.Unlock()
	if silent || !s.pass(AnswerReady, r) {
		return
	}
	s.mu.Lock()
	if r.life != s.life {
		s.mu.Unlock()
		return
	}
	r.answer, r.withheld = a, s.meets(DropAnswer)
	s.host.Record(history.Answered, r.subject(), history.Reply{Request: r.Number, Code: a.code, Word: a.Word, Withheld: r.withheld})
	h := r.held
	s.mu.Unlock()
	if h != nil && !r.withheld {
		h.end()
	}
}

// hold is a handler that waits in Host.Withhold.
type hold struct {
	cancel context.CancelFunc
	left   chan struct{}
}

// end returns when the handler has left.
func (h *hold) end() {
	h.cancel()
	<-h.left
}

// await lets a client wait until its answer is there, the service dies or ctx
// ends. It returns at once where there is nothing to wait for.
func (s *Server) await(ctx context.Context, r *refund) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := &hold{cancel: cancel, left: make(chan struct{})}
	s.mu.Lock()
	if ready := r.answer != nil && !r.withheld; ready || r.gone || r.life != s.life {
		s.mu.Unlock()
		return
	}
	r.held = h
	s.holds[h] = true
	s.mu.Unlock()

	s.host.Withhold(ctx)

	s.mu.Lock()
	delete(s.holds, h)
	s.mu.Unlock()
	close(h.left)
}

func (s *Server) handleLookup(w http.ResponseWriter, req *http.Request) {
	effect := req.FormValue("effect")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visit(req, 0)
	wrong := false
	ask := func(answer string) {
		s.host.Record(history.Asked, effect, history.Question{What: "refunds of effect", Answer: answer, Wrong: wrong})
	}
	switch {
	case !s.profile.Lookup:
		ask(WordNoFacility)
		write(w, no(http.StatusNotFound, WordNoFacility))
		return
	case s.meets(LookupFails):
		ask(WordServerError)
		write(w, no(http.StatusInternalServerError, WordServerError))
		return
	case s.meets(LookupMalformed):
		ask("malformed")
		reply(w, http.StatusOK, []byte(`{"refunds":[{"id":`))
		return
	}
	found := s.find(effect)
	said := "absent"
	if len(found) > 0 {
		if s.meets(LookupOtherAmount) {
			found[0].Amount += 100
			wrong = true
		}
		said = "landed"
		for _, l := range found {
			said += fmt.Sprintf(" %s %d", l.ID, l.Amount)
		}
	}
	ask(said)
	writeJSON(w, http.StatusOK, map[string]any{"refunds": found})
}

func (s *Server) handleOrder(w http.ResponseWriter, req *http.Request) {
	order, caseID := req.PathValue("order"), req.FormValue("case")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visit(req, 0)
	question := history.Question{What: "order", Answer: WordUnknownOrder, Effect: req.FormValue("effect")}
	if s.orders[order] == nil {
		s.host.Record(history.Asked, order, question)
		write(w, no(http.StatusNotFound, WordUnknownOrder))
		return
	}
	facts := s.facts(order, caseID, req.FormValue("effect"))
	question.Answer = fmt.Sprintf("eligible %t paid %d refunded %d others %d version %d", facts.Eligible, facts.Paid, facts.Refunded, facts.Others, facts.Version)
	s.host.Record(history.Asked, order, question)
	writeJSON(w, http.StatusOK, facts)
}

func (s *Server) handleLease(w http.ResponseWriter, req *http.Request) {
	id := req.PathValue("lease")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visit(req, 0)
	l, known := s.leases[id]
	l.Lease = id
	l.Live = known && !l.Revoked && (l.Expires.IsZero() || s.host.Now().Before(l.Expires))
	s.host.Record(history.Asked, id, history.Question{What: "lease", Answer: fmt.Sprintf("live %t", l.Live)})
	writeJSON(w, http.StatusOK, l)
}

func (s *Server) handleFence(w http.ResponseWriter, req *http.Request) {
	var want struct{ Effect, Token string }
	err := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxBody)).Decode(&want)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visit(req, 0)
	a := &answer{code: http.StatusOK, Word: WordOK}
	switch {
	case !s.profile.Fencing:
		a = no(http.StatusNotFound, WordNoFacility)
	case err != nil || want.Effect == "" || want.Token == "":
		a = no(http.StatusBadRequest, WordBadRequest)
	case want.Token < s.fences[want.Effect]:
		a = no(http.StatusPreconditionFailed, WordFenced)
	default:
		s.fences[want.Effect] = want.Token
	}
	s.host.Record(history.Asked, want.Effect, history.Question{What: "fence " + want.Token, Answer: a.Word})
	write(w, a)
}

// visit writes the access log. The lock is held.
func (s *Server) visit(req *http.Request, number int) {
	s.access = append(s.access, Access{
		At: s.host.Mono(), Method: req.Method, Path: req.URL.RequestURI(), Number: number,
		Effect: req.Header.Get(HeaderEffect), Key: req.Header.Get(HeaderKey),
	})
}

func write(w http.ResponseWriter, a *answer) {
	if a.replayed {
		w.Header().Set(HeaderReplayed, "true")
	}
	if a.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(a.retryAfter/time.Second)))
	}
	writeJSON(w, a.code, a)
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	reply(w, code, body)
}

func reply(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	w.Write(body)
}
