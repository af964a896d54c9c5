// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func (t *tree) buildSallyport() error { return t.build("./cmd/sallyport") }

func (t *tree) printControlPlane() error {
	dir, err := t.controlPlane(basicComponents)
	if err == nil {
		t.say("%s", dir)
	}
	return err
}

// quickstart needs no cluster and no control plane.
func (t *tree) quickstart() error {
	t.say("Building bin/sallyport: about 2 minutes on two cores the first time, then seconds.")
	if err := t.buildSallyport(); err != nil {
		return err
	}
	review := []string{
		"bin/sallyport", "review", "-f", "examples/poddefaults/notebook-pod.yaml", "--with", "examples/poddefaults/gcp-credentials.yaml",
	}
	t.say("%s", strings.Join(review, " "))
	return t.replace(review...)
}

// demo says first what it does, because it builds for minutes before it shows anything.
func (t *tree) demo(flags ...string) error {
	t.say("1. sallyport and the demo: built, in about 2 minutes on two cores the first time, then in seconds")
	components := "etcd kube-apiserver"
	if slices.Contains(flags, "-stay") {
		components = basicComponents
	}
	args := []string{"run", ".", "-plan"}
	if t.settings.k8s != "" {
		args = append(args, "-kubernetes", t.settings.k8s)
	}
	plan, err := t.alone().with("KUBEBUILDER_ASSETS="+t.settings.controlPlaneDir).
		output("test/controlplane", slices.Concat([]string{"go"}, args, strings.Fields(components))...)
	if err != nil {
		return err
	}
	t.say("2. %s\n3. the demo: some 10 seconds on a real API server", plan)
	programs := []string{"./cmd/sallyport", "./test/demo"}
	if slices.Contains(flags, "-cloud") {
		programs = []string{"./test/demo", "./examples/cloud-controller-manager"}
	}
	return t.with(lazy).program(programs, components, append([]string{"bin/demo"}, flags...)...)
}

// program builds what a program needs, and becomes it.
func (t *tree) program(programs []string, components string, args ...string) error {
	if err := t.build(programs...); err != nil {
		return err
	}
	t, err := t.withControlPlane(components)
	if err != nil {
		return err
	}
	return t.replace(args...)
}

func (t *tree) bench(flags ...string) error {
	programs := []string{"./cmd/sallyport", "./cmd/test/bench"}
	if slices.Contains(flags, "peers") {
		programs = programs[1:]
	}
	return t.program(programs, basicComponents, slices.Concat([]string{"bin/bench"}, flags, t.settings.bench)...)
}

func (t *tree) faults() error {
	if _, err := exec.LookPath("haproxy"); err != nil && len(t.settings.faults) == 0 {
		if _, err := os.Stat("/usr/sbin/haproxy"); err != nil {
			t.say("haproxy is missing: installing the distribution's")
			if _, err := t.output("", "apt-get", "install", "-y", "haproxy"); err != nil {
				return errors.New(`install haproxy by hand, or choose rows with FAULTS="-rows ..." (bin/faults -list prints them)`)
			}
		}
	}
	return t.program([]string{"./cmd/sallyport", "./cmd/test/e2e/faults"}, basicComponents,
		slices.Concat([]string{"bin/faults", "-sallyport", "bin/sallyport"}, t.settings.faults)...)
}

// conformance runs Kubernetes' own webhook suites.
func (t *tree) conformance() error {
	return t.program([]string{"./examples/testwebhook", "./test/conformance"},
		basicComponents+" kube-controller-manager kube-scheduler kwok e2e.test",
		slices.Concat([]string{"bin/conformance", "-testwebhook", "bin/testwebhook", "-out", "bin/conformance-results"}, t.settings.conformance)...)
}

// tag is the version of what is released without one: that of the commit.
func (t *tree) tag() (string, error) {
	if t.settings.version != "" {
		return t.settings.version, nil
	}
	described, err := t.output("", "git", "describe", "--tags", "--always", "--dirty")
	if err == nil && !strings.HasPrefix(described, "v") {
		described = "v0.0.0-" + described
	}
	return described, err
}

// releasing runs tools/release, which leaves what it makes in bin/release.
func (t *tree) releasing(what string, flags ...string) error {
	version, err := t.tag()
	if err != nil {
		return err
	}
	return t.alone().run("", slices.Concat([]string{
		"go", "-C", "tools/release", "run", ".", what, "-version", version, "-top", t.top, "-out", filepath.Join(t.top, "bin/release"),
	}, flags)...)
}

func (t *tree) image() error { return t.releasing("image") }

func (t *tree) release() error {
	if err := os.RemoveAll(filepath.Join(t.top, "bin/release")); err != nil {
		return err
	}
	dir, err := t.controlPlane("helm kustomize")
	if err != nil {
		return err
	}
	flags := []string{"-tools", dir, "-key", t.settings.signingKey}
	if t.settings.tag {
		flags = append(flags, "-tag")
	}
	return t.releasing("all", flags...)
}

// rehearse releases HEAD on loopback, and fetches, verifies and installs it from there.
func (t *tree) rehearse() error {
	t, err := t.withControlPlane(basicComponents + " helm kustomize")
	if err != nil {
		return err
	}
	return t.run("", "go", "run", "./test/lab/shared", "env", "GOWORK=off", "go", "-C", "tools/release", "run", "./rehearse", "-top", t.top)
}

// adopters tries the library in other projects.
func (t *tree) adopters() error {
	t, err := t.withControlPlane(basicComponents + " kustomize")
	if err != nil {
		return err
	}
	return t.run("", slices.Concat([]string{"go", "-C", "tools", "run", "./adopt", "-suites", t.top}, adopted)...)
}

func (t *tree) screenshots() error {
	if err := t.inOrder((*tree).buildSallyport, (*tree).installBrowser); err != nil {
		return err
	}
	t, err := t.withControlPlane(basicComponents)
	if err != nil {
		return err
	}
	if t.findBrowser() == "" {
		return fmt.Errorf("%s", noBrowser)
	}
	return t.run("", "go", "test", browserTests, "-count=1", "-run", "TestPages", "-screenshots", filepath.Join(t.top, "docs/console"))
}
