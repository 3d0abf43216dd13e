package history_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-bench/interlock-bench/faults/history"
)

const two = `{"n":1,"at":0,"who":"worker#1","kind":"passed","point":"decided","subject":"case-1"}
{"n":2,"at":5000000000,"who":"service","kind":"answered","body":{"request":1,"code":200,"word":"ok"}}
`

func TestEncodeDecode(t *testing.T) {
	h, err := history.Decode(strings.NewReader(two))
	if err != nil {
		t.Fatal(err)
	}
	want := history.History{
		{N: 1, Who: "worker#1", Kind: history.Passed, Point: "decided", Subject: "case-1"},
		{N: 2, At: 5 * time.Second, Who: "service", Kind: history.Answered, Body: []byte(`{"request":1,"code":200,"word":"ok"}`)},
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
	var b bytes.Buffer
	if err := history.Encode(&b, h); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(two, b.String()); diff != "" {
		t.Errorf("encoded (-want +got):\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := []struct{ text, why string }{
		{"{}\n", "an event without number, kind and actor"},
		{`{"n":2,"at":0,"who":"x","kind":"told"}` + "\n", "numbers begin at 1"},
		{two + `{"n":4,"at":5000000000,"who":"x","kind":"told"}` + "\n", "a gap"},
		{two + `{"n":3,"at":4999999999,"who":"x","kind":"told"}` + "\n", "time runs back"},
		{`{"n":1,"at":-1,"who":"x","kind":"told"}` + "\n", "before the trial"},
		{`{"n":1,"at":0,"who":"x","kind":"told","pid":7}` + "\n", "a field nobody knows"},
		{`{"n":1,"at":0,"who":"x","kind":"told"} {}` + "\n", "two values on a line"},
		{`{"n":1,"at":0,"who":"x",`, "a torn line"},
		{"\n", "an empty line"},
		{`{"n":1,"at":0,"kind":"told","who":"` + strings.Repeat("x", history.MaxLine) + `"}`, "a line beyond the bound"},
	}
	for _, test := range tests {
		if h, err := history.Decode(strings.NewReader(test.text)); !errors.Is(err, history.ErrMalformed) {
			t.Errorf("%s: Decode = %v, %v; want ErrMalformed", test.why, h, err)
		}
	}
}

func TestBody(t *testing.T) {
	h, err := history.Decode(strings.NewReader(two))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := history.Body[history.Reply](h[1])
	if want := (history.Reply{Request: 1, Code: 200, Word: "ok"}); err != nil || reply != want {
		t.Errorf("Body = %+v, %v; want %+v", reply, err, want)
	}
	if _, err := history.Body[history.Exit](h[1]); !errors.Is(err, history.ErrBody) {
		t.Errorf("a reply was read as an exit: %v", err)
	}
	if _, err := history.Body[history.Reply](h[0]); !errors.Is(err, history.ErrBody) {
		t.Errorf("a body was read where none is: %v", err)
	}
}

func TestRecorder(t *testing.T) {
	r := history.NewRecorder(func() time.Duration { return time.Minute })
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 100 {
				n := r.Record(history.Event{Who: "worker#1", Kind: history.Told}, history.Answer{Status: "COMMITTED"})
				if h := r.History(); len(h) < n || h[n-1].N != n {
					t.Errorf("event %d is not where its number says", n)
				}
			}
		})
	}
	writers.Wait()
	var b bytes.Buffer
	if err := history.Encode(&b, r.History()); err != nil {
		t.Fatal(err)
	}
	h, err := history.Decode(&b)
	if err != nil || len(h) != 800 || h[0].At != time.Minute {
		t.Errorf("%d events, %v; want 800 at one minute", len(h), err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(two))
	f.Add([]byte(`{"n":1,"at":0,"who":"x","kind":"told","body":null}`))
	f.Add([]byte(`{"N":1,"at":0,"who":"<x>","kind":"told","body":{"a":"\u2028<"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > history.MaxLine/8 {
			t.Skip("escapes may make it longer than the bound")
		}
		h, err := history.Decode(bytes.NewReader(text))
		if err != nil {
			if !errors.Is(err, history.ErrMalformed) {
				t.Errorf("an error of no class: %v", err)
			}
			return
		}
		var first, second bytes.Buffer
		if err := history.Encode(&first, h); err != nil {
			t.Fatal(err)
		}
		again, err := history.Decode(bytes.NewReader(first.Bytes()))
		if err != nil {
			t.Fatalf("what Encode wrote is not read: %v\n%s", err, first.Bytes())
		}
		if err := history.Encode(&second, again); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("two encodings differ:\n%s%s", first.Bytes(), second.Bytes())
		}
	})
}
