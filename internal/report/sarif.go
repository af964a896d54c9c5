// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/sallyport-io/sallyport/internal/cli"
)

// project is the page that SARIF names for the tool.
const project = "https://github.com/sallyport-io/sallyport"

// DocsURI is the address of a page below docs/, with an anchor if it has one.
func DocsURI(page string) string { return project + "/blob/main/docs/" + page }

// writeSARIF writes what is not a [Pass].
func (r *Report) writeSARIF(out io.Writer) error {
	run := sarif.NewRunWithInformationURI(r.Tool, project)
	run.Tool.Driver.WithVersion(r.Version)
	for _, rule := range r.Rules {
		described := run.AddRule(rule.ID).WithDescription(rule.What).WithHelpURI(rule.URI)
		if rule.Help != "" {
			described.WithMarkdownHelp(rule.Help)
		}
	}
	for i := range r.Entries {
		e := &r.Entries[i]
		if e.Level == Pass {
			continue
		}
		result := run.CreateResultForRule(e.Rule).WithLevel(sarifLevel(e.Level)).WithMessage(sarif.NewTextMessage(strings.ToValidUTF8(e.text(), "\uFFFD")))
		location := sarif.NewLocation()
		if e.File != "" {
			place := sarif.NewPhysicalLocation().WithArtifactLocation(sarif.NewSimpleArtifactLocation(fileURI(e.File)))
			if e.Line > 0 {
				place.WithRegion(sarif.NewSimpleRegion(e.Line, e.Line))
			}
			location.WithPhysicalLocation(place)
		}
		result.AddLocation(location.AddLogicalLocation(sarif.NewLogicalLocation().WithName(e.Name).WithFullyQualifiedName(e.Suite + "/" + e.Name)))
	}
	return cli.PrintJSON(out, sarif.NewReport().AddRun(run))
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

// fileURI is the URI of a path (RFC 3986): relative to where the command runs, unless the
// path is absolute.
func fileURI(path string) string {
	uri := url.URL{Path: filepath.ToSlash(path)}
	if filepath.IsAbs(path) {
		uri.Scheme = "file"
	}
	return uri.String()
}
