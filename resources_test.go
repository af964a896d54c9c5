// SPDX-License-Identifier: Apache-2.0

package sallyport_test

import (
	"context"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
)

func TestNewRefusesResourcesThatTheSchemeKnowsBetter(t *testing.T) {
	handler := admission.Validate(func(context.Context, *unstructured.Unstructured) error { return nil })
	on := func(group, resource string) sallyport.Option {
		return sallyport.WithWebhooks(admission.Validating("check."+strings.NewReplacer("*", "all", "/", "-").Replace(resource)+".example.com",
			admission.Rules(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}), handler))
	}
	crontabs := sallyport.WithTypes(scheme(t), &CronTab{})
	crd := sallyport.WithCRDs(&apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "crontab.stable.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "stable.example.com", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "crontab", Kind: "CronTab"},
		},
	})
	for _, tc := range []struct {
		name    string
		options []sallyport.Option
		want    string // of the error; empty for none
	}{
		{"a plural", []sallyport.Option{on("", "pods")}, ""},
		{"an irregular plural", []sallyport.Option{on("networking.k8s.io", "ingresses")}, ""},
		{"a plural like the singular", []sallyport.Option{on("", "endpoints")}, ""},
		{"a wildcard", []sallyport.Option{on("", "*")}, ""},
		{"any group", []sallyport.Option{on("*", "podss")}, ""},
		{"a sub-resource of all", []sallyport.Option{on("apps", "*/scale")}, ""},
		{"a letter too many", []sallyport.Option{on("", "podss")}, `webhook "check.podss.example.com": rules[0].resources: "podss" is not known, write "pods"`},
		{"a letter too few", []sallyport.Option{on("apps", "deploments")}, `write "deployments"`},
		{"another letter", []sallyport.Option{on("batch", "jobz")}, `write "jobs"`},
		{"exchanged letters", []sallyport.Option{on("", "pdos")}, `write "pods"`},
		{"a singular", []sallyport.Option{on("", "pod")}, `write "pods"`},
		{"a singular that is far from its plural", []sallyport.Option{on("networking.k8s.io", "networkpolicy")}, `write "networkpolicies"`},
		{"a sub-resource", []sallyport.Option{on("", "pod/eviction")}, `write "pods/eviction"`},
		{"a resource that only a cluster knows", []sallyport.Option{on("", "gadgets"), on("example.com", "pod")}, ""},
		{"a singular of an own type", []sallyport.Option{crontabs, on("stable.example.com", "crontab")}, `write "crontabs"`},
		{"a plural that its definition has", []sallyport.Option{sallyport.WithScheme(scheme(t)), crd, on("stable.example.com", "crontab")}, ""},
		{"a guessed plural that its definition does not have", []sallyport.Option{crontabs, crd}, `"crontabs" is not known, write "crontab"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := sallyport.New("a", tc.options...)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestNewRefusesWhatIsNil(t *testing.T) {
	webhook := mutating("a.pods.example.com")
	for _, tc := range []struct {
		name   string
		option sallyport.Option
		want   string
	}{
		{"an option", nil, "option 2 is nil: leave it out"},
		{"an option of a component", sallyport.WithComponent(func(sallyport.Environment) (sallyport.Component, error) {
			return sallyport.Component{}, nil
		}, nil), "option 1 is nil: leave it out"},
		{"a scheme", sallyport.WithScheme(nil), "WithScheme: the scheme is missing: pass one, or leave the option out"},
		{"a component", sallyport.WithComponent(nil), "WithComponent: the function that builds component 1 is missing"},
		{"a definition", sallyport.WithCRDs(nil), "CustomResourceDefinition 1 is nil"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := sallyport.New("a", sallyport.WithWebhooks(webhook), tc.option); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := sallyport.New("x", nil); err == nil || !strings.Contains(err.Error(), "option 1 is nil") {
		t.Errorf("only nil: %v", err)
	}
}
