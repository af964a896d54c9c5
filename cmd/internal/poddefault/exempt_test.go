// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/test/cases"
)

func TestParseExemptions(t *testing.T) {
	got, err := ParseExemptions("\n  2026-12-31T00:00:00Z a,cluster/b.c  *   breaks  rsync\n2026-12-24T12:00:00+01:00 a Deployment/web x\r\n2026-12-24T12:00:00Z a CronJob/backup ü\n")
	if err != nil || len(got) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	text := fmt.Sprint(got)
	for _, want := range []string{"[a cluster/b.c] * breaks rsync *", "12:00:00 +0100", "[a] Deployment/web x ReplicaSet/web", "[a] CronJob/backup ü Job/backup"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s does not have %q", text, want)
		}
	}
	if got, err := ParseExemptions(" \n"); len(got) > 0 || err != nil {
		t.Errorf("a blank value: %v, %v", got, err)
	}
	const until = "2026-12-31T00:00:00Z "
	for value, says := range map[string]string{
		"secret-value":                                "line 1: it needs UNTIL OBJECTS WORKLOAD REASON",
		until + "a *":                                 "it needs UNTIL OBJECTS WORKLOAD REASON",
		"\n2026-12-31 a * x":                          "line 2: UNTIL must be a time as in RFC 3339",
		"2026-12-31T00:00:00 a * x":                   "UNTIL must be",
		"tomorrow a * x\n" + until + "A * x":          "line 2: OBJECTS must be names",
		until + "a, * x":                              "OBJECTS must be names",
		until + "other/a * x":                         "OBJECTS must be names",
		until + "cluster/ * x":                        "OBJECTS must be names",
		until + "* * x":                               "OBJECTS must be names",
		until + "a,a * x":                             "OBJECTS has a twice",
		until + "a web x":                             "WORKLOAD must be * or KIND/NAME",
		until + "a deployment/web x":                  "WORKLOAD must be",
		until + "a Deployment/ x":                     "WORKLOAD must be",
		until + "a Deployment/web/x x":                "WORKLOAD must be",
		until + "a * " + strings.Repeat("x", 257):     "REASON must be printable text of at most 256 bytes",
		until + "a * x\x00":                           "REASON must be printable",
		until + "a * \xff":                            "REASON must be printable",
		strings.Repeat(until+"a * x\n", 65):           "line 65: there are more than 64 PodDefaults",
		until + strings.Repeat("a,", 1000) + "b * x":  "there are more than 64 PodDefaults",
		strings.Repeat("secret-value secret\n", 1000): "line 65: there are more than 64",
	} {
		got, err := ParseExemptions(value)
		if err == nil || !strings.Contains(err.Error(), says) || len(got) > 0 {
			t.Errorf("%.60q: %v, %v; want %q", value, got, err, says)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%.60q: the error has the value: %v", value, err)
		}
	}
}

// FuzzParseExemptions checks the limits, and that an exemption covers itself.
func FuzzParseExemptions(f *testing.F) {
	f.Add("2026-12-31T00:00:00Z a,cluster/b * breaks rsync\n\n2026-12-31T00:00:00+01:00 a Deployment/web x")
	f.Add("2026-12-31T00:00:00Z a Job/backup-29384756 x")
	f.Fuzz(func(t *testing.T, value string) {
		list, err := ParseExemptions(value)
		if err != nil && len(list) > 0 {
			t.Fatalf("an error and exemptions: %v, %v", list, err)
		}
		objects := 0
		for i := range list {
			e := &list[i]
			objects += len(e.Objects)
			if e.Until.IsZero() && e.Until.Location() == nil || e.Reason == "" || len(e.Reason) > maxReasonBytes || !strings.Contains(e.unit, "/") && e.unit != allWorkloads {
				t.Fatalf("%+v", e)
			}
			for _, name := range e.Objects {
				if !e.Covers(e, name) {
					t.Fatalf("%+v does not cover itself", e)
				}
			}
		}
		if objects > maxExemptions {
			t.Fatalf("%d objects", objects)
		}
	})
}

