package baselines

import (
	"context"

	"github.com/interlock-bench/interlock-bench/protocol/wire"
	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// Service is a refund service as a baseline uses it, in the words of the
// simulated one.
type Service interface {
	// Refund asks for money once. The reply's outcome says whether anything can
	// have arrived.
	Refund(ctx context.Context, r sim.Refund) sim.Reply
	// Find asks for the refunds of an effect. An error is not an absence.
	Find(ctx context.Context, effect string) (sim.Found, error)
	// Order reads an order's facts as seen from a case, the effect's own refunds
	// left out of Others.
	Order(ctx context.Context, order, caseID, effect string) (sim.Order, error)
	// Lease reads a lease from the desk.
	Lease(ctx context.Context, id string) (sim.Lease, error)
}

// Sim is the simulated service.
type Sim struct{ sim.Client }

// Refund connects and sends r once.
func (s Sim) Refund(ctx context.Context, r sim.Refund) sim.Reply {
	p, err := s.Prepare(ctx)
	if err != nil {
		return sim.Reply{Outcome: wire.NotSent}
	}
	defer p.Close()
	reply, _ := p.Refund(ctx, r)
	return reply // its outcome says what an error would
}
