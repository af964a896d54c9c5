// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// pluginArchive is the binary under the name by which kubectl finds it, with the
// licence, for one platform.
type pluginArchive struct {
	platform
	name, sum string
	size      int64
}

const plugin = "kubectl-sallyport"

func (s settings) pluginArchive(p platform, binary string) (pluginArchive, error) {
	out := pluginArchive{platform: p, name: plugin + "-" + p.String() + ".tar.gz"}
	var archive bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&archive, gzip.BestCompression)
	if err != nil {
		return out, err
	}
	files := tar.NewWriter(compressed)
	for _, f := range []struct {
		name, path string
		mode       int64
	}{{plugin, binary, 0o755}, {"LICENSE", filepath.Join(s.top, "LICENSE"), 0o644}} {
		if err := addFile(files, f.name, f.path, f.mode); err != nil {
			return out, err
		}
	}
	if err := files.Close(); err != nil {
		return out, err
	}
	if err := compressed.Close(); err != nil {
		return out, err
	}
	sum := sha256.Sum256(archive.Bytes())
	out.sum, out.size = hex.EncodeToString(sum[:]), int64(archive.Len())
	return out, s.write(out.name, archive.Bytes())
}

// addFile adds a file without owner and time, so that the same content gives the same
// archive.
func addFile(archive *tar.Writer, name, path string, mode int64) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{
		Name: name, Mode: mode, Size: int64(len(data)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg, Format: tar.FormatPAX,
	}); err != nil {
		return err
	}
	_, err = archive.Write(data)
	return err
}

// krewManifest describes the plugin for kubectl's plugin manager.
func (s settings) krewManifest(archives []pluginArchive) error {
	var text strings.Builder
	fmt.Fprintf(&text, `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: sallyport
spec:
  version: %s
  homepage: https://github.com/sallyport-io/sallyport
  shortDescription: Try what admission does to objects
  description: |
    Shows what the webhooks of Sallyport would do to an object, and why, without
    creating it; prints what to install; looks after certificates.
  platforms:
`, s.version)
	for _, a := range archives {
		fmt.Fprintf(&text, `  - selector:
      matchLabels: {os: %s, arch: %s}
    uri: https://github.com/sallyport-io/sallyport/releases/download/%s/%s
    sha256: %s
    bin: %s
`, a.os, a.arch, s.version, a.name, a.sum, plugin)
	}
	return s.write("sallyport.krew.yaml", []byte(text.String()))
}
