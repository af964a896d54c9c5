// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"
)

// writeJUnit writes a test suite for each Suite, in the order in which they first occur. Only
// failures and errors fail: a warning passes, with its text as output.
func (r *Report) writeJUnit(out io.Writer) error {
	all := junit.Testsuites{Name: r.Tool}
	var order []string
	suites, times := map[string]*junit.Testsuite{}, map[string]time.Duration{}
	total := time.Duration(0)
	for i := range r.Entries {
		e := &r.Entries[i]
		suite := suites[e.Suite]
		if suite == nil {
			suite = &junit.Testsuite{Name: xmlText(e.Suite), ID: len(order)}
			suites[e.Suite], order = suite, append(order, e.Suite)
		}
		result := &junit.Result{Message: xmlText(e.Message), Type: e.Rule, Data: xmlText(e.text())}
		testcase := junit.Testcase{Name: xmlText(e.Name), Classname: xmlText(e.Suite), Time: seconds(e.Duration)}
		switch {
		case e.Level == Failure:
			testcase.Failure = result
		case e.Level == Error:
			testcase.Error = result
		case e.Level == Pass && e.Message != "":
			testcase.SystemOut = &junit.Output{Data: xmlText(e.text())}
		case e.Message != "":
			testcase.SystemOut = &junit.Output{Data: xmlText(string(e.Level) + ": " + e.text())}
		}
		suite.AddTestcase(testcase)
		times[e.Suite] += e.Duration
		total += e.Duration
	}
	for _, name := range order {
		suites[name].Time = seconds(times[name])
		all.AddSuite(*suites[name])
	}
	all.Time = seconds(total)
	if _, err := io.WriteString(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"); err != nil {
		return err
	}
	return all.WriteXML(out)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// xmlText replaces characters that XML 1.0 does not allow (section 2.2, Characters).
func xmlText(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r >= 0x20 && r <= 0xD7FF, r >= 0xE000 && r <= 0xFFFD, r >= 0x10000 && r <= 0x10FFFF:
			return r
		}
		return '\uFFFD'
	}, text)
}
