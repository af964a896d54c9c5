// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
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
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
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

// testMissedAgrees narrows the webhook as another client could, and compares what four places
// count with what was created.
func testMissedAgrees(t *testing.T, e *env) {
	const name = "agrees"
	e.namespace(t, name)
	use := map[string]string{"use": "true"}
	create := func(pod string, annotations map[string]string) *corev1.Pod {
		t.Helper()
		p := simplePod(name, pod)
		p.Labels, p.Annotations = use, annotations
		e.create(t, p)
		return p
	}
	config := filepath.Join(t.TempDir(), "sallyport.yaml")
	if err := os.WriteFile(config, []byte("apiVersion: config.sallyport.io/v1alpha1\nkind: SallyportConfiguration\nwebhooks:\n- name: poddefault\n  matchConditions:\n"+
		"  - {name: not-batch, expression: \"object.spec.containers[0].image != 'batch'\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	oldest := create("older-1", nil)
	create("older-2", nil)
	time.Sleep(time.Until(oldest.CreationTimestamp.Add(2 * time.Second))) // by which the API server tells the ages apart
	args := []string{"--authority-secret", name + "/authority", "--controllers", "poddefault-drift,poddefault-status", lab.Set("webhooks.poddefault.authorizeAuthors", `"off"`), "--config", config}
	s := e.serve(t, name, args...)
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	create("current", nil)
	create("excluded", map[string]string{meta.ExcludeAnnotation: "true"})
	patch := `{"webhooks":[{"name":"` + poddefault.Name + `","objectSelector":{"matchLabels":{"never":"x"}}}]}`
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := e.client.Patch(t.Context(), configuration, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pods to pass injection", func(ctx context.Context) (bool, error) {
		pod := simplePod(name, "probe")
		err := e.client.Create(ctx, pod, client.DryRunAll)
		return pod.Annotations[meta.Mark("env")] == "", err
	})
	for _, pod := range []string{"missed-1", "missed-2", "missed-3"} {
		create(pod, nil)
	}
	for _, pod := range []string{"batch-1", "batch-2"} { // which the server's own configuration excludes
		p := simplePod(name, pod)
		p.Labels, p.Spec.Containers[0].Image = use, "batch"
		e.create(t, p)
	}
	ended := create("ended", nil)
	ended.Status.Phase = corev1.PodSucceeded
	if err := e.client.Status().Update(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"current": 1, "missing": 2, "missed": 3}

	got := newPlugin(t, e).drift(t, 2, "-n", name, "poddefault/env").PodDefaults
	if len(got) != 1 || !cmp.Equal(want, got[0].Pods) {
		t.Errorf("the command: %+v, want %v", got, want)
	}
	eventually(t, "the metric to agree", func(ctx context.Context) (bool, error) {
		counted := map[string]int{}
		for _, state := range drift.States() {
			if value, err := s.Metric(ctx, `sallyport_poddefault_pods{namespace="`+name+`",poddefault="env",state="`+string(state)+`"}`); err == nil { // otherwise it is absent
				counted[string(state)], _ = strconv.Atoi(value)
			}
		}
		return cmp.Equal(want, counted), nil
	})
	s.stop(t) // counts alone are written once a minute, and at once by a server that has just started
	e.serve(t, name, args...)
	eventually(t, "the status to agree", func(ctx context.Context) (bool, error) {
		var pd kubeflowv1alpha1.PodDefault
		err := e.client.Get(ctx, client.ObjectKey{Namespace: name, Name: "env"}, &pd)
		return pd.Status.Pods != nil && *pd.Status.Pods == kubeflowv1alpha1.PodCounts{Current: 1, Missing: 2, Missed: 3}, err
	})

	port := strconv.Itoa(freeport.For(t))
	console, err := lab.Start(t.TempDir(), lab.Program{Name: "console", Path: e.binary, OwnGroup: true, Args: []string{"console", "--kubeconfig", e.kubeconfig, "--port", port, "--no-browser"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		console.Signal(syscall.SIGINT) // as Ctrl-C
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := console.AwaitEnd(ctx); err != nil {
			t.Errorf("the console: %v\n%s", err, console.Log())
		}
	})
	var page []byte
	if err := console.Await(t.Context(), patience, "the console to answer", func(ctx context.Context) (err error) {
		page, err = lab.Get(ctx, http.DefaultClient, "http://127.0.0.1:"+port+"/poddefaults?namespace="+name)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	shown := map[string]int{}
	for state, text := range map[string]string{"current": `(\d+) pods? ha(?:s|ve) the current version`, "missing": `(\d+) pods? (?:is|are) older than it and without it`, "missed": `(\d+) pods? (?:was|were) missed`} {
		if found := regexp.MustCompile(text).FindSubmatch(page); found != nil {
			shown[state], _ = strconv.Atoi(string(found[1])) // digits
		}
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("the console (-want +got):\n%s\n%s", diff, page)
	}
	e.deleteConfiguration(t, name)
}
