package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/targets/stripe"
)

// TestStripeEmulate serves the emulator, runs a row against it as against Stripe,
// gets its webhooks, and ends it.
func TestStripeEmulate(t *testing.T) {
	const key = "sk_test_canary4471canary"
	notices := make(chan stripe.Notice, 100)
	hooks := stripe.Webhooks{Secret: "whsec_ours"}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		n, err := hooks.Accept(body, r.Header.Get("Stripe-Signature"))
		if err != nil {
			t.Error(err)
		}
		notices <- n
	}))
	defer hook.Close()

	service := exec.CommandContext(t.Context(), "interlock-bench", "stripe", "emulate", "--listen", "127.0.0.1:0", "--key", key,
		"--rate", "0", "--secret", hooks.Secret, "--forward", hook.URL)
	stdout, err := service.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, base, _ := strings.Cut(line, "listens on ")
	base, _, found := strings.Cut(base, " ")
	if !found || !strings.Contains(line, "not Stripe") {
		t.Fatalf("it says %q", line)
	}

	out := t.TempDir()
	client := exec.CommandContext(t.Context(), "interlock-bench", "stripe", "--api", base, "--bound", "1s", "--row", "crash_before_ack", "--column", "naive,gate", "--out", out)
	client.Env = append(os.Environ(), experiments.KeyVariable+"="+key)
	var said bytes.Buffer
	client.Stdout, client.Stderr = &said, &said
	if err := client.Run(); err != nil {
		t.Errorf("%v\n%s", err, said.String())
	}
	for _, want := range []string{"RETRIED $40", "COMMITTED_BY_RETRY $20", "pi_emulated", "re_emulated"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("it doesn't say %q:\n%s", want, said.String())
		}
	}
	page, err := os.ReadFile(out + "/" + experiments.LiveFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(page, []byte("which is not Stripe")) || !bytes.Contains(page, []byte("Some cells only")) {
		t.Errorf("the page doesn't say what it is of:\n%s", page)
	}
	if strings.Contains(said.String()+string(page), "canary4471") {
		t.Error("the key is shown")
	}
	refunds := 0
	for refunds < 3 { // two by naive, one by the gate
		if n := <-notices; n.Type == "charge.refunded" && !n.Again {
			refunds++
		}
	}

	if err := service.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := service.Wait(); err != nil {
		t.Errorf("the emulator ended with %v", err)
	}
}
