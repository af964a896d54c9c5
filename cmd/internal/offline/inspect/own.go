// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"encoding/json"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/foreign"
)

// MutatingAsRegistered reads the mutating webhooks of a cluster. Those whose server records
// its own terms are as the server has registered them, without terms of other clients.
func MutatingAsRegistered(ctx context.Context, c *cluster.Cluster) (*Admission, error) {
	return admissionOfCluster(ctx, c, mutatingKinds, func(objects *Objects) error {
		for i := range objects.All {
			o := &objects.All[i]
			record, known := foreign.Read(o.Annotations)
			if !known || o.Kind != mutatingKinds[0].Kind {
				continue
			}
			var configuration admissionregistrationv1.MutatingWebhookConfiguration
			if err := json.Unmarshal(o.Raw, &configuration); err != nil {
				return fmt.Errorf("%s %s: %w", o.Kind, o.Name, err)
			}
			for j, observed := range foreign.Mutating(&configuration) {
				if own, ours := record[observed.Name]; ours {
					w := &configuration.Webhooks[j]
					stripped := own.Strip(observed)
					w.NamespaceSelector, w.ObjectSelector, w.MatchConditions = stripped.NamespaceSelector, stripped.ObjectSelector, stripped.MatchConditions
				}
			}
			raw, err := json.Marshal(&configuration)
			if err != nil {
				return fmt.Errorf("%s %s: %w", o.Kind, o.Name, err)
			}
			o.Raw = raw
		}
		return nil
	})
}

// Mutating reads the mutating webhooks of a cluster.
func Mutating(ctx context.Context, c *cluster.Cluster) (*Admission, error) {
	return AdmissionOfCluster(ctx, c, mutatingKinds)
}

var mutatingKinds = []schema.GroupVersionKind{admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration")}
