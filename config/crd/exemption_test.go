// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
)

// testInvalidExemptions writes Exemptions to an API server that has the definitions, and no server of ours.
func testInvalidExemptions(t *testing.T, config *rest.Config, namespace string) {
	var seventeen, jobs []string
	for i := range 17 {
		seventeen, jobs = append(seventeen, fmt.Sprint("a", i)), append(jobs, fmt.Sprint("Job/a", i))
	}
	long, part := strings.Repeat("x", 256), strings.Repeat("x", 63)
	names := fmt.Sprintf("%s.%s.%s.%s", part, part, part, part[:61]) // 253
	valid := func(change ...any) map[string]any {
		spec := map[string]any{"until": "2126-01-01T00:00:00+01:00", "podDefaults": []any{"a", "cluster/a"}, "workloads": []any{"Deployment/web", "PyTorchJob/x"}, "reason": "breaks rsync, ü"}
		for i := 0; i < len(change); i += 2 {
			if change[i+1] == nil {
				delete(spec, change[i].(string))
				continue
			}
			spec[change[i].(string)] = change[i+1]
		}
		return spec
	}
	list := func(names ...string) (out []any) {
		for _, name := range names {
			out = append(out, name)
		}
		return out
	}
	for name, tc := range map[string]struct {
		spec map[string]any
		path string // empty: it is accepted
	}{
		"as documented":              {valid(), ""},
		"16 of both":                 {valid("podDefaults", list(seventeen[:16]...), "workloads", list(jobs[:16]...)), ""},
		"the longest names":          {valid("podDefaults", list("cluster/"+names), "workloads", list("A"+part[1:]+"/"+names), "reason", long), ""},
		"every workload":             {valid("workloads", list("*")), ""},
		"no end":                     {valid("until", nil), "spec.until"},
		"a day":                      {valid("until", "2126-01-01"), "spec.until"},
		"no objects":                 {valid("podDefaults", nil), "spec.podDefaults"},
		"an empty list of objects":   {valid("podDefaults", []any{}), "spec.podDefaults"},
		"17 objects":                 {valid("podDefaults", list(seventeen...)), "spec.podDefaults"},
		"an object twice":            {valid("podDefaults", list("a", "a")), "spec.podDefaults[1]"},
		"every object":               {valid("podDefaults", list("*")), "spec.podDefaults[0]"},
		"an object of another kind":  {valid("podDefaults", list("secret/a")), "spec.podDefaults[0]"},
		"an object without a name":   {valid("podDefaults", list("cluster/")), "spec.podDefaults[0]"},
		"no workloads":               {valid("workloads", nil), "spec.workloads"},
		"17 workloads":               {valid("workloads", list(jobs...)), "spec.workloads"},
		"a workload without a kind":  {valid("workloads", list("web")), "spec.workloads[0]"},
		"a kind in lower case":       {valid("workloads", list("deployment/web")), "spec.workloads[0]"},
		"every workload and another": {valid("workloads", list("*", "Deployment/web")), "spec.workloads"},
		"no reason":                  {valid("reason", nil), "spec.reason"},
		"an empty reason":            {valid("reason", ""), "spec.reason"},
		"a reason of spaces":         {valid("reason", "  "), "spec.reason"},
		"a reason of two lines":      {valid("reason", "a\nb"), "spec.reason"},
		"a reason that is long":      {valid("reason", long+"x"), "spec.reason"},
	} {
		_, object := resourceOf(config, namespace, sallyportv1alpha1.ExemptionKind)
		object.SetGroupVersionKind(sallyportv1alpha1.Kind(sallyportv1alpha1.ExemptionKind))
		object.SetNamespace(namespace)
		object.Object["spec"] = tc.spec
		client := dynamic.NewForConfigOrDie(config).Resource(sallyportv1alpha1.Resource(sallyportv1alpha1.ExemptionResource)).Namespace(namespace)
		_, err := client.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
		switch {
		case tc.path == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.path != "" && (!apierrors.IsInvalid(err) || !slices.ContainsFunc(causes(err), func(c metav1.StatusCause) bool { return c.Field == tc.path })):
			t.Errorf("%s: got %v, want a refusal of %s", name, err, tc.path)
		}
	}
}
