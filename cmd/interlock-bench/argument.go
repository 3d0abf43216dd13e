package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// takes accepts from least to most arguments, of what. most < 0 is any number.
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		path := cmd.CommandPath()
		name := strings.TrimPrefix(path, cmd.Root().Name()+" ")
		switch n := len(args); {
		case n < least:
			return fmt.Errorf("%s needs %s; see %s --help", name, what, path)
		case most == 0 && n > 0:
			return fmt.Errorf("%s takes no argument, and %q is one; see %s --help", name, args[0], path)
		case most >= 0 && n > most:
			return fmt.Errorf("%s takes %s and no more; %q is too much", name, what, strings.Join(args[most:], " "))
		}
		return nil
	}
}

// flagError says in this program's words what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	}
	takes := map[string]string{
		"uint": "a whole number from 0", "uint64": "a whole number from 0", "int": "a whole number",
		"duration": "a time such as 30s or 2m", "bool": "true or false",
	}[invalid.GetFlag().Value.Type()]
	if takes == "" {
		return err
	}
	return fmt.Errorf("--%s takes %s, and %q is none", invalid.GetFlag().Name, takes, invalid.GetValue())
}
