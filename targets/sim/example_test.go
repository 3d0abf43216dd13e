package sim_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/interlock-bench/interlock-bench/targets/sim"
)

// A service on the machine's own clock, and a client that asks twice.
func Example() {
	profile, _ := sim.ProfileNamed("t1")
	service := sim.New(sim.RealHost{Started: time.Now()}, profile)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	if err := service.Start(l); err != nil {
		log.Fatal(err)
	}
	defer service.Close()
	service.SetOrder("881", true, 10000, "")

	ctx := context.Background()
	client := sim.Client{Network: "tcp", Address: l.Addr().String(), Timeout: time.Minute}
	for range 2 {
		conn, err := client.Prepare(ctx)
		if err != nil {
			log.Fatal(err) // certainly nothing sent
		}
		reply, err := conn.Refund(ctx, sim.Refund{
			Order: "881", Case: "case-4471", Amount: 2000, Effect: "case-4471", Key: "case-4471",
		})
		conn.Close()
		fmt.Println(reply.Outcome, reply.Word, reply.ID, err)
	}
	found, err := client.Find(ctx, "case-4471")
	fmt.Println(found.Landed, found.Refunds[0].Amount, err)
	// Output:
	// answered ok re_1 <nil>
	// answered already_processed re_1 <nil>
	// true 2000 <nil>
}
