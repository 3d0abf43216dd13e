package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-bench/interlock-bench/experiments"
	"github.com/interlock-bench/interlock-bench/targets/git"
	"github.com/interlock-bench/interlock-bench/targets/git/premise"
)

// coding is the command of the experiment with two agents and one repository. It
// takes a repository of the user's, too.
func (b *bench) coding(e *experiments.Experiment) *cobra.Command {
	cmd := b.experiment(e)
	run := cmd.RunE
	var repo string
	var commits int
	var notify bool
	cmd.Flags().StringVar(&repo, "repo", "", "replay the commits of this repository instead, as agent A's changes, against what its own tests rest on; writes nothing")
	cmd.Flags().IntVar(&commits, "commits", 30, "with --repo: how many of the newest commits, along first parents")
	cmd.Flags().BoolVar(&notify, "notify", false, "run the rows that measure what telling B of A's change saves, and write nothing unless --out is given")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if notify {
			if err := cmd.Flags().Set("row", strings.Join(experiments.NoticeRows(), ",")); err != nil {
				return err
			}
		}
		if repo != "" {
			return b.replayRepo(cmd, repo, commits)
		}
		if cmd.Flags().Changed("commits") {
			return &exit{exitUsage, "--commits says how much of a repository to replay; name one with --repo"}
		}
		return run(cmd, args)
	}
	for _, other := range []string{"row", "column", "check", "keep", "out", "notify", "seed", "words"} {
		cmd.MarkFlagsMutuallyExclusive("repo", other)
	}
	cmd.MarkFlagsMutuallyExclusive("notify", "row")
	cmd.MarkFlagsMutuallyExclusive("notify", "check")
	return cmd
}

// replayRepo prints what the dial would have done to a repository's own commits.
func (b *bench) replayRepo(cmd *cobra.Command, path string, commits int) error {
	format := cmd.Flags().Lookup("format").Value.String()
	if err := checkFormat(format, tableFormats()...); err != nil {
		return err
	}
	if commits < 1 {
		return &exit{exitUsage, fmt.Sprintf("--commits %d is no number of commits", commits)}
	}
	update, clear := progress(b.stderr, "replay")
	r, err := experiments.ReplayRepo(cmd.Context(), path, commits, update)
	clear()
	for _, of := range []error{git.ErrRepository, git.ErrBranch, git.ErrNoGit, experiments.ErrReplay} {
		if errors.Is(err, of) {
			return &exit{exitUsage, err.Error()}
		}
	}
	for _, of := range []error{premise.ErrToolchain, premise.ErrSandbox, git.ErrTooLarge} {
		if errors.Is(err, of) {
			return &exit{exitUnjudged, err.Error()}
		}
	}
	if err != nil {
		return err
	}
	b.print(format, widthOf(b.stdout), r.Table())
	fmt.Fprintln(b.notices(format), r.Sentence())
	if r.Pairs == 0 {
		return &exit{exitUnjudged, "no change of this history is compiled into a test that passed before it, so there is nothing to judge by"}
	}
	return nil
}
