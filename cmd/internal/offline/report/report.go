// SPDX-License-Identifier: Apache-2.0

// Package report writes a command's findings in formats that CI systems read: JUnit XML, SARIF
// 2.1.0 (OASIS), and workflow commands of GitHub Actions.
package report

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// The formats.
const (
	JUnit  = "junit"
	SARIF  = "sarif"
	GitHub = "github"
)

// Formats lists all formats.
var Formats = []string{JUnit, SARIF, GitHub}

// A Level is the outcome of an entry.
type Level string

// The levels. A Pass appears in JUnit only; an Error is an entry that could not be examined.
const (
	Pass    Level = "pass"
	Info    Level = "info"
	Warning Level = "warning"
	Failure Level = "failure"
	Error   Level = "error"
)

// fails reports whether an entry of the level makes a run fail.
func (l Level) fails() bool { return l == Failure || l == Error }

// A Report is the outcome of a command.
type Report struct {
	Tool    string // the command: "sallyport lint"
	Version string // of the program
	Rules   []Rule
	Entries []Entry
}

// A Rule is a rule that entries refer to by ID.
type Rule struct {
	ID   string
	What string // what the rule checks, a sentence
	Help string // how to resolve an entry; may be empty
	URI  string // of the page that explains the rule
}

// An Entry is one case, object or finding.
type Entry struct {
	Suite, Name string // JUnit's class name and name
	Rule        string // the ID of one of the rules; may be empty for a Pass
	Level       Level
	// File is a path; empty for an object in a cluster. Line counts from 1; 0 if unknown.
	File string
	Line int
	// Message is one line. Details are further lines, such as a diff.
	Message, Details string
	Duration         time.Duration
}

// Write writes the report in one of [Formats].
func (r *Report) Write(out io.Writer, format string) error {
	switch format {
	case JUnit:
		return r.writeJUnit(out)
	case SARIF:
		return r.writeSARIF(out)
	case GitHub:
		return r.writeGitHub(out)
	}
	return fmt.Errorf("unknown format %q", format)
}

// AddErrors adds an entry for each joined error, at its line if it has one.
func (r *Report) AddErrors(suite, rule string, err error) {
	for _, err := range manifest.SplitErrors(err) {
		entry := Entry{Suite: suite, Name: rule, Rule: rule, Level: Error}
		entry.Message, entry.Details, _ = strings.Cut(err.Error(), "\n")
		if at := (*manifest.Error)(nil); errors.As(err, &at) {
			entry.File, entry.Line = at.File, at.Line
		}
		r.Entries = append(r.Entries, entry)
	}
}

// text returns the message with the details.
func (e *Entry) text() string {
	if e.Details == "" {
		return e.Message
	}
	return e.Message + "\n" + e.Details
}
