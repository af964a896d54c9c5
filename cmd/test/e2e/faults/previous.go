// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// pinnedPrevious is what counts as the previous release as long as there is no tag: the
// first commit with all that one will have, --guard among it. On one without that flag the
// row fails, because the policy stays when these servers go, and knows nothing of its marks.
const pinnedPrevious = "dfc5e3b"

// buildPrevious builds the command of a commit or tag of this repository into the folder;
// of the latest tag if it is empty, and without any tag of pinnedPrevious.
func buildPrevious(ctx context.Context, dir, commit string) (binary string, err error) {
	top, err := git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	if commit == "" {
		// The tag of this very commit is the release under test, not the one before it.
		if commit, err = git(ctx, top, "describe", "--tags", "--abbrev=0", "HEAD^"); err != nil {
			commit = pinnedPrevious
		}
	}
	commit, err = git(ctx, top, "rev-parse", "--verify", "--quiet", "--end-of-options", commit+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("there is no such commit; fetch the whole history, or name another one with -previous: %w", err)
	}
	source, archive := filepath.Join(dir, "previous"), filepath.Join(dir, "previous.tar")
	if err := os.MkdirAll(source, 0o700); err != nil {
		return "", err
	}
	if _, err := git(ctx, top, "archive", "--format=tar", "--output="+archive, commit); err != nil {
		return "", err
	}
	if out, err := exec.CommandContext(ctx, "tar", "-xf", archive, "-C", source).CombinedOutput(); err != nil {
		return "", fmt.Errorf("unpacking %s: %w\n%s", commit, err, out)
	}
	binary = filepath.Join(dir, "sallyport-previous")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "./cmd/sallyport")
	build.Dir = source
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building sallyport of %s: %w\n%s", commit, err, out)
	}
	return binary, errors.Join(os.RemoveAll(source), os.Remove(archive))
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// A build is a binary of sallyport and the flags that its serve knows.
type build struct {
	binary string
	knows  map[string]bool
	memory int // bytes that it has; 0 for any
}

var flagInHelp = regexp.MustCompile(`--([a-z][a-z0-9-]*)`)

// buildAt asks the binary for its flags.
func buildAt(ctx context.Context, binary string) (build, error) {
	help, err := exec.CommandContext(ctx, binary, "serve", "--help").Output()
	if err != nil {
		return build{}, fmt.Errorf("%s serve --help: %w", binary, err)
	}
	b := build{binary: binary, knows: map[string]bool{}}
	for _, found := range flagInHelp.FindAllStringSubmatch(string(help), -1) {
		b.knows[found[1]] = true
	}
	return b, nil
}

// known leaves out flags that the build does not know, each with its value.
func (b build) known(args []string) []string {
	var kept []string
	for i := 0; i < len(args); i++ {
		name, _, withValue := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		values := 0
		if !withValue && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
			values = 1
		}
		if !strings.HasPrefix(args[i], "--") || b.knows[name] {
			kept = append(kept, args[i:i+1+values]...)
		}
		i += values
	}
	return kept
}

// buildBinary builds the command under test as a release is built.
func buildBinary(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "sallyport")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "github.com/sallyport-io/sallyport/cmd/sallyport")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building sallyport: %w\n%s", err, out)
	}
	return binary, nil
}
