package git

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// Create makes a bare repository in dir, which is missing or empty, with one
// commit of the given files on branch. Equal arguments give equal commits.
func Create(ctx context.Context, dir, branch, author string, at time.Time, files map[string]string) (*Repo, error) {
	if err := usable(ctx); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	short := strings.TrimPrefix(branch, "refs/heads/")
	if _, err := (command{args: []string{"init", "-q", "--bare", "--template=", "-b", short, dir}}).run(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRepository, err)
	}
	r, err := Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	var index bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if why := unfitPath(name); why != "" {
			return nil, fmt.Errorf("%w: the path %q %s", ErrChange, name, why)
		}
		write := r.command("hash-object", "-w", "--stdin")
		write.in = strings.NewReader(files[name])
		id, err := write.run(ctx)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&index, "%s %s\t%s\x00", modeFile, strings.TrimSpace(string(id)), name)
	}
	tree, err := r.indexed(ctx, "", &index)
	if err != nil {
		return nil, err
	}
	first, err := r.commit(ctx, Change{Author: author, At: at, Message: "the first commit"}, tree, "", nil)
	if err != nil {
		return nil, err
	}
	_, err = r.git(ctx, "update-ref", branch, first)
	return r, err
}
