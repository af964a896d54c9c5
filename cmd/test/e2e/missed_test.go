// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/test/lab"
)

// testMissed is what the runbook SallyportFailsOpen asks for: of all pods without the
// annotation those that would have it, had the webhook answered.
func testMissed(t *testing.T, e *env) {
	const name, outside = "missed", "missed-outside"
	e.namespace(t, name)
	e.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: outside}})
	e.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: outside, Name: "default"}})
	pod := func(namespace, name string, labels, annotations map[string]string) *corev1.Pod {
		p := simplePod(namespace, name)
		p.Labels, p.Annotations = labels, annotations
		return p
	}
	use := map[string]string{"use": "true"}
	older := pod(name, "older", map[string]string{"late": "true"}, nil)
	e.create(t, older)
	s := e.serve(t, name, "--failure-policy", "Ignore", lab.Set("webhooks.poddefault.authorizeAuthors", `"off"`))
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	e.create(t, envPodDefault(outside, "env"))
	e.create(t, podDefault(name, "audit", kubeflowv1alpha1.PodDefaultSpec{
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"audited": "true"}}, Mode: kubeflowv1alpha1.ModeAudit, Env: []corev1.EnvVar{{Name: "A", Value: "1"}},
	}))
	e.create(t, pod(name, "injected", use, nil))
	e.create(t, pod(name, "of-nobody", nil, nil))
	s.Kill()

	e.create(t, pod(name, "first", use, nil))
	e.create(t, pod(name, "second", use, nil))
	e.create(t, pod(name, "of-nobody-either", map[string]string{"use": "no"}, nil))
	e.create(t, pod(name, "excluded", use, map[string]string{meta.ExcludeAnnotation: "true"}))
	e.create(t, pod(name, "audited", map[string]string{"audited": "true"}, nil))
	e.create(t, pod(outside, "not-asked-about", use, nil))
	time.Sleep(time.Until(older.CreationTimestamp.Add(time.Second))) // by which the API server tells the two apart
	e.create(t, podDefault(name, "late", kubeflowv1alpha1.PodDefaultSpec{
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"late": "true"}}, Env: []corev1.EnvVar{{Name: "B", Value: "1"}},
	}))

	p := newPlugin(t, e)
	got := map[string]map[string]map[string]int{}
	for _, w := range p.drift(t, 2, "--all-namespaces").Workloads {
		if strings.HasPrefix(w.Namespace, name) { // other tests leave pods too
			got[w.Name] = w.PodDefaults
			if _, missed := w.PodDefaults["PodDefault "+name+"/env"]; missed && !cmp.Equal([]string{w.Name}, w.Missed) {
				t.Errorf("%s names the pods %v", w.Name, w.Missed)
			}
		}
	}
	want := map[string]map[string]map[string]int{
		"first": {"PodDefault " + name + "/env": {"missed": 1}}, "second": {"PodDefault " + name + "/env": {"missed": 1}},
		"older": {"PodDefault " + name + "/late": {"missing": 1}}, // than what would inject it now
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is listed (-want +got):\n%s", diff)
	}
	p.says(t, 2, []string{"drift", "-n", name}, "", "MISSED", "pod/first", "PodDefault "+name+"/env: 1 missed")
	p.says(t, 0, []string{"drift", "-n", outside}, "")

	// A term of another client excludes nothing: what it keeps from the webhook is missed.
	patch := `{"webhooks":[{"name":"` + poddefault.Name + `","objectSelector":{"matchLabels":{"never":"x"}}}]}`
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := e.client.Patch(t.Context(), configuration, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	if got := p.drift(t, 2, "-n", name, "poddefault/env"); len(got.PodDefaults) != 1 || got.PodDefaults[0].Pods["missed"] != 2 || got.PodDefaults[0].Pods["current"] != 1 {
		t.Errorf("with a foreign term: %+v", got.PodDefaults)
	}
}
