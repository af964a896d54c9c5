// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
)

// testRevisionAuthors has a tenant who may write revisions, and neither PodDefaults nor pods, try
// to give pods something by them. The server writes its own with the rights that it prints.
func testRevisionAuthors(t *testing.T, e *env) {
	const name, tenant, author = "revision-authors", "writer-of-revisions", "author-of-revisions"
	r := newHistorian(t, e, name)
	e.awaitJudge(t, name)
	revisions := rbacv1.PolicyRule{APIGroups: []string{sallyportv1alpha1.GroupName}, Resources: []string{"*"}, Verbs: []string{"*"}}
	e.grant(t, name, tenant, revisions)
	e.grant(t, name, author, revisions, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create"}})
	e.grant(t, "", tenant+"-of-the-cluster", revisions)

	pd := envPodDefault(name, "env")
	pd.Spec.Env[0].Value = "one"
	e.create(t, pd)
	first := plan.RevisionOf(plan.Meaning(&pd.Spec))
	r.await(pd, first)
	r.patch(pd, `{"env":[{"name":"FROM_PODDEFAULT","value":"two"}],"rollout":{"paused":true,"steps":[{"podSelector":{"matchLabels":{"canary":"true"}}}]}}`)
	second := plan.RevisionOf(plan.Meaning(&pd.Spec))
	r.await(pd, second, first)
	eventually(t, "the first step", func(context.Context) (bool, error) {
		return r.got(map[string]string{"canary": "true"}) == "1 two", nil
	})
	r.awaitPod("1 one")

	usable, _ := revision.Of(revision.Owner{Namespace: name, UID: pd.UID}, r.revisions(name, "env"))
	stable := &revision.Object{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: revision.StableAmong(usable).Identity().Name}}
	forged := stableObject(revision.New(reference(kubeflowv1alpha1.PodDefaultKind, pd), name, []byte(evil), 99))
	forged.Rollout = &sallyportv1alpha1.RevisionRollout{Revision: second}
	patch := func(user client.Client, body string) error {
		return user.Patch(t.Context(), stable.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)))
	}
	user := e.user(t, tenant)
	for what, do := range map[string]func() error{
		"a stable revision of his own": func() error { return user.Create(t.Context(), forged.DeepCopy()) },
		"a step":                       func() error { return patch(user, `{"rollout":{"revision":"`+second+`","step":2}}`) },
		"the label":                    func() error { return patch(user, `{"metadata":{"labels":{"`+revision.StableLabel+`":null}}}`) },
		"the spec":                     func() error { return patch(user, `{"spec":`+evil+`}`) },
		"the owner":                    func() error { return patch(user, `{"metadata":{"ownerReferences":null}}`) },
	} {
		if err := do(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), byRole+" "+name) {
			t.Errorf("%s: %v", what, err)
		}
		if got := r.got(nil); got != "1 one" {
			t.Errorf("%s: pods get %s", what, got)
		}
	}
	if err := patch(user, `{"metadata":{"annotations":{"note":"kept"}}}`); err != nil {
		t.Errorf("an annotation, which decides nothing: %v", err)
	}

	cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cpd.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
	cpd.Spec.Selector.MatchLabels, cpd.Spec.Env = map[string]string{"use": "never"}, []corev1.EnvVar{{Name: "FROM_CLUSTER", Value: "one"}}
	e.create(t, cpd)
	r.await(cpd, plan.RevisionOf(plan.ClusterMeaning(&cpd.Spec)))
	made := stableObject(revision.New(reference(sallyportv1alpha1.ClusterPodDefaultKind, cpd), "", []byte(evil), 99))
	clusterWide := &sallyportv1alpha1.ClusterPodDefaultRevision{ObjectMeta: made.ObjectMeta, RevisionContent: made.RevisionContent}
	if err := e.user(t, tenant+"-of-the-cluster").Create(t.Context(), clusterWide); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may not create pods in every namespace") {
		t.Errorf("a ClusterPodDefaultRevision of a user without pods: %v", err)
	}

	// An author may, as with the PodDefault itself.
	if err := patch(e.user(t, author), `{"metadata":{"labels":{"note":"kept"}}}`); err != nil {
		t.Errorf("an author: %v", err)
	}
	r.says(t, 0, []string{"rollout", "promote", "poddefault/env", "-n", name, "--full"}, "", "promoted to all new pods")
	r.awaitPod("1 two")
}
