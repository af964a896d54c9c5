// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// maxExported is how many names the library may export. It only shrinks.
const maxExported = "292"

// product are the packages of the commands.
const product = module + "/cmd/internal"

var (
	// fileTypes are those of the file of `serve --config`, and of the settings of webhooks in it.
	fileTypes = []string{
		product + "/serve/config/v1alpha1.SallyportConfiguration", product + "/serve.PodDefaultSettings",
		product + "/webhooks/imagepull.Settings", product + "/webhooks/servicetype.Settings",
		product + "/webhooks/projectlimit.Settings", product + "/webhooks/dataset.Settings",
		product + "/webhooks/podtemplate.Settings",
	}
	filePackages = []string{
		"./internal/serve/...", "./internal/poddefault", "./internal/webhooks/...", module + "/registration", module + "/serving",
		module + "/serving/certificate", module + "/internal/hosting/logging",
	}
)

// lint runs Kubernetes' linter over the API types and those of the configuration file, and golangci-lint as pinned
// in tools/lint/go.mod over all modules.
func (t *tree) lint() error {
	t.say("kube-api-linter")
	apilint := []string{"go", "-C", "tools/apilint", "run", "."}
	if err := t.alone().run("", append(apilint, "exceptions.yaml", filepath.Join(t.top, "api"), "./kubeflow/...", "./sallyport/...")...); err != nil {
		return err
	}
	if err := t.alone().run("", append(append(apilint, "-types", strings.Join(fileTypes, ","), "file-exceptions.yaml",
		filepath.Join(t.top, "cmd")), filePackages...)...); err != nil {
		return err
	}
	linter, err := t.alone().output("", "go", "tool", "-modfile=tools/lint/go.mod", "-n", "golangci-lint")
	if err != nil {
		return err
	}
	work, err := t.workModules()
	if err != nil {
		return err
	}
	others, err := t.otherModules()
	if err != nil {
		return err
	}
	for _, m := range work {
		t.say("golangci-lint run in %s", m)
		if err := t.run(m, linter, "run", "./..."); err != nil {
			return err
		}
	}
	for _, m := range others {
		t.say("golangci-lint run in %s", m)
		if err := t.alone().run(m, linter, "run", "./..."); err != nil {
			return err
		}
	}
	return nil
}

// verify checks that all is formatted, tidy and generated as it should be, counts exported names and the lines of
// packages, and compares the stable core with its record. It changes nothing, and takes no earlier check's word.
func (t *tree) verify() error {
	if err := t.inOrder((*tree).format, (*tree).tidy); err != nil {
		return err
	}
	for _, check := range []struct {
		name string
		args []string
	}{
		{"exported identifiers", []string{"./exported", "-most", maxExported, t.top}},
		{"budgets", []string{"./budgets", "budgets/exceptions.yaml", t.top}},
		{"the stable core", []string{"./compatibility", t.top}},
	} {
		t.say("%s", check.name)
		if err := t.run("", append([]string{"go", "-C", "tools", "run"}, check.args...)...); err != nil {
			return err
		}
	}
	for _, g := range generators {
		if err := os.Remove(t.stamp(g)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return t.inOrder((*tree).commits, (*tree).generated)
}

func (t *tree) tidy() error {
	folders, err := t.moduleFolders()
	if err != nil {
		return err
	}
	t = t.alone()
	for _, m := range folders {
		t.say("go mod tidy -diff in %s", m)
		if err := t.run(m, "go", "mod", "tidy", "-diff"); err != nil {
			return fmt.Errorf("%s/go.mod is not tidy, run: go -C %s mod tidy\n%w", m, m, err)
		}
	}
	const suite = "test/conformance/suite"
	files, err := filepath.Glob(filepath.Join(t.top, suite, "kubernetes-*.mod"))
	if err != nil {
		return err
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.say("go mod tidy -diff with %s/%s", suite, name)
		if err := t.run(suite, "go", "mod", "tidy", "-diff", "-modfile="+name); err != nil {
			return fmt.Errorf("%s is not tidy, run: cd %s && go mod tidy -modfile=%s\n%w", name, suite, name, err)
		}
	}
	return nil
}

func (t *tree) recordAPI() error {
	return t.run("", "go", "-C", "tools", "run", "./compatibility", "-record", t.top)
}

// Subjects of commits have a length that logs and mails show whole. Those up to subjectsSince are as they are.
const (
	maxSubject    = 72
	subjectsSince = "2165dcb1512efcdb895bfe48b3c7eb63cf3e9786"
)

// commits checks the subjects of commits. A checkout without history, or with too little of it, has nothing to
// check.
func (t *tree) commits() error {
	said, err := t.combined("", "git", "log", "--format=%h %s", subjectsSince+"..HEAD")
	if err != nil {
		t.say("subjects of commits are not checked: there is no history")
		return nil //nolint:nilerr // an archive of the sources is a checkout, too
	}
	t.say("subjects of commits")
	var faults []error
	for line := range strings.Lines(said) {
		hash, subject, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if fault := faultOfSubject(subject); fault != "" {
			faults = append(faults, fmt.Errorf("commit %s: %s: %q", hash, fault, subject))
		}
	}
	return errors.Join(faults...)
}

// faultOfSubject returns what is wrong with the first line of a commit's message, or nothing.
func faultOfSubject(subject string) string {
	switch n := utf8.RuneCountInString(subject); {
	case strings.TrimSpace(subject) == "":
		return "no subject"
	case n > maxSubject:
		return fmt.Sprintf("the subject has %d characters, at most %d are wanted", n, maxSubject)
	case strings.HasSuffix(subject, "."):
		return "the subject ends with a period"
	case strings.HasPrefix(subject, "fixup! ") || strings.HasPrefix(subject, "squash! "):
		return "the commit is to become part of another one"
	}
	return ""
}
