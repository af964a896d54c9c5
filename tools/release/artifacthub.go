// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

const page = "https://github.com/sallyport-io/sallyport"

// The elements of the lists in https://artifacthub.io/docs/topics/annotations/helm/.
type (
	hubLink struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	}
	hubDefinition struct {
		Kind        string `json:"kind"`
		Version     string `json:"version"`
		Name        string `json:"name"`
		DisplayName string `json:"displayName"`
		Description string `json:"description"`
	}
	hubImage struct {
		Name      string   `json:"name"`
		Image     string   `json:"image"`
		Platforms []string `json:"platforms"`
	}
	hubChange struct {
		Kind        string `json:"kind"`
		Description string `json:"description"`
	}
)

// artifactHub returns the annotations of the chart that Artifact Hub shows.
func (s settings) artifactHub() (map[string]string, error) {
	definitions, err := s.hubDefinitions()
	if err != nil {
		return nil, err
	}
	example, err := os.ReadFile(filepath.Join(s.top, "examples/poddefaults/gcp-credentials.yaml"))
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := yaml.Unmarshal(example, &object); err != nil {
		return nil, err
	}
	notes, err := s.notes()
	if err != nil {
		return nil, err
	}
	image := hubImage{Name: "sallyport", Image: s.repository + ":" + s.version}
	for _, p := range imagePlatforms {
		image.Platforms = append(image.Platforms, p.os+"/"+p.arch)
	}
	at := page + "/blob/" + s.version
	changes := hubChanges(notes)
	out := map[string]string{
		"artifacthub.io/category":                "security",
		"artifacthub.io/license":                 "Apache-2.0",
		"artifacthub.io/operator":                "false",
		"artifacthub.io/prerelease":              strconv.FormatBool(semver.Prerelease(s.version) != ""),
		"artifacthub.io/containsSecurityUpdates": strconv.FormatBool(slices.ContainsFunc(changes, func(c hubChange) bool { return c.Kind == "security" })),
	}
	for name, value := range map[string]any{
		"links": []hubLink{
			{"Installation", at + "/docs/install.md"}, {"What is promised", at + "/docs/compatibility.md"}, {"Security policy", at + "/SECURITY.md"},
			{"Support", page + "/issues"},
		},
		"crds":         definitions,
		"crdsExamples": []any{object},
		"images":       []hubImage{image},
		"changes":      changes,
	} {
		text, err := yaml.Marshal(value)
		if err != nil {
			return nil, err
		}
		out["artifacthub.io/"+name] = string(text)
	}
	return out, nil
}

func (s settings) hubDefinitions() ([]hubDefinition, error) {
	files, err := filepath.Glob(filepath.Join(s.top, "config/crd/*_*.yaml"))
	if err != nil {
		return nil, err
	}
	var out []hubDefinition
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd struct {
			Metadata struct{ Name string }
			Spec     struct {
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct {
						OpenAPIV3Schema struct{ Description string } `json:"openAPIV3Schema"`
					}
				}
			}
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, v := range crd.Spec.Versions {
			out = append(out, hubDefinition{
				Kind: crd.Spec.Names.Kind, Version: v.Name, Name: crd.Metadata.Name, DisplayName: crd.Spec.Names.Kind,
				Description: strings.Join(strings.Fields(v.Schema.OpenAPIV3Schema.Description), " "),
			})
		}
	}
	return out, nil
}

// hubKinds are Artifact Hub's kinds of changes, by the headings of Keep a Changelog.
var hubKinds = map[string]string{
	"Added": "added", "Changed": "changed", "Deprecated": "deprecated", "Removed": "removed", "Fixed": "fixed", "Security": "security",
}

var markdownLink = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)

// hubChanges are the items of a changelog's section, without Markdown. An item below no heading changes something.
func hubChanges(notes string) []hubChange {
	var out []hubChange
	kind, open := "changed", false
	for line := range strings.Lines(notes) {
		line = strings.TrimRight(line, "\n")
		heading, isHeading := strings.CutPrefix(line, "### ")
		item, isItem := strings.CutPrefix(line, "- ")
		switch {
		case isHeading:
			kind, open = cmp.Or(hubKinds[heading], "changed"), false
		case isItem:
			out, open = append(out, hubChange{kind, item}), true
		case open && strings.HasPrefix(line, "  "):
			out[len(out)-1].Description += " " + strings.TrimSpace(line)
		default:
			open = false
		}
	}
	for i := range out {
		out[i].Description = strings.NewReplacer("`", "", "**", "").Replace(markdownLink.ReplaceAllString(out[i].Description, "$1"))
	}
	return out
}

// annotate adds annotations to the Chart.yaml of a folder.
func annotate(folder string, annotations map[string]string) error {
	name := filepath.Join(folder, "Chart.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	chart := map[string]any{}
	if err := yaml.Unmarshal(text, &chart); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	chart["annotations"] = annotations
	if text, err = yaml.Marshal(chart); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}
