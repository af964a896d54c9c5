// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const existing = `apiVersion: v1
kind: ConfigMap
metadata: {name: fixed, namespace: updating}
immutable: true
data: {a: one}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: updating}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: updating}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: i}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: updating}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: alone, namespace: updating}
spec: {containers: [{name: main, image: i}]}
---
apiVersion: kubeflow.org/v1alpha1
kind: PodDefault
metadata: {name: proxy, namespace: updating}
spec: {selector: {matchLabels: {app: web}}, env: [{name: PROXY, value: here}]}
`

// testReviewedUpdates reviews files with objects that exist: the API server is asked whether it takes the change.
func testReviewedUpdates(t *testing.T, e *env) {
	const name = "updating"
	e.namespace(t, name)
	p := newPlugin(t, e)
	document := func(kind string) string {
		for text := range strings.SplitSeq(existing, "---\n") {
			if strings.Contains(text, "kind: "+kind+"\n") {
				return text
			}
		}
		t.Fatalf("no %s", kind)
		return ""
	}
	with := func(kind, old, changed string) string {
		t.Helper()
		before := document(kind)
		after := strings.Replace(before, old, changed, 1)
		if before == after {
			t.Fatalf("no %q in %s", old, before)
		}
		return after
	}
	review, reader := []string{"review", "--server", "-f", "-"}, p.as(t, e, name)
	if stdout := p.says(t, 0, review, existing); strings.Contains(stdout, "exist") {
		t.Error(stdout)
	}
	for _, how := range [][]string{{"create", "-f", "-", "--save-config=false"}, {"apply", "-f", "-"}, {"apply", "--server-side", "-f", "-"}} {
		t.Run(strings.Join(how[:len(how)-1], " "), func(t *testing.T) {
			if _, stderr, status := p.run(t, existing, how...); status != 0 {
				t.Fatal(stderr)
			}
			defer p.run(t, existing, "delete", "--now", "-f", "-")
			t.Run("what is not changed is accepted", func(t *testing.T) {
				quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "full"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/configmaps": resource.MustParse("0"), "services": resource.MustParse("0")}}}
				e.create(t, quota)
				p.says(t, 0, review, existing, "note: 6 objects exist in the cluster: reviewed as updates")
				stored, stderr, status := p.run(t, "", "get", "-n", name, "-o", "yaml", "configmap/fixed", "service/web", "deployment/web", "job/once", "pod/alone", "poddefault/proxy")
				if status != 0 {
					t.Fatal(stderr)
				}
				p.says(t, 0, review, stored, "note: 6 objects exist in the cluster")
				if err := e.client.Delete(t.Context(), quota); err != nil {
					t.Fatal(err)
				}
			})
			for what, text := range map[string]string{
				"data of an immutable ConfigMap":        with("ConfigMap", "one", "two"),
				"the selector of a Deployment":          strings.ReplaceAll(document("Deployment"), "app: web}", "app: other}"),
				"the template of a Job":                 with("Job", "image: i", "image: other"),
				"a volume of a pod":                     with("Pod", "spec: {", "spec: {volumes: [{name: v, emptyDir: {}}], "),
				"the image of a pod":                    with("Pod", "image: i", "image: other"),
				"the port of a Service":                 with("Service", "port: 80", "port: 81"),
				"the type of a Service":                 with("Service", "spec: {", "spec: {type: NodePort, "),
				"variables with the same name":          with("Deployment", "image: i", "image: i, env: [{name: A, value: '1'}, {name: A, value: '2'}]"),
				"a PodDefault":                          with("PodDefault", "value: here", "value: there"),
				"an object of a name that is not taken": with("ConfigMap", "fixed", "another"),
			} {
				t.Run(what, func(t *testing.T) {
					args := append([]string{"--dry-run=server"}, how...)
					if how[0] == "create" {
						args = []string{"--dry-run=server", "apply", "-f", "-"}
					}
					_, stderr, refused := p.run(t, text, args...)
					stdout, told, status := p.run(t, text, append([]string{"sallyport"}, review...)...)
					if want := map[bool]int{false: 0, true: 3}[refused != 0]; status != want {
						t.Errorf("status %d, want %d:\n%s%s\nkubectl: %s", status, want, stdout, told, stderr)
					}
				})
			}
			p.says(t, 3, review, with("ConfigMap", "one", "two"), "field is immutable when `immutable` is set; data is as it was sent")
			t.Run("without the right to change it the answer is unknown", func(t *testing.T) {
				reader.says(t, 1, review, with("ConfigMap", "one", "two"), "whether the API server accepts it is not known", `cannot patch resource "configmaps"`)
			})
			t.Run("without the right to read it the answer is unknown", func(t *testing.T) {
				p.says(t, 1, append(review, "--as", "stranger"), document("ConfigMap"), "whether the object exists is not known", `cannot get resource "configmaps"`)
			})
			var fixed corev1.ConfigMap
			if err := e.client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "fixed"}, &fixed); err != nil || fixed.Data["a"] != "one" {
				t.Errorf("it has changed: %v, %v", fixed.Data, err)
			}
		})
	}
}
