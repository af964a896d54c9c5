// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheImageIsSmall(t *testing.T) {
	s, p := try(t), platform{"linux", "amd64"}
	top, err := filepath.Abs(s.top)
	if err != nil {
		t.Fatal(err)
	}
	s.top = top
	binary := filepath.Join(t.TempDir(), "sallyport")
	if err := s.build(p, binary); err != nil {
		t.Fatal(err)
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
// Of them, 25.4 MB are what controller-runtime's package manager takes in a program that imports it
// and calls nothing.
const largestMinimal = 34_600_000

func TestAnApplicationWithoutControllersHasNoManager(t *testing.T) {
	s := try(t)
	binary := filepath.Join(t.TempDir(), "minimal")
	build := func(ldflags string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", buildTag, "-ldflags", ldflags, "-o", binary, "./examples/minimal")
		cmd.Dir, cmd.Env = s.top, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	build("-w")
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
		"github.com/sallyport-io/sallyport/internal/roundtrip.Command":                                             "only WithConverters may set it",
		"k8s.io/client-go/kubernetes.NewForConfigAndClient":                                                        "it has clients of all API groups; take hosting.Clients",
		"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1.(*CustomResourceDefinition).DeepCopyObject": "the typed client of apiextensions-apiserver registers v1beta1; take crdclient",
	} {
		if bytes.Contains(symbols, []byte(" "+function+"\n")) {
			t.Errorf("the linker keeps %s: %s", function, why)
		}
	}
	build("-s -w")
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%.1f MB of %.1f", mb(info.Size()), mb(largestMinimal)); info.Size() > largestMinimal {
		t.Errorf("%d bytes, at most %d", info.Size(), largestMinimal)
	}
}
