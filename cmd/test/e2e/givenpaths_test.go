// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// testGivenPaths leaves the configurations to somebody else: one with the path of Kubeflow's
// proposal, and one with that of OpenShift's example. The server registers nothing and runs
// no controllers.
func testGivenPaths(t *testing.T, e *env) {
	name := e.namespace(t, "given-paths")
	installProjectRequests(t, e)
	path := filepath.Join(t.TempDir(), "sallyport.yaml")
	configuration(t, path, "- {name: poddefault, path: /add-cred}\n- {name: projectlimit, path: /validate-project, settings: {limit: 0}}\n")
	s := e.start(t, name, "--config", path, "--registration", "None", "--authority-secret", name+"/ca")
	s.awaitReady(t)
	authority := &corev1.Secret{}
	if err := e.client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "ca"}, authority); err != nil {
		t.Fatal(err)
	}
	at := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: new(s.URL + path), CABundle: authority.Data[corev1.TLSCertKey]}
	}
	rules := func(group, resource string) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}},
		}}
	}
	credentials := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "gcp-cred-webhook"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "gcp-cred-webhook.kubeflow.org", ClientConfig: at("/add-cred"), Rules: rules("", "pods"),
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1beta1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"e2e": name}}, // other tests create pods, too
		}},
	}
	projects := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "project-validation-webhook"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "project-validation-webhook.example.com", ClientConfig: at("/validate-project"), Rules: rules("project.openshift.io", "projectrequests"),
			FailurePolicy: new(admissionregistrationv1.Ignore), MatchPolicy: new(admissionregistrationv1.Equivalent), TimeoutSeconds: new(int32(5)),
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1", "v1beta1"},
		}},
	}
	for _, object := range []client.Object{credentials, projects} {
		e.create(t, object)
		t.Cleanup(func() {
			if err := e.client.Delete(context.Background(), object); err != nil {
				t.Error(err)
			}
		})
	}
	if policy := *credentials.Webhooks[0].FailurePolicy; policy != admissionregistrationv1.Fail {
		t.Errorf("the API server's default is %s", policy)
	}

	pd := envPodDefault(name, "env")
	e.createSoon(t, pd, simplePod(name, "probe"), meta.Mark("env"))
	pod := simplePod(name, "injected")
	e.create(t, pod)
	if env := e.stored(t, pod).Spec.Containers[0].Env; len(env) != 1 {
		t.Errorf("env is %v", env)
	}
	if err := e.client.Get(t.Context(), client.ObjectKeyFromObject(pd), pd); err != nil || len(pd.Status.Conditions) > 0 {
		t.Errorf("a controller has written %+v, %v", pd.Status, err)
	}
	user := e.as(t, "given-paths")
	eventually(t, "a project request to be denied", func(ctx context.Context) (bool, error) {
		request := &unstructured.Unstructured{}
		request.SetAPIVersion("project.openshift.io/v1")
		request.SetKind("ProjectRequest")
		request.SetName("fourth")
		err := user.Create(ctx, request, client.DryRunAll)
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), projects.Webhooks[0].Name) && strings.Contains(err.Error(), "at most 0 projects") {
			return true, nil
		}
		return false, err
	})
}
