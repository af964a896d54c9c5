// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/test/cases"
)

// exemptIndex has the PodDefault proxy, which selects all pods, the ClusterPodDefault
// audit, which selects those that proxy labels, and exemptions at a time.
func exemptIndex(t testing.TB, exemptions string, now *time.Time) *source.Index {
	t.Helper()
	pd := podtest.PodDefaults(t, []byte("metadata: {name: proxy}\nspec: {selector: {}, env: [{name: PROXY, value: a}], labels: {proxied: 'true'}}"))
	index := indexOf(pd...)
	cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "audit", ResourceVersion: "8"}}
	cpd.Spec.Env = []corev1.EnvVar{{Name: "AUDIT", Value: "1"}}
	cpd.Spec.Selector.MatchLabels = map[string]string{"proxied": "true"}
	index.Set(plan.CompileCluster(cpd))
	index.SetNamespace(podtest.Namespace, nil)
	index.SetExemptions(podtest.Namespace, exemptionsOf(t, exemptions))
	index.SetClock(func() time.Time { return *now })
	return index
}

// TestExemptions sends a pod of the Deployment web.
func TestExemptions(t *testing.T) {
	start := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	const (
		both  = "AUDIT PROXY"
		all   = "cluster/audit,proxy"
		until = "2026-06-01T13:00:00Z "
	)
	for name, tc := range map[string]struct {
		exemptions     string
		after          time.Duration
		want, decision string
	}{
		"without exemptions both are applied":                     {"", 0, both, all},
		"an exemption from one":                                   {until + "cluster/audit * x", 0, "PROXY", all},
		"the labels of what it is exempt from select nothing":     {until + "proxy * x", 0, "", "proxy"},
		"an exemption from all":                                   {until + "proxy,cluster/audit * x", 0, "", "proxy"},
		"a PodDefault and a ClusterPodDefault of one name differ": {until + "cluster/proxy,audit * x", 0, both, all},
		"until just before its end":                               {until + "proxy * x", time.Hour - 1, "", "proxy"},
		"it ends by itself":                                       {until + "proxy * x", time.Hour, both, all},
		"another time zone":                                       {"2026-06-01T15:00:00+02:00 proxy * x", time.Hour - 1, "", "proxy"},
		"another time zone, later":                                {"2026-06-01T15:00:00+02:00 proxy * x", time.Hour, both, all},
		"the later of two counts":                                 {until + "proxy * x\n2026-06-01T14:00:00Z proxy * y", time.Hour, "", "proxy"},
		"the Deployment of the pod":                               {until + "proxy Deployment/web x", 0, "", "proxy"},
		"one workload of two":                                     {until + "proxy StatefulSet/web,Deployment/web x", 0, "", "proxy"},
		"another Deployment":                                      {until + "proxy Deployment/we x", 0, both, all},
		"another kind of that name":                               {until + "proxy StatefulSet/web x", 0, both, all},
	} {
		t.Run(name, func(t *testing.T) {
			now := start.Add(tc.after)
			index := exemptIndex(t, tc.exemptions, &now)
			raw := podtest.OwnedPod("ReplicaSet", "web-5d4f", `"pod-template-hash":"5d4f"`)
			resp := handleFrom(t, raw, index)
			after := cases.Apply(t, raw, resp)
			if got := variableNames(after); got != tc.want {
				t.Errorf("the pod gets %q, want %q", got, tc.want)
			}
			if decided, _ := rawjson.Lookup(after, "metadata", "annotations", meta.DecisionsAnnotation); string(decided) != `"`+tc.decision+`"` {
				t.Errorf("decided: %s, want %s", decided, tc.decision)
			}
			if again := handleFrom(t, after, index); !again.Allowed || len(again.Patch) > 0 {
				t.Errorf("the second call is not empty: %s", again.Patch.AppendJSON(nil))
			}
			stored := &metav1.PartialObjectMetadata{}
			if err := json.Unmarshal(after, stored); err != nil {
				t.Fatal(err)
			}
			due, exempted, err := match.Due(t.Context(), index, podtest.Namespace, "ReplicaSet/web", stored.Labels, stored.Annotations)
			applied := strings.Fields(tc.want)
			if err != nil || len(due) != len(applied) || len(applied) < 2 && len(exempted) != 1 || len(applied) == 2 && len(exempted) > 0 {
				t.Errorf("due: %v, exempt: %v, %v", due, exempted, err)
			}
		})
	}
}

// variableNames returns the names of the variables of a pod, sorted.
func variableNames(raw []byte) string {
	var names []string
	for _, name := range []string{"AUDIT", "PROXY"} {
		if strings.Contains(string(raw), `"name":"`+name+`"`) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// A pod that excludes itself may still be exempt from what it cannot exclude itself from.
func TestExemptionsOfExcludedPods(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	raw := []byte(`{"metadata":{"annotations":{"` + meta.ExcludeAnnotation + `":"true"},"labels":{"proxied":"true"}},"spec":{"containers":[{"name":"c"}]}}`)
	if got := variableNames(cases.Apply(t, raw, handleFrom(t, raw, exemptIndex(t, "", &now)))); got != "AUDIT" {
		t.Errorf("without exemptions: %q", got)
	}
	if got := variableNames(cases.Apply(t, raw, handleFrom(t, raw, exemptIndex(t, "2026-06-01T13:00:00Z cluster/audit Pod/x x\n2026-06-01T13:00:00Z cluster/audit * x", &now)))); got != "" {
		t.Errorf("exempt: %q", got)
	}
}

// exemptionsOf returns exemptions of lines: UNTIL OBJECTS WORKLOADS REASON.
func exemptionsOf(t testing.TB, lines string) (out []*exempt.Exemption) {
	t.Helper()
	for line := range strings.Lines(lines) {
		fields := strings.Fields(line)
		until, err := time.Parse(time.RFC3339, fields[0])
		if err != nil {
			t.Fatal(err)
		}
		e, err := exempt.New(&sallyportv1alpha1.Exemption{
			ObjectMeta: metav1.ObjectMeta{Namespace: podtest.Namespace, Name: strings.ToLower(fields[3])},
			Spec: sallyportv1alpha1.ExemptionSpec{
				Until: metav1.Time{Time: until}, PodDefaults: strings.Split(fields[1], ","), Workloads: strings.Split(fields[2], ","), Reason: fields[3],
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// TestExemptionsCostNothingWithoutAny measures what most namespaces have.
func TestExemptionsCostNothingWithoutAny(t *testing.T) {
	now := time.Now()
	index := exemptIndex(t, "", &now)
	b := meta.NewBudget(t.Context())
	pod := &match.Arrival{Metadata: &meta.Metadata{Metadata: podmeta.Metadata{Namespace: podtest.Namespace}}, Bounds: &b}
	selected := index.All(podtest.Namespace)
	if got := testing.AllocsPerRun(100, func() {
		if rest, exempted := pod.Exempt(index, selected); len(exempted) > 0 || !slices.Equal(rest, selected) {
			t.Error("something is exempt")
		}
	}); got > 0 {
		t.Errorf("%v allocations", got)
	}
}
