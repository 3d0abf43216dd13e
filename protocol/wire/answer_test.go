package wire

import (
	"bufio"
	"bytes"
	"net/http"
	"testing"
)

// An answer is taken only if nothing of it can be missing: no shorter beginning
// of the same bytes is an answer too.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n2;x=y\r\n{}\r\n0\r\nT: 1\r\n\r\n",
		"HTTP/1.0 200 OK\r\n\r\nwithout an end",
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf",
		"HTTP/1.1 500 \r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	const max = 64
	req := &http.Request{Method: http.MethodPost}
	read := func(data []byte) (Answer, int, error) {
		r := bufio.NewReader(bytes.NewReader(data))
		a, err := readAnswer(r, req, max)
		return a, len(data) - r.Buffered(), err
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 512 {
			t.Skip() // every beginning is read
		}
		answer, used, err := read(data)
		if err != nil {
			return
		}
		if answer.Status < 200 || answer.Status > 599 || answer.Status == http.StatusRequestTimeout {
			t.Errorf("took status %d", answer.Status)
		}
		if len(answer.Body) > max {
			t.Errorf("took %d bytes of body, %d are allowed", len(answer.Body), max)
		}
		for n := range used {
			if _, _, err := read(data[:n]); err == nil {
				t.Fatalf("%d of %d bytes are an answer too: %q", n, used, data[:n])
			}
		}
	})
}
