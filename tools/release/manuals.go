// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

// manuals packs the completions that the binary for this machine prints, and the man pages that a
// test of the command writes, so that the binary need not contain what only a release needs.
func (s settings) manuals() error {
	tmp, err := os.MkdirTemp("", "sallyport-manuals-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	here := platform{runtime.GOOS, runtime.GOARCH}
	if !slices.Contains(platforms, here) {
		return fmt.Errorf("no binary for %s, which prints the completions", here)
	}
	names := map[string]string{"bash": "sallyport.bash", "zsh": "_sallyport", "fish": "sallyport.fish", "powershell": "sallyport.ps1"}
	for shell, name := range names {
		out, err := exec.Command(filepath.Join(s.out, here.binary()), "completion", shell).Output() //nolint:gosec // it was just built
		if err != nil {
			return fmt.Errorf("completion %s: %w", shell, err)
		}
		if err := writeBelow(tmp, filepath.Join("completions", name), out); err != nil {
			return err
		}
	}
	pages := exec.Command("go", "test", "./sallyport", "-run", "^TestEveryCommandHasAManPage$", "-count=1", "-man", filepath.Join(tmp, "man1")) //nolint:gosec // a folder of our own
	pages.Dir = filepath.Join(s.top, "cmd")
	pages.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -tags="+buildTag)
	if out, err := pages.CombinedOutput(); err != nil {
		return fmt.Errorf("man pages: %w\n%s", err, out)
	}
	return s.archive("sallyport-completions-and-man.tar.gz", tmp)
}

func writeBelow(folder, name string, data []byte) error {
	file := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644) //nolint:gosec // everybody may read it
}

// archive packs all files of a folder, in the order of their names.
func (s settings) archive(name, folder string) error {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	files := tar.NewWriter(compressed)
	sums, err := sumsOf(folder)
	if err != nil {
		return err
	}
	for _, f := range sums {
		if err := addFile(files, f.name, filepath.Join(folder, f.name), 0o644); err != nil {
			return err
		}
	}
	if err := files.Close(); err != nil {
		return err
	}
	if err := compressed.Close(); err != nil {
		return err
	}
	return s.write(name, out.Bytes())
}
