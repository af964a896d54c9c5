// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"
)

// writeGitHub writes a workflow command for each entry that is not a [Pass]. GitHub shows it at
// its line in a pull request.
func (r *Report) writeGitHub(out io.Writer) error {
	for i := range r.Entries {
		e := &r.Entries[i]
		command := ""
		switch {
		case e.Level == Info:
			command = "notice"
		case e.Level == Warning:
			command = "warning"
		case e.Level.fails():
			command = "error"
		default:
			continue
		}
		var properties []string
		if e.File != "" {
			properties = append(properties, "file="+gitHubProperty.Replace(e.File))
			if e.Line > 0 {
				properties = append(properties, fmt.Sprintf("line=%d", e.Line))
			}
		}
		properties = append(properties, "title="+gitHubProperty.Replace(e.title()))
		if _, err := fmt.Fprintf(out, "::%s %s::%s\n", command, strings.Join(properties, ","), gitHubText.Replace(e.text())); err != nil {
			return err
		}
	}
	return nil
}

func (e *Entry) title() string {
	if e.Suite == "" {
		return e.Name
	}
	return e.Suite + ": " + e.Name
}

// Newlines would end a command, and commas or colons its properties.
var (
	gitHubText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	gitHubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
