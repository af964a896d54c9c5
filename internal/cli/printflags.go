// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"strconv"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// PrintFlags prints the flags with their values as YAML, sorted by name, without --help.
func PrintFlags(out io.Writer, flags *pflag.FlagSet) error {
	values := map[string]any{}
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "help" {
			values[flag.Name] = valueOf(flag.Value)
		}
	})
	text, err := yaml.Marshal(values)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// valueOf converts a value for YAML: lists, numbers and booleans are not strings.
func valueOf(value pflag.Value) any {
	if list, ok := value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	text := value.String()
	switch value.Type() {
	case "bool":
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	case "int", "int32", "int64":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	}
	return text
}
