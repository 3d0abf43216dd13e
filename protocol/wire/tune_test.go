package wire

import (
	"errors"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// A dead process's kernel must not go on delivering (I14).
func TestTune(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("TCP_USER_TIMEOUT is Linux's")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := Endpoint{Network: "tcp", Address: l.Addr().String(), UserTimeout: 300 * time.Millisecond}.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got int
	conn.socket.raw.Control(func(fd uintptr) {
		got, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, 0x12)
	})
	if err != nil || got != 300 {
		t.Errorf("user timeout is %d ms, %v, want 300", got, err)
	}

	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	conn.Close()
	if _, err := peer.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the peer saw %v, want a reset: closing lingers for nothing", err)
	}
}
