// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
)

// The elements of JUnit's format that those who show results read.
type (
	testSuite struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Seconds  string     `xml:"time,attr"`
		Cases    []testCase `xml:"testcase"`
	}
	testCase struct {
		Name    string   `xml:"name,attr"`
		Seconds string   `xml:"time,attr"`
		Failure *because `xml:"failure,omitempty"`
		Skipped *because `xml:"skipped,omitempty"`
	}
	because struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes junit-N.xml for a run, with the whole names of the cases.
func writeJUnit(dir string, n int, r *run) error {
	text, err := junit(n, r)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, fmt.Sprintf("junit-%d.xml", n)), text, 0o644)
}

func junit(n int, r *run) ([]byte, error) {
	suite := testSuite{Name: fmt.Sprintf("conformance, run %d", n), Tests: len(r.outcomes)}
	total := 0.0
	for _, o := range r.outcomes {
		total += o.Seconds
		c := testCase{Name: o.Name, Seconds: seconds(o.Seconds)}
		switch word(o.State) {
		case "pass":
		case "skip":
			suite.Skipped++
			c.Skipped = &because{Message: firstLine(o.Message)}
		default:
			suite.Failures++
			c.Failure = &because{Message: o.State + ": " + firstLine(o.Message), Text: o.Message}
		}
		suite.Cases = append(suite.Cases, c)
	}
	suite.Seconds = seconds(total)
	text, err := xml.MarshalIndent(suite, "", "  ")
	return append([]byte(xml.Header), append(text, '\n')...), err
}

func seconds(s float64) string { return fmt.Sprintf("%.1f", s) }
