// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/test/lab"
)

// What serve has recorded is decided the same by the same PodDefaults, and differently
// without them.
func TestReviewsAreRecordedAndReplayed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	name, folder := e.namespace(t, "recording"), t.TempDir()
	s := e.serve(t, name, lab.Set("recording", "{directory: "+folder+", samplingRatePerMillion: 1000000}"))
	pd := &kubeflowv1alpha1.PodDefault{
		ObjectMeta: metav1.ObjectMeta{Name: "proxy", Namespace: name},
	}
	pd.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"proxy": "true"}}
	pd.Spec.Env = []corev1.EnvVar{{Name: "TOKEN", Value: "s3cret"}}
	probe := simplePod(name, "probe")
	probe.Labels = map[string]string{"proxy": "true"}
	e.createSoon(t, pd, probe, "poddefault.admission.kubeflow.org/poddefault-proxy")
	for range 5 {
		pod := simplePod(name, "web")
		pod.Labels = probe.Labels
		if err := e.client.Create(t.Context(), pod, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
	}
	s.stop(t) // what waits is written

	file := filepath.Join(folder, "reviews.jsonl")
	recorded, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(recorded), "s3cret") || strings.Count(string(recorded), "\n") < 6 {
		t.Errorf("recorded:\n%s", recorded)
	}
	pd.SetGroupVersionKind(kubeflowv1alpha1.Kind(kubeflowv1alpha1.PodDefaultKind)) // the client has taken it away
	text, err := yaml.Marshal(pd)
	if err != nil {
		t.Fatal(err)
	}
	with := filepath.Join(t.TempDir(), "poddefaults.yaml")
	if err := os.WriteFile(with, text, 0o600); err != nil {
		t.Fatal(err)
	}
	// The first probes came before the PodDefault was there.
	status, stdout, stderr := e.look(t, "replay", "-f", file, "--with", with)
	if !strings.Contains(stdout, " decided as before") || strings.Contains(stdout, "fails now") || status == 1 {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	status, stdout, stderr = e.look(t, "replay", "-f", file)
	if status != 2 || !strings.Contains(stdout, "is changed differently (poddefault.sallyport.io): metadata.annotations") {
		t.Errorf("without the PodDefault: status %d\n%s%s", status, stdout, stderr)
	}
}
