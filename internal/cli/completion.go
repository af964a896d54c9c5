// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Errors of cobra's functions in this file mean that the flag does not exist or already has
// a completion. They are ignored: a test covers the completion of every flag.

// CompleteChoices completes the value of a flag with the choices. In a comma-separated
// list, each is offered once.
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

// CompleteFiles completes the value of a flag with folders and files that have one of the
// extensions, or all files without extensions.
func CompleteFiles(cmd *cobra.Command, flag string, extensions ...string) {
	if len(extensions) == 0 {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
		return
	}
	_ = cmd.MarkFlagFilename(flag, extensions...)
}

// CompleteFolders completes the value of a flag with folders.
func CompleteFolders(cmd *cobra.Command, flag string) { _ = cmd.MarkFlagDirname(flag) }
