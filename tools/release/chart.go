// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// chart packs the chart with helm, annotated for Artifact Hub, and again without times, so that the same
// chart gives the same bytes.
func (s settings) chart() error {
	tmp, err := os.MkdirTemp("", "sallyport-chart-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	folder := filepath.Join(tmp, "sallyport")
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(s.top, "charts/sallyport"))); err != nil {
		return err
	}
	annotations, err := s.artifactHub()
	if err == nil {
		err = annotate(folder, annotations)
	}
	if err != nil {
		return err
	}
	number := strings.TrimPrefix(s.version, "v")
	if err := s.tool("helm", nil, "package", folder, "--version", number, "--app-version", s.version, "--destination", tmp); err != nil {
		return err
	}
	name := s.chartArchive()
	packed, err := os.Open(filepath.Join(tmp, name))
	if err != nil {
		return err
	}
	defer func() { _ = packed.Close() }()
	var out bytes.Buffer
	if err := withoutTimes(&out, packed); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return s.write(name, out.Bytes())
}

func (s settings) chartArchive() string {
	return "sallyport-" + strings.TrimPrefix(s.version, "v") + ".tgz"
}

func withoutTimes(out io.Writer, archive io.Reader) error {
	in, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	compressed := gzip.NewWriter(out)
	from, to := tar.NewReader(in), tar.NewWriter(compressed)
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return errors.Join(to.Close(), compressed.Close())
		}
		if err != nil {
			return err
		}
		data, err := io.ReadAll(from)
		if err != nil {
			return err
		}
		if err := to.WriteHeader(&tar.Header{
			Name: header.Name, Mode: header.Mode, Size: int64(len(data)), ModTime: time.Unix(0, 0), Typeflag: header.Typeflag, Format: tar.FormatPAX,
		}); err != nil {
			return err
		}
		if _, err := to.Write(data); err != nil {
			return err
		}
	}
}

// manifests are the objects of each variant for kubectl, and what a host needs beside kube-apiserver.
func (s settings) manifests() error {
	released := func(data []byte) []byte {
		return bytes.ReplaceAll(data, []byte("image: sallyport:dev"), []byte("image: "+s.repository+":"+s.version))
	}
	for _, variant := range []string{"base", "cert-manager", "kubeflow", "static"} {
		var objects bytes.Buffer
		if err := s.tool("kustomize", &objects, "build", filepath.Join(s.top, "config", variant)); err != nil {
			return err
		}
		if err := s.write("sallyport-"+variant+".yaml", released(objects.Bytes())); err != nil {
			return err
		}
	}
	definitions, err := filepath.Glob(filepath.Join(s.top, "config/crd/*_*.yaml"))
	if err != nil {
		return err
	}
	slices.Sort(definitions)
	for name, files := range map[string][]string{
		"sallyport-crds.yaml":             definitions,
		"sallyport-static-pod.yaml":       {filepath.Join(s.top, "config/static/host/sallyport.yaml")},
		"sallyport-static-admission.yaml": {filepath.Join(s.top, "config/static/host/admission.yaml")},
		"sallyport-dashboard.json":        {filepath.Join(s.top, "config/components/monitoring/dashboard.json")},
	} {
		var all []byte
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			all = append(all, data...)
		}
		if err := s.write(name, released(all)); err != nil {
			return err
		}
	}
	return nil
}

func (s settings) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(s.out, name), data, 0o644) //nolint:gosec // everybody may read it
}

// tool runs helm or kustomize.
func (s settings) tool(name string, out io.Writer, args ...string) error {
	command := exec.Command(filepath.Join(s.tools, name), args...)
	var problems bytes.Buffer
	command.Stdout, command.Stderr = out, &problems
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, args[0], err, &problems)
	}
	return nil
}
