// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EndpointsOf returns the Endpoints that a controller writes beside a Service's EndpointSlices, of
// which each has one port. The proxy of API servers before Kubernetes 1.37 asks for them; for
// newer ones it returns nil.
func EndpointsOf(t testing.TB, slices ...discoveryv1.EndpointSlice) *corev1.Endpoints { //nolint:staticcheck // it is what older API servers read
	t.Helper()
	if KubernetesMinor(t) >= 37 {
		return nil
	}
	out := &corev1.Endpoints{} //nolint:staticcheck // likewise
	for _, s := range slices {
		out.ObjectMeta = metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
		port := s.Ports[0]
		for _, e := range s.Endpoints {
			out.Subsets = append(out.Subsets, corev1.EndpointSubset{ //nolint:staticcheck // likewise
				Addresses: []corev1.EndpointAddress{{IP: e.Addresses[0], TargetRef: e.TargetRef}},
				Ports:     []corev1.EndpointPort{{Name: *port.Name, Port: *port.Port, Protocol: *port.Protocol}},
			})
		}
	}
	return out
}
