// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func pin(t *testing.T, folder, version string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	text := "module example.com/x\n\nrequire (\n\tk8s.io/kubernetes v" + version + " // indirect\n)\n"
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAReleaseIsChosenByItsName(t *testing.T) {
	top := t.TempDir()
	pin(t, top, "1.37.1")
	for _, version := range []string{"1.9.10", "1.36.3", "1.35.4"} {
		pin(t, filepath.Join(top, "versions", version), version)
	}
	known, err := releases(top)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"": "1.37.1", "1.37.1": "1.37.1", "1.37": "1.37.1", "v1.36.3": "1.36.3", "1.36": "1.36.3", "v1.9": "1.9.10", "1.9.10": "1.9.10",
	} {
		r, err := choose(known, name)
		if err != nil || r.version != want {
			t.Errorf("%q is %q, not %s (%v)", name, r.version, want, err)
		}
	}
	for _, name := range []string{"1.33.0", "1.36.4", "1", "1.3", "v", "latest", "../1.36.3"} {
		if r, err := choose(known, name); err == nil || !strings.Contains(err.Error(), "1.37.1, 1.36.3, 1.35.4, 1.9.10") {
			t.Errorf("%q is %q, and the error %v does not list what there is", name, r.version, err)
		}
	}
}

func TestAFolderIsNamedAfterTheReleaseThatItPins(t *testing.T) {
	top := t.TempDir()
	pin(t, top, "1.37.1")
	pin(t, filepath.Join(top, "versions", "1.36.3"), "1.36.2")
	if _, err := releases(top); err == nil || !strings.Contains(err.Error(), "rename its folder") {
		t.Errorf("got %v", err)
	}
	if _, err := releases(t.TempDir()); err == nil || !strings.Contains(err.Error(), "run this in its own folder") {
		t.Errorf("without a go.mod: %v", err)
	}
}

var (
	staging = regexp.MustCompile(`(?m)^\s+(k8s\.io/\S+) => (\S+) v0\.(\S+)$`)
	theTool = regexp.MustCompile(`(?m)^\s+(?:k8s\.io/kubernetes|go\.etcd\.io)\S+$`)
)

func TestEveryReleaseIsPinnedWhole(t *testing.T) {
	known, err := releases(".")
	if err != nil {
		t.Fatal(err)
	}
	minors := map[string]bool{}
	for _, r := range known {
		t.Run(r.version, func(t *testing.T) {
			minors[r.version[:strings.LastIndex(r.version, ".")]] = true
			if tools := theTool.FindAllString(r.goMod, -1); len(tools) != 5 {
				t.Errorf("tools are %v", tools)
			}
			replaced := staging.FindAllStringSubmatch(r.goMod, -1)
			if len(replaced) < 25 {
				t.Errorf("only %d modules of Kubernetes are replaced", len(replaced))
			}
			for _, m := range replaced {
				if m[1] != m[2] || "1."+m[3] != r.version {
					t.Errorf("%s is replaced by %s v0.%s", m[1], m[2], m[3])
				}
			}
			suite := component{module: "../conformance/suite", versioned: true}
			if text, err := os.ReadFile(filepath.Join(suite.module, suite.modFile(r))); err != nil {
				t.Errorf("what pins the suite: %v", err)
			} else if version, err := kubernetesOf(string(text)); err != nil || version != r.version {
				t.Errorf("the suite is that of %s (%v)", version, err)
			}
			sums, err := os.ReadFile(filepath.Join(r.folder, "go.sum"))
			if err != nil {
				t.Fatal(err)
			}
			for _, component := range []string{"k8s.io/kubernetes v" + r.version, "k8s.io/api v0" + strings.TrimPrefix(r.version, "1")} {
				if !strings.Contains(string(sums), component+" h1:") {
					t.Errorf("there is no checksum of %s", component)
				}
			}
		})
	}
	for _, minor := range []string{"1.34", "1.35", "1.36", "1.37"} {
		if !minors[minor] {
			t.Errorf("Kubernetes %s is supported, and not here", minor)
		}
	}
}

func TestProblemsAreSaid(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a component that does not exist":   {[]string{"kubelet"}, `unknown component "kubelet"`},
		"a release that does not exist":     {[]string{"-kubernetes", "1.20.0"}, "choose from 1.37"},
		"a release and a folder":            {[]string{"-kubernetes", "1.37"}, "unset one of the two"},
		"a folder that holds no API server": {nil, "holds no etcd"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := run(t.Context(), tc.args); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// The go command names a binary after its package, which a package named "." does not tell.
func TestEveryComponentSaysHowItsBinaryIsNamed(t *testing.T) {
	for _, c := range components {
		if name := c.output(); name == "" || name == "." || strings.ContainsAny(name, `/\`) {
			t.Errorf("%s: the binary of %s would be %q", c.name, c.pkg, name)
		}
	}
}
