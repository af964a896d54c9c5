// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/test/lab"
)

// testRecording replays what serve has recorded: it is decided the same by the same PodDefaults,
// and differently without them.
func testRecording(t *testing.T, e *env) {
	name, folder := e.namespace(t, "recording"), t.TempDir()
	// With the rights that manifests prints, which name the right to read what is in memory.
	const recent = "recording: {recentReviews: 100, samplingRatePerMillion: 1000000}"
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("apiVersion: config.sallyport.io/v1alpha1\nkind: SallyportConfiguration\n"+recent+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	account := e.serviceAccount(t, name, "--metrics-authentication", "Delegated", "--config", config)
	s := e.start(t, name, "--kubeconfig", account, "--metrics-authentication", "Delegated", "--authority-secret", name+"/sallyport-authority",
		lab.Set("recording", fmt.Sprintf("{directory: %q, samplingRatePerMillion: 1000000, recentReviews: 100}", folder)))
	s.Metrics = strings.Replace(s.Metrics, "http:", "https:", 1)
	s.Probes = s.Metrics
	s.awaitReady(t)
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
	record := []string{"record", "--kubeconfig", e.kubeconfig, "--configuration-name", name, "--replica", s.Metrics}
	fetched := filepath.Join(t.TempDir(), "fetched.jsonl")
	eventually(t, "what is in memory to be read", func(context.Context) (bool, error) {
		status, stdout, stderr := e.look(t, append(record, "--to-file", fetched)...)
		text, err := os.ReadFile(fetched)
		if err == nil && strings.Count(string(text), "\n") < 6 {
			err = fmt.Errorf("status %d\n%s%s%s", status, text, stdout, stderr)
		}
		return err == nil && status == 0, err
	})
	e.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "reader"}})
	status, stdout, stderr := e.look(t, append(record, "--as-service-account", name+"/reader")...)
	if status != 1 || stdout != "" || !strings.Contains(stderr, "you may not read the recent reviews: bind the ClusterRole that ends in -recorded-reviews-reader") {
		t.Errorf("without the right: status %d\n%s%s", status, stdout, stderr)
	}
	e.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-recordings"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name + "-recorded-reviews-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: "reader"}},
	})
	eventually(t, "the right to be known", func(context.Context) (bool, error) {
		status, _, stderr = e.look(t, append(record, "--as-service-account", name+"/reader")...)
		if status != 0 {
			return false, errors.New(stderr)
		}
		return true, nil
	})
	s.stop(t) // what waits is written

	file := filepath.Join(folder, "reviews.jsonl")
	recorded, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(recorded), "s3cret") || strings.Count(string(recorded), "\n") < 6 {
		t.Errorf("recorded:\n%s", recorded)
	}
	if text, err := os.ReadFile(fetched); err != nil || !strings.HasPrefix(string(recorded), string(text)) {
		t.Errorf("the file and the memory differ (%v):\n%s\n%s", err, recorded, text)
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
	status, stdout, stderr = e.look(t, "replay", "-f", file, "--with", with)
	if !strings.Contains(stdout, " decided as before") || strings.Contains(stdout, "fails now") || status == 1 {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	status, stdout, stderr = e.look(t, "replay", "-f", fetched)
	if status != 2 || !strings.Contains(stdout, "is changed differently (poddefault.sallyport.io): metadata.annotations") {
		t.Errorf("without the PodDefault: status %d\n%s%s", status, stdout, stderr)
	}
}
