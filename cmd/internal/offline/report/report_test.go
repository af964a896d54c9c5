// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
)

func sample() *Report {
	return &Report{
		Tool: "sallyport test", Version: "v1.2.3",
		Rules: []Rule{{ID: "expectation", What: "A case ends as it says.", Help: "Correct the policy or the case.", URI: DocsURI("testing.md")}},
		Entries: []Entry{
			{Suite: "suites/a.yaml", Name: "gets the proxy", Level: Pass, Duration: 1500 * time.Microsecond},
			{Suite: "suites/a.yaml", Name: "50%, or: more", Rule: "expectation", Level: Failure, File: "suites/my file.yaml", Line: 12,
				Message: "denied: <no> ]]> \x01", Details: "-a\n+b\n"},
			{Suite: "suites/b.yaml", Name: "is told", Rule: "expectation", Level: Warning, Message: "a warning"},
			{Suite: "suites/b.yaml", Name: "cannot be read", Rule: "expectation", Level: Error, File: "/tmp/x.yaml", Message: "no such file"},
		},
	}
}

func write(t *testing.T, r *Report, format string) string {
	t.Helper()
	var out strings.Builder
	if err := r.Write(&out, format); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestJUnitCountsWhatFailed(t *testing.T) {
	var got struct {
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Errors   int    `xml:"errors,attr"`
		Time     string `xml:"time,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string `xml:"name,attr"`
				Out     string `xml:"system-out"`
				Failure *struct {
					Message string `xml:"message,attr"`
					Text    string `xml:",chardata"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(write(t, sample(), JUnit)), &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 4 || got.Failures != 1 || got.Errors != 1 || got.Time != "0.002" || len(got.Suites) != 2 {
		t.Errorf("got %+v", got)
	}
	failed := got.Suites[0].Cases[1]
	if want := "denied: <no> ]]> \uFFFD\n-a\n+b\n"; failed.Failure == nil || failed.Failure.Text != want {
		t.Errorf("got %+v, want %q", failed.Failure, want)
	}
	if got.Suites[1].Cases[0].Out != "warning: a warning" {
		t.Errorf("got %+v", got.Suites[1].Cases[0])
	}
}

// junitElements are the elements of the format that Jenkins reads (its schema junit-10.xsd), with
// the attributes that may and, with a "!", must be there, and the elements that may be inside.
var junitElements = map[string]struct{ attributes, children string }{
	"testsuites": {"name time tests failures disabled errors", "testsuite"},
	"testsuite":  {"name! tests failures errors time disabled skipped timestamp hostname id package", "properties testcase system-out system-err"},
	"testcase":   {"name! classname time assertions status", "skipped error failure system-out system-err"},
	"error":      {"type message", ""},
	"failure":    {"type message", ""},
	"system-out": {},
}

// No pure Go library validates by an XML schema, so the test has the part of it that is written.
func TestJUnitHasNothingBeyondTheFormat(t *testing.T) {
	decoder := xml.NewDecoder(strings.NewReader(write(t, sample(), JUnit)))
	within := []string{""}
	seen := map[string]bool{}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			name, parent := token.Name.Local, within[len(within)-1]
			element, known := junitElements[name]
			if inside := strings.Fields(junitElements[parent].children); !known || parent != "" && !slices.Contains(inside, name) || parent == "" && name != "testsuites" {
				t.Errorf("<%s> in <%s>", name, parent)
			}
			given := map[string]bool{}
			for _, attribute := range token.Attr {
				given[attribute.Name.Local] = true
			}
			for attribute := range strings.FieldsSeq(element.attributes) {
				attribute, required := strings.CutSuffix(attribute, "!")
				if required && !given[attribute] {
					t.Errorf("<%s> lacks %s", name, attribute)
				}
				delete(given, attribute)
			}
			if len(given) > 0 {
				t.Errorf("<%s> has %v", name, given)
			}
			within, seen[name] = append(within, name), true
		case xml.EndElement:
			within = within[:len(within)-1]
		}
	}
	if len(seen) != len(junitElements) {
		t.Errorf("the sample has only %v", seen)
	}
}

// validSARIF parses a report with a library that validates it against the schema. It first adds
// the schema's defaults that the report omits, because the library would write them as empty.
func validSARIF(t *testing.T, text string) *sarif.Report {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&sarif.Report{}); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	report, err := sarif.FromString(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, run := range report.Runs {
		run.Language, run.Tool.Driver.Language, run.NewlineSequences = "en-US", "en-US", []string{"\n"}
	}
	if err := report.Validate(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return report
}

func TestSARIFFollowsItsSchemaAndNamesEveryPlace(t *testing.T) {
	run := validSARIF(t, write(t, sample(), SARIF)).Runs[0]
	if got := *run.Tool.Driver.Rules[0].HelpURI; !strings.HasSuffix(got, "/docs/testing.md") {
		t.Errorf("help at %s", got)
	}
	var levels, uris []string
	for _, result := range run.Results {
		levels = append(levels, result.Level)
		if place := result.Locations[0].PhysicalLocation; place != nil {
			uris = append(uris, *place.ArtifactLocation.URI)
			if _, err := url.Parse(*place.ArtifactLocation.URI); err != nil {
				t.Error(err)
			}
		}
	}
	if diff := cmp.Diff([]string{"error", "warning", "error"}, levels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"suites/my%20file.yaml", "file:///tmp/x.yaml"}, uris); diff != "" {
		t.Error(diff)
	}
}

func TestSARIFOfNothingHasAnEmptyListOfResults(t *testing.T) {
	text := write(t, &Report{Tool: "sallyport lint", Version: "v1"}, SARIF)
	if validSARIF(t, text); !strings.Contains(text, `"results": []`) {
		t.Errorf("GitHub wants results:\n%s", text)
	}
}

func TestGitHubCommandsStayOnTheirLine(t *testing.T) {
	want := "::error file=suites/my file.yaml,line=12,title=suites/a.yaml%3A 50%25%2C or%3A more::denied: <no> ]]> \x01%0A-a%0A+b%0A\n" +
		"::warning title=suites/b.yaml%3A is told::a warning\n" +
		"::error file=/tmp/x.yaml,title=suites/b.yaml%3A cannot be read::no such file\n"
	if diff := cmp.Diff(want, write(t, sample(), GitHub)); diff != "" {
		t.Error(diff)
	}
}

// FuzzFormats: each format can be parsed again, whatever the names and messages contain.
func FuzzFormats(f *testing.F) {
	f.Add("a", "b", "c.yaml", "d", "e")
	f.Add("%", "\x00", "a:b,c", "]]>", "\xff\r\n::error::x")
	f.Fuzz(func(t *testing.T, suite, name, file, message, details string) {
		r := &Report{Tool: "sallyport", Version: "v1", Rules: []Rule{{ID: "r", What: "x", URI: DocsURI("lint.md")}}, Entries: []Entry{
			{Suite: suite, Name: name, Rule: "r", Level: Failure, File: file, Line: 1, Message: message, Details: details},
		}}
		var suites struct {
			XMLName xml.Name `xml:"testsuites"`
		}
		if err := xml.Unmarshal([]byte(write(t, r, JUnit)), &suites); err != nil {
			t.Error(err)
		}
		if report, err := sarif.FromString(write(t, r, SARIF)); err != nil {
			t.Error(err)
		} else if len(report.Runs[0].Results) != 1 {
			t.Error("no result")
		}
		if text := write(t, r, GitHub); strings.Count(text, "\n") != 1 || strings.ContainsRune(text, '\r') {
			t.Errorf("%q is not one line", text)
		}
	})
}
