// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// notebookDefinition is what the API server must know of Notebooks, which are sent in an older version, too.
const notebookDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: notebooks.kubeflow.org}
spec:
  group: kubeflow.org
  scope: Namespaced
  names: {kind: Notebook, plural: notebooks, singular: notebook}
  versions:
  - {name: v1, served: true, storage: true, schema: &any {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1beta1, served: true, storage: false, schema: *any}
`

const podTemplateOfAll = `{metadata: {labels: {use: "true"}}, spec: {restartPolicy: POLICY, containers: [{name: app, image: "app:1"}]}}`

// workloads are manifests by kind, whose pods are those of podTemplateOfAll.
func workloads() map[string]string {
	always := strings.Replace(podTemplateOfAll, "POLICY", "Always", 1)
	never := strings.Replace(podTemplateOfAll, "POLICY", "Never", 1)
	of := func(version, kind, spec string) string {
		return "apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: web}\nspec: " + spec + "\n"
	}
	selected := "{selector: {matchLabels: {use: 'true'}}, template: " + always + "}"
	return map[string]string{
		"Deployment":  of("apps/v1", "Deployment", selected),
		"StatefulSet": of("apps/v1", "StatefulSet", "{serviceName: web, selector: {matchLabels: {use: 'true'}}, template: "+always+"}"),
		"DaemonSet":   of("apps/v1", "DaemonSet", selected),
		"ReplicaSet":  of("apps/v1", "ReplicaSet", selected),
		"Job":         of("batch/v1", "Job", "{template: "+never+"}"),
		"CronJob":     of("batch/v1", "CronJob", "{schedule: 0 3 * * *, jobTemplate: {spec: {template: "+never+"}}}"),
		"Notebook":    of("kubeflow.org/v1beta1", "Notebook", "{template: "+always+"}"),
	}
}

// kubectlIn runs kubectl in a namespace, and returns what it prints, warnings included.
func (e *env) kubectlIn(t *testing.T, namespace, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), kubectl(), append([]string{"--kubeconfig", e.kubeconfig, "-n", namespace}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// testPodTemplate applies workloads whose pods two PodDefaults refuse.
func testPodTemplate(t *testing.T, e *env) {
	name := e.namespace(t, "podtemplate")
	e.kubectlIn(t, name, notebookDefinition, "apply", "-f", "-")
	e.kubectlIn(t, name, "", "wait", "--for=condition=Established", "crd/notebooks.kubeflow.org")
	s := e.serve(t, name, "--webhooks", "poddefault,podtemplate", "--failure-policy", "Fail")
	of := func(name, value string) *kubeflowv1alpha1.PodDefault {
		return podDefault("podtemplate", name, kubeflowv1alpha1.PodDefaultSpec{Env: []corev1.EnvVar{{Name: "A", Value: value}}})
	}
	e.create(t, of("one", "a"))
	e.create(t, of("two", "canary"))
	all := workloads()
	eventually(t, "a Deployment to be warned of", func(context.Context) (bool, error) {
		return strings.Contains(e.kubectlIn(t, name, all["Deployment"], "apply", "--dry-run=server", "-f", "-"), "Warning"), nil
	})
	for kind, manifest := range all {
		labelled := manifest
		if kind == "Notebook" { // whose pods have its own labels
			labelled = strings.Replace(manifest, "{name: web}", "{name: web, labels: {use: 'true'}}", 1)
		}
		want := "Warning: pods of " + kind + " web would be refused: PodDefaults one and two both set env A of container app: they differ in value\n"
		for _, args := range [][]string{{"--dry-run=server"}, {"--server-side"}} {
			if got := e.kubectlIn(t, name, labelled, append([]string{"apply", "-f", "-"}, args...)...); !strings.HasPrefix(got, want) || strings.Count(got, "Warning") != 1 || !strings.Contains(got, "web ") {
				t.Errorf("%s %v: got %q", kind, args, got)
			}
		}
		if got := e.kubectlIn(t, name, labelled, "diff", "--server-side", "-f", "-"); strings.Contains(got, "\n+") || strings.Contains(got, "\n-") {
			t.Errorf("%s: what is stored differs:\n%s", kind, got)
		}
	}
	for _, args := range [][]string{
		{"scale", "deployment", "web", "--replicas", "3"}, {"label", "deployment", "web", "team=a"}, {"patch", "deployment", "web", "-p", `{"spec":{"paused":true}}`},
		{"delete", "job", "web", "--wait=false"},
	} {
		if got := e.kubectlIn(t, name, "", args...); strings.Contains(got, "Warning") {
			t.Errorf("%v: got %q", args, got)
		}
	}
	if got := e.kubectlIn(t, name, "", "set", "image", "deployment", "web", "app=app:2"); !strings.Contains(got, "Warning: pods of Deployment web") {
		t.Errorf("another image: got %q", got)
	}
	reviews := func() string {
		return s.metric(t, `sallyport_admission_reviews_total{outcome="allowed",webhook="podtemplate.sallyport.io"}`)
	}
	before := reviews()
	owned := strings.Replace(all["ReplicaSet"], "{name: web}", "{name: owned, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: 00000000-0000-0000-0000-000000000001, controller: true}]}", 1)
	if got := e.kubectlIn(t, name, owned, "create", "-f", "-"); strings.Contains(got, "Warning") || reviews() != before {
		t.Errorf("a ReplicaSet of a Deployment: got %q, %s reviews after %s", got, reviews(), before)
	}
	testPodTemplateModes(t, e, s, name, all["Deployment"])
}

// testPodTemplateModes sets a PodDefault to mode Audit, and stops the server.
func testPodTemplateModes(t *testing.T, e *env, s *server, name, deployment string) {
	t.Helper()
	e.kubectlIn(t, name, "", "patch", "poddefault", "two", "--type=merge", "-p", `{"spec":{"mode":"Audit"}}`)
	other := strings.Replace(deployment, "{name: web}", "{name: other}", 1)
	eventually(t, "a Deployment not to be warned of", func(context.Context) (bool, error) {
		return !strings.Contains(e.kubectlIn(t, name, other, "apply", "--dry-run=server", "-f", "-"), "Warning"), nil
	})
	s.stop(t)
	start := time.Now()
	if got := e.kubectlIn(t, name, other, "apply", "-f", "-"); strings.Contains(got, "Warning") || time.Since(start) > 10*time.Second {
		t.Errorf("without a server: got %q after %s", got, time.Since(start))
	}
	stored := &unstructured.Unstructured{}
	stored.SetAPIVersion("apps/v1")
	stored.SetKind("Deployment")
	if err := e.client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "other"}, stored); err != nil {
		t.Error(err)
	}
	if managers := stored.GetManagedFields(); slices.ContainsFunc(managers, func(m metav1.ManagedFieldsEntry) bool { return strings.Contains(m.Manager, "sallyport") }) {
		t.Errorf("it is managed by %+v", managers)
	}
}
