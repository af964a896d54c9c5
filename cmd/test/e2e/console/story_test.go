// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/test/lab"
)

// story makes what the pages show: two teams share credentials and a proxy. Pods of a web server are older than the
// proxy, those of a worker were created while there was no server, the address of the proxy has changed and is being rolled out, and one workload is exempt from it.
func (w *world) story(t *testing.T) {
	t.Helper()
	w.create(t, namespace("team-a"), namespace("team-b"))
	labels := map[string]string{"use-proxy": "true"}
	w.create(t, deployment("team-a", "web", labels)...) // before there are PodDefaults
	w.create(t, credentials("team-a"), credentials("team-b"), proxy("team-b"), &sallyportv1alpha1.ClusterPodDefault{
		ObjectMeta: metav1.ObjectMeta{Name: "time-zone"},
		Spec: sallyportv1alpha1.ClusterPodDefaultSpec{PodDefaultSpec: kubeflowv1alpha1.PodDefaultSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "notebook"}}, Desc: "The time zone of the data center", Env: []corev1.EnvVar{{Name: "TZ", Value: "UTC"}},
		}},
	})
	changing := proxy("team-a")
	changing.Spec.Rollout = &kubeflowv1alpha1.Rollout{Steps: []kubeflowv1alpha1.RolloutStep{{Percent: ptr.To[int32](10)}, {Percent: ptr.To[int32](50)}}}
	w.create(t, changing)
	w.create(t, deployment("team-a", "worker", labels)...) // while there is no server
	w.serve(t)

	applied := pod("team-a", "notebook-0", map[string]string{"add-gcp-secret": "true", "app": "notebook"})
	applied.APIVersion, applied.Kind = "v1", "Pod"
	text, err := json.Marshal(applied)
	check(t, err)
	applied.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: string(text)}
	w.create(t, applied, pod("team-b", "notebook-0", map[string]string{"add-gcp-secret": "true", "app": "notebook"}))
	w.create(t, deployment("team-a", "api", labels)...)
	w.create(t, &sallyportv1alpha1.Exemption{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "mirror"},
		Spec: sallyportv1alpha1.ExemptionSpec{
			Until: metav1.NewTime(time.Now().Add(72 * time.Hour)), PodDefaults: []string{"http-proxy"}, Workloads: []string{"Deployment/mirror"}, Reason: "the proxy breaks its certificates",
		},
	})
	w.create(t, deployment("team-b", "mirror", labels)...)
	revisions := func(what string, count int) {
		t.Helper()
		lab.Eventually(t.Context(), t, patience, what, func(ctx context.Context) (bool, error) {
			var list sallyportv1alpha1.PodDefaultRevisionList
			err := w.client.List(ctx, &list, client.InNamespace("team-a"))
			return len(list.Items) >= count, err
		})
	}
	revisions("the first revisions", 2)
	check(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(changing), changing))
	changing.Spec.Env[0].Value = "http://proxy-2.example.com:3128"
	check(t, w.client.Update(t.Context(), changing))
	revisions("the revision of the change", 3)
	lab.Eventually(t.Context(), t, patience, "the rollout to begin", func(ctx context.Context) (bool, error) {
		err := w.client.Get(ctx, client.ObjectKeyFromObject(changing), changing)
		return changing.Status.Rollout != nil && changing.Status.Rollout.Step == 1, err
	})
	late := deployment("team-a", "batch", labels)
	w.create(t, late...)
}

// deployment is a Deployment with its ReplicaSet and two pods, because no controller runs.
func deployment(namespace, name string, labels map[string]string) []client.Object {
	template := pod(namespace, "", labels)
	spec := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template.Spec}
	owned := func(o client.Object, kind, owner string) client.Object {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: owner, UID: "5d1c0a3e-0000-4000-8000-000000000000", Controller: ptr.To(true)}})
		return o
	}
	out := []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: spec}},
		owned(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-7c9d"}, Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: spec}}, "Deployment", name),
	}
	for i := range 2 {
		out = append(out, owned(pod(namespace, fmt.Sprintf("%s-7c9d-%d", name, i), labels), "ReplicaSet", name+"-7c9d"))
	}
	return out
}

// create creates objects. The controllers that own them get the UIDs that the API server gave them.
func (w *world) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for i, o := range objects {
		for j, of := range o.GetOwnerReferences() {
			for _, owner := range objects[:i] {
				if owner.GetName() == of.Name {
					references := o.GetOwnerReferences()
					references[j].UID = owner.GetUID()
					o.SetOwnerReferences(references)
				}
			}
		}
		check(t, errors.Join(w.client.Create(t.Context(), o)))
	}
}
