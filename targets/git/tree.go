package git

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// The modes of a tree's entries.
const (
	modeFile       = "100644"
	modeExecutable = "100755"
	modeLink       = "120000"
	modeSubmodule  = "160000"
)

// MaxFile bounds a file that Read or Checkout takes out of the repository, in
// bytes. Landing around a larger one is no trouble.
const MaxFile = 16 << 20

// File is one entry of a commit's tree.
type File struct {
	Path string
	ID   string // of its content; of the commit, where it is a submodule
	Mode string
	Size int64 // 0 for a submodule
}

// Files are all files of a commit by path, links and submodules included.
func (r *Repo) Files(ctx context.Context, commit string) (map[string]File, error) {
	out, err := r.command("ls-tree", "-r", "-l", "-z", "--full-tree", commit).run(ctx)
	if err != nil {
		return nil, err
	}
	files := map[string]File{}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		head, name, ok := strings.Cut(line, "\t")
		f := strings.Fields(head)
		if !ok || len(f) != 4 {
			continue // an empty tree
		}
		size, _ := strconv.ParseInt(f[3], 10, 64) // "-" for a submodule
		files[name] = File{Path: name, ID: f[2], Mode: f[0], Size: size}
	}
	return files, nil
}

// Read returns a file of a commit. Links are not followed. Errors are ErrNoFile
// and ErrTooLarge.
func (r *Repo) Read(ctx context.Context, commit, name string) ([]byte, error) {
	files, err := r.Files(ctx, commit)
	if err != nil {
		return nil, err
	}
	f, ok := files[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: %s", ErrNoFile, name)
	case f.Mode != modeFile && f.Mode != modeExecutable:
		return nil, fmt.Errorf("%w: %s is a link or a submodule", ErrNoFile, name)
	case f.Size > MaxFile:
		return nil, fmt.Errorf("%w: %s has %d bytes, more than %d", ErrTooLarge, name, f.Size, MaxFile)
	}
	return r.command("cat-file", "blob", f.ID).run(ctx)
}

// Checkout writes the files of a commit into dir, which is empty. A link is
// written where it stays within the tree; other links and submodules are left
// out. Errors are ErrTooLarge and those of the file system.
func (r *Repo) Checkout(ctx context.Context, commit, dir string) error {
	files, err := r.Files(ctx, commit)
	if err != nil {
		return err
	}
	var take []File
	var ids bytes.Buffer
	for _, f := range files {
		switch {
		case f.Mode == modeSubmodule:
			continue
		case f.Size > MaxFile:
			return fmt.Errorf("%w: %s has %d bytes, more than %d", ErrTooLarge, f.Path, f.Size, MaxFile)
		}
		take = append(take, f)
		ids.WriteString(f.ID + "\n")
	}
	c := r.command("cat-file", "--batch")
	c.in = &ids
	out, err := c.run(ctx)
	if err != nil {
		return err
	}
	from := bufio.NewReader(bytes.NewReader(out))
	for _, f := range take {
		if _, err := from.ReadString('\n'); err != nil {
			return fmt.Errorf("git: %s is cut short: %w", f.Path, err)
		}
		content := make([]byte, f.Size)
		if _, err := io.ReadFull(from, content); err != nil {
			return fmt.Errorf("git: %s is cut short: %w", f.Path, err)
		}
		from.Discard(1) // the line end behind it
		if err := f.write(dir, content); err != nil {
			return err
		}
	}
	return nil
}

// write puts one file into dir.
func (f File) write(dir string, content []byte) error {
	to := filepath.Join(dir, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	switch f.Mode {
	case modeLink:
		target := path.Join(path.Dir(f.Path), string(content))
		if path.IsAbs(string(content)) || !filepath.IsLocal(target) {
			return nil
		}
		return os.Symlink(string(content), to)
	case modeExecutable:
		return os.WriteFile(to, content, 0o755)
	}
	return os.WriteFile(to, content, 0o644)
}
