// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Given returns the flags that were set and that take accepts, as arguments for another
// command, sorted by name; those that may be repeated are as often as they were, in their order.
func Given(flags *pflag.FlagSet, take func(*pflag.Flag) bool) []string {
	var args []string
	flags.Visit(func(flag *pflag.Flag) {
		if !take(flag) {
			return
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			if values = list.GetSlice(); flag.Value.Type() != "stringArray" { // which takes commas as they are
				values = []string{strings.Join(values, ",")}
			}
		}
		for _, value := range values {
			args = append(args, "--"+flag.Name+"="+value)
		}
	})
	slices.SortStableFunc(args, func(a, b string) int {
		a, _, _ = strings.Cut(a, "=")
		b, _, _ = strings.Cut(b, "=")
		return strings.Compare(a, b)
	})
	return args
}
