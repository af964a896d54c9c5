// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Settings may report other errors beside a list of field errors. All of them must appear.
func TestEveryProblemOfSettingsIsBelowTheirField(t *testing.T) {
	several := field.ErrorList{field.Invalid(field.NewPath("a"), 1, "too small"), field.Required(field.NewPath("b"), "")}
	err := errors.Join(several.ToAggregate(), field.Invalid(field.NewPath("c"), 2, "too large"), errors.New("nor this"))
	var got []string
	for _, problem := range below(field.NewPath("settings"), err) {
		got = append(got, problem.Field)
	}
	if diff := cmp.Diff([]string{"settings.a", "settings.b", "settings.c", "settings"}, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}
