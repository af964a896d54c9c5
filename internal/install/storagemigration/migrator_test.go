// SPDX-License-Identifier: Apache-2.0

package storagemigration

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestNamesOfDefinitions(t *testing.T) {
	t.Parallel()
	for name, valid := range map[string]bool{
		"crontabs.stable.example.com": true, "a.b": true,
		"": false, "crontabs": false, "crontabs.": false, ".example.com": false, "CronTabs.example.com": false, "crontabs.example.com/v1": false,
	} {
		if err := Validate(name); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func FuzzValidate(f *testing.F) {
	f.Add("crontabs.stable.example.com")
	f.Add("..")
	f.Fuzz(func(t *testing.T, name string) {
		if Validate(name) != nil {
			return
		}
		for _, rule := range PolicyRules(name) {
			for _, value := range append(rule.Resources, rule.APIGroups...) {
				if value == "" || strings.Contains(value, "*") {
					t.Errorf("%q gets rights for %q", name, value)
				}
			}
		}
	})
}

func TestVersionsInWhichObjectsAreListed(t *testing.T) {
	t.Parallel()
	definition := func(versions ...apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: versions}}
	}
	for name, test := range map[string]struct {
		crd  *apiextensionsv1.CustomResourceDefinition
		want []string
	}{
		"the storage version first": {definition(apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1alpha1", Served: true},
			apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Served: true, Storage: true}), []string{"v1", "v1alpha1"}},
		"served ones alone": {definition(apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1alpha1"},
			apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1beta1", Served: true},
			apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Storage: true}), []string{"v1beta1"}},
		"none": {definition(apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Storage: true}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, servedVersions(test.crd, storageVersion(test.crd))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReasonsNameNoValues(t *testing.T) {
	t.Parallel()
	at := field.NewPath("spec", "password")
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Widget"}, "one", field.ErrorList{field.Invalid(at, "hunter2", "too short"), field.Required(at, "")})
	if got := reasonOf(invalid); got != "is invalid: spec.password" {
		t.Errorf("reason %q", got)
	}
	if got := reasonOf(errors.New("connection refused")); got != "connection refused" {
		t.Errorf("reason %q", got)
	}
}

func TestFailuresThatSayNothingOfTheObject(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"no answer":                      {errors.New("connection refused"), true},
		"too many requests":              {apierrors.NewTooManyRequests("later", 1), true},
		"unavailable":                    {apierrors.NewServiceUnavailable("later"), true},
		"a conversion that fails":        {apierrors.NewInternalError(errors.New("conversion webhook failed")), false},
		"a webhook that denies":          {apierrors.NewForbidden(schema.GroupResource{}, "one", errors.New("no")), false},
		"an object that is invalid then": {apierrors.NewInvalid(schema.GroupKind{}, "one", nil), false},
	} {
		if got := away(test.err); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestTokenWithWhichAnOutdatedListGoesOn(t *testing.T) {
	t.Parallel()
	expired := apierrors.NewResourceExpired("too old")
	if got := continueOf(expired); got != "" {
		t.Errorf("without a token: %q", got)
	}
	expired.ErrStatus.ListMeta = metav1.ListMeta{Continue: "here"}
	if got := continueOf(expired); got != "here" {
		t.Errorf("token %q", got)
	}
}

func TestWhatIsSaidOfFailedObjects(t *testing.T) {
	t.Parallel()
	text := (&blockedError{7, []string{"default/a: no", "default/b: no"}}).Error()
	for _, want := range []string{"7 objects", "default/a: no; default/b: no; and 5 more", "storedVersions stays as it is"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
	if got := shortened(strings.Repeat("ä", 600), 1001); len(got) > 1004 || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("shortened to %d bytes", len(got))
	}
}
