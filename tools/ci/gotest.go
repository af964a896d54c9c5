// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// results is where tests leave what they said, as events and as JUnit.
const results = "bin/test-results"

// A testRun is one use of `go test`.
type testRun struct {
	name     string // of what is kept of it
	dir      string // where it runs; the top if empty
	packages []string
	flags    []string
	before   []string // a command that runs the tests
	last     []string // of the test binaries, after all flags of go test
}

// goTest runs tests. One that fails is run again as often as RERUNS says: it passes then, and the report
// counts it as flaky. `go vet` has looked at all before: for its part of that, `go test` would look at all of
// Kubernetes again.
func (t *tree) goTest(r testRun) error {
	gotestsum, err := t.with("CGO_ENABLED=0").alone().output("", "go", "tool", "-modfile=tools/gotestsum/go.mod", "-n", "gotestsum")
	if err != nil {
		return err
	}
	kept := filepath.Join(t.top, results)
	if err := os.MkdirAll(kept, 0o750); err != nil {
		return err
	}
	file := filepath.Join(kept, r.name)
	args := slices.Concat(r.before, []string{
		gotestsum, "--format", "pkgname", "--format-hide-empty-pkg", "--hide-summary", "skipped",
		"--jsonfile", file + ".json", "--junitfile", file + ".xml",
	})
	if n := t.settings.reruns; n > 0 {
		args = append(args, "--rerun-fails="+strconv.Itoa(n), "--rerun-fails-max-failures=5")
	}
	args = append(args, "--packages", strings.Join(r.packages, " "), "--", "-vet=off")
	args = slices.Concat(args, r.flags)
	if len(r.last) > 0 {
		args = append(append(args, "-args"), r.last...)
	}
	if err := t.start(t.command(r.dir, args...)); err != nil {
		return fmt.Errorf("tests of %s: %w", r.name, err)
	}
	return nil
}

// named returns the name under which what tests said is kept.
func (t *tree) named(otherwise string) string {
	if t.stage != "" {
		return t.stage
	}
	return otherwise
}

// reported runs stages, and prints the slowest packages and tests of all, flaky ones, and the total, whether
// they passed or not.
func (t *tree) reported(stages func(*tree) error) error {
	if err := os.RemoveAll(filepath.Join(t.top, results)); err != nil {
		return err
	}
	failed := stages(t)
	files, err := filepath.Glob(filepath.Join(t.top, results, "*.json"))
	if err == nil && len(files) > 0 {
		report := *t
		report.ctx = context.WithoutCancel(t.ctx)
		err = report.run("", append([]string{
			"go", "-C", "tools", "run", "./testreport", "-since", strconv.FormatInt(t.started.Unix(), 10),
		}, files...)...)
	}
	if failed != nil {
		return failed
	}
	t.missBrowser()
	return err
}

// findBrowser returns the browser that tries the pages of the console: SALLYPORT_BROWSER, or a chromium on the
// PATH; or nothing.
func (t *tree) findBrowser() string {
	for _, name := range []string{t.settings.browser, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

const noBrowser = "The pages of the console were NOT tried: there is no browser. Install one (Debian: apt-get install chromium), or set " +
	"SALLYPORT_BROWSER to the path of a chromium."

func (t *tree) missBrowser() {
	if t.findBrowser() == "" {
		t.say(noBrowser)
	}
}

// installBrowser gets Debian's chromium, where there is no browser and it may be installed. With
// SALLYPORT_BROWSER=required, as in continuous integration, there has to be one afterwards.
func (t *tree) installBrowser() error {
	if t.findBrowser() != "" {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err == nil && os.Getuid() == 0 {
		t.say("installing chromium to try the pages of the console")
		if _, err := t.output("", "apt-get", "install", "-y", "-q", "chromium"); err != nil {
			_, _ = t.output("", "apt-get", "update", "-q")
			_, _ = t.output("", "apt-get", "install", "-y", "-q", "chromium")
		}
	}
	if t.findBrowser() == "" && t.settings.browser == "required" {
		return fmt.Errorf("%s", noBrowser)
	}
	return nil
}
