// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// The errors of cobra's functions here mean that there is no such flag, or that its
// completion was set before: a test asks for the completion of every flag.

// CompleteChoices makes shells offer the choices for the value of a flag. In a list
// with commas each is offered once.
func CompleteChoices(cmd *cobra.Command, flag string, choices []string) {
	isList := cmd.Flag(flag).Value.Type() == "stringSlice"
	_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		done := ""
		if comma := strings.LastIndex(typed, ","); isList && comma >= 0 {
			done = typed[:comma+1]
		}
		var offered []string
		for _, choice := range choices {
			if strings.HasPrefix(done+choice, typed) && !slices.Contains(strings.Split(done, ","), choice) {
				offered = append(offered, done+choice)
			}
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	})
}

// CompleteFiles makes shells offer files with one of the extensions, and folders;
// without extensions all files.
func CompleteFiles(cmd *cobra.Command, flag string, extensions ...string) {
	if len(extensions) == 0 {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
		return
	}
	_ = cmd.MarkFlagFilename(flag, extensions...)
}

// CompleteFolders makes shells offer folders.
func CompleteFolders(cmd *cobra.Command, flag string) { _ = cmd.MarkFlagDirname(flag) }
