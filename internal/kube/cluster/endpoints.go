// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Endpoints returns the endpoints of a Service.
func (c *Cluster) Endpoints(ctx context.Context, namespace, service string) (ready, other []discoveryv1.Endpoint, err error) {
	list, err := c.Client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	if err != nil {
		return nil, nil, err
	}
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready = append(ready, e)
			} else {
				other = append(other, e)
			}
		}
	}
	return ready, other, nil
}
