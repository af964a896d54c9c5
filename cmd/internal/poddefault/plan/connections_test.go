// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestVolumesOfSecretsHaveValidNamesOfTheirOwn(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a", "a.b", "a-b", strings.Repeat("x", 52), strings.Repeat("x", 53), strings.Repeat("x", 253)} {
		volume := volumeOfSecret(name)
		if problems := validation.IsDNS1123Label(volume); len(problems) > 0 || seen[volume] != "" {
			t.Errorf("%s: volume %s, that of %q: %v", name, volume, seen[volume], problems)
		}
		seen[volume] = name
	}
}
