package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/interlock-bench/interlock-bench/protocol/wire"
)

// One attempt: connect, journal, look, send.
func Example() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "done")
	}))
	defer service.Close()

	ctx := context.Background()
	conn, err := wire.Endpoint{Network: "tcp", Address: service.Listener.Addr().String()}.Connect(ctx)
	if err != nil {
		log.Fatal(err) // certainly not sent
	}
	defer conn.Close()

	// Here the intent is made durable (I1).

	req, err := http.NewRequest(http.MethodPost, "/refunds", strings.NewReader(`{"amount":2000}`))
	if err != nil {
		log.Fatal(err)
	}
	answer, err := conn.Do(ctx, req)
	switch {
	case err == nil:
		fmt.Println(answer.Status, string(answer.Body))
	case errors.Is(err, wire.ErrNotSent):
		fmt.Println("it may be tried again")
	default:
		fmt.Println("nobody knows; look before sending again")
	}
	// Output: 200 done
}
