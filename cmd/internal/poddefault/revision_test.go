// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"encoding/json"
	"strings"
	"testing"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
)

func revisionOf(t *testing.T, spec string) string {
	t.Helper()
	of := &sallyportv1alpha1.ClusterPodDefaultSpec{}
	if err := json.Unmarshal(podtest.ToJSON(t, []byte(spec)), of); err != nil {
		t.Fatal(err)
	}
	return plan.RevisionOf(plan.ClusterMeaning(of))
}

func TestARevisionIsWhatASpecMeans(t *testing.T) {
	const spec = "{selector: {matchLabels: {a: x, b: w}}, env: [{name: A, value: x}], sidecars: [{name: s, image: i, resources: {limits: {cpu: 1}}}]}"
	want := revisionOf(t, spec)
	if want != "" && (len(want) != plan.RevisionSize || strings.ToLower(want) != want) {
		t.Errorf("the name is %q", want)
	}
	for what, same := range map[string]string{
		"another order of fields": "{sidecars: [{image: i, resources: {limits: {cpu: 1}}, name: s}], env: [{value: x, name: A}], selector: {matchLabels: {b: w, a: x}}}",
		"a description":           strings.Replace(spec, "{", "{desc: text, ", 1),
		"a rollout and a limit":   strings.Replace(spec, "{", "{revisionHistoryLimit: 3, rollout: {paused: true, steps: [{percent: 10}]}, ", 1),
		"empty members": strings.Replace(spec, "{", "{volumes: [], labels: {}, serviceAccountName: '', priority: 0, mode: Enforce, "+
			"containerSelector: {types: []}, affinity: {}, resources: {}, namespaceSelector: {}, allowExclude: false, command: null, ", 1),
		"a quantity in another form": strings.Replace(spec, "cpu: 1", "cpu: 1000m", 1),
	} {
		if got := revisionOf(t, same); got != want {
			t.Errorf("%s: the revision is %s, want %s", what, got, want)
		}
	}
	seen := map[string]string{want: "the spec"}
	for what, other := range map[string]string{
		"a value":                  strings.Replace(spec, "value: x", "value: z", 1),
		"no value":                 strings.Replace(spec, ", value: x", "", 1),
		"the selector":             strings.Replace(spec, "b: w", "b: z", 1),
		"false, which is not none": strings.Replace(spec, "{", "{automountServiceAccountToken: false, ", 1),
		"Audit":                    strings.Replace(spec, "{", "{mode: Audit, ", 1),
		"Deny, which is not none":  strings.Replace(spec, "{", "{conflictPolicy: Deny, ", 1),
		"the priority":             strings.Replace(spec, "{", "{priority: 1, ", 1),
		"an empty directory":       strings.Replace(spec, "{", "{volumes: [{name: v, emptyDir: {}}], ", 1),
		"a volume without source":  strings.Replace(spec, "{", "{volumes: [{name: v}], ", 1),
		"namespaces":               strings.Replace(spec, "{", "{namespaceSelector: {matchLabels: {a: x}}, ", 1),
		"exclusion":                strings.Replace(spec, "{", "{allowExclude: true, ", 1),
		"a large number":           strings.Replace(spec, "{", "{terminationGracePeriodSeconds: 9007199254740993, ", 1),
		"the number beside it":     strings.Replace(spec, "{", "{terminationGracePeriodSeconds: 9007199254740992, ", 1),
	} {
		got := revisionOf(t, other)
		if same := seen[got]; same != "" {
			t.Errorf("%s and %s have the same revision", what, same)
		}
		seen[got] = what
	}
}

func TestAnObjectKnowsItsRevision(t *testing.T) {
	pd := &kubeflowv1alpha1.PodDefault{}
	pd.Namespace, pd.Name, pd.Spec.ServiceAccountName = "team-a", "a", "b"
	if got, want := plan.Compile(pd).Revision(), plan.RevisionOf(plan.Meaning(&pd.Spec)); got != want {
		t.Errorf("PodDefault: %s, want %s", got, want)
	}
	cpd := &sallyportv1alpha1.ClusterPodDefault{}
	cpd.Name, cpd.Spec.ServiceAccountName, cpd.Spec.AllowExclude = "a", "b", true
	if got, want := plan.CompileCluster(cpd).Revision(), plan.RevisionOf(plan.ClusterMeaning(&cpd.Spec)); got != want || got == plan.RevisionOf(plan.Meaning(&pd.Spec)) {
		t.Errorf("ClusterPodDefault: %s, want %s", got, want)
	}
}

// TestALabelNamedLikeAnEmptyFieldIsKept: only the API server's own zero values are left out.
func TestALabelNamedLikeAnEmptyFieldIsKept(t *testing.T) {
	pd := podtest.PodDefaults(t, []byte(`{metadata: {name: x}, spec: {selector: {}, labels: {a: b, divisor: "0", resource: c},
		env: [{name: A, valueFrom: {resourceFieldRef: {containerName: c, resource: limits.cpu}}}]}}`))[0]
	meaning := string(plan.Compile(pd).Meaning())
	if !strings.Contains(meaning, `"divisor":"0","resource":"c"`) || strings.Contains(meaning, `"limits.cpu","divisor"`) || strings.Contains(meaning, `"resource":"limits.cpu","divisor"`) {
		t.Error(meaning)
	}
}
