// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// self is a Go binary with dependencies: this test.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func try(t *testing.T) settings {
	t.Helper()
	return settings{version: "v1.2.3", top: "../..", out: t.TempDir()}
}

func TestAnImageIsTheBinaryAndNothingElse(t *testing.T) {
	s, p := try(t), platform{"linux", "arm64"}
	image, err := s.imageOf(p, self(t))
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Architecture != "arm64" || config.OS != "linux" || len(config.Config.Entrypoint) != 1 || config.Config.Entrypoint[0] != "/sallyport" {
		t.Errorf("config is %+v", config)
	}
	files := tar.NewReader(mutate.Extract(image))
	header, err := files.Next()
	if err != nil || header.Name != "sallyport" || header.Mode != 0o755 {
		t.Fatalf("the first file is %+v (%v)", header, err)
	}
	if next, err := files.Next(); err != io.EOF {
		t.Errorf("there is another file, %+v (%v)", next, err)
	}
	again, err := s.imageOf(p, self(t))
	if err != nil {
		t.Fatal(err)
	}
	one, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if two, err := again.Digest(); err != nil || one != two {
		t.Errorf("the same binary gives %s and %s (%v)", one, two, err)
	}
}

func TestTheSBOMNamesEveryModule(t *testing.T) {
	text, err := sbom(self(t), "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	var document spdxDocument
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	ids, names := map[string]bool{"SPDXRef-DOCUMENT": true}, map[string]bool{}
	for _, p := range document.Packages {
		if ids[p.SPDXID] {
			t.Errorf("%s is there twice", p.SPDXID)
		}
		ids[p.SPDXID], names[p.Name] = true, true
	}
	for _, name := range []string{"github.com/sallyport-io/sallyport/tools/release", "github.com/google/go-containerregistry", "stdlib"} {
		if !names[name] {
			t.Errorf("%s is missing in\n%s", name, text)
		}
	}
	for _, r := range document.Relationships {
		if !ids[r.Element] || !ids[r.Related] {
			t.Errorf("%+v is about what is not there", r)
		}
	}
	again, err := sbom(self(t), "v1.2.3")
	if err != nil || string(again) != string(text) {
		t.Errorf("the same binary gives another document (%v)", err)
	}
	if _, err := sbom("main.go", "v1.2.3"); err == nil {
		t.Error("a file that is no binary has an SBOM")
	}
}

func TestThePluginIsDescribedByItsChecksum(t *testing.T) {
	s := try(t)
	archive, err := s.pluginArchive(platform{"linux", "amd64"}, self(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.krewManifest([]pluginArchive{archive}); err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(s.out, "sallyport.krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := checksums(s); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(s.out, checksumsFile))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(manifest), "sha256: "+archive.sum+"\n") || !strings.Contains(string(sums), archive.sum+"  kubectl-sallyport-linux-amd64.tar.gz\n") {
		t.Errorf("the sum %s is not in\n%s\nor not in\n%s", archive.sum, manifest, sums)
	}
	list, err := exec.Command("tar", "-tzf", filepath.Join(s.out, archive.name)).Output()
	if err != nil || string(list) != "kubectl-sallyport\nLICENSE\n" {
		t.Errorf("the archive has %q (%v)", list, err)
	}
}

func TestProblemsAreSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no command":                {nil, "unknown command"},
		"another command":           {[]string{"chart"}, "unknown command"},
		"no folder":                 {[]string{"image", "-version", "v1.0.0"}, "-out is required"},
		"a version without its v":   {[]string{"image", "-version", "1.0.0", "-out", t.TempDir()}, "such as v1.2.3"},
		"a version with a flag":     {[]string{"image", "-version", "v1 -X a=b", "-out", t.TempDir()}, "such as v1.2.3"},
		"arguments that are no use": {[]string{"image", "-out", t.TempDir(), "x"}, "there are no arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(tc.args); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
