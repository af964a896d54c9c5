// SPDX-License-Identifier: Apache-2.0

package sallyporttest_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// The API server calls the webhooks as soon as Start returns, and both replicas answer.
func TestStartOnARealAPIServer(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d replicas", replicas), func(t *testing.T) {
			t.Parallel()
			rules := admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps"), "CREATE")
			var controllers, answers atomic.Int32
			app, err := sallyport.New("stamps",
				sallyport.WithWebhooks(
					admission.Mutating("stamp.example.com", rules, admission.Mutate(func(_ context.Context, c *corev1.ConfigMap) error {
						answers.Add(1)
						c.Labels = map[string]string{"stamp": "yes"}
						return nil
					}), admission.WithNamespaceSelector(&metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "default"}})),
					admission.Validating("check.example.com", rules, admission.Validate(func(_ context.Context, c *corev1.ConfigMap) error {
						if len(c.Data) == 0 && c.Name != "kube-root-ca.crt" {
							return admission.Denyf("a ConfigMap without data")
						}
						return nil
					}), admission.WithNamespaceSelector(&metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "default"}}))),
				sallyport.WithController("counter", func(m manager.Manager) error {
					return m.Add(manager.RunnableFunc(func(ctx context.Context) error { controllers.Add(1); <-ctx.Done(); return nil }))
				}))
			if err != nil {
				t.Fatal(err)
			}
			cluster := sallyporttest.Start(t, app, sallyporttest.WithReplicas(replicas))
			for i := range 10 {
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("a-%d", i)}, Data: map[string]string{"a": "b"}}
				if err := cluster.Client.Create(t.Context(), object); err != nil || object.Labels["stamp"] != "yes" {
					t.Fatalf("%d: %v, %v", i, object.Labels, err)
				}
			}
			empty := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "empty"}}
			if err := cluster.Client.Create(t.Context(), empty, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "a ConfigMap without data") {
				t.Errorf("an empty one: %v", err)
			}
			if controllers.Load() != 1 {
				t.Errorf("controllers run in %d of %d replicas", controllers.Load(), replicas)
			}
		})
	}
}
