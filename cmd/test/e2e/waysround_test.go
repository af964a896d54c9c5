// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// testWaysRound tries every verb that the API server has against the question whether an
// author may create pods. The author may do all there is to PodDefaults, and nothing else.
func testWaysRound(t *testing.T, e *env) {
	const name, stranger = "ways-round", "stranger"
	e.namespace(t, name)
	e.grant(t, name, stranger, rbacv1.PolicyRule{
		APIGroups: []string{kubeflowv1alpha1.GroupName}, Resources: []string{"poddefaults", "poddefaults/status", "poddefaults/finalizers"}, Verbs: []string{"*"},
	})
	e.serve(t, name)
	e.awaitJudge(t, name)
	user := e.user(t, stranger)
	env := func() *kubeflowv1alpha1.PodDefault { return envPodDefault(name, "mine") }
	e.createSoon(t, env(), simplePod(name, "probe"), meta.Mark("mine"))
	const spy = `{"spec":{"sidecars":[{"name":"spy","image":"spy"}]}}`
	stored := func(t *testing.T) *kubeflowv1alpha1.PodDefault {
		t.Helper()
		pd := env()
		if err := e.client.Get(t.Context(), client.ObjectKeyFromObject(pd), pd); err != nil {
			t.Fatal(err)
		}
		return pd
	}
	patch := func(kind types.PatchType, body string, options ...client.PatchOption) func(context.Context) error {
		return func(ctx context.Context) error {
			return user.Patch(ctx, env(), client.RawPatch(kind, []byte(body)), options...)
		}
	}
	applied := func(name string) string {
		return `{"apiVersion":"kubeflow.org/v1alpha1","kind":"PodDefault","metadata":{"name":"` + name + `"},"spec":{"selector":{},"command":["sh"]}}`
	}
	for what, attempt := range map[string]struct {
		do   func(context.Context) error
		says string // none: it is done, and changes nothing that counts
	}{
		"a name that the API server makes": {func(ctx context.Context) error {
			pd := envPodDefault(name, "")
			pd.GenerateName = "made-"
			return user.Create(ctx, pd)
		}, "PodDefault ways-round/made-"},
		"a dry run":           {func(ctx context.Context) error { return user.Create(ctx, envPodDefault(name, "dry"), client.DryRunAll) }, byRole},
		"a merge patch":       {patch(types.MergePatchType, spy), byRole},
		"a JSON patch":        {patch(types.JSONPatchType, `[{"op":"add","path":"/spec/serviceAccountName","value":"admin"}]`), byRole},
		"a server-side apply": {patch(types.ApplyPatchType, applied("mine"), client.FieldOwner("stranger"), client.ForceOwnership), byRole},
		"an apply that creates": {func(ctx context.Context) error {
			return user.Patch(ctx, envPodDefault(name, "applied"), client.RawPatch(types.ApplyPatchType, []byte(applied("applied"))), client.FieldOwner("stranger"))
		}, byRole},
		"labels and spec at once": {patch(types.MergePatchType, `{"metadata":{"labels":{"a":"b"}},"spec":{"selector":{"matchLabels":{"use":"false"}}}}`), byRole},
		"a spec by the status": {func(ctx context.Context) error {
			return user.Status().Patch(ctx, env(), client.RawPatch(types.MergePatchType, []byte(spy)))
		}, ""},
		"a status that says it is accepted": {func(ctx context.Context) error {
			return user.Status().Patch(ctx, env(), client.RawPatch(types.MergePatchType, []byte(
				`{"status":{"conditions":[{"type":"Accepted","status":"True","reason":"Valid","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)))
		}, ""},
		"labels that the selector of another object asks for": {patch(types.MergePatchType, `{"metadata":{"labels":{"use":"true"},"annotations":{"sallyport.io/poddefaults":"all"}}}`), ""},
		"another namespace's object":                          {func(ctx context.Context) error { return user.Create(ctx, envPodDefault("default", "elsewhere")) }, "cannot create resource"},
		"labels of the namespace, to be left out": {func(ctx context.Context) error {
			namespace := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
			return user.Patch(ctx, namespace, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"e2e":null}}}`)))
		}, "cannot patch resource"},
		"an ephemeral container": {patch(types.MergePatchType, `{"spec":{"ephemeralContainers":[{"name":"spy","image":"spy"}]}}`, client.FieldValidation(metav1.FieldValidationStrict)), `unknown field "spec.ephemeralContainers"`},
		"an object that is deleted and made again": {func(ctx context.Context) error {
			second := envPodDefault(name, "second")
			if err := e.client.Create(ctx, second); err != nil { // by somebody who may
				return err
			}
			if err := user.Delete(ctx, second); err != nil {
				return err
			}
			return user.Create(ctx, envPodDefault(name, "second"))
		}, byRole},
	} {
		t.Run(what, func(t *testing.T) {
			before := stored(t)
			switch err := attempt.do(t.Context()); {
			case attempt.says == "" && err != nil:
				t.Error(err)
			case attempt.says != "" && (err == nil || !strings.Contains(err.Error(), attempt.says)):
				t.Errorf("got %.300v, want %q", err, attempt.says)
			case err != nil && !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err) && !apierrors.IsInvalid(err):
				t.Errorf("refused with %v", err)
			}
			if after := stored(t); !equalJSON(t, before.Spec, after.Spec) {
				t.Errorf("the spec has changed: %s", toJSON(t, after))
			}
			pod := simplePod(name, "pod")
			if err := e.client.Create(t.Context(), pod, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(envNames(pod.Spec.Containers[0]), ","); got != "FROM_PODDEFAULT" || len(pod.Spec.Containers) != 1 {
				t.Errorf("a pod has %d containers and the variables %s", len(pod.Spec.Containers), got)
			}
		})
	}
}
