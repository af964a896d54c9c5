// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"k8s.io/utils/ptr"
)

// A Webhook is an entry of a webhook configuration in the cluster.
type Webhook struct {
	Kind, Name    string // of the configuration, of the webhook
	ClientConfig  admissionregistrationv1.WebhookClientConfig
	FailurePolicy admissionregistrationv1.FailurePolicyType
}

// Webhooks reads the entries of the mutating and the validating configuration of a name,
// either of which need not exist.
func (c *Cluster) Webhooks(ctx context.Context, configuration string) ([]Webhook, error) {
	return WebhooksOf(ctx, c.Client.AdmissionregistrationV1(), configuration)
}

// WebhooksOf is [Cluster.Webhooks] with a client of their API group.
func WebhooksOf(ctx context.Context, api admissionregistrationclient.AdmissionregistrationV1Interface, configuration string) ([]Webhook, error) {
	var out []Webhook
	mutating, err := api.MutatingWebhookConfigurations().Get(ctx, configuration, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	for _, w := range mutating.Webhooks {
		out = append(out, Webhook{"MutatingWebhookConfiguration", w.Name, w.ClientConfig, ptr.Deref(w.FailurePolicy, admissionregistrationv1.Fail)})
	}
	validating, err := api.ValidatingWebhookConfigurations().Get(ctx, configuration, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	for _, w := range validating.Webhooks {
		out = append(out, Webhook{"ValidatingWebhookConfiguration", w.Name, w.ClientConfig, ptr.Deref(w.FailurePolicy, admissionregistrationv1.Fail)})
	}
	return out, nil
}
