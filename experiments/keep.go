package experiments

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlock-bench/interlock-bench/faults"
	"github.com/interlock-bench/interlock-bench/faults/history"
	"github.com/interlock-bench/interlock-bench/faults/oracle"
)

// Kept is one trial as it is kept: its line, its history, and what was said of
// it when it ran.
//
// In a file the first line is the record of the trial and every further line one
// event of its history:
//
//	{"kept":1,"trial":"refund/…","status":"RETRIED","money":4000,"verdict":"DUPLICATE","broke":["more-landings"]}
//	{"n":1,"at":0,"who":"supervisor","kind":"declared",…}
type Kept struct {
	Trial   faults.Trial
	Status  string // the column's own word
	History history.History
	Verdict oracle.Verdict // today's rules, applied to History
	Said    Said
}

// Said is the verdict in a kept file: that of the rules of the day.
type Said struct {
	Class oracle.Class
	Money int64  // cents
	Shown string // a word in place of the money
	Broke []string
}

// judge applies today's rules, those of the experiment, to a history.
func judge(experiment string, h history.History) oracle.Verdict {
	for _, e := range All() {
		if e.Name == experiment && e.Judge != nil {
			return e.Judge(h)
		}
	}
	return oracle.Judge(h)
}

// Shows is what was said that the trial came to: money, or a word.
func (s Said) Shows() string { return shown(oracle.Verdict{Money: s.Money, Shown: s.Shown}) }

// Shows is what the judge says today that the trial came to.
func (k Kept) Shows() string { return shown(k.Verdict) }

// Same says whether the judge says today what was said then.
func (k Kept) Same() bool {
	v := k.Verdict
	return k.Said.Class == v.Class && k.Said.Money == v.Money && k.Said.Shown == v.Shown && slices.Equal(k.Said.Broke, v.Broke)
}

// Errors of kept files.
var (
	// ErrKept is the class of what DecodeKept doesn't read.
	ErrKept = errors.New("experiments: not a kept trial")
	// ErrNothingKept is returned for a folder without one.
	ErrNothingKept = errors.New("experiments: no kept trial")
)

// keptVersion is the newest version of the files that this program writes and
// reads. Version 2 has a word in place of money; a trial that shows money is
// written as version 1, which has no such field.
const keptVersion = 2

// version is the one that a trial of which s was said is written in.
func (s Said) version() int {
	if s.Shown == "" {
		return 1
	}
	return 2
}

// keptLine is the first line of a kept file.
type keptLine struct {
	Kept    int      `json:"kept"`
	Trial   string   `json:"trial"`
	Status  string   `json:"status"`
	Money   int64    `json:"money"` // cents
	Shown   string   `json:"shown,omitempty"`
	Verdict string   `json:"verdict"`
	Broke   []string `json:"broke"`
}

func keptOf(o Outcome) Kept {
	return Kept{Trial: o.Trial, Status: o.Status, History: o.History, Verdict: o.Verdict,
		Said: Said{o.Verdict.Class, o.Verdict.Money, o.Verdict.Shown, o.Verdict.Broke}}
}

// EncodeKept writes k. Equal trials are equal bytes. A nil error says that w took
// all of it.
func EncodeKept(w io.Writer, k Kept) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	err := e.Encode(keptLine{k.Said.version(), k.Trial.String(), k.Status, k.Said.Money, k.Said.Shown, k.Said.Class.String(), append([]string{}, k.Said.Broke...)})
	if err != nil {
		return err
	}
	return history.Encode(w, k.History)
}

