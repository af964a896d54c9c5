// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

// numbered is a version that is released; another is that of a commit in between, as git describes it.
var numbered = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?$`)

// check says everything that prevents a release before anything is made.
func (s settings) check() error {
	var errs []error
	if semver.Canonical(s.version) != s.version {
		errs = append(errs, fmt.Errorf("-version %q is not a semantic version, such as v1.2.3", s.version))
	}
	changed, err := git(s.top, "status", "--porcelain")
	switch {
	case err != nil:
		errs = append(errs, err)
	case changed != "":
		errs = append(errs, fmt.Errorf("uncommitted changes: commit or stash them, because a release is made from a commit:\n%s", changed))
	}
	tags, err := git(s.top, "tag", "--list", s.version, "*/"+s.version)
	switch {
	case err != nil:
		errs = append(errs, err)
	case tags != "":
		errs = append(errs, fmt.Errorf("already tagged; choose the next version: %s", strings.ReplaceAll(tags, "\n", ", ")))
	}
	if _, err := s.notes(); err != nil {
		errs = append(errs, err)
	}
	if s.key != "" {
		_, err := readKey(s.key)
		errs = append(errs, err)
	} else if s.tag {
		errs = append(errs, errors.New("-tag requires -key FILE: a tagged release is signed"))
	}
	return errors.Join(errs...)
}

// notes are what the changelog says about the version. A version in between has those that are not released.
func (s settings) notes() (string, error) {
	text, err := os.ReadFile(filepath.Join(s.top, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	name := "Unreleased"
	if numbered.MatchString(s.version) {
		name = strings.TrimPrefix(s.version, "v")
	}
	_, rest, found := strings.Cut("\n"+string(text), "\n## ["+name+"]")
	if !found {
		return "", fmt.Errorf(`CHANGELOG.md has no section "## [%s] - DATE": rename "## [Unreleased]", and add a new one above it`, name)
	}
	_, rest, _ = strings.Cut(rest, "\n") // the date
	section, _, _ := strings.Cut(rest, "\n## [")
	if section = strings.TrimSpace(section); section == "" {
		return "", fmt.Errorf("section [%s] of CHANGELOG.md is empty: list what changed", name)
	}
	return section + "\n", nil
}
