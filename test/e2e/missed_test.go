// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
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
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), poddefault.Mark("env"))
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
	e.create(t, pod(name, "excluded", use, map[string]string{poddefault.ExcludeAnnotation: "true"}))
	e.create(t, pod(name, "audited", map[string]string{"audited": "true"}, nil))
	e.create(t, pod(outside, "not-asked-about", use, nil))
	time.Sleep(time.Until(older.CreationTimestamp.Add(time.Second))) // by which the API server tells the two apart
	e.create(t, podDefault(name, "late", kubeflowv1alpha1.PodDefaultSpec{
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"late": "true"}}, Env: []corev1.EnvVar{{Name: "B", Value: "1"}},
	}))

	p := newPlugin(t, e)
	stdout := p.says(t, 2, []string{"missed", "--all-namespaces", "-o", "json"}, "")
	var all, got []struct {
		Namespace, Name string
		PodDefaults     []string
	}
	if err := json.Unmarshal([]byte(stdout), &all); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	names := map[string]string{}
	for _, missed := range all {
		if strings.HasPrefix(missed.Namespace, name) { // other tests leave pods too
			got = append(got, missed)
			names[missed.Name] = strings.Join(missed.PodDefaults, ",")
		}
	}
	if diff := cmp.Diff(map[string]string{"first": "env", "second": "env"}, names); diff != "" || len(got) != 2 {
		t.Errorf("what is listed (-want +got):\n%s", diff)
	}
	text := p.says(t, 2, []string{"missed", "-n", name}, "", "NAMESPACE   NAME     PODDEFAULTS\nmissed      first    env\nmissed      second   env\n", "1 pod is older than what would inject now")
	if strings.Count(text, "\n") != 3 {
		t.Errorf("more lines than pods:\n%s", text)
	}
	p.says(t, 0, []string{"missed", "-n", outside}, "")
}
