// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// testTop has a webhook that takes 300 ms a call, for pods of one namespace.
func testTop(t *testing.T, e *env) {
	name := e.namespace(t, "top")
	r := startRecorder(t)
	r.delay = 300 * time.Millisecond
	hook := r.hook("slow", func(w *admissionregistrationv1.MutatingWebhook) {
		w.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": name}}
	})
	e.create(t, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.MutatingWebhook{hook},
	})
	calls := 0
	for deadline := time.Now().Add(30 * time.Second); calls < 3; {
		if time.Now().After(deadline) {
			t.Fatal("the webhook is not called")
		}
		if err := e.client.Create(t.Context(), simplePod(name, "web"), client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		calls += len(r.take())
	}

	var printed struct {
		Usages []struct {
			Name, Kind       string
			Calls, Mean, P50 float64
			Operations       []struct{ Operation string }
		}
	}
	status, stdout, stderr := e.look(t, "top", "--kubeconfig", e.kubeconfig, "--window", "0", "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &printed); status != 0 || err != nil {
		t.Fatalf("status %d, %v\n%s", status, err, stderr)
	}
	found := false
	for _, u := range printed.Usages {
		if u.Name != hook.Name {
			continue
		}
		found = true
		// Of three calls the percentile is somewhere in the range from 0.1 to 0.5 s.
		if u.Kind != "Mutating" || u.Calls != float64(calls) || u.Mean < 0.3 || u.P50 <= 0.1 || len(u.Operations) != 1 || u.Operations[0].Operation != "CREATE" {
			t.Errorf("got %+v", u)
		}
	}
	if !found {
		t.Errorf("%s is not there:\n%s", hook.Name, stdout)
	}

	// Within a window in which nobody calls it, it is not there.
	status, stdout, stderr = e.look(t, "top", "--kubeconfig", e.kubeconfig, "--window", "100ms")
	if status != 0 || strings.Contains(stdout, hook.Name) || !strings.Contains(stderr, "counting for 100ms") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}

	status, stdout, stderr = e.look(t, "top", "--kubeconfig", e.userWith(t, "top-nobody"), "--window", "0")
	if status != 1 || stdout != "" || !strings.Contains(stderr, "nonResourceURLs: [/metrics]") {
		t.Errorf("without rights: status %d\n%s%s", status, stdout, stderr)
	}

	_, stdout, _ = e.look(t, "doctor", "-o", "json", "--window=0s", "--kubeconfig", e.kubeconfig, "--configuration-name", name)
	expectLine(t, doctorOf(t, stdout), "latency", "note: MutatingWebhookConfiguration top "+hook.Name+": a call takes on average")
}
