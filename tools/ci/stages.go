// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// check is what is done before each commit: no API server.
func (t *tree) check() error {
	return t.with(lazy).reported(func(t *tree) error {
		return t.inOrder((*tree).format, (*tree).commits, (*tree).vet, (*tree).unit, (*tree).generated)
	})
}

// test is what is done for each change: all that has to be true, on a real API server. What waits more than it
// computes has beside it what takes only the time that it leaves.
func (t *tree) test() error {
	part := *t
	part.settings.reruns, part.settings.checks, part.all, part.drawing = 1, 500, true, someProperties
	return part.with(lazy).reported(func(t *tree) error {
		return t.inOrder(
			(*tree).format, (*tree).commits, (*tree).vet, (*tree).unit, (*tree).floor,
			func(t *tree) error { return t.sideBySide((*tree).apiserver, (*tree).operator, (*tree).generated) },
			func(t *tree) error {
				return t.sideBySide((*tree).aloneTests, (*tree).race, (*tree).properties, (*tree).modules)
			},
		)
	})
}

// nightly takes hours, root and haproxy.
func (t *tree) nightly() error {
	return t.reported(func(t *tree) error {
		if err := t.inOrder((*tree).raceAll, (*tree).properties, (*tree).fuzz); err != nil {
			return err
		}
		releases, err := t.olderReleases()
		if err != nil {
			return err
		}
		for _, release := range releases {
			t.say("Kubernetes %s", release)
			older := *t
			older.settings.k8s, older.stage = release, "apiserver-"+release
			if err := older.inOrder((*tree).apiserver, (*tree).operator, (*tree).aloneTests, (*tree).policies); err != nil {
				return err
			}
		}
		if err := t.inOrder((*tree).provider, (*tree).repeated); err != nil {
			return err
		}
		often := *t
		often.settings.conformance = append([]string{"-runs", "3"}, t.settings.conformance...)
		often.goesOn = true
		return often.inOrder((*tree).conformance, (*tree).faults, (*tree).rehearse, (*tree).adopters, (*tree).upgrade)
	})
}

// policies compares what lint and chain say of 300 policies with an API server.
func (t *tree) policies() error {
	t, err := t.withControlPlane(basicComponents)
	if err != nil {
		return err
	}
	return t.run("", "go", "test", "./cmd/internal/offline/chain", "-run", "WhatLintAndChainAccept"+onAPIServer, "-count=1", "-v", "-times", "5")
}

