// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// upstream is main.go of the sample of k8s.io/cloud-provider, as it is.
func upstream(t *testing.T) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "k8s.io/cloud-provider/sample").Output()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "basic_main.go"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// apply applies a unified diff of one file, in which each hunk stands at its place. It
// counts the lines that are changed.
func apply(source, diff string) (out string, changed int, err error) {
	lines := strings.SplitAfter(source, "\n")
	next := 0
	var b strings.Builder
	for number, line := range strings.Split(strings.TrimSuffix(diff, "\n"), "\n")[2:] {
		switch {
		case strings.HasPrefix(line, "@@ "):
			var from int
			if _, err := fmt.Sscanf(line, "@@ -%d", &from); err != nil || from-1 < next || from > len(lines) {
				return "", 0, fmt.Errorf("line %d of the diff: %q", number+3, line)
			}
			b.WriteString(strings.Join(lines[next:from-1], ""))
			next = from - 1
		case strings.HasPrefix(line, "+"):
			b.WriteString(line[1:] + "\n")
			changed++
		case next < len(lines) && lines[next] == line[1:]+"\n":
			if line[0] == ' ' {
				b.WriteString(lines[next])
			} else {
				changed++
			}
			next++
		default:
			return "", 0, fmt.Errorf("line %d of the diff is not what stands there: %q", number+3, line)
		}
	}
	return b.String() + strings.Join(lines[next:], ""), changed, nil
}

// adopted builds the cloud controller manager of k8s.io/cloud-provider's sample with the
// change of adoption.diff. Its provider is the sample cloud, which a second file brings
// in: providers of others are imported for that.
func adopted(t *testing.T) string {
	t.Helper()
	diff, err := os.ReadFile("adoption.diff")
	if err != nil {
		t.Fatal(err)
	}
	source, changed, err := apply(upstream(t), string(diff))
	if err != nil {
		t.Fatal(err)
	}
	if changed > 20 {
		t.Errorf("the change is %d lines", changed)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for name, content := range map[string]string{
		"main.go": source,
		"provider.go": `package main

import "github.com/sallyport-io/sallyport/examples/cloud-controller-manager/samplecloud"

func init() { samplecloud.Register() }
`,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(here, "adopted", name)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "cloud-controller-manager")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", overlayFile, "-o", binary, "./adopted")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the sample with the change cannot be built: %v\n%s", err, out)
	}
	return binary
}

func TestApplyRefusesADiffThatDoesNotFit(t *testing.T) {
	if out, changed, err := apply("a\nb\nc\n", "--- a\n+++ b\n@@ -2,2 +2,2 @@\n b\n-c\n+d\n"); err != nil || out != "a\nb\nd\n" || changed != 2 {
		t.Errorf("%q %d %v", out, changed, err)
	}
	for _, diff := range []string{"--- a\n+++ b\n@@ -2,2 +2,2 @@\n x\n", "--- a\n+++ b\n@@ here @@\n b\n", "--- a\n+++ b\n@@ -9,1 +9,1 @@\n b\n"} {
		if _, _, err := apply("a\nb\nc\n", diff); err == nil {
			t.Errorf("%q is applied", diff)
		}
	}
}

func TestTheDocumentationHasTheDiff(t *testing.T) {
	diff, err := os.ReadFile("adoption.diff")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/cloud.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), string(diff)) {
		t.Error("docs/cloud.md has another diff than adoption.diff")
	}
}
