// SPDX-License-Identifier: Apache-2.0

package store

import (
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
	"k8s.io/client-go/tools/cache"
)

// Reflector sets the delay through reflection, so a field that is renamed would go unnoticed.
func TestReflectorsHaveADelayOfOurs(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "k8s.io/client-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimSpace(string(out))
	field, has := reflect.TypeFor[cache.ReflectorOptions]().FieldByName("Backoff")
	if wanted := semver.Compare(version, "v0.36.0") >= 0; has != wanted || !semver.IsValid(version) {
		t.Errorf("client-go %q has ReflectorOptions.Backoff: %t (%v), want %t", version, has, field.Type, wanted)
	}
}
