// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

// completeChoices makes shells offer the choices for the value of a flag. The
// errors of cobra's functions mean that there is no such flag, or that it was
// completed before: a test calls every flag's completion.
func completeChoices(cmd *cobra.Command, flag string, choices []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
}

// completeFiles makes shells offer files with one of the extensions, and folders;
// without extensions all files.
func completeFiles(cmd *cobra.Command, flag string, extensions ...string) {
	if len(extensions) == 0 {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
		return
	}
	_ = cmd.MarkFlagFilename(flag, extensions...)
}
