// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/sallyport-io/sallyport/examples/crontab/api/v1"
	"github.com/sallyport-io/sallyport/examples/crontab/api/v1beta1"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// docs/conversion.md says how to install a definition for the reason that this shows.
func TestWithoutAStanzaObjectsAreStoredUnconvertedOnARealAPIServer(t *testing.T) {
	t.Parallel()
	config := sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(crd(t)))
	cluster := clientFor(t, config)
	write := func(name string) error {
		return cluster.Create(t.Context(), &v1.CronTab{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: v1.CronTabSpec{CronSpec: "0 3 * * *", Image: "i"}})
	}
	if err := write("none"); err != nil {
		t.Fatal(err)
	}
	var stored v1beta1.CronTab
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "none"}, &stored); err != nil {
		t.Fatal(err)
	}
	if stored.Spec.Schedule != (v1beta1.Schedule{}) || stored.Spec.Image != "i" {
		t.Errorf("the object was converted: %+v", stored.Spec)
	}
	edit(t.Context(), t, cluster, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "default", Name: "not-there"}},
				ConversionReviewVersions: []string{"v1"},
			},
		}
	})
	eventually(t.Context(), t, "the API server refuses what it cannot convert", func() error {
		err := write("webhook")
		if err != nil && strings.Contains(err.Error(), "conversion webhook for stable.example.com/v1, Kind=CronTab failed") {
			return nil
		}
		_ = cluster.Delete(t.Context(), &v1beta1.CronTab{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "webhook"}})
		return fmt.Errorf("it was written, or refused for another reason: %w", err)
	})
}
