// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
)

// deploymentYAML is a Deployment of a name whose pods a PodDefault selects.
const deploymentYAML = `apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, proxy: "true"}}
    spec: {containers: [{name: main, image: nginx}]}
`

func TestReviewExemptsWorkloadsOfFiles(t *testing.T) {
	with := file(t, "with.yaml", podDefaultYAML+`---
apiVersion: sallyport.io/v1alpha1
kind: Exemption
metadata: {name: batch}
spec:
  until: "2999-12-31T00:00:00Z"
  podDefaults: [proxy]
  workloads: [Deployment/batch]
  reason: a test
`)
	config := file(t, "config.yaml", `apiVersion: config.sallyport.io/v1alpha1
kind: SallyportConfiguration
registration: {service: {namespace: default, name: webhooks}}
webhooks:
- name: poddefault
  settings: {maxExemption: 2160h}
`)
	for name, injected := range map[string]bool{"batch": false, "web": true} {
		got := sallyportWith(t, fmt.Sprintf(deploymentYAML, name), "review", "-f", "-", "--with", with, "--config", config)
		if got.status != exitOK || strings.Contains(got.stdout, "HTTP_PROXY") != injected || !strings.Contains(got.stdout, "sallyport.io/poddefaults: proxy") {
			t.Errorf("Deployment %s: status %d, want injected %t:\n%s%s", name, got.status, injected, got.stdout, got.stderr)
		}
	}
}

// TestReviewRollsOutByWorkloadsOfFiles compares the pods of Deployments with the same pods that name their
// controllers, as those of a cluster do.
func TestReviewRollsOutByWorkloadsOfFiles(t *testing.T) {
	pd := kubeflowv1alpha1.PodDefault{}
	pd.APIVersion, pd.Kind = kubeflowv1alpha1.GroupVersion.String(), kubeflowv1alpha1.PodDefaultKind
	pd.Namespace, pd.Name, pd.UID, pd.Generation = "default", "proxy", "u", 2
	pd.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"proxy": "true"}}
	pd.Spec.Rollout = &kubeflowv1alpha1.Rollout{Steps: []kubeflowv1alpha1.RolloutStep{{Percent: new(int32(50))}}}
	pd.Spec.ServiceAccountName = "before"
	before := plan.Meaning(&pd.Spec)
	pd.Spec.ServiceAccountName = "after"
	stable := podtest.StableRevision("", pd.ObjectMeta, before, &sallyportv1alpha1.RevisionRollout{Revision: plan.RevisionOf(plan.Meaning(&pd.Spec)), Step: 1})
	var with []string
	for _, o := range []any{&pd, stable} {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		with = append(with, string(raw))
	}
	files := file(t, "with.yaml", strings.Join(with, "\n---\n"))
	seen := map[string]int{}
	for i := range 12 {
		ofDeployment := sallyportWith(t, fmt.Sprintf(deploymentYAML, fmt.Sprintf("web-%d", i)), "review", "-f", "-", "--with", files, "-o", "yaml", "--allow-unknown")
		owned := sallyportWith(t, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  generateName: web-%d-5d4f-
  labels: {app: web, proxy: "true", pod-template-hash: 5d4f}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-%[1]d-5d4f, uid: r, controller: true}]
spec: {containers: [{name: main, image: nginx}]}
`, i), "review", "-f", "-", "--with", files, "-o", "yaml", "--allow-unknown")
		account := func(r result) (line string) {
			for l := range strings.Lines(r.stdout) {
				if strings.Contains(l, "serviceAccountName:") {
					line = strings.TrimSpace(l)
				}
			}
			return line
		}
		if got, want := account(ofDeployment), account(owned); got != want || want == "" {
			t.Errorf("web-%d: %q, want %q:\n%s%s", i, got, want, ofDeployment.stdout, ofDeployment.stderr)
		}
		seen[account(owned)]++
	}
	if len(seen) != 2 {
		t.Errorf("both revisions are to be seen: %v", seen)
	}
}
