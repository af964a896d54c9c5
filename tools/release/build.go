// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// A platform is what is built for.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "-" + p.arch }

func (p platform) binary() string { return "sallyport-" + p.String() }

var (
	platforms      = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}
	imagePlatforms = platforms[:2]
)

// buildTag leaves out gRPC's pages with traces, which nobody serves: they are HTML
// templates, for which the linker keeps every exported method of every type.
const buildTag = "grpcnotrace"

// buildArgs are those of the go command, in the folder cmd, for a sallyport without symbols.
func (s settings) buildArgs(file string) []string {
	return []string{"build", "-trimpath", "-tags", buildTag, "-ldflags=-s -w -X main.version=" + s.version, "-o", file, "./sallyport"}
}

// build builds a static sallyport into the file.
func (s settings) build(p platform, file string) error {
	cmd := exec.Command("go", s.buildArgs(file)...) //nolint:gosec // the version was checked
	cmd.Dir = filepath.Join(s.top, "cmd")           // with the versions that `go install` takes
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+p.os, "GOARCH="+p.arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building for %s: %w\n%s", p, err, out)
	}
	return nil
}

// binaries makes the binaries, an SBOM beside each, and the plugin for kubectl.
func binaries(s settings) error {
	var archives []pluginArchive
	for _, p := range platforms {
		file := filepath.Join(s.out, p.binary())
		if err := s.build(p, file); err != nil {
			return err
		}
		bom, err := sbom(file, s.version)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file+".spdx.json", bom, 0o644); err != nil { //nolint:gosec // everybody may read it
			return err
		}
		archive, err := s.pluginArchive(p, file)
		if err != nil {
			return err
		}
		archives = append(archives, archive)
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %.1f MB, %.1f MB in its archive\n", filepath.Base(file), mb(info.Size()), mb(archive.size))
	}
	return s.krewManifest(archives)
}

func mb(bytes int64) float64 { return float64(bytes) / 1e6 }
