// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// top is the path of the module at the top; those of its folders begin with it.
const top = "github.com/sallyport-io/sallyport"

// released are the folders of the modules that people ask for. Those that they require are
// released with them.
var released = []string{".", "sallyporttest/matchconditions", "cmd", "cloud"}

// A goModule is one in a copy of the repository, for a release.
type goModule struct {
	folder string // "." for that at the top
	file   *modfile.File
}

func (m goModule) path() string { return m.file.Module.Mod.Path }

// tag is the name by which Go finds a version of a module in its folder of a repository
// (https://go.dev/ref/mod#vcs-version).
func (m goModule) tag(version string) string { return path.Join(m.folder, version) }

// modules makes a module proxy's files (https://go.dev/ref/mod#goproxy-protocol) in the folder modules: the modules
// with the version as what they require of each other, and without `replace`, which `go install` refuses. With
// the same files it makes the commit for the tags, in a clone, of which nothing but the commit stays.
func modules(s settings) error {
	clone, err := os.MkdirTemp("", "sallyport-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(clone) }()
	if _, err := git(s.top, "clone", "--quiet", "--shared", s.top, clone); err != nil {
		return err
	}
	all, err := inOrder(clone)
	if err != nil {
		return err
	}
	when, err := git(clone, "show", "--no-patch", "--format=%cI", "HEAD")
	if err != nil {
		return err
	}
	committed, err := time.Parse(time.RFC3339, when)
	if err != nil {
		return err
	}
	sums := map[string][]string{} // lines of go.sum, by path
	for _, m := range all {
		if err := m.require(clone, s.version, sums); err != nil {
			return fmt.Errorf("%s: %w", m.path(), err)
		}
		if sums[m.path()], err = m.publish(clone, s, committed.UTC()); err != nil {
			return fmt.Errorf("%s: %w", m.path(), err)
		}
	}
	return s.tags(clone, all)
}

// inOrder returns the modules of a release, each after those that it requires.
func inOrder(folder string) ([]goModule, error) {
	var all []goModule
	seen := map[string]bool{}
	var add func(string) error
	add = func(name string) error {
		if seen[name] {
			return nil
		}
		seen[name] = true
		data, err := os.ReadFile(filepath.Join(folder, name, "go.mod"))
		if err != nil {
			return err
		}
		file, err := modfile.Parse(filepath.Join(name, "go.mod"), data, nil)
		if err != nil {
			return err
		}
		for _, r := range file.Replace {
			if !ours(r.Old.Path) {
				return fmt.Errorf("%s has a replace directive for %s, which `go install` rejects: remove it", name, r.Old.Path)
			}
		}
		for _, r := range file.Require {
			if ours(r.Mod.Path) {
				if err := add(path.Join(".", strings.TrimPrefix(r.Mod.Path, top))); err != nil {
					return err
				}
			}
		}
		all = append(all, goModule{folder: name, file: file})
		return nil
	}
	for _, name := range released {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func ours(path string) bool { return path == top || strings.HasPrefix(path, top+"/") }

// require writes the version of the modules that this one requires, and their sums.
func (m goModule) require(clone, version string, sums map[string][]string) error {
	var lines []string
	for _, r := range slices.Clone(m.file.Replace) {
		if err := m.file.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return err
		}
	}
	for _, r := range slices.Clone(m.file.Require) {
		if !ours(r.Mod.Path) {
			continue
		}
		if err := m.file.AddRequire(r.Mod.Path, version); err != nil {
			return err
		}
		lines = append(lines, sums[r.Mod.Path]...)
	}
	if len(lines) == 0 {
		return nil
	}
	m.file.Cleanup()
	data, err := m.file.Format()
	if err != nil {
		return err
	}
	folder := filepath.Join(clone, m.folder)
	known, err := os.ReadFile(filepath.Join(folder, "go.sum"))
	if err != nil {
		return err
	}
	lines = append(lines, strings.Split(strings.TrimSpace(string(known)), "\n")...)
	slices.Sort(lines)
	return errors.Join(
		os.WriteFile(filepath.Join(folder, "go.mod"), data, 0o600),
		os.WriteFile(filepath.Join(folder, "go.sum"), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

// publish writes the files of a module proxy, and returns the lines of go.sum for them.
func (m goModule) publish(clone string, s settings, when time.Time) ([]string, error) {
	version := module.Version{Path: m.path(), Version: s.version}
	escaped, err := module.EscapePath(m.path())
	if err != nil {
		return nil, err
	}
	files, err := m.files(clone)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	if err := zip.Create(&content, version, files); err != nil {
		return nil, err
	}
	definition, err := os.ReadFile(filepath.Join(clone, m.folder, "go.mod"))
	if err != nil {
		return nil, err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{s.version, when})
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(s.out, "modules", filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	archive := filepath.Join(folder, s.version+".zip")
	for name, data := range map[string][]byte{
		archive: content.Bytes(), filepath.Join(folder, s.version+".mod"): definition,
		filepath.Join(folder, s.version+".info"): info, filepath.Join(folder, "list"): []byte(s.version + "\n"),
	} {
		if err := os.WriteFile(name, data, 0o644); err != nil { //nolint:gosec // everybody may read it
			return nil, err
		}
	}
	sum, err := dirhash.HashZip(archive, dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	definitionSum, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(definition)), nil
	})
	if err != nil {
		return nil, err
	}
	return []string{
		fmt.Sprintf("%s %s %s", m.path(), s.version, sum),
		fmt.Sprintf("%s %s/go.mod %s", m.path(), s.version, definitionSum),
	}, nil
}

// files are those of git in the module's folder, without modules below it, and with the licence
// of the repository, which Go adds to a module without one.
func (m goModule) files(clone string) ([]zip.File, error) {
	folder := filepath.Join(clone, m.folder)
	list, err := git(folder, "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	names := strings.Split(strings.TrimSuffix(list, "\x00"), "\x00")
	var below []string
	for _, name := range names {
		if path.Base(name) == "go.mod" && name != "go.mod" {
			below = append(below, path.Dir(name)+"/")
		}
	}
	var files []zip.File
	for _, name := range names {
		if !slices.ContainsFunc(below, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			files = append(files, zipped{name, filepath.Join(folder, filepath.FromSlash(name))})
		}
	}
	if !slices.Contains(names, "LICENSE") {
		files = append(files, zipped{"LICENSE", filepath.Join(clone, "LICENSE")})
	}
	return files, nil
}

// A zipped file is one of a module's archive.
type zipped struct{ name, file string }

func (z zipped) Path() string                 { return z.name }
func (z zipped) Lstat() (os.FileInfo, error)  { return os.Lstat(z.file) }
func (z zipped) Open() (io.ReadCloser, error) { return os.Open(z.file) }

// tags commits what was written, and writes which tag belongs to which commit: modules that
// require none of the others are as on the branch. With the setting, it sets the tags in the repository.
func (s settings) tags(clone string, all []goModule) error {
	branch, err := git(clone, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	who, err := git(clone, "show", "--no-patch", "--format=%an%x00%ae%x00%cI", "HEAD")
	if err != nil {
		return err
	}
	author := strings.Split(who, "\x00")
	commit := exec.Command("git", "commit", "--quiet", "--all", "--no-verify", "--message", //nolint:gosec // the version was checked
		"release: modules of "+s.version+" require each other\n\nOn no branch: there they replace each other.")
	commit.Dir = clone
	commit.Env = append(os.Environ(), "GIT_AUTHOR_NAME="+author[0], "GIT_AUTHOR_EMAIL="+author[1], "GIT_AUTHOR_DATE="+author[2],
		"GIT_COMMITTER_NAME="+author[0], "GIT_COMMITTER_EMAIL="+author[1], "GIT_COMMITTER_DATE="+author[2])
	if out, err := commit.CombinedOutput(); err != nil {
		return fmt.Errorf("git commit: %w\n%s", err, out)
	}
	apart, err := git(clone, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if s.tag {
		if _, err := git(s.top, "fetch", "--quiet", clone, apart); err != nil {
			return err
		}
	}
	var text strings.Builder
	for _, m := range all {
		at := branch
		if slices.ContainsFunc(m.file.Require, func(r *modfile.Require) bool { return ours(r.Mod.Path) }) {
			at = apart
		}
		fmt.Fprintf(&text, "%s %s\n", at, m.tag(s.version))
		if s.tag {
			if _, err := git(s.top, "tag", m.tag(s.version), at); err != nil {
				return err
			}
		}
	}
	return s.write("tags.txt", []byte(text.String()))
}

// git returns what git prints, without the last newline.
func git(folder string, args ...string) (string, error) {
	command := exec.Command("git", args...)
	command.Dir = folder
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", args[0], err, &problems)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
