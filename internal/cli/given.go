// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Given returns the flags that were set and that take accepts, as arguments for another
// command, sorted by name.
func Given(flags *pflag.FlagSet, take func(*pflag.Flag) bool) []string {
	var args []string
	flags.Visit(func(flag *pflag.Flag) {
		if !take(flag) {
			return
		}
		value := flag.Value.String()
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		args = append(args, "--"+flag.Name+"="+value)
	})
	slices.Sort(args)
	return args
}
