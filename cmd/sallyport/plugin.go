// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Names under which kubectl runs the program: it finds plugins by their file names, and
// calls the other one for shell completion (see kubectl plugin --help).
const (
	pluginName     = "kubectl-sallyport"
	completionName = "kubectl_complete-sallyport"
)

// asPlugin translates the command line according to the name of the program. title is how
// users call the program under that name; it is empty for its own name.
func asPlugin(program string, args []string) (title string, translated []string) {
	switch strings.TrimSuffix(filepath.Base(program), ".exe") {
	case pluginName:
		return "kubectl sallyport", args
	case completionName:
		return "kubectl sallyport", slices.Concat([]string{cobra.ShellCompRequestCmd}, args)
	}
	return "", args
}

// setTitle uses the title in help, examples and messages.
func setTitle(cmd *cobra.Command, title string) {
	if title == "" {
		return
	}
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[cobra.CommandDisplayNameAnnotation] = title
	var retitle func(*cobra.Command)
	retitle = func(c *cobra.Command) {
		for _, of := range cmd.Commands() {
			c.Example = strings.ReplaceAll(c.Example, "sallyport "+of.Name(), title+" "+of.Name())
			c.Long = strings.ReplaceAll(c.Long, "'sallyport "+of.Name(), "'"+title+" "+of.Name())
		}
		for _, sub := range c.Commands() {
			retitle(sub)
		}
	}
	retitle(cmd)
}
