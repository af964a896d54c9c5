// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
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
	if err := checkSize(platform{"linux", "amd64"}, largest+1); err == nil || !strings.Contains(err.Error(), "60000001 bytes") {
		t.Errorf("a larger one: %v", err)
	}
}
