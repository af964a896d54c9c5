// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Names under which the program does not run as itself. kubectl finds plugins by their
// file names, and asks the other one what to offer a shell (kubectl plugin --help).
const (
	pluginName     = "kubectl-sallyport"
	completionName = "kubectl_complete-sallyport"
)

// asPlugin is the command line as it is meant under the name by which the program was
// called, and what people call it there: empty for the usual.
func asPlugin(program string, args []string) (title string, meant []string) {
	switch strings.TrimSuffix(filepath.Base(program), ".exe") {
	case pluginName:
		return "kubectl sallyport", args
	case completionName:
		return "kubectl sallyport", slices.Concat([]string{cobra.ShellCompRequestCmd}, args)
	}
	return "", args
}

// setTitle makes help and messages call the command so, its examples too.
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
		c.Example = strings.ReplaceAll(c.Example, "sallyport "+c.Name(), title+" "+c.Name())
		for _, sub := range c.Commands() {
			retitle(sub)
		}
	}
	retitle(cmd)
}