// repeated runs what depends on chance or on time more often than `make test` does.
func (t *tree) repeated() error {
	if err := t.run("", "go", "test", "./internal/json/decode", "-run", "TestRecordSeesChangesWhateverTheMemoryDoes", "-timeout", "2h",
		"-mutations", "1000000"); err != nil {
		return err
	}
	started := strconv.FormatInt(time.Now().Unix(), 10)
	// Freed memory is overwritten, so that a read after it was freed shows.
	if err := t.with("CGO_ENABLED=1", "GODEBUG=clobberfree=1").run("", "go", "test", "-race", "./admission", "-run", "TestNoChangeIsLostOverHTTP", "-v",
		"-timeout", "2h", "-mutations", "1000000", "-seed", started); err != nil {
		return err
	}
	t, err := t.withControlPlane(basicComponents)
	if err != nil {
		return err
	}
	for _, args := range []string{
		"./cmd/test/e2e -run TestPodDefaultsUnderControl/what_may_be_written -v -changes 10000",
		"./cmd/test/e2e -run TestSallyport/(a_PodDefault_counts|while_every_server|hundreds_of|private_paths) -v -times 25",
		"./cmd/test/e2e -run TestOwners/a_change_reaches -v -times 25 -timeout 30m",
		"./cmd/internal/poddefault/status ./cmd/internal/poddefault/backstop ./cmd/internal/live/console ./examples/crontab " +
			"-run TestController|TestConflicts|TestIndexes|TestConsole|TestACache -v -times 5",
		"./cmd/internal/offline/chain -run " + onAPIServer + " -v -times 5 -seed " + started,
		"./cmd/test/deceiving -run " + onAPIServer + " -v -timeout 30m -every 1",
	} {
		if err := t.run("", append([]string{"go", "test"}, strings.Fields(args)...)...); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) format() error {
	t.say("gofmt")
	unformatted, err := t.output("", "gofmt", "-l", ".")
	if err == nil && unformatted != "" {
		err = fmt.Errorf("not formatted, run gofmt -w:\n%s", unformatted)
	}
	return err
}

func (t *tree) vet() error { return t.run("", "go", "vet", "work") }

// withoutAPIServer returns a tree whose tests find no control plane.
func (t *tree) withoutAPIServer() *tree { return t.with("KUBEBUILDER_ASSETS=") }

// floor tries the library at the lowest versions that its go.mod asks for, without what a go.work raises.
func (t *tree) floor() error {
	t.say("the library at its lowest versions")
	t = t.withoutAPIServer().alone()
	if err := t.run("", "go", "vet", "./..."); err != nil {
		return err
	}
	packages, err := t.list(library...)
	if err != nil {
		return err
	}
	return t.goTest(testRun{name: "floor", packages: packages, flags: []string{"-short", "-skip", onAPIServer}})
}

func (t *tree) unit() error {
	t = t.withoutAPIServer()
	later := []string{"./cmd/test/e2e/..."}
	if t.all {
		whole, err := t.apiserverFolders()
		if err != nil {
			return err
		}
		later = whole
	}
	leftOut, err := t.list(later...)
	if err != nil {
		return err
	}
	packages, err := t.list("work")
	if err != nil {
		return err
	}
	packages = slices.DeleteFunc(packages, func(p string) bool {
		return strings.Contains(p, operatorModule[1:]) || slices.Contains(leftOut, p)
	})
	t.say("unit tests")
	return t.goTest(testRun{name: "unit", packages: packages, flags: []string{"-skip", onAPIServer}})
}

func (t *tree) modules() error {
	others, err := t.otherModules()
	if err != nil {
		return err
	}
	t = t.alone()
	for _, m := range others {
		t.say("%s", m)
		if err := t.run(m, niced("go", "vet", "./...")...); err != nil {
			return err
		}
		if err := t.goTest(testRun{
			name: "modules-" + path.Base(m), dir: m, packages: []string{"./..."}, flags: []string{"-count=1", "-skip", onAPIServer}, before: niced(),
		}); err != nil {
			return err
		}
	}
	return nil
}

// race draws, with -short, a twentieth of the random cases (a fifth of rapid's): the unit tests draw all of them,
// and most run in one goroutine.
func (t *tree) race() error {
	if !t.hasCCompiler() {
		t.say("no C compiler: no race detector")
		return nil
	}
	packages, err := t.light()
	if err != nil {
		return err
	}
	t.say("race detector")
	return t.with("CGO_ENABLED=1").goTest(testRun{
		name: "race", packages: packages, flags: []string{"-race", "-short", "-skip", onAPIServer}, before: niced(),
	})
}

// importsRapid is in the files of tests that draw their cases.
const importsRapid = "\"pgregory.net" + "/rapid\""

func (t *tree) properties() error {
	packages := t.drawing
	if len(packages) == 0 {
		all, err := t.foldersWith(importsRapid)
		if err != nil {
			return err
		}
		packages = all
	}
	t.say("properties, %d cases each", t.settings.checks)
	return t.goTest(testRun{
		name: "properties", packages: packages, flags: []string{"-timeout", "2h", "-skip", onAPIServer}, before: niced(),
		last: []string{"-rapid.checks=" + strconv.Itoa(t.settings.checks)},
	})
}

// apiserver has one API server for those tests that need none of their own. They wait more than they compute,
// so PARALLEL is more than there are processors; each has an API server with some 600 MB.
func (t *tree) apiserver() error {
	if err := t.inOrder((*tree).buildSallyport, (*tree).installBrowser); err != nil {
		return err
	}
	t, err := t.withControlPlane(testComponents)
	if err != nil {
		return err
	}
	folders, err := t.apiserverFolders()
	if err != nil {
		return err
	}
	packages, err := t.list(folders...)
	if err != nil {
		return err
	}
	hasBrowser := t.findBrowser() != ""
	packages = slices.DeleteFunc(packages, func(p string) bool {
		return strings.HasSuffix(p, aloneTests[1:]) || !hasBrowser && strings.HasSuffix(p, browserTests[1:])
	})
	t.say("tests on an API server")
	parallel := strconv.Itoa(t.settings.parallel)
	return t.goTest(testRun{
		name: t.named("apiserver"), packages: packages, before: []string{"go", "run", "./test/lab/shared"},
		flags: []string{"-count=1", "-p", parallel, "-parallel", parallel, "-timeout", "20m", "-skip", upgrading},
	})
}

func (t *tree) operator() error {
	t, err := t.withControlPlane(basicComponents)
	if err != nil {
		return err
	}
	return t.goTest(testRun{
		name: t.named("apiserver") + "-bookstore", dir: operatorModule, packages: []string{"./..."}, flags: []string{"-count=1"},
	})
}

func (t *tree) aloneTests() error {
	if err := t.buildSallyport(); err != nil {
		return err
	}
	t, err := t.withControlPlane(testComponents)
	if err != nil {
		return err
	}
	return t.goTest(testRun{
		name: t.named("apiserver") + "-alone", packages: []string{aloneTests}, flags: []string{"-count=1", "-timeout", "20m"},
	})
}

func (t *tree) raceAll() error {
	if err := t.inOrder((*tree).buildSallyport, (*tree).installBrowser); err != nil {
		return err
	}
	if !t.hasCCompiler() {
		return errors.New("the race detector needs a C compiler: install one (Debian: apt-get install gcc)")
	}
	t, err := t.withControlPlane(testComponents)
	if err != nil {
		return err
	}
	packages, err := t.list("work")
	if err != nil {
		return err
	}
	return t.with("CGO_ENABLED=1").goTest(testRun{
		name: "race-all", packages: packages, flags: []string{"-race", "-count=1", "-p", "1", "-timeout", "60m", "-skip", upgrading},
	})
}

// upgrade replaces the release before by HEAD and back, by chart, kustomize and binary, while pods are created.
func (t *tree) upgrade() error {
	if err := t.buildSallyport(); err != nil {
		return err
	}
	t, err := t.withControlPlane("etcd kube-apiserver kube-controller-manager kubectl helm kustomize")
	if err != nil {
		return err
	}
	return t.run("", "go", "test", "./cmd/test/e2e/install", "-run", upgrading, "-count=1", "-v", "-timeout", "60m")
}

// provider tests the webhook that labels volumes with a real cloud provider and a fake cloud.
func (t *tree) provider() error {
	t = t.alone()
	if err := t.run(providerModule, "go", "vet", "./..."); err != nil {
		return err
	}
	return t.run(providerModule, "go", "test", "./...")
}

// fuzz runs every fuzz target for FUZZTIME.
func (t *tree) fuzz() error {
	folders, err := t.foldersWith("\nfunc Fuzz")
	if err != nil {
		return err
	}
	developed, err := t.list("-f", "{{.Dir}}", "work")
	if err != nil {
		return err
	}
	for _, dir := range folders {
		if !slices.Contains(developed, filepath.Join(t.top, dir)) {
			continue
		}
		listed, err := t.output(dir, "go", "test", "-list", "^Fuzz", ".")
		if err != nil {
			return err
		}
		for _, target := range strings.Fields(listed) {
			if !strings.HasPrefix(target, "Fuzz") {
				continue
			}
			t.say("%s in %s", target, dir)
			said, err := t.combined(dir, "go", "test", "-run", "^$", "-fuzz", "^"+target+"$", "-fuzztime", t.settings.fuzzTime.String(),
				"-fuzzminimizetime", "100x", ".")
			if err != nil && !outOfTime(said) {
				return fmt.Errorf("%s in %s:\n%s\n%w", target, dir, said, err)
			}
			if err != nil {
				t.say("the time was up in the middle of an input, and none failed: go on")
			}
			t.say("%s", said[strings.LastIndexByte(said, '\n')+1:])
		}
	}
	return nil
}

// outOfTime tells of fuzzing that failed whether it ended in the middle of an input, which is no failure.
func outOfTime(said string) bool {
	return strings.Contains(said, "context deadline exceeded") && !strings.Contains(said, "Failing input")
}
