// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheImageIsSmall links what tests of the workspace have compiled. A release is built from the same versions without the
// workspace, which compiles our own packages once more, and `release image` checks its size, too.
func TestTheImageIsSmall(t *testing.T) {
	s, p := try(t), platform{"linux", "amd64"}
	binary := filepath.Join(t.TempDir(), "sallyport")
	cmd := exec.CommandContext(t.Context(), "go", s.buildArgs(binary)...)
	cmd.Dir = filepath.Join(s.top, "cmd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB of %.1f", mb(info.Size()), mb(largest))
	if err := checkSize(p, info.Size()); err != nil { // the image has nothing else
		t.Error(err)
	}
}

func TestAnImageThatIsTooLargeIsRefused(t *testing.T) {
	if err := checkSize(platform{"linux", "amd64"}, largest); err != nil {
		t.Errorf("one of the largest size: %v", err)
	}
	if err := checkSize(platform{"linux", "amd64"}, largest+1); err == nil || !strings.Contains(err.Error(), "63000001 bytes") {
		t.Errorf("a larger one: %v", err)
	}
}

// largestMinimal is how many bytes the binary of an application with one webhook may take, stripped.
// That is with the newest Kubernetes: with apimachinery 0.35 the linker keeps methods of all types, 10 MB more.
// Of them, 25.4 MB are what controller-runtime's package manager takes in a program that imports it
// and calls nothing.
const largestMinimal = 34_600_000

func TestAnApplicationWithoutControllersHasNoManager(t *testing.T) {
	s := try(t)
	binary := filepath.Join(t.TempDir(), "minimal")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", buildTag, "-ldflags=-w", "-o", binary, "./examples/minimal")
	cmd.Dir, cmd.Env = s.top, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	symbols, err := exec.CommandContext(t.Context(), "go", "tool", "nm", binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(symbols, []byte("sallyport.(*App).Run\n")) {
		t.Error("the symbols are not those of an application")
	}
	for function, why := range map[string]string{
		"sigs.k8s.io/controller-runtime/pkg/manager.New":                                                           "only what WithController and WithCache set may call it",
		"sigs.k8s.io/controller-runtime/pkg/cache.New":                                                             "only what WithController and WithCache set may call it",
		"github.com/sallyport-io/sallyport/internal/cli/application.Convert":                                       "only WithConverters may set it",
		"k8s.io/client-go/kubernetes.NewForConfigAndClient":                                                        "it has clients of all API groups; take hosting.Clients",
		"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1.(*CustomResourceDefinition).DeepCopyObject": "the typed client of apiextensions-apiserver registers v1beta1; take crdclient",
	} {
		if bytes.Contains(symbols, []byte(" "+function+"\n")) {
			t.Errorf("the linker keeps %s: %s", function, why)
		}
	}
	size, err := stripped(binary)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%.1f MB of %.1f", mb(size), mb(largestMinimal)); size > largestMinimal {
		t.Errorf("%d bytes, at most %d", size, largestMinimal)
	}
}

// stripped is how many bytes a binary would have without its symbols, which `-ldflags=-s` leaves out.
func stripped(file string) (int64, error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	binary, err := elf.Open(file)
	if err != nil {
		return 0, err
	}
	defer func() { _ = binary.Close() }()
	size := info.Size()
	for _, section := range []string{".symtab", ".strtab"} {
		s := binary.Section(section)
		if s == nil {
			return 0, fmt.Errorf("%s has no section %s", file, section)
		}
		size -= int64(s.Size)
	}
	return size, nil
}
