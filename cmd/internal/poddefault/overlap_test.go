// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/compare"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
)

func parseSpec(t testing.TB, data string) *kubeflowv1alpha1.PodDefaultSpec {
	t.Helper()
	spec := &kubeflowv1alpha1.PodDefaultSpec{}
	if err := yaml.UnmarshalStrict([]byte(data), spec); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return spec
}

func TestOfPlansNamesThePlacesOfDisagreement(t *testing.T) {
	object := func(spec string) *plan.Plan {
		return plan.Compile(podtest.PodDefaults(t, []byte("metadata: {name: x}\nspec: "+spec))[0])
	}
	for name, test := range map[string]struct {
		a, b string
		want []string
	}{
		"the same variable twice": {`{selector: {}, env: [{name: A, value: "1"}]}`, `{selector: {}, env: [{name: A, value: "2"}]}`, []string{"env A"}},
		"the same value":          {`{selector: {}, env: [{name: A, value: "1"}]}`, `{selector: {}, env: [{name: A, value: "1"}]}`, nil},
		"selectors that exclude each other": {
			`{selector: {matchLabels: {a: "1"}}, env: [{name: A, value: "1"}]}`, `{selector: {matchLabels: {a: "2"}}, env: [{name: A, value: "2"}]}`, nil},
		"one that must be there and one that must not": {
			`{selector: {matchLabels: {a: "1"}}, env: [{name: A, value: "1"}]}`,
			`{selector: {matchExpressions: [{key: a, operator: DoesNotExist}]}, env: [{name: A, value: "2"}]}`, nil},
		"one value and not that one": {
			`{selector: {matchLabels: {a: "1"}}, env: [{name: A, value: "1"}]}`,
			`{selector: {matchExpressions: [{key: a, operator: NotIn, values: ["1", "2"]}]}, env: [{name: A, value: "2"}]}`, nil},
		"other labels": {
			`{selector: {matchLabels: {a: "1"}}, env: [{name: A, value: "1"}]}`, `{selector: {matchLabels: {b: "2"}}, env: [{name: A, value: "2"}]}`, []string{"env A"}},
		"fields of every kind": {
			`{selector: {}, serviceAccountName: a, labels: {l: a}, annotations: {note: a}, nodeSelector: {p: a}, ports: [{containerPort: 1, name: a}],
			  podSecurityContext: {runAsUser: 1}, sidecars: [{name: s, image: a}], initContainers: [{name: t, image: t}], volumes: [{name: v, secret: {secretName: a}}]}`,
			`{selector: {}, serviceAccountName: b, labels: {l: b}, annotations: {note: b}, nodeSelector: {p: b}, ports: [{containerPort: 1, name: b}],
			  podSecurityContext: {runAsUser: 2}, sidecars: [{name: s, image: b}, {name: t, image: u}], volumes: [{name: v, emptyDir: {}}]}`,
			[]string{"annotation note", "container s", "container t", "label l", "nodeSelector p", "port 1/TCP", "securityContext.runAsUser", "serviceAccountName", "volume v"}},
		"one that can never work": {`{selector: {}, env: [{name: A, value: "1"}]}`, `{selector: {}, env: [{name: A, value: "2"}, {name: A, value: "3"}]}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := object(test.a), object(test.b)
			if diff := cmp.Diff(test.want, compare.OfPlans(a, b)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(compare.OfPlans(a, b), compare.OfPlans(b, a)); diff != "" {
				t.Errorf("the other way round (-a +b):\n%s", diff)
			}
		})
	}
}

func TestOverlapOfClusterPodDefaultsLooksAtNamespaces(t *testing.T) {
	object := func(team, value string) string {
		return `{metadata: {name: x}, spec: {selector: {}, namespaceSelector: {matchLabels: {team: ` + team + `}}, env: [{name: A, value: "` + value + `"}]}}`
	}
	compiled := func(text string) *plan.Plan { return plan.CompileCluster(parseClusterPodDefault(t, text)) }
	a, b, c := compiled(object("a", "1")), compiled(object("b", "2")), compiled(object("a", "2"))
	if got := compare.OfPlans(a, b); got != nil {
		t.Errorf("of two teams: %v", got)
	}
	if got := compare.OfPlans(a, c); !cmp.Equal(got, []string{"env A"}) {
		t.Errorf("of one team: %v", got)
	}
	own := plan.Compile(podtest.PodDefaults(t, []byte(`{metadata: {name: own}, spec: {selector: {}, env: [{name: A, value: "3"}]}}`))[0])
	if got := compare.OfPlans(own, a); !cmp.Equal(got, []string{"env A"}) {
		t.Errorf("of both kinds: %v", got)
	}
}
