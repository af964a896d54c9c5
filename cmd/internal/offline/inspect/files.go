// SPDX-License-Identifier: Apache-2.0

// Package inspect runs the rules and the request chain of package lint over files and
// clusters, and prints the results. It never writes to a cluster.
package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// LintFiles runs the rules over the objects in files and folders, and in directories of static
// admission manifests. The error joins all read errors; the report covers everything else.
func LintFiles(paths, static []string, stdin io.Reader, options lint.Options) (*lint.Report, error) {
	var objects []lint.Object
	var errs []error
	var others []lint.Skipped
	templates := map[string]bool{}
	for i, path := range append(slices.Clone(paths), static...) {
		read, err := manifest.ReadPath(path, stdin)
		for _, err := range manifest.SplitErrors(err) {
			var problem *manifest.Error
			if errors.As(err, &problem) && isTemplate(problem.File) {
				templates[problem.File] = true
				continue
			}
			if errors.As(err, &problem) && problem.NotObject {
				others = append(others, lint.Skipped{Rule: "*", Reason: "documents that are not Kubernetes objects", Objects: []string{fmt.Sprintf("%s:%d", problem.File, problem.Line)}})
				continue
			}
			errs = append(errs, err)
		}
		for _, object := range read {
			converted := forLint(object)
			converted.Static = i >= len(paths)
			objects = append(objects, converted)
		}
	}
	if err := errTemplates(slices.Sorted(maps.Keys(templates))); err != nil {
		errs = append(errs, err)
	}
	known, err := resources.OfFiles(nil)
	if err != nil {
		return nil, err
	}
	options.Resources = known.ForLint()
	inventory, err := lint.ReadFiles(objects)
	report := lint.Run(inventory, options)
	report.Skipped = append(report.Skipped, mergeSkipped(others)...)
	if len(objects) == 0 && len(errs) == 0 && err == nil {
		errs = append(errs, errors.New("there is no Kubernetes object to look at"))
	}
	return report, errors.Join(append(errs, err)...)
}

// isTemplate reports whether a file that cannot be read as objects is a template, of Helm for example.
func isTemplate(file string) bool {
	data, err := os.ReadFile(file) // the user names it
	return err == nil && bytes.Contains(data, []byte("{{"))
}

// errTemplates says how to render templates; nil if there are none.
func errTemplates(files []string) error {
	if len(files) == 0 {
		return nil
	}
	chart := filepath.ToSlash(filepath.Dir(files[0]))
	for dir := chart; dir != "." && dir != "/"; dir = path.Dir(dir) {
		if _, err := os.Stat(path.Join(dir, "Chart.yaml")); err == nil {
			chart = dir
			break
		}
	}
	return fmt.Errorf("%s a template that is not rendered, such as %s: render it first: helm template NAME %s | sallyport lint -f -", cli.Count(len(files), "file is", "files are each"), files[0], chart)
}

// mergeSkipped joins the objects of entries with the same rule and reason.
func mergeSkipped(list []lint.Skipped) []lint.Skipped {
	var out []lint.Skipped
	for _, s := range list {
		i := slices.IndexFunc(out, func(have lint.Skipped) bool { return have.Rule == s.Rule && have.Reason == s.Reason })
		if i < 0 {
			out = append(out, s)
		} else {
			out[i].Objects = append(out[i].Objects, s.Objects...)
		}
	}
	return out
}

// forLint returns the object in the form that rules take.
func forLint(o *manifest.Object) lint.Object {
	return lint.Object{
		APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Labels: o.Labels, Annotations: o.Annotations, Raw: o.Raw,
		At: func(pointer string) (string, int) {
			file, line := o.Position(jsontext.Pointer(pointer))
			return filepath.ToSlash(file), line
		},
	}
}
