// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/test/lab"
)

// registered tells whether the configuration leads to the URL, and can be trusted.
func (e *env) registered(ctx context.Context, name, url string) (bool, error) {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := e.client.Get(ctx, client.ObjectKey{Name: name}, configuration); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	for _, webhook := range configuration.Webhooks {
		config := webhook.ClientConfig
		if config.URL == nil || !strings.HasPrefix(*config.URL, url+"/") || len(config.CABundle) == 0 {
			return false, fmt.Errorf("%s: %+v", webhook.Name, config.URL)
		}
	}
	return len(configuration.Webhooks) > 0, nil
}

func testReviewVersions(t *testing.T, e *env) {
	for i, versions := range []string{"v1", "v1beta1", "v1beta1,v1", "v1,v1beta1"} {
		t.Run(versions, func(t *testing.T) {
			name := e.namespace(t, fmt.Sprintf("versions-%d", i))
			e.serve(t, name, lab.Set("registration.reviewVersions", "["+versions+"]"))
			pod := simplePod(name, "injected")
			e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
			e.create(t, pod)
			if got := e.stored(t, pod).Spec.Containers[0].Env; len(got) != 1 || got[0].Name != "FROM_PODDEFAULT" {
				t.Errorf("env is %v", got)
			}
			configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
			if err := e.client.Get(t.Context(), client.ObjectKey{Name: name}, configuration); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(configuration.Webhooks[0].AdmissionReviewVersions, ","); got != versions {
				t.Errorf("registered are the versions %s", got)
			}
		})
	}
}

func testWebhookDown(t *testing.T, e *env) {
	name := e.namespace(t, "down")
	other := e.namespace(t, "down-other")
	e.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "default"}})
	s := e.serve(t, name)
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	s.Kill()

	err := e.client.Create(t.Context(), simplePod(name, "refused"))
	if err == nil {
		t.Fatal("the pod was admitted without its PodDefault")
	}
	if got := status(t, err); got.Code != http.StatusInternalServerError || !strings.Contains(got.Message, poddefault.Name) {
		t.Errorf("got %+v", got)
	}
	excluded := simplePod(name, "excluded")
	excluded.Annotations = map[string]string{meta.ExcludeAnnotation: "true"}
	e.create(t, excluded)
	e.create(t, simplePod(other, "elsewhere"))
	e.create(t, simplePod(metav1.NamespaceSystem, "system"))

	again := e.serve(t, name)
	_ = again
	eventually(t, "pods to be admitted again", func(ctx context.Context) (bool, error) {
		pod := simplePod(name, "back")
		err := e.client.Create(ctx, pod)
		if apierrors.IsAlreadyExists(err) {
			return false, fmt.Errorf("created, but not injected: %v", e.stored(t, pod).Annotations)
		}
		return err == nil && len(pod.Spec.Containers[0].Env) == 1, err
	})
}

func testAuthority(t *testing.T, e *env) {
	name := e.namespace(t, "authority")
	secret := name + "/ca"
	bundle := func() string {
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := e.client.Get(t.Context(), client.ObjectKey{Name: name}, configuration); err != nil {
			t.Fatal(err)
		}
		return string(configuration.Webhooks[0].ClientConfig.CABundle)
	}
	first := e.serve(t, name, "--authority-secret", secret)
	before := bundle()
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	first.stop(t)
	e.serve(t, name, "--authority-secret", secret)
	if after := bundle(); after != before {
		t.Errorf("the authority is another one after a restart:\n%s\n%s", before, after)
	}
	pod := simplePod(name, "after-restart")
	e.create(t, pod)
	if len(pod.Spec.Containers[0].Env) != 1 {
		t.Error("the pod was not injected")
	}
}
