// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestWhatEveryFieldMayHoldIsNoMistake(t *testing.T) {
	for _, pd := range parsePodDefaults(t, readTestdata(t, "valid.yaml")) {
		mistakes, _ := Check(&pd.Spec, field.NewPath("spec"))
		if len(mistakes) > 0 {
			t.Errorf("%s: %v", pd.Name, mistakes)
		}
	}
}
