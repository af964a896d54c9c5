// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// Count formats a number of things: "1 pod", "2 pods".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// OneLine joins the lines of a text.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// PrintJSON prints a value as indented JSON, without escaping <, > and &.
func PrintJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// PrintAs prints a value in a format that [AddOutputFlag] offers besides text: json or yaml.
func PrintAs(out io.Writer, format string, value any) error {
	if format != "yaml" {
		return PrintJSON(out, value)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if data, err = yaml.JSONToYAML(data); err == nil {
		_, err = out.Write(data)
	}
	return err
}
