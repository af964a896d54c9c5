// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/internal/cli"
)

// project is the tool's page in SARIF.
const project = "https://github.com/sallyport-io/sallyport"

// DocsURI returns the URL of a page below docs/, with an optional anchor.
func DocsURI(page string) string { return project + "/blob/main/docs/" + page }

// What is written of SARIF 2.1.0 (OASIS, sections 3.13 to 3.49). The library that the tests
// validate it with would add 22 MB to the program: its types have a method that links a schema
// validator.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string     `json:"id"`
		ShortDescription sarifText  `json:"shortDescription"`
		HelpURI          string     `json:"helpUri"`
		Help             *sarifText `json:"help,omitempty"`
	}
	sarifText struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		PhysicalLocation *sarifPlace    `json:"physicalLocation,omitempty"`
		LogicalLocations []sarifLogical `json:"logicalLocations"`
	}
	sarifPlace struct {
		ArtifactLocation struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region *sarifRegion `json:"region,omitempty"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name               string `json:"name"`
		FullyQualifiedName string `json:"fullyQualifiedName"`
	}
)

// writeSARIF writes all entries except those with level [Pass].
func (r *Report) writeSARIF(out io.Writer) error {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: r.Tool, Version: r.Version, InformationURI: project, Rules: []sarifRule{}}
	for _, rule := range r.Rules {
		described := sarifRule{ID: rule.ID, ShortDescription: sarifText{Text: rule.What}, HelpURI: rule.URI}
		if rule.Help != "" {
			described.Help = &sarifText{Text: rule.Help, Markdown: rule.Help}
		}
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, described)
	}
	for i := range r.Entries {
		e := &r.Entries[i]
		if e.Level == Pass {
			continue
		}
		location := sarifLocation{LogicalLocations: []sarifLogical{{Name: e.Name, FullyQualifiedName: e.Suite + "/" + e.Name}}}
		if e.File != "" {
			location.PhysicalLocation = &sarifPlace{}
			location.PhysicalLocation.ArtifactLocation.URI = fileURI(e.File)
			if e.Line > 0 {
				location.PhysicalLocation.Region = &sarifRegion{StartLine: e.Line}
			}
		}
		run.Results = append(run.Results, sarifResult{
			RuleID: e.Rule, RuleIndex: slices.IndexFunc(r.Rules, func(rule Rule) bool { return rule.ID == e.Rule }),
			Level: sarifLevel(e.Level), Message: sarifText{Text: strings.ToValidUTF8(e.text(), "\uFFFD")}, Locations: []sarifLocation{location},
		})
	}
	return cli.PrintJSON(out, sarifLog{
		Schema:  "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
		Version: "2.1.0", Runs: []sarifRun{run},
	})
}

func sarifLevel(level Level) string {
	switch level {
	case Info:
		return "note"
	case Warning:
		return "warning"
	}
	return "error"
}

// fileURI returns the URI of a path (RFC 3986). A relative path stays relative to the working
// directory.
func fileURI(path string) string {
	uri := url.URL{Path: filepath.ToSlash(path)}
	if filepath.IsAbs(path) {
		uri.Scheme = "file"
	}
	return uri.String()
}