// exemptIndex has the PodDefault proxy, which selects all pods, the ClusterPodDefault
// audit, which selects those that proxy labels, and exemptions at a time.
func exemptIndex(t testing.TB, exemptions string, now *time.Time) *Index {
	t.Helper()
	list, err := ParseExemptions(exemptions)
	if err != nil {
		t.Fatal(err)
	}
	pd := parsePodDefaults(t, []byte("metadata: {name: proxy}\nspec: {selector: {}, env: [{name: PROXY, value: a}], labels: {proxied: 'true'}}"))
	index := indexOf(pd...)
	cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "audit", ResourceVersion: "8"}}
	cpd.Spec.Env = []corev1.EnvVar{{Name: "AUDIT", Value: "1"}}
	cpd.Spec.Selector.MatchLabels = map[string]string{"proxied": "true"}
	index.Set(CompileCluster(cpd))
	index.SetNamespace(testNamespace, nil)
	index.SetExemptions(testNamespace, list)
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
		"another Deployment":                                      {until + "proxy Deployment/we x", 0, both, all},
		"another kind of that name":                               {until + "proxy StatefulSet/web x", 0, both, all},
	} {
		t.Run(name, func(t *testing.T) {
			now := start.Add(tc.after)
			index := exemptIndex(t, tc.exemptions, &now)
			raw := ownedPod("ReplicaSet", "web-5d4f", `"pod-template-hash":"5d4f"`)
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
			due, exempted, err := Due(t.Context(), index, testNamespace, "ReplicaSet/web", stored.Labels, stored.Annotations)
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

func TestNamesOfWorkloads(t *testing.T) {
	owned := func(kind, name, hash string) *metav1.ObjectMeta {
		md := &metav1.ObjectMeta{Name: "p", OwnerReferences: []metav1.OwnerReference{{Kind: "Other", Name: "o"}, {Kind: kind, Name: name, Controller: new(true)}}}
		if hash != "" {
			md.Labels = map[string]string{"pod-template-hash": hash}
		}
		return md
	}
	for want, pods := range map[string][]*metav1.ObjectMeta{
		"ReplicaSet/web":  {owned("ReplicaSet", "web-5d4f", "5d4f"), owned("ReplicaSet", "web", "")},
		"Job/backup":      {owned("Job", "backup-29384756", "")},
		"Job/train-7":     {owned("Job", "train-7", "")},
		"StatefulSet/nb":  {owned("StatefulSet", "nb", "")},
		"PyTorchJob/gpt":  {owned("PyTorchJob", "gpt", "")},
		"Pod/alone":       {{Name: "alone"}, {Name: "alone", OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "x"}}}},
		"Pod/generated-":  {{GenerateName: "generated-"}},
		"ReplicaSet/we-b": {owned("ReplicaSet", "we-b-x", "x")},
	} {
		for _, pod := range pods {
			if got := WorkloadOf(pod); got != want {
				t.Errorf("%+v: %s, want %s", pod, got, want)
			}
			raw, err := json.Marshal(&corev1.Pod{ObjectMeta: *pod})
			if err != nil {
				t.Fatal(err)
			}
			md, ok := readMetadata(raw)
			b := newBounds(t.Context())
			if got := workloadOf(&md, &b).unit; !ok || got != want {
				t.Errorf("%s: %s, want %s", raw, got, want)
			}
		}
	}
}

// The watch reads the annotation of namespaces only if exemptions count, and nothing is
// exempt by one that cannot be read.
func TestExemptionsFollowNamespaces(t *testing.T) {
	w := newGoneWorld(t)
	set := func(value string) []Exemption {
		t.Helper()
		n := &store.Namespace{Name: "team-a"}
		if value != "" {
			n.Annotations = map[string]string{ExemptAnnotation: value}
		}
		w.Namespaces.Replace([]*store.Namespace{n})
		list, _ := w.Exemptions("team-a")
		return list
	}
	const good = "2126-06-01T13:00:00Z proxy * x"
	for i, step := range []struct {
		value string
		want  int
	}{{"", 0}, {good, 1}, {good + "\n" + good, 2}, {"not readable", 0}, {good, 1}, {"", 0}, {good, 1}} {
		if got := set(step.value); len(got) != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
	w.Namespaces.Replace(nil)
	if list, _ := w.Exemptions("team-a"); len(list) > 0 {
		t.Errorf("a namespace that is gone: %v", list)
	}
}

// TestExemptionsCostNothingWithoutAny measures what most namespaces have.
func TestExemptionsCostNothingWithoutAny(t *testing.T) {
	now := time.Now()
	index := exemptIndex(t, "", &now)
	b := newBounds(t.Context())
	pod := &arrival{metadata: &metadata{namespace: testNamespace}, bounds: &b}
	selected := index.All(testNamespace)
	if got := testing.AllocsPerRun(100, func() {
		if rest, exempted := pod.exempt(index, selected); len(exempted) > 0 || !slices.Equal(rest, selected) {
			t.Error("something is exempt")
		}
	}); got > 0 {
		t.Errorf("%v allocations", got)
	}
}
