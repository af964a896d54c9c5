// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestACaseHasTheFieldsOfItsSuiteAndThenTheDefaults(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{SuiteKind, CaseKind, RecordedReviewKind} {
		if !scheme.Recognizes(GroupVersion.WithKind(kind)) {
			t.Errorf("%s is not registered", kind)
		}
	}
	suite := Suite{
		Given: Given{With: []string{"a"}, Operation: "DELETE", Warnings: "Fail"},
		Cases: []Case{{Name: "one", Given: Given{With: []string{"b"}, Warnings: "Allow", User: &User{Username: "u"}}}, {Name: "two"}},
	}
	scheme.Default(&suite)
	want := []Case{
		{Name: "one", Given: Given{With: []string{"a", "b"}, Operation: "DELETE", Warnings: "Allow", User: &User{Username: "u"}, Validate: "strict"}},
		{Name: "two", Given: Given{With: []string{"a"}, Operation: "DELETE", Warnings: "Fail", User: &User{Username: "sallyport-test"}, Validate: "strict"}},
	}
	if diff := cmp.Diff(want, suite.Cases); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
