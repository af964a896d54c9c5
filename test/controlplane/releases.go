// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A release of Kubernetes has a go.mod that pins all its modules, and a go.sum with their
// checksums: the current one in the folder of this program, older ones each in a folder
// of versions, named after it.
type release struct {
	version string // 1.36.5
	folder  string
	goMod   string
}

// releases returns those that are pinned in the folder and below, the current one first, then the newest.
func releases(folder string) ([]release, error) {
	files, err := filepath.Glob(filepath.Join(folder, "versions", "*", "go.mod"))
	if err != nil {
		return nil, err
	}
	var current release
	var older []release
	for _, file := range append(files, filepath.Join(folder, "go.mod")) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("what pins Kubernetes (run this in its own folder): %w", err)
		}
		r := release{folder: filepath.Dir(file), goMod: string(text)}
		if r.version, err = kubernetesOf(r.goMod); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		switch name := filepath.Base(r.folder); {
		case r.folder == filepath.Clean(folder):
			current = r
		case name != r.version:
			return nil, fmt.Errorf("%s pins Kubernetes %s: rename its folder", file, r.version)
		default:
			older = append(older, r)
		}
	}
	slices.SortFunc(older, func(a, b release) int { return -compareVersions(a.version, b.version) })
	return append([]release{current}, older...), nil
}

// choose returns the release of that name: a version with or without its v, a minor
// version for the patch that is pinned of it, or nothing for the current one.
func choose(known []release, name string) (release, error) {
	if name == "" {
		return known[0], nil
	}
	var names []string
	for _, r := range known {
		minor := r.version[:strings.LastIndex(r.version, ".")]
		if bare := strings.TrimPrefix(name, "v"); bare == r.version || bare == minor {
			return r, nil
		}
		names = append(names, r.version)
	}
	return release{}, fmt.Errorf("no Kubernetes %s here: choose from %s, or pin another one in test/controlplane/versions", name, strings.Join(names, ", "))
}

// cacheDir is the folder of the release's binaries.
func (r release) cacheDir() (string, error) {
	base, err := cacheBase()
	if err != nil {
		return "", err
	}
	kind := "controlplane"
	if r.folder != "." {
		kind = "older"
	}
	return filepath.Join(base, kind, key("v"+r.version, r.goMod)), nil
}

var kubernetesLine = regexp.MustCompile(`(?m)^\s+k8s\.io/kubernetes v([0-9]+\.[0-9]+\.[0-9]+)\b`)

// kubernetesOf returns the version of Kubernetes that a go.mod requires.
func kubernetesOf(goMod string) (string, error) {
	found := kubernetesLine.FindStringSubmatch(goMod)
	if found == nil {
		return "", errors.New("k8s.io/kubernetes is not required")
	}
	return found[1], nil
}

// compareVersions compares versions that kubernetesOf returned.
func compareVersions(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
		m, _ := strconv.Atoi(x)
		n, _ := strconv.Atoi(y)
		return cmp.Compare(m, n)
	})
}
