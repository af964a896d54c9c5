// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// bridge has, for suites of controller-runtime, packages in place of those that the suites test.
//
//go:embed bridge
var bridge embed.FS

// An adapterSuite is a suite of controller-runtime's packages of webhooks that runs over our adapters.
type adapterSuite struct {
	of string // the package whose suite it is
	// lay puts the suite and its bridge into a copy of the module, and returns the package to test.
	lay func(folder string) (string, error)
	// different are the specs that fail, and why.
	different map[string]string
}

const controllerRuntime = "sigs.k8s.io/controller-runtime@v0.25.2"

var adapterSuites = []adapterSuite{
	{"pkg/webhook/admission", layAdmission, map[string]string{
		"should produce all patches if the requests are all allowed":                   "the request has no object to patch",
		"should produce all patches if the requests are all allowed and show warnings": "the request has no object to patch",
		"should error when given an infinite body":                                     "the server answers 413 before it calls the webhook",
		"should present the Context from the HTTP request, if any":                     "values of a client's context do not reach a server",
	}},
	{"pkg/webhook/conversion", layConversion, map[string]string{
		"should return error on panic in conversion": "the message names the object",
	}},
}

// layAdmission copies the suites of handlers beside a package that adapts them.
func layAdmission(folder string) (string, error) {
	const adopted = "pkg/webhook/adopted/admission"
	to := filepath.Join(folder, filepath.FromSlash(adopted))
	errs := []error{os.MkdirAll(to, 0o755), put("admission", filepath.Join(to, "bridge.go"))}
	for _, name := range []string{"admission_suite", "defaulter_custom", "http", "multi", "validator_custom"} {
		source, err := os.ReadFile(filepath.Join(folder, "pkg", "webhook", "admission", name+"_test.go"))
		errs = append(errs, err, os.WriteFile(filepath.Join(to, name+"_test.go"), source, 0o600))
	}
	return "./" + adopted, errors.Join(errs...)
}

// layConversion has the suite call our handler, with reviews that have all that API servers send.
func layConversion(folder string) (string, error) {
	const suite = "pkg/webhook/conversion"
	to := filepath.Join(folder, filepath.FromSlash(suite))
	name := filepath.Join(to, "conversion_test.go")
	source, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	text := string(source)
	for _, edit := range [][2]string{
		{"import (", "import (\n\t\"sigs.k8s.io/controller-runtime/" + suite + "/ours\"\n"},
		{"wh = conversion.NewWebhookHandler(", "wh = ours.NewWebhookHandler("},
		{"Encode(convReq)", "Encode(ours.Completed(convReq))"},
	} {
		if strings.Count(text, edit[0]) != 1 {
			return "", fmt.Errorf("%s has not one %q", name, edit[0])
		}
		text = strings.Replace(text, edit[0], edit[1], 1)
	}
	return "./" + suite, errors.Join(os.MkdirAll(filepath.Join(to, "ours"), 0o755), put("conversion", filepath.Join(to, "ours", "ours.go")), os.WriteFile(name, []byte(text), 0o600))
}

// put writes a file of bridge.
func put(name, to string) error {
	source, err := bridge.ReadFile("bridge/" + name + ".go.txt")
	if err != nil {
		return err
	}
	return os.WriteFile(to, source, 0o600)
}

// runAdapters prints what passes. The error names what fails that should not, and what passes that should fail.
func runAdapters(out io.Writer, top string, only func(module string) bool) error {
	if !only(controllerRuntime) {
		return nil
	}
	var errs []error
	for _, s := range adapterSuites {
		ran, err := s.run(top)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.of, err))
			continue
		}
		fmt.Fprintf(out, "%s %s: %s with our adapters\n", controllerRuntime, s.of, ran)
		if got, want := failed(ran.output), slices.Sorted(maps.Keys(s.different)); !slices.Equal(got, want) {
			errs = append(errs, fmt.Errorf("%s: these specs fail: %q; want %q:\n%s", s.of, got, want, ran.output))
		}
	}
	return errors.Join(errs...)
}

func (s adapterSuite) run(top string) (counts, error) {
	tmp, err := os.MkdirTemp("", "adopt-")
	if err != nil {
		return counts{}, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := copied(tmp, controllerRuntime); err != nil {
		return counts{}, err
	}
	pkg, err := s.lay(tmp)
	if err != nil {
		return counts{}, err
	}
	if err := require(tmp, top, "-t", pkg); err != nil {
		return counts{}, err
	}
	return suite{packages: []string{pkg}}.specs(tmp)
}

var failure = regexp.MustCompile(`\[FAIL\] .*\[It\] (.*)`)

// failed are the names of the specs that have failed.
func failed(output string) []string {
	names := map[string]bool{}
	for _, match := range failure.FindAllStringSubmatch(colours.ReplaceAllString(output, ""), -1) {
		names[strings.TrimSpace(match[1])] = true
	}
	return slices.Sorted(maps.Keys(names))
}