// DecodeKept reads what EncodeKept wrote and applies today's rules to it. Other
// errors are ErrKept, with a sentence that says what the file is instead.
func DecodeKept(r io.Reader) (Kept, error) {
	bad := func(format string, args ...any) (Kept, error) {
		return Kept{}, fmt.Errorf("%w: %w", ErrKept, fmt.Errorf(format, args...))
	}
	in := bufio.NewReader(r)
	first, err := line(in)
	if err != nil && err != io.EOF {
		return bad("its first line can't be read: %w", err)
	}
	var version struct {
		Kept *int
		N    *int
	}
	switch err := json.Unmarshal(first, &version); {
	case len(bytes.TrimSpace(first)) == 0:
		return bad("it is empty")
	case err != nil:
		return bad("its first line is no record of a trial: %w", err)
	case version.Kept == nil && version.N != nil:
		return bad("it is a history without its trial's line; run the trial again with --keep")
	case version.Kept == nil:
		return bad("its first line is of something else; expected {\"kept\":%d,…}", keptVersion)
	case *version.Kept < 1 || *version.Kept > keptVersion:
		return bad("it is of version %d and this program reads %d; use the program that wrote it", *version.Kept, keptVersion)
	}
	var l keptLine
	d := json.NewDecoder(bytes.NewReader(first))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return bad("its first line is damaged: %w", err)
	}
	k := Kept{Status: l.Status}
	if k.Trial, err = faults.ParseTrial(l.Trial); err != nil {
		return bad("its first line is damaged: %w", err)
	}
	if k.Said.Class, err = oracle.ParseClass(l.Verdict); err != nil {
		return bad("its first line is damaged: %w", err)
	}
	if k.History, err = history.Decode(in); err != nil {
		return bad("behind its first line: %w", err)
	}
	if (l.Shown != "") != (l.Kept == 2) {
		return bad("its first line is damaged: version %d shows %q", l.Kept, l.Shown)
	}
	k.Said.Money, k.Said.Shown, k.Said.Broke = l.Money, l.Shown, l.Broke
	k.Verdict = judge(k.Trial.Experiment, k.History)
	return k, nil
}

// line reads one line of at most history.MaxLine bytes.
func line(in *bufio.Reader) ([]byte, error) {
	var l []byte
	for {
		part, err := in.ReadSlice('\n')
		l = append(l, part...)
		switch {
		case len(l) > history.MaxLine:
			return nil, fmt.Errorf("it is longer than %d bytes", history.MaxLine)
		case err != bufio.ErrBufferFull:
			return l, err
		}
	}
}

func keepHistory(path string, o Outcome) error {
	var b bytes.Buffer
	if err := EncodeKept(&b, keptOf(o)); err != nil {
		return err
	}
	return replace(path, b.Bytes())
}

// KeptFile is one file of a folder of kept trials: a trial, or why it is none.
type KeptFile struct {
	Name string
	Kept Kept
	Err  error // ErrKept, or that of reading it
}

// ReadKept reads the kept trials in dir, files that end in .jsonl, in the order
// of their names. A file that is none is in the list with its error. Its own
// error is ErrNothingKept, or that of a folder that can't be read.
func ReadKept(dir string) ([]KeptFile, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNothingKept, err)
	}
	var files []KeptFile
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != ".jsonl" {
			continue
		}
		k, err := ReadTrial(filepath.Join(dir, e.Name()))
		files = append(files, KeptFile{e.Name(), k, err})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w: %s has no file that ends in .jsonl; --keep makes them", ErrNothingKept, dir)
	}
	return files, nil
}

// ReadTrial reads one kept trial. Errors are ErrKept, ErrFile and those of the
// file system.
func ReadTrial(path string) (Kept, error) {
	f, err := openRegular(path)
	if err != nil {
		return Kept{}, err
	}
	defer f.Close()
	return DecodeKept(f)
}

// keptState is the key of the folder that takes a trial's state.
type keptState struct{}

// keepingState tells an experiment's Run where the state of the trial shall be
// kept: the folder that the program under test kept its files in.
func keepingState(ctx context.Context, dir string) context.Context {
	return context.WithValue(ctx, keptState{}, dir)
}

// keepState copies state to the folder that ctx names, if it names one. What was
// kept there before is gone. Files keep their modes, so that a journal opens.
func keepState(ctx context.Context, state string) error {
	dir, ok := ctx.Value(keptState{}).(string)
	if !ok {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(path, state))
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(to, info.Mode().Perm())
		case !info.Mode().IsRegular():
			return nil // a socket is no state
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, content, info.Mode().Perm())
	})
}
