package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/protocol"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// TestAnInboxFindsItsJournalHeld: while a gate owns a journal of the file store a
// list is read, and an answer is turned away in words that say what to do.
func TestAnInboxFindsItsJournalHeld(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "day")
	if err := experiments.Sample(dir, "file"); err != nil {
		t.Fatal(err)
	}
	list, err := protocol.ReadInbox(t.Context(), journal.FileOpener(filepath.Join(dir, "journal"), journal.Options{Mode: journal.Reader}), time.Now(), false)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := journal.OpenFile(filepath.Join(dir, "journal"), journal.Options{Identity: "the agent's gate"}, func(journal.Entry) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	inbox := func(args ...string) (code int, stdout, stderr string) {
		var out, bad bytes.Buffer
		code = run(context.Background(), append([]string{"inbox"}, args...), &out, &bad)
		return code, out.String(), bad.String()
	}
	if code, out, bad := inbox("list", "--journal", dir); code != exitHeld || !strings.Contains(out, "case-2") {
		t.Errorf("list: %d\n%s%s", code, out, bad)
	}
	code, _, bad := inbox("approve", "--journal", dir, "--seen", list[0].Answers.String()[:8], "--as", "ana", "--key", filepath.Join(dir, "ana.key"), list[0].Request)
	if code != exitBroken || !strings.Contains(bad, "nothing was decided") || !strings.Contains(bad, "the agent's gate") {
		t.Errorf("approve: %d %s", code, bad)
	}
}
